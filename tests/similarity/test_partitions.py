"""Companies are drawn as often as prior and data say: against a sum over all partitions."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from coopbandits.similarity import Evidence, evidence, found, laws, partitions
from coopbandits.similarity.groups import CORRELATIONS
from learnt_views import K_z_of, learner_of, linear_samples, tasks, view

NOISE, SIGNAL = 0.3, 0.5  # σ, and the deviation of the weights


@pytest.fixture
def patient(monkeypatch):
    """Draw thousands of times, with the levels given, and leave nothing small out."""
    monkeypatch.setattr(partitions, "_WALKERS", 40)
    monkeypatch.setattr(partitions, "_WARMING", 10)
    monkeypatch.setattr(partitions, "_KEPT", 200)
    monkeypatch.setattr(found, "_SMALLEST", 0.0)
    monkeypatch.setattr(found, "_OF_FEW", 1000)
    levels = (np.array([NOISE**2]), np.array([NOISE**2 / SIGNAL**2]))
    monkeypatch.setattr(evidence, "levels", lambda *_: levels)


def all_partitions(agents):
    if not agents:
        yield []
        return
    first, *rest = agents
    for smaller in all_partitions(rest):
        yield [[first], *smaller]
        for i, group in enumerate(smaller):
            yield [*smaller[:i], [first, *group], *smaller[i + 1 :]]


def log_density(samples, together, rho):
    """log p(all rewards) from their covariance: ρ between agents that are together."""
    X, y = (np.concatenate(part) for part in zip(*samples, strict=True))
    who = np.repeat(np.arange(len(samples)), [len(sample[1]) for sample in samples])
    K_z = np.where(np.eye(len(samples)) > 0, 1.0, rho * together)[who[:, None], who]
    cov = SIGNAL**2 * K_z * (X @ X.T) + NOISE**2 * np.eye(len(y))
    return stats.multivariate_normal(cov=cov).logpdf(y)


def law_density(offered, partition):
    """log p(means of decision sets), in units of their deviation; groups have centres N(0, I)."""
    means = np.array([sets.mean(axis=1) for sets in offered])  # (N, n, d)
    N, n, d = means.shape
    within = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum() / (d * N * (n - 1))
    x = (means - means.mean(axis=(0, 1))) / np.sqrt(within)
    total = 0.0
    for group in partition:
        seen = x[group].reshape(-1, d)
        law = stats.multivariate_normal(cov=np.eye(len(seen)) + 1.0)
        total += sum(law.logpdf(seen[:, axis]) for axis in range(d))
    return total


def prior_of(partition):
    """Log p(partition): a Chinese restaurant process, α one of a few."""
    n, K = sum(map(len, partition)), len(partition)
    alphas = (0.75 * n) ** np.array([0, 1 / 3, 2 / 3, 1])
    each = K * np.log(alphas) + gammaln(alphas) - gammaln(alphas + n)
    return logsumexp(each) + sum(gammaln(len(group)) for group in partition)


def exact(samples, me, offered=None):
    """Return how likely each company of an agent is, by a sum over all partitions, and every ρ.

    Where ρ < 1 there is one for all, None, with the mean of ρ where agents are together: (N, N).
    """
    N = len(samples)
    fits, found, alike = [], [], []
    for partition in all_partitions(list(range(N))):
        label = np.array([next(i for i, g in enumerate(partition) if u in g) for u in range(N)])
        together = np.equal.outer(label, label).astype(float)
        prior = prior_of(partition)
        prior += 0.0 if offered is None else law_density(offered, partition)
        for rho, share in zip(CORRELATIONS, partitions.SHARES, strict=True):
            fits.append(np.log(share) + prior + log_density(samples, together, rho))
            found.append(frozenset(partition[label[me]]) if rho == 1 else None)
            alike.append(rho * together)
    odds = np.exp(np.array(fits) - logsumexp(fits))
    weights: dict[frozenset[int] | None, float] = {}
    for company, value in zip(found, odds, strict=True):
        weights[company] = weights.get(company, 0.0) + value
    smooth = odds * [company is None for company in found]
    return weights, np.tensordot(smooth / smooth.sum(), alike, axes=1)


def companies(similarity, samples, me, **more):
    """Return how likely each company is drawn, and K_z where tasks vary smoothly, the last one."""
    learner = learner_of(similarity, len(samples))
    loadings = learner.estimate(view(learner, samples, me, **more))
    np.testing.assert_allclose((loadings.U**2).sum(axis=2) + loadings.delta, 1.0)
    members = [frozenset(np.flatnonzero(U[:, 0])) or frozenset([me]) for U in loadings.U[:-1]]
    return dict(zip([*members, None], loadings.weight, strict=True)), loadings.matrix[-1]


def assert_as_likely(found, expected):
    """8,000 draws that hang together: as if some 1,000 were independent."""
    (weights, smooth), (true, true_smooth) = found, expected
    assert sum(weights.values()) == pytest.approx(1.0)
    assert set(weights) <= set(true)
    for company, weight in true.items():
        error = np.sqrt(weight * (1 - weight) / 1000)
        assert weights.get(company, 0.0) == pytest.approx(weight, abs=4 * error + 1e-3), company
    off = ~np.eye(len(smooth), dtype=bool)
    share = 1000 * true[None]
    np.testing.assert_allclose(smooth[off], true_smooth[off], atol=4 * 0.5 / np.sqrt(share))


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 2], [0, 1, 2, 3]])
def test_companies_are_as_likely_as_all_partitions_say(patient, rng, labels):
    theta = SIGNAL * tasks(rng, 4, dim=3) * np.sqrt(3)
    samples = linear_samples(rng, theta[labels], n=3, noise=NOISE)
    found = companies(Evidence(contexts=False), samples, me=1)
    assert_as_likely(found, exact(samples, me=1))


@pytest.mark.parametrize("me", [0, 3])
def test_only_who_is_there_is_in_a_partition(rng, me):
    """The asking agent may have seen nothing yet; who has not been heard from is nobody's."""
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(5, dtype=int)], n=20)
    K_z = K_z_of(Evidence(partitions=5), [None, samples[1], None, *samples[3:]], me=me)
    np.testing.assert_array_equal(K_z[2], np.eye(5)[2])
    assert K_z[me, [1, 4]].min() > (0.3 if me == 0 else 0.9)
    assert np.linalg.eigvalsh(K_z).min() > -1e-12


