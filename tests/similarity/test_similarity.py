"""Learnt K_z in runs and in agents, whatever the estimator."""

from dataclasses import dataclass

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError, RemoteProtocolError, ShapeError, StateError
from coopbandits.gp.compositions import Hadamard, Sum
from coopbandits.similarity import Loadings, Views, as_similarity, similarity_matrix
from coopbandits.similarity.loadings import linked
from coopbandits.similarity.similarity import is_due
from learnt_views import Unlearnt


@dataclass(frozen=True)
class Fixed(Unlearnt):
    """A "learnt" K_z that is always the same: agent 1 is like 0, agent 2 like nobody."""

    refresh: str = "every round"

    def estimate(self, views):
        U = np.where(views.agents < 2, 0.9, 0.0)[..., None]
        return Loadings(U, 1.0 - (U**2).sum(axis=2))


WIDTH = cb.width.SelfNormalised(norm=0.5, noise=0.5)


def decisions(stranger_scale):
    """Agent 0's decisions while its stranger 2 sends data of some scale."""
    rng = np.random.default_rng(0)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=Fixed(), width=WIDTH)
    agent = policy.agent(0, cb.Network.complete(3), seed=1)
    made = []
    for t in range(1, 8):
        decision = agent.decide(rng.normal(size=(4, 3)))
        made.append((decision.index, decision.mean, decision.std, decision.width))
        agent.reward(decision.id, rng.normal())
        x, y, strange, other = rng.normal(size=3), rng.normal(), rng.normal(size=3), rng.normal()
        agent.receive(cb.Message(t, 1, x, y, 1))
        agent.receive(cb.Message(t, 2, stranger_scale * strange, stranger_scale * other, 1))
    return made


def test_a_strangers_data_cannot_change_my_decisions():
    """Not even the width, whose determinant would count them."""
    assert decisions(0.1) == decisions(50.0)


@pytest.mark.parametrize("engine", ["exact", "statistics"])
def test_nor_can_they_in_a_simulation(engine):
    rng = np.random.default_rng(3)
    contexts, rewards = rng.normal(size=(10, 3, 4, 3)), rng.normal(size=(10, 3, 4))
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=Fixed(), width=WIDTH)
    runs = []
    for scale in (0.1, 30.0):
        other_contexts, other_rewards = contexts.copy(), rewards.copy()
        other_contexts[:, 2] *= scale
        other_rewards[:, 2] *= scale
        problem = cb.problems.table(cb.Network.complete(3), other_contexts, other_rewards)
        runs.append(cb.play(problem, policy, rounds=10, seed=1, engine=engine))
    np.testing.assert_array_equal(runs[0].actions[:, :2], runs[1].actions[:, :2])


def test_a_users_own_learnt_similarity_plays_on_all_engines():
    problem = cb.problems.clustered_linear(cb.Network.complete(3), dim=3)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=Fixed())
    runs = [
        cb.play(problem, policy, rounds=6, engine=e) for e in ("exact", "messages", "statistics")
    ]
    for run in runs:
        np.testing.assert_array_equal(run.actions, runs[0].actions)
        np.testing.assert_allclose(
            run.similarity(6), [[1.0, 0.81, 0.0], [0.81, 1.0, 0.0], [0.0, 0.0, 1.0]]
        )


def test_a_chain_of_loadings_links_and_nothing_else():
    U = np.zeros((1, 5, 3))
    U[0, [0, 1], 0] = 1.0  # me and 1
    U[0, [1, 2], 1] = 1.0  # 1 and 2
    U[0, [3, 4], 2] = 1.0  # two strangers
    loadings = Loadings(U, np.zeros((1, 5)))
    inside = linked(loadings, np.array([0]), Hadamard())
    assert inside[0].tolist() == [True, True, True, False, False]
    assert linked(loadings, np.array([0]), Sum()).all()


def test_under_a_sum_nobody_is_a_stranger(rng):
    """All share the function of x: every observation counts, whatever K_z is."""
    theta = np.array([1.0, -1.0, 0.5])
    beliefs = []
    for similarity in (
        Fixed(),
        cb.similarity.Known(matrix=[[1, 0.81, 0], [0.81, 1, 0], [0, 0, 1]]),
    ):
        policy = cb.EagerKernelUCB(
            kernel=cb.kernels.Linear(), similarity=similarity, compose="sum", width=WIDTH
        )
        agent = policy.agent(0, cb.Network.complete(3), seed=1)
        for t in range(1, 9):
            for origin in (1, 2):
                x = np.random.default_rng([t, origin]).normal(size=3)
                agent.receive(cb.Message(t, origin, x, x @ theta, 1))
        decision = agent.decide(np.eye(3))
        beliefs.append((decision.index, decision.mean, decision.std, decision.width))
    assert beliefs[0] == pytest.approx(beliefs[1], rel=1e-12)


