"""What every policy must do: a new one is tested by being written."""

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits import policies
from coopbandits.errors import ParameterError
from worlds import NETWORKS, assert_same_run, ragged

RBF = cb.kernels.RBF()
MADE = {
    "LinUCB": cb.LinUCB(),
    "OFUL": cb.OFUL(),
    "KernelUCB": cb.KernelUCB(kernel=RBF),
    "GPUCB": cb.GPUCB(kernel=RBF),
    "IGPUCB": cb.IGPUCB(kernel=RBF),
    "LinTS": cb.LinTS(),
    "KernelTS": cb.KernelTS(kernel=RBF),
    "NaiveCooperation": cb.NaiveCooperation(ttl=2),
    "CoopKernelUCB": cb.CoopKernelUCB(kernel=RBF, similarity=cb.similarity.Laplacian(1.0), ttl=2),
    "EagerKernelUCB": cb.EagerKernelUCB(kernel=RBF, similarity=cb.similarity.Laplacian(1.0), ttl=2),
    "CoopKernelTS": cb.CoopKernelTS(kernel=RBF, similarity=cb.similarity.Laplacian(1.0), ttl=2),
    "EagerKernelTS": cb.EagerKernelTS(kernel=RBF, similarity=cb.similarity.Laplacian(1.0), ttl=2),
    "DistKernelUCB": cb.DistKernelUCB(kernel=RBF, ttl=2),
    "Centralised": cb.Centralised(kernel=RBF),
    "GoBLin": cb.GoBLin(),
    "LaplacianKernelTS": cb.LaplacianKernelTS(kernel=RBF),
    "LaplacianKernelUCB": cb.LaplacianKernelUCB(kernel=RBF),
    "Uniform": cb.Uniform(),
}


def test_every_policy_is_under_contract_and_public():
    assert set(MADE) == set(policies.__all__)
    assert set(MADE) <= set(cb.__all__)
    files = {file.stem for file in Path(policies.__file__).parent.glob("[!_]*.py")}
    assert files == {getattr(policies, name).__module__.rpartition(".")[2] for name in MADE}


@pytest.mark.parametrize("name", MADE)
class TestEveryPolicy:
    def test_is_a_row_of_four_answers(self, name):
        assert isinstance(MADE[name], cb.Policy)
        assert getattr(policies, name).__doc__

    def test_takes_its_kernel_by_position_or_says_which_policy_takes_one(self, name):
        maker = getattr(policies, name)
        if "kernel" in inspect.signature(maker).parameters:
            assert maker(RBF) == maker(kernel=RBF)
            with pytest.raises(ParameterError, match="is no kernel"):
                maker(cb.kernels.RBF)
            return
        takes = r"takes no kernel, but got RBF\(.*; coopbandits\.\w*Kernel(UCB|TS)\(kernel"
        for call in (lambda: maker(RBF), lambda: maker(kernel=RBF)):
            with pytest.raises(ParameterError, match=takes):
                call()
        with pytest.raises(ParameterError, match=r"settings by name, but got 0\.3"):
            maker(0.3)

    def test_plays_the_same_run_for_the_same_seed_to_the_bit(self, name):
        problem = ragged(NETWORKS["grid"], rounds=8)
        one, two = (cb.play(problem, MADE[name], rounds=8, seed=5) for _ in range(2))
        assert_same_run(one, two)

    def test_keeps_a_whole_record(self, name):
        problem = ragged(NETWORKS["grid"], rounds=8)
        run = cb.play(problem, MADE[name], rounds=6, seed=5)
        sizes = np.array([problem.round(t, 5).sizes for t in range(1, 7)])
        assert run.regret.shape == run.actions.shape == run.rewards.shape == (6, 9)
        assert run.messages.shape == run.bytes.shape == (6,)
        assert (run.regret >= 0).all()
        assert ((run.actions >= 0) & (run.actions < sizes)).all()
        assert np.isfinite(run.rewards).all()

    def test_starts_as_a_longer_run_starts(self, name):
        problem = ragged(NETWORKS["grid"], rounds=8)
        short, long = (cb.play(problem, MADE[name], rounds=T, seed=5) for T in (4, 8))
        np.testing.assert_array_equal(short.actions, long.actions[:4])

    def test_plays_a_network_of_one_agent(self, name):
        problem = ragged(cb.Network.path(1), rounds=8)
        run = cb.play(problem, MADE[name], rounds=8)
        assert run.messages.sum() == 0

    def test_plays_a_network_without_edges(self, name):
        problem = ragged(cb.Network.from_edges([], agents=4), rounds=5)
        assert cb.play(problem, MADE[name], rounds=5).regret.shape == (5, 4)

    def test_the_first_round_is_at_random(self, name):
        # over seeds every action of the first agent is taken
        network = cb.Network.path(2)
        problem = cb.problems.clustered_linear(network, dim=2, actions=3)
        first = {
            int(cb.play(problem, MADE[name], rounds=1, seed=s).actions[0, 0]) for s in range(40)
        }
        assert first == {0, 1, 2}

    def test_has_a_fingerprint_of_its_own(self, name):
        policy = MADE[name]
        again = dataclasses.replace(policy, name="another name")
        assert again.fingerprint == policy.fingerprint
        others = [p.fingerprint for n, p in MADE.items() if n != name]
        assert policy.fingerprint not in others

    def test_stays_right_when_all_offered_contexts_are_the_same(self, name):
        network = cb.Network.path(3)
        contexts, rewards = np.ones((30, 3, 4, 2)), np.zeros((30, 3, 4))
        run = cb.play(cb.problems.table(network, contexts, rewards), MADE[name], rounds=30)
        assert (run.regret == 0).all()
        if name != "Uniform":  # ties go to the lowest index, once something is known
            assert (run.actions[1:] == 0).all()

    def test_stays_finite_with_contexts_of_zeros(self, name):
        network = cb.Network.path(3)
        problem = cb.problems.table(network, np.zeros((6, 3, 2, 2)), np.ones((6, 3, 2)))
        assert np.isfinite(cb.play(problem, MADE[name], rounds=6).rewards).all()