def test_where_everyone_differs_nobody_is_believed_beyond_how_alike_tasks_are(rng):
    """Of twelve random tasks in five dimensions some are alike, to a degree."""
    theta = tasks(rng, 12)
    samples = linear_samples(rng, theta, n=60)
    row = K_z_of(Evidence(partitions=12), samples)[0, 1:]
    assert row.mean() < 0.15
    assert (row < np.maximum(theta[1:] @ theta[0], 0.0) + 0.1).all()


def test_where_all_are_the_same_most_draws_have_them_together(rng):
    samples = linear_samples(rng, tasks(rng, 1)[np.zeros(12, dtype=int)], n=10)
    row = K_z_of(Evidence(partitions=12), samples)[0, 1:]
    assert row.mean() > 0.9
    assert row.min() > 0.8  # each of 16 draws counts for 0.06


def test_with_many_features_no_more_than_a_handful_are_drawn(monkeypatch, rng):
    samples = linear_samples(rng, tasks(rng, 2, dim=17)[np.arange(6) % 2], n=4)
    quick = K_z_of(Evidence(partitions=0), samples)
    assert np.abs(K_z_of(Evidence(), samples) - quick).max() > 0.01
    monkeypatch.setattr(evidence, "_HANDFUL", 5)
    np.testing.assert_array_equal(K_z_of(Evidence(), samples), quick)


def test_a_law_of_contexts_is_weighed_as_all_partitions_weigh_it(patient, monkeypatch, rng):
    def best(groups, *rest, best=evidence.best):  # as if contexts always helped to predict
        places, rho, score = best(groups, *rest)
        return places, rho, score + 1e3 * (groups.contexts is not None)

    monkeypatch.setattr(laws.Contexts, "telling", lambda *_: np.array([True]))
    monkeypatch.setattr(evidence, "best", best)
    theta, centres = SIGNAL * tasks(rng, 2, dim=3), 0.5 * tasks(rng, 2, dim=3)
    samples, offered = [], []
    for label in (0, 1, 0, 1):
        sets = centres[label] + 0.7 * rng.normal(size=(3, 4, 3))
        offered.append(sets)
        samples.append((sets[:, 0], sets[:, 0] @ theta[label] + NOISE * rng.normal(size=3)))
    found = companies(Evidence(), samples, me=1, offered=offered)
    expected, without = exact(samples, 1, offered), exact(samples, 1)
    assert max(abs(expected[0][key] - without[0][key]) for key in expected[0]) > 0.05
    assert_as_likely(found, expected)


def test_strangers_stay_strangers_where_tasks_vary_smoothly(rng):
    """What a factor leaves of rounding must not link whom the asking agent shares nothing with."""
    for _ in range(200):
        labels = rng.integers(4, size=(12, 9))
        smooth = 0.85 * np.mean([np.equal.outer(row, row) for row in labels], axis=0)
        far = rng.random(9) < 0.4
        far[0] = False
        smooth[far, 0] = smooth[0, far] = 0.0
        nobody = np.empty(0, dtype=np.int64)
        drawn = partitions.Companies(
            nobody, np.empty((0, 9), dtype=bool), np.empty(0), smooth[None], np.ones(1)
        )
        (U,) = found.loaded(drawn, np.arange(9)[None], np.array([0]), 11, 16, 0.02).U
        known = np.append(smooth[0] >= 0.02, [False, False])
        np.testing.assert_array_equal((U != 0).any(axis=1), known)


def test_parts_as_large_as_each_other_are_cut_the_same_whatever_the_padding():
    """Fifteen pairs: of fourteen equal parts eleven stay, and padding must not say which."""
    pair = np.arange(30) // 2
    smooth = 0.1 + 0.4 * np.equal.outer(pair, pair)
    nobody = np.empty(0, dtype=np.int64)

    def cut(columns):
        padded = np.pad(smooth, (0, columns - 30))
        drawn = partitions.Companies(
            nobody, np.empty((0, columns), dtype=bool), np.empty(0), padded[None], np.ones(1)
        )
        places = np.arange(columns)[None]
        return found.loaded(drawn, places, np.array([0]), 40, 16, 0.02).matrix[0]

    np.testing.assert_allclose(cut(30), cut(37), atol=1e-9)
    assert (cut(30)[:30, :30] < smooth - 0.01).any()