def test_loadings_give_back_any_kernel_matrix(rng):
    A = rng.normal(size=(2, 4, 4))
    K_z = A @ np.swapaxes(A, 1, 2)
    np.testing.assert_allclose(Loadings.of(K_z).matrix, K_z, atol=1e-10)


def test_growing_refreshes_grow():
    """Each time up to 12 observations from each agent, then at each growth-fold number.

    `Evidence` each time up to 360 observations in all, too.
    """

    def times(similarity):
        times, last = [], 0
        for known in range(0, 400, 4):  # four agents
            if is_due(similarity, np.array([known]), np.array([last]), np.array([4]))[0]:
                times.append(known // 4)
                last = known
        return times

    once = [*range(1, 13), 18, 27, 41, 62, 93]
    assert times(cb.similarity.Coregionalised()) == once
    assert times(cb.similarity.Evidence()) == [*range(1, 91)]
    many = cb.similarity.Evidence(growth=1.5), np.array([372, 373, 374]), np.full(3, 371)
    assert is_due(*many, np.full(3, 31)).tolist() == [True, False, False]  # 372 are 12 from each
    each = cb.similarity.Evidence(refresh="every round")
    known = np.array([4, 100, 101])
    due = is_due(each, known, np.array([4, 99, 101]), np.array([1, 1, 1]))
    assert due.tolist() == [False, True, False]


def test_a_runs_similarity_is_what_each_agent_believed_in_that_round():
    network = cb.Network.path(4)
    problem = cb.problems.clustered_linear(network, clusters=[0, 0, 1, 1], dim=3)
    policy = cb.EagerKernelUCB(
        kernel=cb.kernels.Linear(),
        similarity=cb.similarity.MeanEmbedding(0.5, refresh="every round"),
    )
    run = cb.play(problem, policy, rounds=6, seed=2)
    np.testing.assert_array_equal(run.similarity(1), np.eye(4))  # nothing has arrived
    for t in range(2, 7):
        K_z = run.similarity(t)
        assert (K_z[~(network.adjacency | np.eye(4, dtype=bool))] == 0).all()
        assert (K_z[network.adjacency] > 0).all()
        np.testing.assert_allclose(np.diag(K_z), 1.0)
        assert not np.array_equal(K_z, run.similarity(t - 1))
    with pytest.raises(ValueError, match="read-only"):
        run.similarity(3)[0, 0] = 2.0
    for wrong in (0, 7, 2.5):
        with pytest.raises(ParameterError, match="t must be"):
            run.similarity(wrong)


def test_a_run_with_a_given_similarity_shows_it_where_agents_listen():
    network = cb.Network.path(3)
    run = cb.play(
        cb.problems.clustered_linear(network),
        cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.Same()),
        rounds=2,
    )
    np.testing.assert_array_equal(run.similarity(1), [[1, 1, 0], [1, 1, 1], [0, 1, 1]])


def test_an_agent_shows_what_it_believes():
    problem = cb.problems.clustered_linear(cb.Network.path(3), dim=3)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence())
    agent = policy.agent(1, problem.network)
    assert agent.similarity.tolist() == [0.0, 1.0, 0.0]
    frozen = cb.similarity.MeanEmbedding(1.0, refresh="frozen")
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=frozen)
    assert policy.agent(1, problem.network).similarity.tolist() == [0.0, 1.0, 0.0]


def test_a_peer_that_attaches_too_little_or_nonsense_is_refused(rng):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence())
    agent = policy.agent(0, cb.Network.path(2))
    early = cb.Message(1, 1, rng.normal(size=3), 1.0, 1)  # a context and nothing attached
    agent.receive(early)  # d is not known yet
    agent.decide(rng.normal(size=(2, 3)))
    assert agent.known == 0  # dropped once it is
    before = agent.to_bytes()
    with pytest.raises(RemoteProtocolError, match="agent 0 uses 3 numbers and 3"):
        agent.receive(cb.Message(2, 1, rng.normal(size=3), 1.0, 1))
    with pytest.raises(RemoteProtocolError, match="must be finite"):
        agent.receive(cb.Message(2, 1, np.array([0.1, 0.1, 0.1, np.nan, 0.0, 0.0]), 1.0, 1))
    assert agent.to_bytes() == before


