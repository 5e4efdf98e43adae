import numpy as np
import pytest

import coopbandits as cb
from arm_worlds import ARMS, ROUNDS, correlated, pair_by_pair, with_arms
from coopbandits.arms import Table
from coopbandits.errors import InputError, ParameterError, RemoteProtocolError, SimilarityError
from coopbandits.gp.compositions import ArmJointKernel, Hadamard, Sum
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.kernels import RBF, Linear
from coopbandits.policy import plan
from coopbandits.similarity import ArmNetwork
from lockstep_engines import all_engines
from reference import algorithms, formulas
from worlds import neighbours_of, world_of

V, NETWORK = 5, cb.Network.path(5)
K_Z, K_ARM = correlated(V, seed=1), correlated(ARMS, seed=2)


def policy_of(similarity, kernel=None, make=cb.EagerKernelUCB, **changes):
    made = {"ttl": 2, "ridge": 0.7, "width": cb.width.SelfNormalised(norm=1.0, noise=0.3)}
    K_x = RBF() if kernel is None else kernel
    return make(**{"kernel": K_x, "similarity": similarity, **made, **changes})


@pytest.mark.parametrize("algorithm", ["coop", "eager"])
def test_agents_take_the_decisions_of_the_literal_joint_kernel(algorithm):
    pairs = correlated(V * ARMS, seed=3)  # does not fall into K_arm and K_z
    problem, labels = with_arms(NETWORK), NETWORK.clique_cover(2).labels
    expected, _ = algorithms.cooperate(
        world_of(problem, 0),
        neighbours_of(NETWORK),
        (lambda v, w: labels[v] == labels[w]) if algorithm == "coop" else (lambda v, w: True),
        pair_by_pair(
            lambda v, x, w, z: (
                pairs[v * ARMS + int(x[0]), w * ARMS + int(z[0])] * formulas.rbf(x[1:], z[1:])
            )
        ),
        ttl=2,
        ridge=0.7,
        width=algorithms.fixed(0.9),
        rounds=ROUNDS,
        seed=0,
    )
    make = {"coop": cb.CoopKernelUCB, "eager": cb.EagerKernelUCB}[algorithm]
    policy = policy_of(ArmNetwork(pairs, arms=ARMS), make=make, width=None, eta=0.9)
    run = all_engines(problem, policy, 0, rounds=ROUNDS)
    np.testing.assert_array_equal(run.actions, expected)


SIMILARITIES = {
    "correlated": K_Z,
    "clusters": np.equal.outer(np.arange(V) % 2, np.arange(V) % 2).astype(float),
    "alone": np.eye(V),
}


@pytest.mark.parametrize(
    ("name", "K_x"), [("correlated", Linear()), ("clusters", RBF()), ("alone", Linear())]
)
@pytest.mark.parametrize("K_arm", [K_ARM, np.eye(ARMS)], ids=["arms alike", "separate arms"])
def test_a_product_of_K_arm_and_K_z_is_the_product_form(name, K_x, K_arm):
    # with a width that counts what is known, so that strangers must be the same too
    K_z = SIMILARITIES[name]
    problem = with_arms(NETWORK)
    joint = policy_of(ArmNetwork(np.kron(K_z, K_arm), arms=ARMS), K_x)
    product = policy_of(
        cb.similarity.Known(matrix=K_z), cb.arms.kernel(arm=Table(K_arm), context=K_x)
    )
    one, two = (all_engines(problem, policy, 0, rounds=ROUNDS) for policy in (joint, product))
    np.testing.assert_array_equal(one.actions, two.actions)
    np.testing.assert_array_equal(
        plan(joint, NETWORK).lags.dense(), plan(product, NETWORK).lags.dense()
    )
    np.testing.assert_allclose(one.similarity(1), two.similarity(1), atol=1e-12)


def test_the_matrix_may_have_an_axis_for_each_index():
    pairs = correlated(V * ARMS, seed=3)
    one, two = ArmNetwork(pairs, arms=ARMS), ArmNetwork(pairs.reshape(V, ARMS, V, ARMS))
    np.testing.assert_array_equal(one.pairs, two.pairs)
    assert one.arms == two.arms
    assert policy_of(one).fingerprint == policy_of(two).fingerprint
    assert (
        policy_of(one).fingerprint != policy_of(ArmNetwork(pairs, arms=ARMS, column=1)).fingerprint
    )


