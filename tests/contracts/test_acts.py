"""What every act must be: a new one is tested by being written."""

import dataclasses
import inspect

import pytest

from coopbandits import act
from coopbandits.testing import check_act
from worlds import NETWORKS

MADE = [
    act.UpperBound(),
    act.Sample(),
    act.AtRandom(),
    act.FollowCentre(),
    act.FollowCentre(follow_rule="same", patience=3),
    act.Sample(samples=5),
    act.Explore(),
    act.Explore(act.FollowCentre(), share=0.3),
    act.Explore(act.Sample(), share=0.3),
]


def test_every_act_of_the_module_is_under_contract():
    written = {
        kind
        for _, kind in inspect.getmembers(act, inspect.isclass)
        if kind.__module__ == act.__name__ and dataclasses.is_dataclass(kind)
    }
    assert written == {type(value) for value in MADE}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("value", MADE, ids=repr)
def test_is_an_act(value, name):
    check_act(value, network=NETWORKS[name])


def test_some_act_has_leaders_and_some_has_slopes():
    # so that all of the check is used
    assert any((value.leaders(NETWORKS["path"], 2) >= 0).any() for value in MADE)  # type: ignore[attr-defined]
    assert any(hasattr(value, "slopes") for value in MADE)
