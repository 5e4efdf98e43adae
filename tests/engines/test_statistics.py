"""Sums of fixed size give the exact posterior."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import coopbandits as cb
from coopbandits.errors import ParameterError
from lockstep_engines import all_engines
from worlds import NETWORKS, network_contexts, ragged

LINEAR = cb.kernels.Linear()


@pytest.mark.parametrize("ttl", [1, 2, 3])
@pytest.mark.parametrize("name", ["grid", "two parts", "directed"])
def test_sums_give_mean_deviation_and_determinant_of_the_factor(name, ttl):
    """Under the self-normalised width a decision depends on all three."""
    network = NETWORKS[name]
    V = len(network)
    for similarity in (
        cb.similarity.Known(contexts=network_contexts(V), kernel=cb.kernels.RBF()),
        cb.similarity.Clusters(np.arange(V) % 2),
        cb.similarity.Same(),
        cb.similarity.Laplacian(0.3),
    ):
        for make in (cb.CoopKernelUCB, cb.EagerKernelUCB):
            policy = make(
                kernel=0.5 * cb.kernels.Linear(2.0) + LINEAR,
                similarity=similarity,
                ttl=ttl,
                ridge=0.6,
                width=cb.width.SelfNormalised(norm=0.5, noise=0.7),
            )
            all_engines(ragged(network, 3), policy, seed=1, rounds=7)


@settings(max_examples=30)
@given(
    st.integers(1, 7),
    st.floats(0.1, 0.9),
    st.integers(1, 3),
    st.integers(0, 2**16),
    st.sampled_from(["known", "evidence", "embedding"]),
)
def test_engines_agree_on_random_networks(V, p, ttl, seed, which):
    network = cb.Network.erdos_renyi(V, p, seed=seed)
    similarity = {
        "known": cb.similarity.Known(contexts=network_contexts(V), kernel=cb.kernels.RBF()),
        "evidence": cb.similarity.Evidence(contexts=False),
        "embedding": cb.similarity.MeanEmbedding(0.5),
    }[which]
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=similarity, ttl=ttl, eta=0.7)
    problem = ragged(network, seed, rounds=5)
    runs = [
        cb.play(problem, policy, rounds=5, seed=seed, engine=engine)
        for engine in ("exact", "statistics")
    ]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_repeated_contexts_and_one_round_are_no_trouble():
    network = cb.Network.complete(3)
    rewards = np.random.default_rng(1).normal(size=(30, 3, 2))
    contexts = np.broadcast_to(np.array([[1.0, 0.0], [0.6, 0.8]]), (30, 3, 2, 2))
    problem = cb.problems.table(network, contexts, rewards)
    for similarity in (cb.similarity.Same(), cb.similarity.Evidence()):
        policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=similarity, ridge=1e-3)
        all_engines(problem, policy, seed=0, rounds=30)
        all_engines(problem, policy, seed=0, rounds=1)


def test_the_engine_is_chosen_by_size_and_can_be_named():
    small = cb.problems.clustered_linear(cb.Network.path(4))
    large = cb.problems.clustered_linear(cb.Network.complete(40))
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=cb.similarity.Same())
    one = cb.CoopKernelUCB(kernel=LINEAR, similarity=cb.similarity.Same(), ttl=3)
    assert cb.play(small, one, rounds=3).engine == "exact"
    assert cb.play(large, policy, rounds=40).engine == "statistics"
    assert cb.play(small, policy, rounds=3, engine="statistics").engine == "statistics"
    assert cb.play(large, cb.Uniform(), rounds=3).engine == "exact"
    # a K_z of full rank makes sums large: one factor for the clique is faster
    full = cb.CoopKernelUCB(kernel=LINEAR, similarity=cb.similarity.Laplacian(1.0))
    assert cb.play(large, full, rounds=5).engine == "exact"


@pytest.mark.parametrize(
    "policy",
    [
        cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=cb.similarity.Same()),
        cb.EagerKernelUCB(kernel=LINEAR, similarity=cb.similarity.Same(), compose="sum"),
        cb.Centralised(kernel=LINEAR),
        cb.EagerKernelUCB(
            kernel=LINEAR, similarity=cb.similarity.MeanEmbedding(1.0, refresh="frozen")
        ),
    ],
    ids=["rbf", "sum", "in turn", "frozen"],
)
def test_what_sums_cannot_do_is_refused(policy):
    problem = cb.problems.clustered_linear(cb.Network.path(3))
    with pytest.raises(ParameterError, match="the statistics engine needs a linear kernel"):
        cb.play(problem, policy, rounds=2, engine="statistics")


def test_sums_take_the_same_memory_for_any_number_of_rounds():
    problem = cb.problems.clustered_linear(cb.Network.complete(30))
    policy = cb.EagerKernelUCB(kernel=LINEAR, similarity=cb.similarity.Same())
    with pytest.raises(ParameterError, match="GB for the exact engine"):
        cb.play(problem, policy, rounds=10**5, engine="exact")
    with pytest.raises(ParameterError, match="for the statistics engine, above memory_limit"):
        cb.play(problem, policy, rounds=100, engine="statistics", memory_limit=1e6)
