"""A learnt K_z, too: lag matrix, sums, messages and the literal estimator decide alike."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.features import Fourier
from coopbandits.similarity import Coregionalised, Evidence, Laplacian, MeanEmbedding, Population
from learnt_views import Torn
from lockstep_engines import all_engines
from reference import algorithms, formulas
from worlds import NETWORKS, neighbours_of, ragged, world_of

LINEAR = cb.kernels.Linear()
LEARNT = {
    "evidence": Evidence(),
    "evidence, every round": Evidence(contexts=False, noise=0.4, refresh="every round"),
    "evidence of groups": Evidence(chains=2),
    "several": Torn(),
    "embedding": MeanEmbedding(0.7),
    "embedding, every round": MeanEmbedding("median", refresh="every round"),
    "embedding of what is offered": MeanEmbedding(0.5, sample="offered"),
    "unbiased embedding": MeanEmbedding(0.6, unbiased=True),
    "embedding of low rank": MeanEmbedding(0.6, rank=2),
    "coregionalised": Coregionalised(rank=2, steps=3),
    "laplacian": Laplacian.by_evidence([0.1, 1.0, 10.0]),
    "population": Population.by_evidence([0.0, 0.5, 0.9, 1.0]),
    "frozen": MeanEmbedding(0.7, refresh="frozen"),
    "frozen, offered": MeanEmbedding(0.7, sample="offered", refresh="frozen"),
}


@pytest.mark.parametrize("name", LEARNT)
@pytest.mark.parametrize("ttl", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("make", [cb.CoopKernelUCB, cb.EagerKernelUCB])
def test_all_engines_agree_under_every_learnt_similarity(make, ttl, name):
    for network in ("path", "directed"):
        problem = ragged(NETWORKS[network], 5)
        policy = make(kernel=LINEAR, similarity=LEARNT[name], ttl=ttl, ridge=0.8, eta=0.7)
        all_engines(problem, policy, seed=2, rounds=7)


@pytest.mark.parametrize(
    "similarity",
    [
        Evidence(features=Fourier(8), chains=2),
        pytest.param(Evidence(features=Fourier(16), chains=3), marks=pytest.mark.slow),
        Torn(),
        MeanEmbedding(0.5, sample="offered"),
        Coregionalised(rank=2, steps=3, features=Fourier(8)),
        MeanEmbedding(0.7, refresh="frozen"),
    ],
    ids=["groups", "evidence", "several", "embedding", "coregionalised", "frozen"],
)
def test_all_engines_agree_under_features_and_a_width_that_asks_for_the_determinant(similarity):
    problem = ragged(NETWORKS["two parts"], 6)
    for kernel in (cb.kernels.RBF(1.5), cb.kernels.Matern(nu=1.5)):
        policy = cb.EagerKernelUCB(
            kernel=kernel, similarity=similarity, ttl=2, width=cb.width.SelfNormalised(noise=0.3)
        )
        all_engines(problem, policy, seed=3, rounds=7)


def test_all_engines_agree_where_followers_learn_until_they_hear_of_their_centre():
    problem = ragged(NETWORKS["spiked star"], 7)
    policy = cb.Policy(
        name="any",
        kernel=LINEAR,
        listen=cb.listen.Centre(),
        similarity=MeanEmbedding(0.7, sample="offered"),
        width=cb.width.Fixed(0.5),
        act=cb.act.FollowCentre(),
        ttl=2,
    )
    all_engines(problem, policy, seed=2, rounds=8)


def literal_embedding(k, bandwidth, unbiased=False):
    def estimate(contexts):
        return {
            (u, w): 1.0
            if u == w
            else float(np.exp(-formulas.mmd(k, X, Y, unbiased) / (2 * bandwidth**2)))
            for u, X in contexts.items()
            for w, Y in contexts.items()
        }

    return estimate


@pytest.mark.parametrize("refresh", ["every round", "growing"])
@pytest.mark.parametrize("ttl", [1, 2])
@pytest.mark.parametrize("algorithm", ["coop", "eager"])
@pytest.mark.parametrize("name", ["grid", "two parts", "directed"])
def test_mean_embeddings_take_the_literal_estimators_decisions(
    name, algorithm, ttl, refresh, monkeypatch
):
    monkeypatch.setattr(MeanEmbedding, "early", (0, 0))
    network, seed = NETWORKS[name], 4
    problem = ragged(network, seed)
    make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[algorithm]
    # K_x is RBF, the embedding linear: both are exact
    similarity = MeanEmbedding(0.8, kernel=LINEAR, refresh=refresh, growth=1.5)
    policy = make(kernel=cb.kernels.RBF(1.5), similarity=similarity, ttl=ttl, ridge=0.7, eta=0.9)
    labels = network.clique_cover(ttl).labels
    expected = algorithms.learn_and_cooperate(
        world_of(problem, seed),
        neighbours_of(network),
        (lambda v, w: labels[v] == labels[w]) if algorithm == "coop" else (lambda v, w: True),
        lambda x, y: formulas.rbf(x, y, 1.5),
        literal_embedding(formulas.linear, 0.8),
        (lambda known, last: known > last)
        if refresh == "every round"
        else (lambda known, last: known > last and known >= 1.5 * last),
        ttl=ttl,
        ridge=0.7,
        eta=0.9,
        rounds=8,
        seed=seed,
    )
    run = cb.play(problem, policy, rounds=8, seed=seed)
    np.testing.assert_array_equal(run.actions, expected)


@pytest.mark.parametrize(
    "name",
    [
        "evidence",
        "evidence of groups",
        "several",
        "embedding",
        "coregionalised",
        "laplacian",
        "frozen",
    ],
)
def test_the_same_seed_gives_the_same_bits(name):
    problem = ragged(NETWORKS["grid"], 3)
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=LEARNT[name], ttl=2)
    one, two = (cb.play(problem, policy, rounds=8, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.actions, two.actions)
    for (t, K_z), (same_t, same_K_z) in zip(one.estimates, two.estimates, strict=True):
        assert t == same_t
        np.testing.assert_array_equal(K_z, same_K_z)
