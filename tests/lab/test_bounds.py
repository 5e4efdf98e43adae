import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.lab import bound_figure


@pytest.fixture(scope="module")
def found():
    problem = cb.problems.fully_cooperative(
        cb.Network.path(2), kernel=cb.kernels.Linear(), dim=2, noise=0.1
    )
    width = cb.width.Mixture(norm=problem.norm, noise=0.1, delta=0.1)
    policy = cb.CoopKernelUCB(kernel=problem.kernel, similarity=problem.similarity, width=width)
    run = cb.play(problem, policy, rounds=15)
    return cb.theory.run_bound(problem, policy, run)


def test_the_curves_are_the_runs_regret_and_its_bound_per_agent(found, tmp_path):
    file = tmp_path / "bound.png"
    figure = bound_figure({"one": found, "two": found}, title="a path", file=file)
    assert [axis.get_title() for axis in figure.axes] == ["one", "two"]
    for axis in figure.axes:
        bound, measured = axis.get_lines()
        np.testing.assert_array_equal(bound.get_xdata(), np.arange(1, 16))
        np.testing.assert_allclose(bound.get_ydata(), found.bound / 2)
        np.testing.assert_allclose(measured.get_ydata(), found.measured / 2)
        assert bound.get_label() == "bound, with probability ≥ 0.9"
        assert axis.get_yscale() == "log"
        assert axis.get_ylim()[1] > found.bound[-1] / 2
    assert figure.get_suptitle() == "a path"
    assert file.stat().st_size > 10_000


def test_one_run_needs_no_name(found):
    (axis,) = bound_figure(found).axes
    assert axis.get_title() == ""


@pytest.mark.parametrize("wrong", [{}, {"one": 3.0}, "coop"], ids=repr)
def test_what_has_no_bound_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"expected what theory\.run_bound returns"):
        bound_figure(wrong)
