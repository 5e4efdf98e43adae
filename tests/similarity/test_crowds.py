"""Groupings among many are drawn as often as prior and data say: against a sum over all of them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from coopbandits.gp.statistics import Statistics
from coopbandits.similarity import Evidence, crowds, evidence, found
from coopbandits.similarity.crowds import Many
from learnt_views import K_z_of, learner_of, linear_samples, tasks, view

NOISE, SIGNAL = 0.3, 0.5  # σ, and the deviation of the weights
GROUPS = 3


@pytest.fixture
def patient(monkeypatch):
    """Draw thousands of times."""
    monkeypatch.setattr(crowds, "_WALKERS", 40)
    monkeypatch.setattr(crowds, "_KEPT", 400)


def log_density(samples, label, rho):
    """log p(all rewards) from their covariance: ρ within groups; the last is nobody's."""
    X, y = (np.concatenate(part) for part in zip(*samples, strict=True))
    together = np.equal.outer(label, label) & (label < GROUPS)
    alike = np.where(np.eye(len(label)) > 0, 1.0, rho * together)
    who = np.repeat(np.arange(len(samples)), [len(sample[1]) for sample in samples])
    cov = SIGNAL**2 * alike[who[:, None], who] * (X @ X.T) + NOISE**2 * np.eye(len(y))
    return stats.multivariate_normal(cov=cov).logpdf(y)


def exact(samples, me, rho=1.0):
    """Return how likely each company of an agent is, by a sum over all ways to place everyone."""
    worth = np.array([0.5] * GROUPS + [0.3])
    fits, companies = [], []
    for places in product(range(GROUPS + 1), repeat=len(samples)):
        label = np.array(places)
        count = np.bincount(label, minlength=GROUPS + 1)
        fits.append((gammaln(worth + count) - gammaln(worth)).sum())
        fits[-1] += log_density(samples, label, rho)
        inside = np.flatnonzero(label == label[me]) if label[me] < GROUPS else [me]
        companies.append(frozenset(map(int, inside)))
    odds = np.exp(np.array(fits) - logsumexp(fits))
    weights: dict[frozenset[int], float] = {}
    for company, value in zip(companies, odds, strict=True):
        weights[company] = weights.get(company, 0.0) + value
    return weights


def many_of(samples, me):
    """Lay out samples of all agents in one view, everyone in the first group."""
    statistics = Statistics.of(np.array([Statistics.rows(X, y).sum(axis=0) for X, y in samples]), 3)
    noise, ratio = np.array([NOISE**2]), np.array([NOISE**2 / SIGNAL**2])
    own = [
        stats.multivariate_normal(
            cov=SIGNAL**2 * X @ X.T + NOISE**2 * np.eye(len(y)), allow_singular=False
        ).logpdf(y)
        - stats.norm(scale=NOISE).logpdf(y).sum()
        for X, y in samples
    ]
    N = len(samples)
    return Many(
        rows=statistics.compact[None],
        own=np.array([own]),
        noise=noise,
        ratio=ratio,
        groups=GROUPS,
        start=np.zeros((1, N), dtype=np.int64),
        members=np.ones((1, N), dtype=bool),
        me=np.array([me]),
        seeds=np.array([[7, 8]]),
    )


def weights_of(companies):
    members = [frozenset(map(int, np.flatnonzero(row))) for row in companies.members]
    return dict(zip(members, companies.weight, strict=True))


def assert_as_likely(found, expected):
    """16,000 draws that hang together: as if some 1,000 were independent."""
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-3)  # odds below 1e-4 are left out
    assert set(found) <= set(expected)
    for company, weight in expected.items():
        error = np.sqrt(weight * (1 - weight) / 1000)
        assert found.get(company, 0.0) == pytest.approx(weight, abs=4 * error + 1e-3), company


LABELS = pytest.mark.parametrize(
    "labels", [[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 2], [0, 1, 2, 3]], ids=str
)


@LABELS
def test_companies_are_as_likely_as_all_groupings_say(patient, rng, labels):
    theta = SIGNAL * tasks(rng, 4, dim=3) * np.sqrt(3)
    samples = linear_samples(rng, theta[labels], n=3, noise=NOISE)
    assert_as_likely(weights_of(many_of(samples, me=1).companies()), exact(samples, me=1))


