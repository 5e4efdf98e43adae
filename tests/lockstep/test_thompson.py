"""Posterior draws, too: lag matrix, sums, messages and the literal algorithms decide alike."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.act import Sample
from coopbandits.features import Fourier, Nystrom
from coopbandits.similarity import Coregionalised, Evidence, Laplacian, MeanEmbedding, Population
from lockstep_engines import GIVEN, KERNELS, all_engines, literal, similarity_of
from reference import algorithms, formulas
from worlds import NETWORKS, Recorded, neighbours_of, ragged, world_of

ROUNDS = 8
MAKE = {"coop": cb.CoopKernelTS, "eager": cb.EagerKernelTS}


def accepts(algorithm, network, ttl):
    labels = network.clique_cover(ttl).labels
    return (lambda v, w: labels[v] == labels[w]) if algorithm == "coop" else (lambda v, w: True)


@pytest.mark.parametrize(("ttl", "kernel"), [(1, "rbf"), (2, "matern"), (3, "linear")])
@pytest.mark.parametrize("name", ["spiked star", "two parts", "directed"])
@pytest.mark.parametrize("algorithm", MAKE)
def test_coop_and_eager_take_the_literal_algorithms_decisions(algorithm, name, ttl, kernel):
    network, (K_x, k_x) = NETWORKS[name], KERNELS[kernel]
    similarity, K_z = similarity_of(network, 1)
    problem = ragged(network, 1, rounds=ROUNDS)
    policy = MAKE[algorithm](kernel=K_x, similarity=similarity, ttl=ttl, ridge=0.7, eta=0.9)
    expected, sent = algorithms.cooperate(
        world_of(problem, 1),
        neighbours_of(network),
        accepts(algorithm, network, ttl),
        literal(k_x, K_z),
        ttl=ttl,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=1,
        draws=True,
    )
    run = all_engines(problem, policy, 1, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected)
    assert run.messages.tolist() == sent


@pytest.mark.parametrize("compose", ["hadamard", "sum"])
def test_every_composition_takes_the_literal_algorithms_decisions(compose):
    network = NETWORKS["grid"]
    similarity, K_z = similarity_of(network, 6)
    problem = ragged(network, 6, rounds=ROUNDS)
    width = cb.width.InformationGain(norm=0.5, noise=0.4, delta=0.1)
    policy = cb.EagerKernelTS(
        kernel=cb.kernels.RBF(), similarity=similarity, ttl=2, width=width, compose=compose
    )
    combine = np.multiply if compose != "sum" else (lambda A, B: (A + B) / 2)
    expected, _ = algorithms.cooperate(
        world_of(problem, 6),
        neighbours_of(network),
        lambda v, w: True,
        literal(formulas.rbf, K_z, combine),
        ttl=2,
        ridge=1.0,
        width=lambda K, ridge, v: formulas.information_gain(
            K, ridge, norm=0.5, noise=0.4, delta=0.1
        ),
        rounds=ROUNDS,
        seed=6,
        draws=True,
    )
    run = all_engines(problem, policy, 6, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize("algorithm", MAKE)
@pytest.mark.parametrize("name", ["directed", "two parts"])
def test_a_learnt_similarity_takes_the_literal_estimators_decisions(name, algorithm):
    network, linear = NETWORKS[name], cb.kernels.Linear()
    problem = ragged(network, 4)
    policy = MAKE[algorithm](
        kernel=cb.kernels.RBF(1.5),
        similarity=MeanEmbedding(0.8, kernel=linear, refresh="every round"),
        ttl=2,
        ridge=0.7,
        eta=0.9,
    )

    def estimate(contexts):
        pairs = [(u, X, w, Y) for u, X in contexts.items() for w, Y in contexts.items()]
        return {
            (u, w): float(np.exp(-formulas.mmd(formulas.linear, X, Y) / (2 * 0.8**2)))
            if u != w
            else 1.0
            for u, X, w, Y in pairs
        }

    expected = algorithms.learn_and_cooperate(
        world_of(problem, 4),
        neighbours_of(network),
        accepts(algorithm, network, 2),
        lambda x, y: formulas.rbf(x, y, 1.5),
        estimate,
        lambda known, last: known > last,
        ttl=2,
        ridge=0.7,
        eta=0.9,
        rounds=7,
        seed=4,
        draws=True,
    )
    run = cb.play(problem, policy, rounds=7, seed=4)
    np.testing.assert_array_equal(run.actions, expected)


LEARNT = {
    "evidence": Evidence(),
    "embedding": MeanEmbedding(0.7),
    "embedding of low rank": MeanEmbedding(0.6, rank=2),
    "coregionalised": Coregionalised(rank=2, steps=3),
    "laplacian": Laplacian.by_evidence([0.1, 1.0, 10.0]),
    "population": Population.by_evidence([0.0, 0.5, 0.9, 1.0]),
    "frozen": MeanEmbedding(0.7, sample="offered", refresh="frozen"),
}


@pytest.mark.parametrize("name", LEARNT)
@pytest.mark.parametrize("algorithm", MAKE)
def test_all_engines_agree_under_every_learnt_similarity(algorithm, name):
    problem = ragged(NETWORKS["path" if algorithm == "coop" else "directed"], 5)
    policy = MAKE[algorithm](
        kernel=cb.kernels.Linear(), similarity=LEARNT[name], ttl=2, ridge=0.8, eta=0.7
    )
    all_engines(problem, policy, seed=2, rounds=5)


@pytest.mark.parametrize("similarity", GIVEN, ids=repr)
def test_all_engines_agree_under_every_given_similarity(similarity):
    problem = ragged(NETWORKS["erdos-renyi"], 2)
    policy = cb.EagerKernelTS(kernel=cb.kernels.Linear(), similarity=similarity, ttl=2, eta=0.6)
    all_engines(problem, policy, seed=3, rounds=8)


@pytest.mark.parametrize("lag", [0, 1])
def test_all_engines_agree_on_agents_that_take_turns(lag):
    policy = cb.Policy(
        name="centralised draws",
        kernel=cb.kernels.RBF(),
        listen=cb.listen.Everyone(lag=lag),
        similarity=cb.similarity.Laplacian(1.0),
        width=cb.width.Fixed(0.7),
        act=Sample(),
    )
    all_engines(ragged(NETWORKS["grid"], 3), policy, seed=3, rounds=6)


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_engines_draw_the_same_function_although_covariances_are_singular(ridge):
    # eight actions of three numbers, four of them twice: Σ has at most three directions, and a
    # Cholesky factor of it would be made of rounding
    network, rng = NETWORKS["grid"], np.random.default_rng(8)
    contexts = rng.normal(size=(ROUNDS, 9, 4, 3))
    contexts = np.concatenate([contexts, contexts], axis=2)
    problem = cb.problems.table(network, contexts, rng.normal(size=(ROUNDS, 9, 8)))
    rated = {}
    for engine in ("exact", "statistics", "messages"):
        act = Recorded()
        policy = cb.Policy(
            name="recorded",
            kernel=cb.kernels.Linear(),
            listen=cb.listen.Neighbourhood(),
            similarity=cb.similarity.Laplacian(1.0),
            width=cb.width.Fixed(np.sqrt(ridge)),
            act=act,
            ttl=2,
            ridge=ridge,
        )
        run = cb.play(problem, policy, rounds=ROUNDS, seed=1, engine=engine)
        assert (run.actions[1:] < 4).all()  # of two that are the same, the first
        # agents of their own rate in the first round too, by a belief that knows nothing
        rated[engine] = np.concatenate(act.rated[9 if engine == "messages" else 0 :])
    # Σ is right to about 1e-15, and its root turns that into 1e-15/√1e-10
    np.testing.assert_allclose(rated["statistics"], rated["exact"], atol=1e-9)
    np.testing.assert_allclose(rated["messages"], rated["exact"], atol=1e-9)


BASES = {"nystrom": Nystrom(np.random.default_rng(3).normal(size=(6, 3))), "fourier": Fourier(8)}


@pytest.mark.parametrize("basis", BASES)
def test_agents_with_features_draw_what_the_engine_draws(basis):
    network = NETWORKS["two parts"]
    known, _ = similarity_of(network, 0)
    for similarity in (known, cb.similarity.Clusters([0, 1, 0, 1, 0, 1]), Evidence()):
        policy = cb.EagerKernelTS(
            kernel=cb.kernels.RBF(1.5),
            similarity=similarity,
            ttl=2,
            ridge=0.6,
            features=BASES[basis],
        )
        problem = ragged(network, 3)
        one, two = (
            cb.play(problem, policy, rounds=5, seed=1, engine=engine, laziness=0.0)
            for engine in ("sparse", "messages")
        )
        np.testing.assert_array_equal(one.actions, two.actions)


def test_features_that_are_the_kernel_change_no_draw():
    problem = ragged(NETWORKS["grid"], 3)
    contexts = np.concatenate([problem.round(t, 0).contexts for t in range(1, 7)])
    known, _ = similarity_of(NETWORKS["grid"], 2)
    kernel = cb.kernels.RBF(2.0)
    # a reference of all contexts that are ever offered holds the kernel at them
    plain, featured = (
        cb.CoopKernelTS(kernel=kernel, similarity=known, ttl=2, features=features)
        for features in (None, Nystrom(contexts))
    )
    expected = cb.play(problem, plain, rounds=6, seed=4, engine="exact").actions
    found = cb.play(problem, featured, rounds=6, seed=4, engine="sparse", laziness=0.0).actions
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("learnt", [False, True], ids=["given", "learnt"])
def test_beliefs_that_stand_until_there_are_news_draw_the_same(learnt):
    network = NETWORKS["two parts"]
    similarity = Evidence() if learnt else similarity_of(network, 2)[0]
    policy = cb.EagerKernelTS(kernel=cb.kernels.Linear(), similarity=similarity, ttl=2, eta=0.7)
    exact, sparse = (
        cb.play(ragged(network, 3), policy, rounds=9, seed=4, engine=engine, laziness=lazy).actions
        # any news is worth more than this, so nothing is missed
        for engine, lazy in (("exact", 0.1), ("sparse", 1e-12))
    )
    np.testing.assert_array_equal(sparse, exact)
