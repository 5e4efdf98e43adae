"""What every width must be: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

from coopbandits import width

MADE = [
    width.Fixed(0.5),
    width.SelfNormalised(),
    width.Mixture(),
    width.InformationGain(),
    width.Srinivas(),
    width.Logarithmic(0.5),
]


def test_every_width_of_the_module_is_under_contract():
    written = {
        kind
        for _, kind in inspect.getmembers(width, inspect.isclass)
        if kind.__module__ == width.__name__ and dataclasses.is_dataclass(kind)
    }
    assert written == {type(value) for value in MADE}


def at(value, logdet, count, ridge=1.0, agents=1):
    return value.factor(
        logdet=np.array([logdet]),
        count=np.array([count]),
        ridge=ridge,
        agents=np.array([agents]),
    )[0]


@pytest.mark.parametrize("value", MADE, ids=repr)
class TestEveryWidth:
    def test_is_a_width(self, value):
        assert isinstance(value, width.Width)
        assert value.__doc__
        assert "uarantee" in value.__doc__

    def test_is_finite_and_not_negative_from_the_first_decision_on(self, value):
        assert np.isfinite(at(value, 0.0, 0))
        assert at(value, 0.0, 0) >= 0

    def test_never_shrinks_as_information_comes_in(self, value):
        widths = [at(value, logdet, n) for n, logdet in enumerate(np.linspace(0, 30, 50))]
        assert (np.diff(widths) >= 0).all()

    def test_answers_each_query_on_its_own(self, value):
        logdet, count, agents = np.array([0.0, 3.0, 9.0]), np.array([0, 4, 20]), np.array([1, 5, 5])
        together = value.factor(logdet=logdet, count=count, ridge=0.5, agents=agents)
        one_by_one = [
            at(value, L, n, 0.5, V) for L, n, V in zip(logdet, count, agents, strict=True)
        ]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-14)

    def test_says_in_its_docstring_what_it_guarantees(self, value):
        assert any(word in value.__doc__ for word in ("Guarantee:", "Guarantees nothing"))
