import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.features import Fourier
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.similarity import MeanEmbedding
from coopbandits.similarity.loadings import of_rank
from coopbandits.similarity.mean_embedding import FrozenKernel
from learnt_views import K_z_of, learner_of, view
from reference import formulas


def samples_of(rng, sizes=(5, 1, 9, 3), dim=3):
    return [
        (rng.normal(loc=0.5 * u, size=(n, dim)), rng.normal(size=n)) for u, n in enumerate(sizes)
    ]


def distances(learner, views):
    """Return the MMD between the agents of the only view: (N, N)."""
    [index] = views.index
    return learner.distances(views)[np.ix_(index, index)]


@pytest.mark.parametrize("unbiased", [False, True])
def test_the_distance_is_the_double_sum_of_its_definition(rng, unbiased):
    samples = samples_of(rng)
    learner = learner_of(MeanEmbedding(unbiased=unbiased), 4)
    distance = distances(learner, view(learner, samples))
    for u, (X, _) in enumerate(samples):
        for w, (Y, _) in enumerate(samples):
            if u != w:
                twin = formulas.mmd(formulas.linear, X, Y, unbiased)
                assert distance[u, w] == pytest.approx(twin, abs=1e-7)


@pytest.mark.parametrize("kernel", [RBF(1.2), Matern(nu=1.5)], ids=repr)
def test_with_features_the_distance_is_that_of_the_features_and_near_the_kernels(rng, kernel):
    samples, basis = samples_of(rng), Fourier(4096)
    learner = learner_of(MeanEmbedding(kernel=kernel, features=basis), 4)
    distance = distances(learner, view(learner, samples))

    def by_features(x, y):
        return (basis.features(kernel, x[None]) @ basis.features(kernel, y[None]).T).item()

    def by_kernel(x, y):
        return kernel(x[None], y[None]).item()

    for u, (X, _) in enumerate(samples):
        for w, (Y, _) in enumerate(samples):
            if u < w:
                assert distance[u, w] == pytest.approx(formulas.mmd(by_features, X, Y), abs=1e-6)
                assert distance[u, w] == pytest.approx(formulas.mmd(by_kernel, X, Y), abs=0.03)


def test_K_z_is_the_papers_formula_and_positive_semidefinite(rng):
    samples = samples_of(rng)
    for sigma in (0.3, 1.0, 4.0):
        K_z = K_z_of(MeanEmbedding(sigma), samples)
        for u, (X, _) in enumerate(samples):
            for w, (Y, _) in enumerate(samples):
                twin = 1.0 if u == w else np.exp(
                    -formulas.mmd(formulas.linear, X, Y) / (2 * sigma**2)
                )  # fmt: skip
                assert K_z[u, w] == pytest.approx(twin, abs=1e-7)
        assert np.linalg.eigvalsh(K_z)[0] > -1e-12


def test_lemma_2_the_error_of_the_logarithm_falls_like_the_root_of_the_samples(rng):
    """Linear embedding: the true distance of two laws is that of their means."""
    centres, sigma, d = np.array([[0.3, 0.0, 0.1], [-0.2, 0.4, 0.0]]), 0.8, 3
    truth = -np.linalg.norm(centres[0] - centres[1]) / (2 * sigma**2)
    counts, errors = [50, 200, 800, 3200], []
    for n in counts:
        found = []
        for _ in range(60):
            samples = [(c + rng.uniform(-1, 1, size=(n, d)), np.zeros(n)) for c in centres]
            found.append(abs(np.log(K_z_of(MeanEmbedding(sigma), samples)[0, 1]) - truth))
        errors.append(np.mean(found))
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_an_unbiased_estimate_is_repaired(rng):
    """Many agents of one law: unbiased distances are noise around 0, and K_z is indefinite."""
    samples = [(rng.normal(size=(3, 4)), np.zeros(3)) for _ in range(12)]
    learner = learner_of(MeanEmbedding(0.4, unbiased=True), 12)
    views = view(learner, samples)
    raw = np.exp(-distances(learner, views) / (2 * 0.4**2))
    assert np.linalg.eigvalsh(raw)[0] < -1e-3
    K_z = learner.estimate(views).matrix[0]
    assert np.linalg.eigvalsh(K_z)[0] > -1e-12
    np.testing.assert_allclose(np.diag(K_z), 1.0, atol=1e-12)


def test_the_median_rule_makes_the_median_distance_an_eth(rng):
    samples = samples_of(rng, sizes=(4, 5, 6))
    K_z = K_z_of(MeanEmbedding("median"), samples)
    above = K_z[np.triu_indices(3, 1)]
    assert np.median(above) == pytest.approx(np.exp(-1))


