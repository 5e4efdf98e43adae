"""What is kept as sparse rows is what the dense form says, on any graph."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import coopbandits as cb
from coopbandits.errors import NetworkError, ShapeError
from coopbandits.network import Lags, SparseRows, lags as lags_module
from coopbandits.network.lags import as_lags, transmissions
from coopbandits.policy import plan
from reference import dense_networks

LISTENS = {
    "myself": cb.listen.Myself(),
    "clique": cb.listen.Clique(),
    "neighbourhood": cb.listen.Neighbourhood(),
    "centre": cb.listen.Centre(),
    "everyone": cb.listen.Everyone(lag=1),
}


@st.composite
def networks(draw, most=14):
    """Random graphs: sparse or dense, directed or not, often in several parts."""
    V, directed = draw(st.integers(1, most)), draw(st.booleans())
    density, seed = draw(st.sampled_from([0.0, 0.05, 0.15, 0.4, 0.9])), draw(st.integers(0, 10**6))
    graph = nx.gnp_random_graph(V, density, seed=seed, directed=directed)
    return cb.Network.from_networkx(graph)


@given(networks(), st.integers(1, 5))
def test_lags_distances_and_diameter_are_those_of_the_dense_form(network, ttl):
    far = dense_networks.distances(network)
    np.testing.assert_array_equal(network.distances, far)
    assert network.diameter == far.max()
    some = np.arange(0, len(network), 2)
    np.testing.assert_array_equal(network.distances_from(some.tolist()), far[some])
    expected = dense_networks.lags(network, ttl)
    np.testing.assert_array_equal(network.lags(ttl).dense(), expected)
    for v in range(len(network)):
        heard = np.flatnonzero(np.isfinite(expected[v]))
        np.testing.assert_array_equal(network.neighbourhood(v, ttl), heard)


@given(networks(), st.integers(1, 5), st.sampled_from([1, 7, 30]))
def test_searching_from_some_agents_at_a_time_finds_the_same(network, ttl, together):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lags_module, "_TOGETHER", together)
        found = Lags.within(network.arcs, ttl)
    np.testing.assert_array_equal(found.dense(), dense_networks.lags(network, ttl))


@given(networks(), st.integers(1, 4))
def test_whom_agents_listen_to_is_that_of_the_dense_form(network, ttl):
    for kind, listen in LISTENS.items():
        expected = dense_networks.listened(kind, network, ttl)
        np.testing.assert_array_equal(listen.lags(network, ttl).dense(), expected)  # type: ignore[attr-defined]


@given(networks(), st.integers(1, 4), st.integers(1, 5))
def test_as_many_messages_are_counted_as_cross_the_edges(network, ttl, rounds):
    found = transmissions(network, ttl, rounds)
    np.testing.assert_array_equal(found, dense_networks.transmissions(network, ttl, rounds))


@given(networks(), st.integers(1, 3), st.integers(0, 10**6))
def test_strangers_are_those_of_the_dense_form(network, ttl, seed):
    rng, V = np.random.default_rng(seed), len(network)
    loadings = rng.normal(size=(V, 3)) * (rng.random((V, 3)) < 0.4)
    for similarity in (
        cb.similarity.Clusters(rng.integers(3, size=V)),
        cb.similarity.Laplacian(0.5),
        cb.similarity.LowRank(loadings, own=0.1),
        cb.similarity.Known(matrix=loadings @ loadings.T + 0.1 * np.eye(V)),
    ):
        policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity, ttl=ttl)
        worked_out, K_z = plan(policy, network), similarity.matrix(network)
        heard = dense_networks.lags(network, ttl)
        expected = dense_networks.without_strangers(heard, K_z)
        np.testing.assert_array_equal(worked_out.lags.dense(), expected)
        pairs = worked_out.listens.sources
        worth = np.where(np.isfinite(expected), K_z, 0.0)[pairs.rows, pairs.agents]
        np.testing.assert_allclose(worked_out.similarity, worth, atol=1e-14)


@given(networks(), st.integers(1, 3))
def test_agents_that_hear_the_same_are_found_by_hashing(network, ttl):
    lags = network.lags(ttl)
    rows = lags.dense()
    np.testing.assert_array_equal(
        lags.kinds[:, None] == lags.kinds, (rows[:, None] == rows).all(axis=2)
    )
    heard = np.isfinite(rows)
    seen = []
    for members, sources in lags.groups:
        for v in members:
            np.testing.assert_array_equal(np.flatnonzero(heard[v]), sources)
        assert len(heard) == 1 or (heard == heard[members[0]]).all(axis=1).sum() == len(members)
        seen += members.tolist()
    assert sorted(seen) == list(range(len(network)))


@given(networks(), st.integers(0, 10**6))
def test_sparse_rows_are_the_cells_of_a_matrix(network, seed):
    rng, A = np.random.default_rng(seed), network.adjacency
    rows = network.arcs
    assert rows == SparseRows.of_matrix(A)
    np.testing.assert_array_equal(rows.transposed().dense("", ""), A.T)
    np.testing.assert_array_equal(rows.mutual().dense("", ""), A & A.T)
    np.testing.assert_array_equal(rows.either_way().dense("", ""), A | A.T)
    some = np.flatnonzero(rng.random(len(A)) < 0.6)
    np.testing.assert_array_equal(rows.within(some).dense("", ""), A[np.ix_(some, some)])
    order = rng.permutation(len(A))
    np.testing.assert_array_equal(rows.renumbered(order).dense("", ""), A[np.ix_(order, order)])
    kept = rng.random(len(rows.agents)) < 0.5
    B = np.zeros_like(A)
    B[rows.rows[kept], rows.agents[kept]] = True
    np.testing.assert_array_equal(rows.kept(kept).dense("", ""), B)
    for v in range(len(A)):
        assert [rows.has(v, u) for u in range(len(A))] == A[v].tolist()


@given(networks(), st.integers(1, 3))
def test_lags_between_pairs_and_in_views_are_those_of_the_matrix(network, ttl):
    lags, rows = network.lags(ttl), dense_networks.lags(network, ttl)
    V = len(network)
    pairs = np.repeat(np.arange(V), V), np.tile(np.arange(V), V)
    np.testing.assert_array_equal(lags.between(*pairs), rows[pairs])
    who = np.arange(0, V, 2)
    agents, rounds = lags.views(who)
    for view, v in enumerate(who):
        real = np.isfinite(rounds[view])
        np.testing.assert_array_equal(agents[view][real], np.flatnonzero(np.isfinite(rows[v])))
        np.testing.assert_array_equal(rounds[view][real], rows[v][np.isfinite(rows[v])])
    again = as_lags(rows, V)
    np.testing.assert_array_equal(again.dense(), rows)
    assert isinstance(again, Lags)


def test_lags_of_a_listen_of_ones_own_are_checked():
    for wrong in (np.ones((2, 3)), "all", np.array([["a"]]), cb.Network.path(4).lags(1)):
        with pytest.raises(
            ShapeError, match=r"expected a \(3, 3\) array, inf where an agent is not"
        ):
            as_lags(wrong, 3)


def test_a_network_is_made_of_a_sparse_matrix_too():
    network = cb.Network.barabasi_albert(30, 2, seed=1)
    given = network.arcs.matrix()
    assert cb.Network(given) == network
    assert cb.Network(given.tocoo()) == network
    given.data[:] = False  # stored, and not there
    assert cb.Network(given) == cb.Network.from_edges([], agents=30)
    assert given.nnz == 2 * len(network.edges), "what was given stays as it is"
    with pytest.raises(NetworkError, match=r"expected a \(V, V\) array of True"):
        cb.Network(network.arcs.matrix().astype(float))


@pytest.mark.parametrize(("agents", "m", "seed"), [(2, 1, 0), (20, 3, 1), (300, 5, 7)])
def test_preferential_attachment_draws_as_networkx_does(agents, m, seed):
    graph = nx.barabasi_albert_graph(agents, m, seed=np.random.default_rng(seed))
    assert cb.Network.barabasi_albert(agents, m, seed=seed) == cb.Network.from_networkx(graph)


def test_a_large_network_is_played_without_arrays_of_agents_by_agents():
    # 30,000² numbers would take 7.2 GB, 900 MB as bits: refused by .distances, not needed to play
    network = cb.Network.barabasi_albert(30_000, 3, seed=0)
    problem = cb.problems.clustered_linear(network, dim=3, clusters=np.arange(30_000) % 5)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity)
    run = cb.play(problem, policy, rounds=3, memory_limit=2e8)
    assert run.similarity(3).shape == run.listens.shape == (30_000, 30_000)
    assert run.listens.nnz == 30_000 + 2 * len(network.edges)
    v = int(np.argmax(network.arcs.counts))
    row = run.similarity(3)[[v]].toarray()[0]
    alike = (np.arange(30_000) % 5 == v % 5) & run.listens[[v]].toarray()[0]
    np.testing.assert_array_equal(row, alike)
    with pytest.raises(
        cb.errors.NetworkError, match=r"distances of 30,000 agents would take 7\.2 GB"
    ):
        _ = network.distances
    agent = policy.agent(v, network)
    agent.reward(agent.decide(np.eye(3)).id, 1.0)
    assert len(agent.to_bytes()) < 20_000


def test_what_agents_hear_does_not_fit_is_refused_before_the_start():
    network = cb.Network.barabasi_albert(3_000, 5, seed=0)
    problem = cb.problems.clustered_linear(network, dim=10, clusters=np.arange(3_000) % 4)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=problem.similarity, ttl=3)
    with pytest.raises(cb.errors.ParameterError, match="above memory_limit"):
        cb.play(problem, policy, rounds=3, memory_limit=1e7)


def test_an_estimate_that_compares_all_agents_is_refused_before_the_start():
    network = cb.Network.barabasi_albert(6_000, 3, seed=0)
    problem = cb.problems.clustered_linear(network, dim=2, clusters=np.arange(6_000) % 4)
    embedding = cb.similarity.MeanEmbedding(0.5, rank=2)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=embedding)
    with pytest.raises(cb.errors.ParameterError, match="above memory_limit"):
        cb.play(problem, policy, rounds=3, memory_limit=5e8)
