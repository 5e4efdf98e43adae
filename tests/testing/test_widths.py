"""Widths that are none are found, each by what it breaks."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.testing import check_width


class Own:
    """w = 2/√(1 + n) + log det, sound but for what a test breaks."""

    def factor(self, *, logdet, count, ridge, agents):
        return 2.0 / np.sqrt(1.0 + count) + logdet


class Negative(Own):
    def factor(self, **known):
        return super().factor(**known) - 1.0


class Falling(Own):
    def factor(self, *, logdet, count, ridge, agents):
        return 1.0 / (1.0 + logdet)


class Scalar(Own):
    def factor(self, *, logdet, count, ridge, agents):
        return 2.0


class OneForAll(Own):
    def factor(self, *, logdet, count, ridge, agents):
        return np.full(len(logdet), 1.0 + logdet.max())


class Short(Own):
    def factor(self, **known):
        return super().factor(**known)[:1]


class Undefined(Own):
    def factor(self, *, logdet, count, ridge, agents):
        with np.errstate(divide="ignore"):
            return 1.0 / count + logdet


class Overwriting(Own):
    def factor(self, *, logdet, count, ridge, agents):
        logdet += 1.0
        return np.sqrt(logdet)


class Drawn(Own):
    rng = np.random.default_rng(0)

    def factor(self, *, logdet, count, ridge, agents):
        return logdet + self.rng.random()


@pytest.mark.parametrize("width", [Own(), cb.width.Fixed(0.0), cb.width.SelfNormalised()])
def test_a_sound_width_passes(width):
    check_width(width)


@pytest.mark.parametrize(
    ("width", "message"),
    [
        (Negative(), r"must be >= 0, got -.* at count=20, ridge=0.01 and agents=1"),
        (Falling(), r"must not fall as logdet grows, but goes from 1 to 0.5 at count=0"),
        (Scalar(), r"must be a numpy array of float64, got 2.0"),
        (OneForAll(), r"must answer each query by itself, together and alone"),
        (Short(), r"for 31 queries must have shape \(31,\), got \(1,\)"),
        (Undefined(), r"must be finite, got NaN or infinity at \(0\)"),
        (Overwriting(), r"changes an array that it is given"),
        (Drawn(), r"answers differently when it is asked the same again"),
        (cb.width.Fixed, r"is no width; expected a value with factor"),
        (2.0, r"2.0 is no width"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_width_is_found(width, message):
    with pytest.raises(AssertionError, match=message):
        check_width(width)
