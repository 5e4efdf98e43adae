import pickle

import numpy as np
import pytest

import coopbandits as cb
from arm_worlds import correlated
from coopbandits.arms import Table
from coopbandits.errors import ParameterError
from coopbandits.kernels import RBF, Linear
from coopbandits.policy import plan
from worlds import NETWORKS

NETWORK, V, A = NETWORKS["path"], 7, 3


def made(**changes):
    return cb.problems.arms(NETWORK, **{"arms": A, "dim": 4, **changes})


def functions_of(problem, X):
    """f_{v,a} at contexts: (V, A, n)."""
    return np.array(
        [
            [
                problem.expected(np.full(len(X), v), np.column_stack([np.full(len(X), a), X]))
                for a in range(A)
            ]
            for v in range(V)
        ]
    )


def test_every_agent_is_offered_every_arm_with_one_context_a_round():
    offer = made().round(1, 0)
    np.testing.assert_array_equal(offer.agents, np.repeat(np.arange(V), A))
    contexts = offer.contexts.reshape(V, A, 5)
    np.testing.assert_array_equal(contexts[:, :, 0], np.tile(np.arange(A), (V, 1)))
    np.testing.assert_array_equal(contexts[:, 0, 1:], contexts[:, 2, 1:])
    np.testing.assert_allclose(np.linalg.norm(offer.contexts[:, 1:], axis=1), 1.0)
    assert len(np.unique(contexts[:, 0, 1])) == V


def test_arms_can_come_with_contexts_of_their_own():
    contexts = made(own_contexts=True).round(1, 0).contexts
    assert len(np.unique(contexts[:, 1])) == V * A
    np.testing.assert_array_equal(contexts[:, 0], np.tile(np.arange(A), V))


def test_its_rounds_depend_on_the_seed_alone_and_it_can_be_sent_to_another_process():
    problem = made()
    late = problem.round(7, 3)
    again = pickle.loads(pickle.dumps(made())).round(7, 3)
    np.testing.assert_array_equal(late.rewards, again.rewards)
    assert (late.rewards != problem.round(7, 4).rewards).any()
    assert (late.expected != made(seed=1).round(7, 3).expected).any()


def joint(**changes):
    return made(similarity=cb.similarity.ArmNetwork(correlated(V * A), arms=A), **changes)


@pytest.mark.parametrize("make", [made, joint], ids=["product", "joint"])
def test_its_norm_is_that_of_the_interpolant_through_many_points(rng, make):
    # the minimum-norm interpolant of F at n points has norm √(fᵀK⁻¹f) ≤ ‖F‖, and comes near it
    problem = make(kernel=Linear(), norm=1.7, support=40)
    policy = cb.EagerKernelUCB(kernel=problem.kernel, similarity=problem.similarity)
    K = plan(policy, NETWORK).kernel
    agents = np.repeat(np.arange(V), 30)
    X = np.column_stack([rng.integers(A, size=len(agents)), rng.normal(size=(len(agents), 4))])
    values, U = np.linalg.eigh(K(agents, X, agents, X))
    kept = values > 1e-9 * values[-1]
    f = problem.expected(agents, X)
    norm = np.sqrt((((U[:, kept].T @ f) ** 2) / values[kept]).sum())
    assert problem.norm == pytest.approx(1.7)
    assert 0.95 * 1.7 < norm <= 1.7 * (1 + 1e-6)


def test_arms_are_as_alike_as_K_arm_makes_them(rng):
    X = rng.normal(size=(20, 4))
    alike = functions_of(made(arm=Table(np.ones((A, A)))), X)
    np.testing.assert_allclose(alike[:, 0], alike[:, 2], rtol=1e-12)
    separate = functions_of(made(), X)
    assert (np.abs(separate[:, 0] - separate[:, 2]).max(axis=1) > 1e-3).all()
    clusters = cb.similarity.Clusters([0, 0, 0, 0, 1, 1, 1])
    of_clusters = functions_of(made(similarity=clusters), X)
    np.testing.assert_allclose(of_clusters[0], of_clusters[3], rtol=1e-12)
    assert np.abs(of_clusters[0] - of_clusters[4]).max() > 1e-3


def test_separate_arms_need_a_model_of_their_own_each():
    # one x for all arms: who does not see the arm cannot tell them apart
    problem = made(kernel=Linear(), similarity=cb.similarity.Same(), norm=3.0, noise=0.1)
    regrets = []
    for kernel in (problem.kernel, cb.arms.ActiveDimensions(Linear(), 0, others=True)):
        policy = cb.EagerKernelUCB(kernel=kernel, similarity=problem.similarity, ttl=2, eta=0.3)
        regrets.append(cb.play(problem, policy, rounds=60).regret_per_agent[-1])
    assert regrets[0] < 0.3 * regrets[1]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"arms": 0}, "arms must be a whole number >= 1"),
        ({"arm": Table(np.eye(2))}, "there is no arm 2"),
        ({"arm": "separate"}, "is no kernel"),
        (
            {"similarity": cb.similarity.ArmNetwork(np.eye(14), arms=2)},
            "ArmNetwork is for 2 arms in column 0.*expected arms=3",
        ),
        (
            {"similarity": cb.similarity.ArmNetwork(np.eye(21), arms=3), "arm": RBF()},
            "has K_arm in it.*no arm=",
        ),
        ({"norm": -1.0}, "norm must be >= 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, complaint):
    with pytest.raises(ParameterError, match=complaint):
        made(**changes)


def test_own_contexts_is_yes_or_no():
    with pytest.raises(ParameterError, match="own_contexts must be True or False"):
        cb.problems.arms(cb.Network.path(2), own_contexts=np.array([1.0, 2.0]))
