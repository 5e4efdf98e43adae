"""Sums of features that stand for a kernel: right up to what the features leave out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import coopbandits as cb
from coopbandits.engines import recursive
from coopbandits.engines.by_lags import last_rounds
from coopbandits.engines.lazy import LazyStatistics
from coopbandits.engines.recursive import RecursiveRegression
from coopbandits.errors import ParameterError
from coopbandits.features import Exact, Fourier, Nystrom, reference
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.policy import plan
from coopbandits.similarity.hypotheses import Hypotheses
from worlds import NETWORKS, network_contexts, ragged

LEARNT = {
    "evidence": cb.similarity.Evidence(),
    "groups": cb.similarity.Evidence(chains=2),
    "embedding": cb.similarity.MeanEmbedding(0.5),
    "rank": cb.similarity.MeanEmbedding(0.5, rank=2),
    "coregionalised": cb.similarity.Coregionalised(rank=2, steps=3),
    "laplacian": cb.similarity.Laplacian.by_evidence((0.1, 1.0)),
    "population": cb.similarity.Population.by_evidence((0.0, 0.7, 1.0)),
}
BASES = {"nystrom": Nystrom(np.random.default_rng(3).normal(size=(6, 3))), "fourier": Fourier(8)}


def played(problem, policy, engine, rounds=9, seed=1, **settings):
    return cb.play(problem, policy, rounds=rounds, seed=seed, engine=engine, **settings)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", ["two parts", pytest.param("directed", marks=pytest.mark.slow)])
def test_agents_with_features_do_what_the_engine_does(name, basis):
    network = NETWORKS[name]
    V = len(network)
    known = cb.similarity.Known(contexts=network_contexts(V), kernel=RBF())
    for similarity in (known, cb.similarity.Clusters(np.arange(V) % 2), *LEARNT.values()):
        for make in (cb.CoopKernelUCB, cb.EagerKernelUCB):
            policy = make(
                kernel=Matern(1.5) if basis == "fourier" else RBF(1.5),
                similarity=similarity,
                ttl=2,
                ridge=0.6,
                width=cb.width.SelfNormalised(norm=0.5, noise=0.7),
                features=BASES[basis],
            )
            problem = ragged(network, 3)
            one, two = (
                played(problem, policy, engine, 7, laziness=0.0)
                for engine in ("sparse", "messages")
            )
            np.testing.assert_array_equal(one.actions, two.actions)


@settings(max_examples=25)
@given(
    st.integers(1, 7),
    st.floats(0.1, 0.9),
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(0, 2**16),
    st.sampled_from(["known", "same", *LEARNT]),
)
def test_agents_and_engine_agree_on_random_networks(V, p, ttl, rounds, seed, which):
    network = cb.Network.erdos_renyi(V, p, seed=seed)
    similarity = {
        "known": cb.similarity.Known(contexts=network_contexts(V), kernel=RBF()),
        "same": cb.similarity.Same(),
        **LEARNT,
    }[which]
    policy = cb.EagerKernelUCB(
        kernel=RBF(), similarity=similarity, ttl=ttl, eta=0.7, features=BASES["nystrom"]
    )
    problem = ragged(network, seed, rounds=rounds)
    one, two = (
        played(problem, policy, engine, rounds, seed, laziness=0.0)
        for engine in ("sparse", "messages")
    )
    np.testing.assert_array_equal(one.actions, two.actions)


@pytest.mark.parametrize("make", [cb.KernelUCB, cb.KernelTS])
def test_agents_alone_learn_one_by_one_what_they_would_learn_at_once(make):
    network = NETWORKS["grid"]
    for width in (cb.width.Fixed(0.7), cb.width.SelfNormalised(norm=0.5, noise=0.7)):
        policy = make(kernel=RBF(1.5), width=width, ridge=0.6, features=BASES["nystrom"])
        problem = ragged(network, 3, rounds=40)
        one, two = (played(problem, policy, engine, 40) for engine in ("sparse", "messages"))
        np.testing.assert_array_equal(one.actions, two.actions)


def test_agents_alone_whose_functions_vary_more_or_less_than_others_do():
    network = cb.Network.from_edges([], agents=3)
    known = cb.similarity.Known(matrix=np.diag([2.5, 0.3, 1.0]))
    policy = cb.EagerKernelUCB(
        kernel=RBF(1.5), similarity=known, ridge=0.6, eta=0.7, features=BASES["nystrom"]
    )
    runs = [played(ragged(network, 3, rounds=20), policy, e, 20) for e in ("sparse", "messages")]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    np.testing.assert_array_equal(runs[0].similarity(20), np.diag([2.5, 0.3, 1.0]))


@pytest.mark.parametrize("similarity", [*LEARNT, "known"])
def test_features_that_are_the_kernel_change_nothing(similarity):
    network = NETWORKS["grid"]
    K_z = cb.similarity.Known(contexts=network_contexts(len(network)), kernel=RBF())
    given = {**LEARNT, "known": K_z}[similarity]
    plain, featured = (
        cb.EagerKernelUCB(kernel=Linear(), similarity=given, ttl=2, features=features)
        for features in (None, Exact())
    )
    problem = ragged(network, 3)
    expected = played(problem, plain, "exact").actions
    for engine in ("sparse", "messages"):
        run = played(problem, featured, engine, laziness=0.0)
        np.testing.assert_array_equal(run.actions, expected)


def literal(basis, kernel, K_z, data, v, X, ridge):
    """Mean and variance of a kernel φᵀφ', with the variance outside of φ's span put back."""
    u, C, y = data
    phi, query = basis.features(kernel, C), basis.features(kernel, X)
    K = K_z[np.ix_(u, u)] * (phi @ phi.T) + ridge * np.eye(len(u))
    across = K_z[u, v][:, None] * (phi @ query.T)
    mean = across.T @ np.linalg.solve(K, y)
    variance = K_z[v, v] * kernel.diagonal(X) - np.sum(across * np.linalg.solve(K, across), axis=0)
    return mean, variance


@pytest.mark.parametrize("basis", BASES)
def test_an_agents_belief_is_that_of_the_features_kernel_optimistic_outside_its_span(rng, basis):
    network, kernel = cb.Network.complete(4), RBF(1.5)
    K_z = cb.similarity.Known(contexts=network_contexts(4), kernel=RBF())
    policy = cb.EagerKernelUCB(
        kernel=kernel, similarity=K_z, ridge=0.4, eta=1.0, features=BASES[basis]
    )
    agent = policy.agent(2, network)
    u, X, y = rng.integers(4, size=30), rng.normal(size=(30, 3)), rng.normal(size=30)
    for t, (origin, x, reward) in enumerate(zip(u, X, y, strict=True), start=1):
        if origin == 2:
            agent.observe(x, reward)
        else:
            agent.receive(cb.Message(t, int(origin), x, float(reward), 1))
    offered = rng.normal(size=(5, 3))
    decision = agent.decide(offered)
    matrix = K_z.matrix(network)
    mean, variance = literal(BASES[basis], kernel, matrix, (u, X, y), 2, offered, 0.4)
    assert decision.index == int(np.argmax(mean + np.sqrt(variance / 0.4)))
    assert decision.mean == pytest.approx(mean[decision.index], rel=1e-8)
    assert decision.std == pytest.approx(np.sqrt(variance[decision.index]), rel=1e-8)
    assert agent.known == 30


@pytest.mark.parametrize("similarity", ["embedding", "rank"])
def test_beliefs_are_those_of_all_news_but_the_newest_of_others(similarity, monkeypatch):
    """Who has looked again believes what follows from all that has arrived; who waits is less sure,
    and what it waits with is a small share.
    """
    learn, reset, waited, last = LazyStatistics.learn, RecursiveRegression.reset, [], {}
    rng, afresh_now = np.random.default_rng(0), []

    def noted(self, agents, *belief):
        afresh_now.extend(agents)
        reset(self, agents, *belief)

    def checked(self, t, record):
        afresh_now.clear()
        learn(self, t, record)
        regression = self._regression
        mine = record.features
        phi = rng.normal(size=(len(mine), 3, 6))
        mean, variance, _ = regression.ask(phi, joint=False)
        for views, lags, rotated in self._batches:
            after = last_rounds(t, lags)
            whose, there = views.whose, after.sum(axis=1)
            seen = regression.seen[whose]
            assert (there < np.maximum((1 + share) * np.maximum(seen, 1), seen + 1)).all()
            waited.append(~np.isin(whose, afresh_now))
            all_mean, covariance, logdet, _ = self._marginals.of(after, views.agents, rotated)
            afresh = np.einsum("bkm,bml,bkl->bk", phi[whose], covariance, phi[whose])
            assert (variance[whose] >= afresh * (1 - 1e-9)).all()
            looked = ~waited[-1]
            np.testing.assert_allclose(variance[whose][looked], afresh[looked], rtol=1e-9)
            expected = np.einsum("bkm,bm->bk", phi[whose], all_mean)
            np.testing.assert_allclose(mean[whose][looked], expected[looked], atol=1e-9)
            np.testing.assert_allclose(regression.logdet[whose][looked], logdet[looked])
            np.testing.assert_array_equal(regression.count[whose][looked], there[looked])
            for view, v in enumerate(whose):
                if looked[view]:
                    last[v] = all_mean[view], covariance[view], [], []
                    continue
                # who waits has learnt, since it looked, what it saw itself
                prior_mean, prior, own, y = last[v]
                own.append(mine[v])
                y.append(record.rewards[t - 2, v])
                across = prior @ np.array(own).T
                K = np.array(own) @ across + np.eye(len(y))
                learnt = prior_mean + across @ np.linalg.solve(K, y - np.array(own) @ prior_mean)
                left = prior - across @ np.linalg.solve(K, across.T)
                np.testing.assert_allclose(mean[v], phi[v] @ learnt, atol=1e-8)
                spread = np.einsum("km,ml,kl->k", phi[v], left, phi[v])
                np.testing.assert_allclose(variance[v], spread, atol=1e-8)
                assert regression.count[v] == seen[view] + len(y)

    monkeypatch.setattr(LazyStatistics, "learn", checked)
    monkeypatch.setattr(RecursiveRegression, "reset", noted)
    for share in (0.1, 0.5):
        waited.clear()
        network = cb.Network.erdos_renyi(12, 0.5, seed=1)
        problem = cb.problems.clustered_linear(network, dim=3, clusters=np.arange(12) % 3)
        policy = cb.EagerKernelUCB(
            kernel=RBF(), similarity=LEARNT[similarity], eta=0.3, features=BASES["nystrom"]
        )
        run = played(problem, policy, "sparse", rounds=40, laziness=share)
        assert run.engine == "sparse, lazy statistics"
        assert np.concatenate(waited).any()  # it does wait


def test_an_agent_that_is_one_of_nobody_and_varies_not_at_all():
    network = cb.Network.path(3)
    K_z = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    policy = cb.EagerKernelUCB(
        kernel=RBF(), similarity=cb.similarity.Known(matrix=K_z), features=BASES["nystrom"]
    )
    problem = ragged(network, 3)
    one, two = (played(problem, policy, engine) for engine in ("sparse", "messages"))
    np.testing.assert_array_equal(one.actions[:, 2], two.actions[:, 2])


@pytest.mark.parametrize("make", [cb.EagerKernelUCB, cb.EagerKernelTS])
def test_offers_in_batches_are_all_offers_at_once(make, monkeypatch):
    network = NETWORKS["two parts"]
    policy = make(
        kernel=RBF(), similarity=LEARNT["rank"], ttl=2, eta=0.7, features=BASES["nystrom"]
    )
    whole = played(ragged(network, 3, rounds=20), policy, "sparse", 20)
    monkeypatch.setattr(recursive, "BATCH", 60)
    assert len(recursive._batches(np.array([1, 5, 2, 3]), 6, joint=True)) > 1
    parts = played(ragged(network, 3, rounds=20), policy, "sparse", 20)
    np.testing.assert_array_equal(whole.actions, parts.actions)


def test_sums_that_do_not_fit_are_refused_before_they_are_made():
    problem = cb.problems.kernel(cb.Network.complete(30), dim=5)
    for policy in (cb.KernelUCB(kernel=RBF()), cb.EagerKernelUCB(kernel=RBF())):
        with pytest.raises(ParameterError, match="memory_limit"):
            cb.play(problem, policy, rounds=5, engine="sparse", memory_limit=1e5)


def test_the_reference_tells_about_every_context_of_the_sample_up_to_the_tolerance(rng):
    X = rng.normal(size=(60, 2))
    for kernel in (RBF(), Matern(2.5, 2.0), Linear() + RBF()):
        for tolerance in (0.3, 1e-3):
            basis = reference(kernel, X, most=60, tolerance=tolerance)
            phi = basis.features(kernel, X)
            left = kernel.diagonal(X) - (phi**2).sum(axis=1)
            assert left.max() <= tolerance * kernel.diagonal(X).max() * (1 + 1e-6)
            fewer = Nystrom(basis.reference[:-1]).features(kernel, X)
            gap = (kernel.diagonal(X) - (fewer**2).sum(axis=1)).max()
            assert gap > tolerance * kernel.diagonal(X).max()
    assert len(reference(RBF(), X, most=5).reference) == 5
    assert len(reference(RBF(), np.ones((4, 2))).reference) == 1
    assert len(reference(Linear(), np.zeros((4, 2))).reference) == 1


@pytest.mark.parametrize("engine", ["exact", "statistics", "sparse"])
def test_an_agent_that_hears_nothing_for_long_is_an_agent_alone(engine):
    network = cb.Network.from_edges([(0, 1)], agents=3)
    problem = cb.problems.clustered_linear(network, dim=2, actions=3, clusters=[0, 0, 1])
    runs = [
        played(problem, policy, engine, rounds=300 if engine == "exact" else 1000)
        for policy in (
            cb.EagerKernelUCB(kernel=Linear(), similarity=problem.similarity),
            cb.LinUCB(),
        )
    ]
    np.testing.assert_array_equal(runs[0].actions[:, 2], runs[1].actions[:, 2])
    assert runs[0].engine.startswith(engine)


@pytest.mark.parametrize("engine", ["exact", "sparse", "messages"])
def test_one_agent_and_one_round_and_one_context_again_and_again(engine):
    contexts = np.tile(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), (30, 1, 1, 1))
    rewards = np.tile(np.array([0.0, 0.0, 1.0]), (30, 1, 1))
    problem = cb.problems.table(cb.Network.complete(1), contexts, rewards)
    policy = cb.KernelUCB(kernel=RBF(), eta=0.1)
    if engine == "messages":
        policy = cb.KernelUCB(kernel=RBF(), eta=0.1, features=Nystrom(contexts[0, 0]))
    run = played(problem, policy, engine, rounds=30)
    assert (run.actions[3:] == 2).all()
    assert played(problem, policy, engine, rounds=1).actions.shape == (1, 1)


def test_what_sums_cannot_do_is_refused():
    network = cb.Network.path(3)
    problem = cb.problems.kernel(network, dim=2)
    with pytest.raises(ParameterError, match=r"features= needs compose='hadamard'"):
        cb.EagerKernelUCB(kernel=RBF(), compose="sum", features=Fourier(8))
    with pytest.raises(ParameterError, match="is no basis"):
        cb.KernelUCB(kernel=RBF(), features=64)
    for policy in (
        cb.EagerKernelUCB(kernel=RBF(), similarity=cb.similarity.Same(), compose="sum"),
        cb.Centralised(kernel=RBF()),
        cb.EagerKernelUCB(kernel=RBF(), similarity=cb.similarity.MeanEmbedding(refresh="frozen")),
    ):
        with pytest.raises(ParameterError, match="the sparse engine needs compose='hadamard'"):
            played(problem, policy, "sparse")
    featured = cb.KernelUCB(kernel=RBF(), features=Fourier(8))
    for engine in ("exact", "statistics"):
        with pytest.raises(ParameterError, match=r"the policy has features=.*take engine='sparse'"):
            played(problem, featured, engine)
    assert played(problem, featured, "auto").engine == "sparse, independent agents"


def test_of_a_given_similarity_with_many_parts_the_askers_row_is_kept(rng):
    network = cb.Network.erdos_renyi(30, 0.6, seed=2)
    z = rng.normal(size=(30, 6))
    known = cb.similarity.Known(contexts=z, kernel=cb.kernels.RBF())
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=known)
    truth = known.matrix(network)
    lags, everyone = plan(policy, network).lags, np.arange(30)
    found = Hypotheses.of(lags, everyone, DenseKernel(truth), most=5)
    assert found.U.shape[2] == 5
    for v in range(30):
        heard = found.heard[v]
        agents, U, delta = found.agents[v][heard], found.U[v][heard], found.delta[v][heard]
        K_z = U @ U.T + np.diag(delta)
        assert np.allclose(np.diagonal(K_z), 1.0)
        assert np.allclose(K_z[found.me[v]], truth[v, agents])
    whole = Hypotheses.of(lags, everyone, DenseKernel(truth))
    assert whole.U.shape[2] > 5, "without a limit nothing is left out"
    assert not whole.delta.any()
