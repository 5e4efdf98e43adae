from fractions import Fraction

import numpy as np
import pytest

from coopbandits.arrays import as_count, as_floats, as_number, is_real, is_whole
from coopbandits.errors import ParameterError, ShapeError

SPANS = [np.timedelta64(3, "s"), np.timedelta64(3), np.datetime64("2020-01-01")]


@pytest.mark.parametrize("value", SPANS, ids=repr)
def test_a_span_or_a_point_of_time_is_no_number(value):
    assert not is_whole(value)
    assert not is_real(value)
    with pytest.raises(ParameterError, match=r"dim must be a number, got np\.(time|date)"):
        as_number(value, "dim")
    with pytest.raises(
        ParameterError, match=r"dim must be a whole number >= 1, got np\.(time|date)"
    ):
        as_count(value, "dim")
    for many in ([value, value], np.array([value, value]), [1.0, value]):
        with pytest.raises(ShapeError, match="contexts must be an array of numbers"):
            as_floats(many, "contexts")


@pytest.mark.parametrize("value", [3, np.int8(3), 3.0, np.float32(3), Fraction(3), np.array(3.0)])
def test_numbers_of_all_kinds_are_numbers(value):
    assert as_number(value, "dim") == 3.0
    np.testing.assert_array_equal(as_floats([value, value], "contexts"), [3.0, 3.0])