@pytest.mark.parametrize(
    "similarity",
    [
        cb.similarity.Evidence(noise=0.1),
        cb.similarity.Evidence(),
        cb.similarity.Coregionalised(noise=0.1),
        cb.similarity.MeanEmbedding("median", sample="offered"),
        cb.similarity.Laplacian.by_evidence(noise=0.1),
        cb.similarity.Population.by_evidence(noise=0.1),
    ],
    ids=repr,
)
def test_no_finite_numbers_of_a_peer_stop_an_agent(similarity):
    """Rewards and attachments of any size: the agent goes on deciding, at worst on its own."""
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity)
    for trial in range(6):
        rng = np.random.default_rng(trial)
        agent = policy.agent(0, cb.Network.complete(3))
        more = similarity.learner(policy.kernel, agent.network).attached(2)
        for t in range(1, 7):
            decision = agent.decide(rng.normal(size=(3, 2)))
            assert np.isfinite([decision.mean, decision.std]).all()
            agent.reward(decision.id, rng.normal())
            for origin in (1, 2):
                wild = 10.0 ** rng.uniform(-49, 49)
                context = np.append(rng.normal(size=2), wild * rng.normal(size=more))
                agent.receive(cb.Message(t, origin, context.clip(-1e50, 1e50), wild, 1))


def test_a_decision_that_cannot_be_made_changes_nothing(rng):
    similarity = cb.similarity.Evidence(features=cb.features.Nystrom(np.eye(4)))
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=similarity)
    agent = policy.agent(0, cb.Network.path(2))
    before = agent.to_bytes()
    with pytest.raises(ShapeError, match="reference contexts have 4 numbers"):
        agent.decide(rng.normal(size=(2, 3)))
    assert agent.to_bytes() == before
    agent.decide(rng.normal(size=(2, 4)))


def test_frozen_is_for_mean_embeddings_only():
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=Fixed(refresh="frozen"))
    with pytest.raises(ParameterError, match="for MeanEmbedding only"):
        policy.agent(0, cb.Network.path(2))


@pytest.mark.parametrize("sample", ["chosen", "offered"])
def test_an_agent_with_frozen_embeddings_restores_to_the_bit(rng, sample):
    network = cb.Network.path(2)
    similarity = cb.similarity.MeanEmbedding(0.5, sample=sample, refresh="frozen")
    policy = cb.EagerKernelUCB(kernel=cb.kernels.RBF(), similarity=similarity)
    agent = policy.agent(0, network)
    for _ in range(4):
        decision = agent.decide(rng.normal(size=(3, 2)))
        agent.reward(decision.id, rng.normal())
    restored = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=network)
    offered = rng.normal(size=(3, 2))
    one, two = agent.decide(offered), restored.decide(offered)
    assert (one.index, one.mean, one.std) == (two.index, two.mean, two.std)
    assert agent.to_bytes() == restored.to_bytes()


def test_bytes_of_another_learnt_similarity_are_refused():
    network = cb.Network.path(2)
    one, two = (
        cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.MeanEmbedding(sigma))
        for sigma in (0.5, 0.6)
    )
    with pytest.raises(StateError, match="another policy"):
        cb.Agent.from_bytes(one.agent(0, network).to_bytes(), policy=two, network=network)


def test_history_warms_a_learnt_similarity_up(rng):
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=cb.similarity.Evidence())
    agent = policy.agent(0, cb.Network.path(2))
    theta = np.array([1.0, -1.0, 0.5])
    for t in range(1, 30):
        x = rng.normal(size=3)
        agent.observe(x, x @ theta)
        x = rng.normal(size=3)
        agent.receive(cb.Message(t, 1, np.append(x, x), x @ theta, 1))
    agent.decide(rng.normal(size=(3, 3)))
    assert agent.known == 58
    assert agent.similarity[1] > 0.3


def test_views_know_who_the_others_are():
    table = np.array([[1.0], [2.0], [0.0]])
    views = Views.of(np.arange(3)[None], np.array([0]), table, np.arange(3)[None])
    assert views.others.tolist() == [[False, True, False]]


def test_where_no_similarity_is_given_it_is_learnt_by_evidence():
    for make in (cb.CoopKernelUCB, cb.EagerKernelUCB):
        assert make(kernel=cb.kernels.Linear()).similarity == cb.similarity.Evidence()


def uneven_views(rng, widths, wide):
    """Views of different widths: row u + 1 of the table is what was heard from u."""
    table = np.ones((wide + 1, 1))
    table[0] = 0.0
    index = np.zeros((len(widths), wide), dtype=np.int64)
    for row, width in enumerate(widths):
        index[row, :width] = 1 + rng.permutation(wide)[:width]
    return Views.of(index - 1, np.array([rng.integers(w) for w in widths]), table, index)


