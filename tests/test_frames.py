"""Results as dataframes hold what the results hold, and say what is missing."""

import subprocess
import sys

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError

NAMES = ("north", "south", "west")
NETWORK = cb.Network.from_edges([("north", "south"), ("south", "west")])
PROBLEM = cb.problems.clustered_linear(NETWORK, dim=2, actions=3)
POLICY = cb.EagerKernelUCB(cb.kernels.Linear(), similarity=PROBLEM.similarity, eta=0.3)


@pytest.fixture(scope="module")
def run():
    return cb.play(PROBLEM, POLICY, rounds=5)


def test_a_decision_is_a_row_and_grouping_gives_the_arrays_back(run):
    frame = run.to_frame()
    assert frame.columns.tolist() == [
        "round", "agent", "action", "reward", "regret", "propensity",
    ]  # fmt: skip
    for name in ("action", "reward", "regret", "propensity"):
        wide = frame.pivot(index="round", columns="agent", values=name)[list(NAMES)]
        held = {"action": "actions", "reward": "rewards", "propensity": "propensities"}
        np.testing.assert_array_equal(
            wide.to_numpy(float), getattr(run, held.get(name, name)).astype(float)
        )
    assert frame["round"].tolist() == np.repeat(range(1, 6), 3).tolist()


def test_agents_without_names_are_numbers():
    problem = cb.problems.clustered_linear(cb.Network.path(3), dim=2)
    assert cb.play(problem, cb.LinUCB(), 2).to_frame().agent.tolist() == [0, 1, 2] * 2


def test_a_round_is_a_row(run):
    frame = run.to_frame(per="round")
    np.testing.assert_array_equal(frame.regret_per_agent, run.regret_per_agent)
    np.testing.assert_array_equal(frame.reward, run.rewards.sum(axis=1))
    for name in ("messages", "bytes", "delivered", "late", "lost", "missed"):
        np.testing.assert_array_equal(frame[name], getattr(run, name))


def test_who_was_away_took_no_action():
    links = cb.Links(away={"north": [(2, 4)]})
    run = cb.play(PROBLEM, POLICY, rounds=5, links=links)
    frame = run.to_frame()
    np.testing.assert_array_equal(frame.action.isna(), run.away.ravel())
    assert run.away.any()
    assert str(frame.action.dtype) == str(cb.play(PROBLEM, POLICY, 2).to_frame().action.dtype)


def test_on_a_continuum_the_point_stands_for_the_action():
    network = cb.Network.path(2)
    problem = cb.problems.continuum(network, cb.Box([0, 0], [1, 1]), kernel=cb.kernels.RBF())
    run = cb.play(problem, cb.KernelUCB(cb.kernels.RBF()), rounds=2)
    frame = run.to_frame()
    assert "action" not in frame
    np.testing.assert_array_equal(frame[["x0", "x1"]], run.contexts.reshape(4, 2))


def test_a_comparison_has_a_row_for_each_policy_and_seed():
    found = cb.compare(PROBLEM, [POLICY, cb.Uniform()], rounds=4, seeds=3)
    frame = found.to_frame()
    assert len(frame) == 6
    for name in found.policies:
        np.testing.assert_array_equal(frame.regret[frame.policy == name], found.values(name))


def test_what_is_no_unit_of_rows_is_refused(run):
    with pytest.raises(ParameterError, match=r"per.*'decision'.*'round'"):
        run.to_frame(per="agent")


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package, call):
    code = (
        f"import sys; sys.modules['{package}'] = None\n"
        "import coopbandits as cb\n"
        "problem = cb.problems.clustered_linear(cb.Network.path(2), dim=2)\n"
        "run = cb.play(problem, cb.LinUCB(), 1)\n"
        f"try:\n    run.{call}()\n"
        "except cb.errors.MissingExtraError as error:\n    print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert f"{package} is not installed" in shown
    assert "pip install 'coopbandits[lab]'" in shown
