"""Acts that are none are found, each by what it breaks."""

from typing import ClassVar

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import InputError
from coopbandits.testing import check_act


class Own:
    """The mean plus w·σ², sound but for what a test breaks."""

    judges: ClassVar[bool] = True

    def score(self, mean, std, width):
        return mean + width * std**2

    def slopes(self, mean, std, width):
        return np.ones_like(mean), 2 * width * std

    def leaders(self, network, ttl):
        return np.full(len(network), -1)

    def follow(self, arm, offered):
        raise AssertionError("nobody follows")


class Pessimist(Own):
    def score(self, mean, std, width):
        return width * std**2 - mean


class Ranking(Own):
    """Scores by rank, which depends on the other actions."""

    def score(self, mean, std, width):
        return np.argsort(np.argsort(mean + width * std)).astype(float)


class Best(Own):
    def score(self, mean, std, width):
        return np.max(mean + width * std)


class Overwriting(Own):
    def score(self, mean, std, width):
        mean += width * std
        return mean


class Drawing(Own):
    rng = np.random.default_rng(0)

    def score(self, mean, std, width):
        return mean + self.rng.random(len(mean))


class Undefined(Own):
    def score(self, mean, std, width):
        with np.errstate(divide="ignore"):
            return mean + width / std


class WrongSlopes(Own):
    def slopes(self, mean, std, width):
        return np.ones_like(mean), width * std


class OneSlope(Own):
    def slopes(self, mean, std, width):
        return np.ones_like(mean)


class Judging(Own):
    judges = "yes"


class Leading(Own):
    """Everyone follows its lower neighbour by number, to the nearest action."""

    def leaders(self, network, ttl):
        return np.arange(len(network)) - 1

    def follow(self, arm, offered):
        return int(np.linalg.norm(offered - arm, axis=1).argmin())


class Narcissist(Leading):
    def leaders(self, network, ttl):
        return np.arange(len(network))


class Elsewhere(Leading):
    def leaders(self, network, ttl):
        return np.arange(len(network)) + 1


class FewLeaders(Leading):
    def leaders(self, network, ttl):
        return np.array([-1])


class Stubborn(Leading):
    def follow(self, arm, offered):
        return 0


class OutOfRange(Leading):
    def follow(self, arm, offered):
        return len(offered)


class Pointing(Leading):
    def follow(self, arm, offered):
        return arm


@pytest.mark.parametrize("act", [Own(), Leading(), cb.act.Sample(), cb.act.AtRandom()])
def test_a_sound_act_passes(act):
    check_act(act)
    check_act(act, network=cb.Network.star(5), ttl=1, seed=3)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (Pessimist(), r"must not fall as the mean rises, but goes from"),
        (Ranking(), r"must score each action by itself, together and alone"),
        (Best(), r"for 12 actions must be a numpy array of float64|must have shape \(12,\)"),
        (Overwriting(), r"the score of .* changes an array that it is given"),
        (Drawing(), r"answers differently when it is asked the same again"),
        (Undefined(), r"the score of .* must be finite"),
        (WrongSlopes(), r"the slopes of .* by σ are not those of differences"),
        (OneSlope(), r"must be a pair, by mean and by σ"),
        (Judging(), r"judges of .* must be True or False"),
        (Narcissist(), r"agent 0 is its own leader"),
        (Elsewhere(), r"must be agents 0 … 8, or -1 for nobody"),
        (FewLeaders(), r"must be whole numbers of shape \(9,\)"),
        (Stubborn(), r"takes action 0 where the leader's arm is offered as 1"),
        (OutOfRange(), r"must return an index 0 … 4, got 5"),
        (Pointing(), r"must return an index 0 … 4, got array"),
        (cb.act.UpperBound, r"is no act; expected a value with judges"),
        ("UpperBound", r"'UpperBound' is no act"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_act_is_found(act, message):
    with pytest.raises(AssertionError, match=message):
        check_act(act)


def test_bad_settings_of_a_check_are_no_failed_check():
    with pytest.raises(InputError, match="ttl must be a whole number >= 1"):
        check_act(Own(), ttl=0)
    with pytest.raises(InputError, match="network"):
        check_act(Own(), network=9)