@pytest.mark.parametrize("most", [1, 7, 40, 10_000])
def test_batches_lose_padding_and_nothing_else(most):
    rng = np.random.default_rng(0)
    widths = [1, 30, 2, 29, 3, 3, 12, 30, 1, 8]
    views = uneven_views(rng, widths, 30)
    places = []
    for rows, part in views.batches(most):
        places += rows.tolist()
        width = max(widths[row] for row in rows)
        assert part.index.shape == (len(rows), width)
        assert len(rows) == 1 or len(rows) * width <= most
        assert min(widths[row] for row in rows) >= 0.75 * width
        for row, agents, heard, me, index in zip(
            rows, part.agents, part.heard, part.me, part.index, strict=True
        ):
            mine = widths[row]
            assert (agents == views.agents[row, :width]).all()
            assert heard[:mine].all()
            assert not heard[mine:].any()
            assert me == views.me[row]
            assert (part.table[index] == views.table[views.index[row, :width]]).all()
    assert sorted(places) == list(range(len(widths)))


def test_a_batch_keeps_the_asking_agent_where_nobody_was_heard():
    views = Views.of(np.array([[0, 1, 2]]), np.array([1]), np.zeros((1, 1)), np.zeros((1, 3), int))
    ((rows, part),) = views.batches(10)
    assert rows.tolist() == [0]
    assert part.agents.tolist() == [[0, 1]]


def test_gathered_loadings_are_in_place_and_padding_is_on_its_own():
    one = Loadings(np.full((1, 2, 1), 0.5), np.full((1, 2), 0.75))
    two = Loadings(np.full((2, 3, 2), 0.25), np.full((2, 3), 0.875))
    whole = Loadings.gathered((3, 3), [(np.array([1]), one), (np.array([0, 2]), two)])
    assert whole.matrix[1] == pytest.approx(np.array([[1, 0.25, 0], [0.25, 1, 0], [0, 0, 1]]))
    assert (whole.matrix[[0, 2]] == two.matrix).all()


@pytest.mark.parametrize(
    "similarity",
    [
        cb.similarity.Evidence(),
        cb.similarity.Coregionalised(),
        cb.similarity.MeanEmbedding(0.5),
        cb.similarity.MeanEmbedding("median", rank=2),
        cb.similarity.Laplacian.by_evidence(),
        cb.similarity.Population.by_evidence(),
    ],
)
def test_a_view_is_estimated_alike_beside_wider_ones(similarity):
    network = cb.Network.star(12)
    problem = cb.problems.clustered_linear(network, clusters=[v % 3 for v in range(12)], dim=4)
    policy = cb.EagerKernelUCB(kernel=cb.kernels.Linear(), similarity=similarity, eta=0.3)
    learner = similarity.learner(policy.kernel, network)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12 * 20, 4)) / 2
    y = problem.expected(np.repeat(np.arange(12), 20), X) + 0.1 * rng.normal(size=len(X))
    attached = X[:, : learner.attached(4)]
    table = learner.summaries(X, attached, y).reshape(12, 20, -1).sum(axis=1)
    table = np.vstack([np.zeros_like(table[:1]), table])
    index = np.array([np.arange(1, 13), [1, 4, 7, 2] + 8 * [0], [3, 6] + 10 * [0]])
    me = np.array([0, 1, 0])
    together = learner.estimate(Views.of(index - 1, me, table, index)).expected
    for row, width in enumerate([12, 4, 2]):
        at = [row], slice(width)
        alone = learner.estimate(Views.of(index[at] - 1, me[[row]], table, index[at])).expected[0]
        assert together[row, :width, :width] == pytest.approx(alone, abs=1e-9)
        rest = together[row, width:, width:]
        np.testing.assert_allclose(rest, np.eye(12 - width), rtol=0, atol=1e-15)


@pytest.mark.parametrize("network", [None, 3, "path", np.array(3), [(0, 1)], cb.Network], ids=repr)
def test_a_similarity_is_asked_for_a_network(network):
    with pytest.raises(ParameterError, match=r"expected a coopbandits\.Network, got"):
        similarity_matrix(cb.similarity.Same(), network)


@pytest.mark.parametrize("agents", [np.ones(3), "3", 2.5, 10**5000], ids=["array", "3", "2.5", "1"])
def test_a_matrix_is_for_a_whole_number_of_agents(agents):
    with pytest.raises(ParameterError, match="agents must be"):
        as_similarity(np.eye(3), agents)


@pytest.mark.parametrize(
    "labels",
    [np.ma.array([0, 1], mask=[0, 1]), range(10**12), np.array(3), {0: 1}, int, (i for i in [1])],
    ids=["masked", "endless", "no dimensions", "dict", "class", "generator"],
)
def test_labels_of_clusters_are_a_list(labels):
    with pytest.raises(ShapeError, match=r"cluster labels (must be a list|by name need names)"):
        cb.similarity.Clusters(labels)