@LABELS
@pytest.mark.parametrize("rho", [1.0, 0.85])
def test_evidence_says_so_under_the_rho_of_the_best_groups(patient, monkeypatch, rng, labels, rho):
    """From samples to K_z; who has not been heard from is in no company."""

    def best(groups, *rest, best=evidence.best):
        places, _, score = best(groups, *rest)
        return places, np.full(len(score), rho), score

    levels = (np.array([NOISE**2]), np.array([NOISE**2 / SIGNAL**2]))
    monkeypatch.setattr(evidence, "best", best)
    monkeypatch.setattr(evidence, "levels", lambda *_: levels)
    monkeypatch.setattr(found, "_RAREST", 0.0)
    monkeypatch.setattr(found, "HYPOTHESES", 1000)
    theta = SIGNAL * tasks(rng, 4, dim=3) * np.sqrt(3)
    samples = linear_samples(rng, theta[labels], n=3, noise=NOISE)
    learner = learner_of(Evidence(contexts=False, partitions=1, groups=GROUPS), 5)
    drawn = learner.estimate(view(learner, [None, *samples], 2))
    inside = drawn.U[..., 0] > 0
    np.testing.assert_allclose(drawn.U[..., 0] ** 2, rho * inside)
    np.testing.assert_allclose(drawn.U[..., 0] ** 2 + drawn.delta, 1.0)
    members = [frozenset(int(u) - 1 for u in np.flatnonzero(row)) for row in inside]
    members = [company or frozenset([1]) for company in members]
    weights = dict(zip(members, drawn.weight, strict=True))
    assert_as_likely(weights, exact(samples, 1, rho))


def test_who_is_not_there_changes_nothing(rng):
    """Views of different widths, together and one by one."""
    samples = linear_samples(rng, tasks(rng, 2, dim=3)[np.arange(6) % 2], n=3, noise=NOISE)
    narrow, wide = many_of(samples[:4], me=1), many_of(samples, me=1)
    padded = {
        name: np.concatenate([getattr(narrow, name), getattr(wide, name)[:, 4:]], axis=1)
        for name in ("rows", "own", "start", "members")
    }
    padded["rows"][:, 4:] = 0.0
    padded["members"][:, 4:] = False
    both = replace(
        wide,
        **{
            name: np.concatenate([padded.get(name, getattr(narrow, name)), getattr(wide, name)])
            for name in ("rows", "own", "noise", "ratio", "start", "members", "me", "seeds")
        },
    ).companies()
    for at, alone in enumerate([narrow, wide]):
        there, N = both.view == at, alone.members.shape[1]
        assert not both.members[there, N:].any()
        expected = weights_of(alone.companies())
        among = dict(
            zip(
                [frozenset(map(int, np.flatnonzero(row))) for row in both.members[there]],
                both.weight[there],
                strict=True,
            )
        )
        assert among.keys() == expected.keys()
        for company, weight in expected.items():
            assert among[company] == pytest.approx(weight)


def test_where_more_are_known_than_partitions_are_drawn_of_everyone_is_placed_at_once(
    monkeypatch, rng
):
    samples = linear_samples(rng, tasks(rng, 2)[np.arange(30) % 2], n=6)
    learner = learner_of(Evidence(), 30)
    drawn = learner.estimate(view(learner, samples, 3))
    assert 1 < len(drawn.view) <= found.HYPOTHESES
    assert drawn.weight.sum() == pytest.approx(1.0)
    monkeypatch.setattr(Many, "companies", lambda *_: pytest.fail("drawn"))
    K_z_of(Evidence(partitions=30), samples, me=3)
    quick = learner_of(Evidence(partitions=0), 30)
    assert len(quick.estimate(view(quick, samples, 3)).view) == 1
    monkeypatch.setattr(evidence, "_FEATURES", 4)  # with more features groups are found quickly
    K_z_of(Evidence(), samples, me=3)
    monkeypatch.setattr(evidence, "_FEATURES", 5)
    with pytest.raises(pytest.fail.Exception, match="drawn"):
        K_z_of(Evidence(), samples, me=3)


def test_two_tasks_are_told_apart_and_many_tasks_are_left_alone(rng):
    theta = tasks(rng, 2)
    row = K_z_of(Evidence(), linear_samples(rng, theta[np.arange(40) % 2], n=15), me=0)[0]
    assert row[2::2].mean() > 0.9
    assert row[1::2].mean() < 0.05
    row = K_z_of(Evidence(), linear_samples(rng, tasks(rng, 40), n=60), me=0)[0]
    assert row[1:].mean() < 0.1