def test_agents_that_are_offered_the_same_are_the_same(rng):
    """The standard K-armed case, far from the origin: rounding must not make a distance."""
    arms = 1e3 + rng.normal(size=(4, 3))
    X = np.tile(arms, (5, 1))
    for bandwidth in ("median", 0.01):
        K_z = K_z_of(MeanEmbedding(bandwidth), [(X, np.zeros(20))] * 6)
        np.testing.assert_array_equal(K_z.round(12), np.ones((6, 6)))


def test_distances_far_from_the_origin_keep_their_digits(rng):
    X = rng.normal(size=(50, 3))
    samples = [(1e5 + X, np.zeros(50)), (1e5 + X + [1e-3, 0, 0], np.zeros(50))]
    learner = learner_of(MeanEmbedding(), 2)
    assert distances(learner, view(learner, samples))[0, 1] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("bandwidth", [0.5, "median"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_constant_contexts_one_sample_and_silence_are_defined(rng, bandwidth, unbiased):
    similarity = MeanEmbedding(bandwidth, unbiased=unbiased)
    same = [(np.ones((n, 2)), rng.normal(size=n)) for n in (1, 3, 7)]
    np.testing.assert_allclose(K_z_of(similarity, same), np.ones((3, 3)), atol=1e-6)
    single = [(rng.normal(size=(1, 2)), np.zeros(1)) for _ in range(3)]
    K_z = K_z_of(similarity, single)
    np.testing.assert_allclose(np.diag(K_z), 1.0)
    assert ((K_z > 0) & (K_z <= 1 + 1e-12)).all()
    # nobody has heard from agent 1: like nobody but itself
    K_z = K_z_of(similarity, [single[0], None, single[2]])
    np.testing.assert_array_equal(K_z[1], [0.0, 1.0, 0.0])
    assert K_z[0, 2] > 0
    # nor from the one that asks
    np.testing.assert_array_equal(K_z_of(similarity, [None, *single[1:]])[0], [1.0, 0.0, 0.0])


@pytest.mark.parametrize("me", [0, 3])
def test_a_rank_keeps_what_matters_to_the_asking_agent_and_gives_the_rest_back(rng, me):
    """Its own row exactly, then the principal parts of what is left; whole on the diagonal."""
    samples = samples_of(rng, sizes=(4, 5, 6, 7, 8))
    full, low = (K_z_of(MeanEmbedding(0.7, rank=rank), samples, me) for rank in (None, 2))
    left = full - np.outer(full[:, me], full[me]) / full[me, me]
    # the part that a direction of a factor of `left` tells: with all agents as landmarks, the best
    # direction is the leading one of the weighed remainder
    values, vectors = np.linalg.eigh(left)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    weighed = np.abs(full[me])[:, None] * factor
    direction = np.linalg.svd(weighed)[2][0]
    part = factor @ direction
    expected = np.outer(full[:, me], full[me]) / full[me, me] + np.outer(part, part)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(low[off], expected[off], atol=1e-8)
    np.testing.assert_allclose(np.diag(low), 1.0)
    np.testing.assert_allclose(low[me], full[me], atol=1e-10)
    np.testing.assert_allclose(K_z_of(MeanEmbedding(0.7, rank=5), samples), full, atol=1e-10)


def test_a_rank_leaves_a_remainder_that_is_a_kernel(rng):
    z = rng.normal(size=(12, 3))
    K_z = np.exp(-((z[:, None] - z[None]) ** 2).sum(axis=2))
    for rank in (1, 2, 3, 6, 12):
        U = of_rank(K_z[None], np.array([4]), rank)[0]
        assert np.linalg.eigvalsh(K_z - U @ U.T)[0] > -1e-9
        assert U.shape == (12, rank)


def test_all_offered_contexts_can_be_embedded_instead_of_the_chosen_ones(rng):
    network = cb.Network.complete(4)
    problem = cb.problems.clustered_linear(network, dim=3, actions=5)
    similarity = MeanEmbedding(0.5, sample="offered", refresh="every round")
    policy = cb.EagerKernelUCB(kernel=Linear(), similarity=similarity)
    run = cb.play(problem, policy, rounds=6, seed=1)
    seen = [[], [], [], []]
    for t in range(1, 6):
        offer = problem.round(t, 1)
        for v in range(4):
            seen[v] += list(offer.contexts[offer.agents == v])
    for v in range(4):
        for u in range(4):
            twin = 1.0 if u == v else np.exp(
                -formulas.mmd(formulas.linear, seen[v], seen[u]) / (2 * 0.5**2)
            )  # fmt: skip
            assert run.similarity(6)[v, u] == pytest.approx(twin, abs=1e-9)


def test_frozen_embeddings_travel_with_the_message_and_are_never_estimated_again(rng):
    policy = cb.EagerKernelUCB(
        kernel=Linear(), similarity=MeanEmbedding(0.6, refresh="frozen"), eta=0.5
    )
    agent = policy.agent(0, cb.Network.path(2))
    chosen, sent = [], []
    for _ in range(4):
        decision = agent.decide(rng.normal(size=(3, 2)))
        chosen.append(decision.context)
        (message,) = agent.reward(decision.id, rng.normal())
        np.testing.assert_array_equal(message.context, decision.context)
        np.testing.assert_allclose(message.attached, np.mean(chosen, axis=0), atol=1e-14)
        sent.append(message)
    # the next decision's belief is that of the frozen kernel, by the paper's formula
    X = np.array([m.observation.augmented for m in sent])
    offered = rng.normal(size=(3, 2))
    mine = np.mean(chosen, axis=0)
    decision = agent.decide(offered)

    def k(a, b):
        alike = np.exp(-np.linalg.norm(a[2:] - b[2:]) / (2 * 0.6**2))
        return alike * (a[:2] @ b[:2])

    asked = np.append(decision.context, mine)
    K = np.array([[k(a, b) for b in X] for a in X])
    kappa = np.array([k(asked, b) for b in X])
    y = np.array([m.reward for m in sent])
    inverse = np.linalg.inv(K + np.eye(4))
    assert decision.mean == pytest.approx(kappa @ inverse @ y, rel=1e-9)
    assert decision.std == pytest.approx(
        np.sqrt(k(asked, asked) - kappa @ inverse @ kappa), rel=1e-9
    )
    # an agent's own past, made under earlier embeddings, is discounted too
    assert k(X[0], asked) < X[0, :2] @ asked[:2] or X[0, :2] @ asked[:2] <= 0


def test_frozen_kernels_are_positive_semidefinite(rng):
    learner = learner_of(MeanEmbedding(0.5, refresh="frozen"), 3, RBF())
    kernel = FrozenKernel(RBF(), learner, cb.policies.EagerKernelUCB(
        kernel=RBF(), similarity=cb.similarity.Same()).compose)  # fmt: skip
    X = np.hstack([rng.normal(size=(9, 2)), 0.1 * rng.normal(size=(9, learner.attached(2)))])
    agents = np.zeros(9, dtype=np.int64)
    K = kernel(agents, X, agents, X)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(agents, X))


def test_a_frozen_run_shows_K_z_between_the_latest_messages():
    policy = cb.EagerKernelUCB(
        kernel=Linear(), similarity=MeanEmbedding(0.5, refresh="frozen"), ttl=2
    )
    problem = cb.problems.clustered_linear(cb.Network.path(3), dim=3)
    run = cb.play(problem, policy, rounds=5, seed=1)
    np.testing.assert_array_equal(run.similarity(1), np.eye(3))
    chosen = []
    for t in range(1, 6):
        offer = problem.round(t, 1)
        chosen.append(offer.contexts[offer.starts + run.actions[t - 1]])
    # at the decisions of round 5 agent 0 has agent 1's contexts of rounds 1 … 4, agent 2's of 1 … 3
    mine, one, two = (np.mean([x[v] for x in chosen[:n]], axis=0) for v, n in enumerate((4, 4, 3)))
    expected = [1.0, *(np.exp(-np.linalg.norm(mine - o) / (2 * 0.5**2)) for o in (one, two))]
    np.testing.assert_allclose(run.similarity(5)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"bandwidth": 0}, "bandwidth must be"),
        ({"bandwidth": -1.0}, "bandwidth must be"),
        ({"bandwidth": None}, "bandwidth must be"),
        ({"bandwidth": 1e-170}, "bandwidth must be at least"),
        ({"bandwidth": "mean"}, "expected 'median' or a number above 0"),
        ({"sample": "all"}, "expected 'chosen' or 'offered'"),
        ({"kernel": "rbf"}, "is no kernel"),
        ({"unbiased": 1}, "True or False"),
        ({"rank": 0}, "rank"),
        ({"refresh": "never"}, "expected 'every round', 'growing' or 'frozen'"),
        ({"growth": 1.0}, "growth must be above 1"),
        ({"refresh": "frozen", "bandwidth": "median"}, "cannot be estimated again"),
        ({"refresh": "frozen", "unbiased": True}, "cannot be estimated again"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, match):
    with pytest.raises(ParameterError, match=match):
        MeanEmbedding(**wrong)
