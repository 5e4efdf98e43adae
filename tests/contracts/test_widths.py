"""What every width must be: a new one is tested by being written."""

import dataclasses
import inspect

import numpy as np
import pytest

from coopbandits import width
from coopbandits.testing import check_width

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


@pytest.mark.parametrize("value", MADE, ids=repr)
class TestEveryWidth:
    def test_is_a_width(self, value):
        check_width(value)

    def test_never_shrinks_as_information_comes_in(self, value):
        # with the number of observations too, which one's own width need not do
        logdet, count = np.linspace(0, 30, 50), np.arange(50)
        widths = value.factor(logdet=logdet, count=count, ridge=1.0, agents=np.ones(50, dtype=int))
        assert (np.diff(widths) >= 0).all()

    def test_says_in_its_docstring_what_it_guarantees(self, value):
        assert any(word in value.__doc__ for word in ("Guarantee:", "Guarantees nothing"))
