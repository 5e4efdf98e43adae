import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.theory.observed import observed
from coopbandits.theory.run_bound import run_bound

NETWORK = cb.Network.path(3)
BOX = cb.Box([-1.0, 0.0], [0.5, 1.0])
KERNEL = cb.kernels.RBF(0.5) + cb.kernels.Linear(2.0)
PROBLEM = cb.problems.continuum(NETWORK, BOX, kernel=KERNEL, noise=0.1)
POLICY = cb.CoopKernelUCB(
    kernel=KERNEL,
    similarity=PROBLEM.similarity,
    width=cb.width.SelfNormalised(norm=1.0, noise=0.1),
)


def test_a_run_on_a_continuum_gives_its_contexts_and_its_bound():
    run = cb.play(PROBLEM, POLICY, rounds=5, seed=3)
    found = observed(PROBLEM, POLICY, run, seed=3)
    np.testing.assert_array_equal(found.contexts, run.contexts)
    # K ≤ 1 + |x|²/4, largest at (−1, 1)
    assert found.largest == pytest.approx(1.5)
    assert found.one_set
    bound = run_bound(PROBLEM, POLICY, run, seed=3)
    assert (bound.measured <= bound.bound).all()


def test_another_seed_or_a_run_of_finite_sets_is_refused():
    run = cb.play(PROBLEM, POLICY, rounds=2, seed=3)
    with pytest.raises(ParameterError, match="rewards of round 1 are not the run's"):
        observed(PROBLEM, POLICY, run, seed=4)
    finite = cb.play(cb.problems.kernel(NETWORK, dim=2), POLICY, rounds=2)
    with pytest.raises(ParameterError, match="the run is of finite decision sets"):
        observed(PROBLEM, POLICY, finite)


@pytest.mark.parametrize("call", [observed, run_bound, cb.theory.run_gains])
@pytest.mark.parametrize("wrong", [None, "text", 3, np.zeros((2, 2)), POLICY, cb.Policy, cb.Run])
def test_what_is_no_problem_policy_or_run_is_refused_by_its_name(call, wrong):
    run = cb.play(PROBLEM, POLICY, rounds=2, seed=3)
    with pytest.raises(ParameterError, match=r"problem=.*; expected a problem, such as"):
        call(wrong, POLICY, run)
    with pytest.raises(ParameterError, match=r"run=.*; expected the coopbandits\.Run that play"):
        call(PROBLEM, POLICY, wrong)
    with pytest.raises(ParameterError, match=r"policy=.*; expected a coopbandits\.Policy of four"):
        call(PROBLEM, run if wrong is POLICY else wrong, run)


def test_a_run_that_is_longer_than_its_problem_is_refused(rng):
    contexts, rewards = rng.normal(size=(4, 3, 2, 2)), rng.normal(size=(4, 3, 2))
    long, short = (cb.problems.table(NETWORK, contexts[:T], rewards[:T]) for T in (4, 3))
    run = cb.play(long, POLICY, rounds=4)
    with pytest.raises(ParameterError, match="the run is of 4 rounds, the problem of 3"):
        observed(short, POLICY, run)