def test_what_is_left_between_agents_is_the_mean_over_the_same_arm():
    pairs = correlated(V * ARMS, seed=3)
    K_z = ArmNetwork(pairs, arms=ARMS).matrix(NETWORK)
    for v in range(V):
        for w in range(V):
            expected = np.mean([pairs[v * ARMS + a, w * ARMS + a] for a in range(ARMS)])
            assert K_z[v, w] == pytest.approx(expected)


def test_the_kernel_is_the_literal_one_and_has_the_diagonal_it_says(rng):
    pairs = correlated(V * ARMS, seed=3)
    K_z = ArmNetwork(pairs, arms=ARMS).matrix(NETWORK)
    u, a, x = rng.integers(V, size=8), rng.integers(ARMS, size=8), rng.normal(size=(8, 2))
    X = np.column_stack([x[:, 0], a, x[:, 1]])
    for composition, compose in [(Hadamard(), np.multiply), (Sum(), lambda p, q: (p + q) / 2)]:
        kernel = ArmJointKernel(RBF(), DenseKernel(K_z), composition, pairs=pairs, column=1)
        K = kernel(u, X, u, X)
        for i in range(8):
            for j in range(8):
                between = pairs[u[i] * ARMS + a[i], u[j] * ARMS + a[j]]
                assert K[i, j] == pytest.approx(compose(between, formulas.rbf(x[i], x[j])))
        np.testing.assert_allclose(kernel.diagonal(u, X), np.diag(K))


def chained(linked):
    """Three agents of two arms: 0 and 1 alike at arm 0, 1 and 2 at arm 1; at agent 1 as told."""
    pairs = np.eye(6)
    for one, other in [(0, 2), (3, 5), *([(2, 3)] if linked else [])]:
        pairs[one, other] = pairs[other, one] = 0.4
    return ArmNetwork(pairs, arms=2)


