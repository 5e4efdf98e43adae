"""What baselines of independent agents and of servers all do, as every policy does."""

import dataclasses

import jsonschema
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.engines import Algorithm
from coopbandits.errors import InputError
from coopbandits.lab.experiments.kinds import World, make_policy
from coopbandits.lab.experiments.schema import experiment_schema
from worlds import NETWORKS, ragged

RBF = cb.kernels.RBF()
MADE = {
    "SupKernelUCB": cb.SupKernelUCB(kernel=RBF),
    "DisKernelUCB": cb.DisKernelUCB(kernel=RBF),
    "HLinUCB": cb.HLinUCB(dissimilarity=0.3),
    "SlidingWindowLinUCB": cb.SlidingWindowLinUCB(window=3),
    "DiscountedLinUCB": cb.DiscountedLinUCB(discount=0.8),
}
TABLES = {
    "SupKernelUCB": {"kernel": "RBF", "eta": 0.5},
    "DisKernelUCB": {"kernel": {"kind": "RBF", "lengthscale": 2.0}, "threshold": 2},
    "HLinUCB": {"dissimilarity": 0.1, "keep": True, "width": "SelfNormalised"},
    "SlidingWindowLinUCB": {"window": 20, "eta": 0.3},
    "DiscountedLinUCB": {"discount": 0.95, "noise": 0.2},
}


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft202012Validator(experiment_schema())


@pytest.mark.parametrize("name", MADE)
class TestEveryBaseline:
    def test_is_an_algorithm_and_takes_another_name(self, name):
        assert isinstance(MADE[name], Algorithm)
        other = MADE[name].named("mine")
        assert other.name == "mine"  # type: ignore[attr-defined]
        assert dataclasses.replace(other, name=MADE[name].name) == MADE[name]  # type: ignore[attr-defined, type-var]

    def test_plays_the_same_run_for_the_same_seed_to_the_bit(self, name):
        problem = ragged(NETWORKS["grid"])
        one, two = (cb.play(problem, MADE[name], rounds=12, seed=5) for _ in range(2))
        for field in ("regret", "actions", "rewards", "messages", "bytes"):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field))

    def test_plays_a_network_of_one_agent_who_tells_nobody(self, name):
        run = cb.play(ragged(cb.Network.path(1)), MADE[name], rounds=12)
        assert run.messages.sum() == 0

    def test_plays_a_network_without_edges(self, name):
        problem = ragged(cb.Network.from_edges([], agents=4), rounds=5)
        assert cb.play(problem, MADE[name], rounds=5).regret.shape == (5, 4)

    def test_the_first_round_is_at_random(self, name):
        problem = cb.problems.clustered_linear(cb.Network.path(2), dim=2, actions=3)
        first = {
            int(cb.play(problem, MADE[name], rounds=1, seed=s).actions[0, 0]) for s in range(40)
        }
        assert first == {0, 1, 2}

    def test_ties_go_to_the_lowest_index_once_something_is_known(self, name):
        network = cb.Network.path(3)
        contexts, rewards = np.ones((10, 3, 4, 2)), np.zeros((10, 3, 4))
        run = cb.play(cb.problems.table(network, contexts, rewards), MADE[name], rounds=10)
        assert (run.regret == 0).all()
        assert (run.actions[1:] == 0).all()

    def test_stays_finite_with_contexts_of_zeros(self, name):
        problem = cb.problems.table(cb.Network.path(3), np.zeros((6, 3, 2, 2)), np.ones((6, 3, 2)))
        assert np.isfinite(cb.play(problem, MADE[name], rounds=6).rewards).all()

    def test_contexts_that_leave_no_digits_are_refused(self, name):
        algorithm = MADE[name]
        if hasattr(algorithm, "kernel"):
            algorithm = dataclasses.replace(algorithm, kernel=cb.kernels.Linear())  # type: ignore[type-var]
        problem = cb.problems.table(
            cb.Network.path(2), np.full((2, 2, 3, 2), 1e6), np.ones((2, 2, 3))
        )
        with pytest.raises(InputError, match="kernel is too large beside the ridge"):
            cb.play(problem, algorithm, rounds=2)

    def test_an_experiment_may_name_it_and_the_schema_knows_it(self, name, validator):
        table = {"kind": name, **TABLES[name]}
        made = make_policy(table, ("policies", "mine"), World())
        assert type(made).__name__ == name
        assert made.name == "mine"
        experiment = {
            "networks": {"n": {"kind": "path", "agents": 3}},
            "problems": {"p": {"kind": "kernel"}},
            "policies": {"mine": table},
        }
        assert validator.is_valid(experiment)
        typing_error = {**experiment, "policies": {"mine": {**table, "etta": 1}}}
        assert not validator.is_valid(typing_error)
