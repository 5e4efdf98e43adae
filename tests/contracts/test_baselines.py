"""What every algorithm that is no row of four answers must do: a new one is tested here too."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import baselines
from coopbandits.engines import Algorithm
from coopbandits.errors import ParameterError
from coopbandits.lab.experiments.kinds import World, kinds, make_policy
from coopbandits.lab.experiments.schema import experiment_schema
from worlds import assert_same_run, ragged


def one_set(network, rounds=8):
    """A problem of one decision set, for algorithms that know arms only."""
    return cb.problems.fully_cooperative(network, dim=3, actions=3)


# each with a problem that it can play
RBF = cb.kernels.RBF()
MADE = {
    "CLUB": (cb.CLUB(), ragged),
    "ConsensusUCB": (cb.ConsensusUCB(), one_set),
    "DisKernelUCB": (cb.DisKernelUCB(kernel=RBF), ragged),
    "DiscountedLinUCB": (cb.DiscountedLinUCB(discount=0.9), ragged),
    "DynUCB": (cb.DynUCB(), ragged),
    "EbmTS": (cb.EbmTS(), ragged),
    "EbmUCB": (cb.EbmUCB(), ragged),
    "HLinUCB": (cb.HLinUCB(dissimilarity=0.1), one_set),
    "SCLUB": (cb.SCLUB(), ragged),
    "SlidingWindowLinUCB": (cb.SlidingWindowLinUCB(window=4), ragged),
    "SupKernelUCB": (cb.SupKernelUCB(kernel=RBF), ragged),
}
# what an experiment must say of it
TABLES = {
    "DisKernelUCB": {"kernel": "RBF"},
    "DiscountedLinUCB": {"discount": 0.9},
    "HLinUCB": {"dissimilarity": 0.1},
    "SlidingWindowLinUCB": {"window": 4},
    "SupKernelUCB": {"kernel": "RBF"},
}
# these send when it pays, or never; the same ones are told T before they start
AT_TIMES = {"DisKernelUCB", "HLinUCB", "SupKernelUCB"}
# these are independent agents, who send nothing
NEVER = {"DiscountedLinUCB", "SlidingWindowLinUCB"}


def test_every_algorithm_is_under_contract_public_and_can_be_named_by_an_experiment():
    assert set(MADE) == set(baselines.__all__)
    assert set(MADE) <= set(cb.__all__)
    assert set(MADE) <= set(kinds()["policy"])
    files = {file.stem for file in Path(baselines.__file__).parent.glob("[!_]*.py")}
    assert files >= {getattr(baselines, name).__module__.rpartition(".")[2] for name in MADE}


@pytest.mark.parametrize("name", ["DisKernelUCB", "SupKernelUCB"])
def test_a_kernel_may_be_given_by_position(name):
    assert getattr(cb, name)(RBF) == getattr(cb, name)(kernel=RBF)


@pytest.mark.parametrize("name", MADE)
class TestEveryAlgorithm:
    def test_is_one(self, name):
        algorithm, _ = MADE[name]
        assert isinstance(algorithm, Algorithm)
        assert getattr(baselines, name).__doc__
        renamed = algorithm.named("another")
        assert renamed.name == "another"
        assert renamed.named(algorithm.name) == algorithm

    def test_plays_the_same_run_for_the_same_seed_to_the_bit(self, name):
        algorithm, problem_of = MADE[name]
        problem = problem_of(cb.Network.grid(3, 3), rounds=8)
        one, two = (cb.play(problem, algorithm, rounds=8, seed=5) for _ in range(2))
        assert_same_run(one, two)

    def test_keeps_a_whole_record(self, name):
        algorithm, problem_of = MADE[name]
        problem = problem_of(cb.Network.grid(3, 3), rounds=8)
        run = cb.play(problem, algorithm, rounds=6, seed=5)
        sizes = np.array([problem.round(t, 5).sizes for t in range(1, 7)])
        assert run.regret.shape == run.actions.shape == run.rewards.shape == (6, 9)
        assert ((run.actions >= 0) & (run.actions < sizes)).all()
        assert (run.messages > 0).all() or name in AT_TIMES | NEVER
        assert name not in NEVER or run.messages.sum() == 0
        sent = run.messages > 0
        assert (run.bytes[sent] > 8 * run.messages[sent]).all()
        assert (run.bytes[~sent] == 0).all()
        assert run.listens.shape == run.similarity(6).shape == (9, 9)
        assert run.listens.diagonal().all()
        np.testing.assert_array_equal(run.similarity(6), run.similarity(6).T)
        assert not run.similarity(6)[~run.listens].any()

    def test_starts_as_a_longer_run_starts_unless_it_is_told_how_long(self, name):
        algorithm, problem_of = MADE[name]
        problem = problem_of(cb.Network.grid(3, 3), rounds=8)
        short, long = (cb.play(problem, algorithm, rounds=T, seed=5) for T in (4, 8))
        if name not in AT_TIMES:
            np.testing.assert_array_equal(short.actions, long.actions[:4])
        np.testing.assert_array_equal(short.actions[0], long.actions[0])

    def test_plays_a_network_of_one_agent_without_a_message(self, name):
        algorithm, problem_of = MADE[name]
        run = cb.play(problem_of(cb.Network.path(1), rounds=8), algorithm, rounds=8)
        assert run.messages.sum() == run.bytes.sum() == 0

    def test_plays_a_network_without_edges(self, name):
        algorithm, problem_of = MADE[name]
        network = cb.Network.from_edges([], agents=4)
        assert cb.play(problem_of(network, rounds=5), algorithm, rounds=5).regret.shape == (5, 4)

    def test_the_first_choice_is_at_random(self, name):
        algorithm, _ = MADE[name]
        problem = one_set(cb.Network.path(2))
        first = {
            int(cb.play(problem, algorithm, rounds=1, seed=s).actions[0, 0]) for s in range(40)
        }
        assert first == {0, 1, 2}

    def test_a_name_is_a_text(self, name):
        with pytest.raises(ParameterError, match="name must be a text, got 5"):
            MADE[name][0].named(5)

    def test_an_experiment_can_make_it(self, name):
        made = make_policy({"kind": name, **TABLES.get(name, {})}, ("policies", "mine"), World())
        assert made == MADE[name][0].named("mine")
        [described] = [
            kind
            for kind in experiment_schema()["$defs"]["policy"]["oneOf"]
            if kind["properties"].get("kind", {}).get("const") == name
        ]
        settings = {field.name for field in dataclasses.fields(made)}
        assert settings < set(described["properties"])
        assert all(described["properties"][key] for key in settings)  # each has its type