def test_strangers_are_those_whom_no_chain_of_arms_links():
    network = cb.Network.complete(3)
    apart, linked = (
        plan(policy_of(chained(is_linked)), network).lags.dense() for is_linked in (False, True)
    )
    np.testing.assert_array_equal(np.isfinite(apart), [[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    assert np.isfinite(linked).all()


def test_strangers_would_have_changed_no_mean_and_no_deviation(rng):
    policy = policy_of(chained(False), width=None, eta=0.5)
    kernel = plan(policy, cb.Network.complete(3)).kernel
    u = np.repeat([0, 1, 2], 5)
    X, y = np.column_stack([rng.integers(2, size=15), rng.normal(size=15)]), rng.normal(size=15)
    asked = np.column_stack([[0, 1], rng.normal(size=2)])
    me = np.zeros(2, dtype=int)
    moments = []
    for known in (np.arange(15), np.arange(10)):
        K = kernel(u[known], X[known], u[known], X[known])
        kappa = kernel(u[known], X[known], me, asked)
        moments.append(formulas.posterior(K, kappa, kernel.diagonal(me, asked), y[known], 0.7))
    np.testing.assert_allclose(moments[0], moments[1], atol=1e-12)


def test_under_a_sum_nobody_is_a_stranger():
    worked_out = plan(policy_of(chained(False), compose="sum"), cb.Network.complete(3))
    assert np.isfinite(worked_out.lags.dense()).all()


def test_agents_that_differ_in_one_arm_learn_of_the_other_from_each_other():
    # arm 0 is the same for both agents, arm 1 is each agent's own
    pairs = np.eye(4)
    pairs[0, 2] = pairs[2, 0] = 1.0
    agent = policy_of(ArmNetwork(pairs, arms=2), ttl=1).agent(0, cb.Network.path(2))
    for round_, arm in enumerate([0.0, 1.0], start=1):
        agent.receive(cb.Message(round=round_, origin=1, context=[arm, 0.2], reward=3.0, ttl=1))
    assert agent.decide([[0.0, 0.2]]).mean == pytest.approx(3.0 / 1.7)
    assert agent.decide([[1.0, 0.2]]).mean == pytest.approx(0.0, abs=1e-15)


def test_lags_are_those_of_any_other_similarity():
    joint, product = (
        plan(policy_of(similarity), NETWORK)
        for similarity in (ArmNetwork(correlated(V * ARMS), arms=ARMS), cb.similarity.Same())
    )
    np.testing.assert_array_equal(joint.lags.dense(), product.lags.dense())
    np.testing.assert_array_equal(joint.union_bound, product.union_bound)


def test_an_agent_restored_from_bytes_takes_the_same_decisions(rng):
    policy = policy_of(ArmNetwork(correlated(V * ARMS, seed=3), arms=ARMS))
    agent = policy.agent(0, NETWORK, seed=3)
    for t in range(1, 6):
        offered = np.column_stack([np.arange(ARMS), rng.normal(size=(ARMS, 2))])
        agent.reward(agent.decide(offered).id, float(rng.normal()))
        agent.receive(cb.Message(round=t, origin=1, context=offered[1], reward=0.3, ttl=2))
        again = cb.Agent.from_bytes(agent.to_bytes(), policy=policy, network=NETWORK)
        asked = np.column_stack([np.arange(ARMS), rng.normal(size=(ARMS, 2))])
        assert again.preview(asked) == agent.preview(asked)
        assert again.to_bytes() == agent.to_bytes()


def test_K_x_sees_contexts_without_the_arm():
    similarity = ArmNetwork(np.eye(4), arms=2, column=1)
    agent = policy_of(similarity, RBF((0.5, 2.0)), ttl=1).agent(0, cb.Network.path(2))
    agent.observe([0.3, 1.0, -0.2], 1.0)
    expected = formulas.rbf(np.array([0.3, -0.2]), np.array([0.1, 0.4]), np.array([0.5, 2.0]))
    assert agent.decide([[0.1, 1.0, 0.4]]).mean == pytest.approx(expected / 1.7)


def test_sums_cannot_hold_it_and_say_so():
    similarity = ArmNetwork(correlated(V * ARMS), arms=ARMS)
    for engine in ("statistics", "sparse"):
        with pytest.raises(ParameterError, match=r"\(not ArmNetwork\).*take engine='exact'"):
            cb.play(with_arms(NETWORK), policy_of(similarity, Linear()), rounds=3, engine=engine)
    assert cb.play(with_arms(NETWORK), policy_of(similarity, Linear()), rounds=3).engine == "exact"
    with pytest.raises(ParameterError, match="ArmNetwork, between arms of agents"):
        policy_of(similarity, features=cb.features.Exact())


def test_an_arm_that_there_is_not_is_refused():
    policy = policy_of(ArmNetwork(correlated(V * ARMS), arms=ARMS))
    agent = policy.agent(0, NETWORK)
    with pytest.raises(ParameterError, match="there is no arm 3"):
        agent.decide([[3.0, 1.0]])
    agent.observe([0.0, 1.0], 1.0)
    with pytest.raises(RemoteProtocolError, match="an arm that there is not"):
        agent.receive(cb.Message(round=1, origin=1, context=[0.5, 1.0], reward=1.0, ttl=2))
    with pytest.raises(ParameterError, match="there is no arm"):
        cb.problems.kernel(NETWORK, similarity=policy.similarity)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: ArmNetwork(np.eye(6)), r"shape \(6, 6\), arms=None; expected \(V, A, V, A\)"),
        (lambda: ArmNetwork(np.ones((2, 3, 2, 2))), r"shape \(2, 3, 2, 2\)"),
        (lambda: ArmNetwork(np.eye(6), arms=4), "has 6 rows, no multiple of arms=4"),
        (lambda: ArmNetwork(np.eye(6), arms=0), "arms must be a whole number >= 1"),
        (lambda: ArmNetwork(np.eye(6), arms=2, column=-1), "column must be a whole number >= 0"),
        (lambda: ArmNetwork(-np.eye(6), arms=2), "not positive semidefinite"),
        (lambda: ArmNetwork(np.triu(np.ones((6, 6))), arms=2), "not symmetric"),
    ],
)
def test_matrices_that_make_no_kernel_of_arms_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_a_matrix_for_other_agents_is_refused():
    with pytest.raises(SimilarityError, match="for 4 agents of 3 arms, but the network has 5"):
        policy_of(ArmNetwork(np.eye(12), arms=3)).agent(0, NETWORK)
