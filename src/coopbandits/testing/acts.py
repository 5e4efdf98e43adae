"""What must every act be?"""

from typing import Any

import numpy as np

from coopbandits.act import Act, draws
from coopbandits.arrays import Array, IntArray, as_count, as_seed, short
from coopbandits.network import Network, as_network
from coopbandits.testing.assertions import numbers, require, require_same, untouched

_ACTIONS, _STEP = 12, 1e-6


def check_act(act: Any, *, network: Network | None = None, ttl: int = 2, seed: int = 0) -> None:
    """Check that a value is an act: scores that rise with the mean, and leaders that exist.

    `score(mean, std, width)` must return float64 of shape (m,), each action by itself, the same
    when asked again, leave its arrays alone, and never fall as an action's mean rises. `slopes`,
    where it has them, must be the score's derivatives by mean and by σ. `leaders(network, ttl)`
    must name an agent of the network, another than oneself, or −1 for nobody; where somebody
    follows, `follow(arm, offered)` must return an index, that of the arm itself if it is offered.

    Args:
        act: How do I act?
        network: For whom leaders are asked for; a grid of 3 × 3 if not given.
        ttl: γ.
        seed: Of what is drawn.

    Raises:
        AssertionError: It is none; the message says where.

    Example:
        >>> check_act(cb.act.UpperBound())
        >>> class Pessimist(cb.act.UpperBound):
        ...     def score(self, mean, std, width):
        ...         return -mean
        >>> check_act(Pessimist())
        Traceback (most recent call last):
        AssertionError: the score of Pessimist() must not fall as the mean rises, but goes from ...
    """
    what = short(act)
    require(
        isinstance(act, Act) and not isinstance(act, type),
        f"{what} is no act; expected a value with judges, score, leaders and follow",
    )
    judges: object = act.judges
    require(isinstance(judges, bool), f"judges of {what} must be True or False")
    rng = np.random.default_rng(as_seed(seed))
    mean, width = rng.standard_normal(_ACTIONS), np.abs(rng.standard_normal(_ACTIONS))
    std = np.abs(rng.standard_normal(_ACTIONS))
    for spread in (std, -std) if draws(act) else (std, np.zeros(_ACTIONS)):
        _check_score(act, mean, spread, width, what)
    if getattr(act, "slopes", None) is not None:
        _check_slopes(act, mean, std, width, what)
    faced = Network.grid(3, 3) if network is None else as_network(network)
    leaders = _leaders(act, faced, as_count(ttl, "ttl"), what)
    if (leaders >= 0).any():
        _check_follow(act, rng.standard_normal((5, 3)), what)


def _score(act: Any, mean: Array, std: Array, width: Array) -> Array:
    what = f"the score of {short(act)}"
    found = untouched(act.score, mean, std, width, what=what)
    return numbers(found, mean.shape, f"{what} for {len(mean)} actions")


def _check_score(act: Any, mean: Array, std: Array, width: Array, what: str) -> None:
    score = _score(act, mean, std, width)
    alone = [_score(act, mean[[i]], std[[i]], width[[i]]) for i in range(len(mean))]
    require_same(
        score,
        np.concatenate(alone),
        f"{what} must score each action by itself, together and alone",
        rtol=1e-12,
        atol=1e-14,
    )
    for more in (1e-3, 1.0, 100.0):
        better = _score(act, mean + more, std, width)
        fall = score - better
        if (fall > 0).any():
            i = int(fall.argmax())
            raise AssertionError(
                f"the score of {what} must not fall as the mean rises, but goes from "
                f"{score[i]:.6g} to {better[i]:.6g} as the mean goes from {mean[i]:.6g} to "
                f"{mean[i] + more:.6g}"
            )


def _check_slopes(act: Any, mean: Array, std: Array, width: Array, what: str) -> None:
    """Compare slopes with central differences, at positive σ."""
    told = f"the slopes of {what}"
    found = untouched(act.slopes, mean, std, width, what=told)
    require(
        isinstance(found, tuple) and len(found) == 2,
        f"{told} must be a pair, by mean and by σ; got {short(found)}",
    )
    step = _STEP * (1.0 + np.abs(mean)), _STEP * std
    differences = (
        _score(act, mean + step[0], std, width) - _score(act, mean - step[0], std, width),
        _score(act, mean, std + step[1], width) - _score(act, mean, std - step[1], width),
    )
    for by, slope, gap, h in zip(("mean", "σ"), found, differences, step, strict=True):
        slopes = numbers(slope, mean.shape, f"{told} by {by}")
        require_same(
            slopes,
            gap / (2 * h),
            f"{told} by {by} are not those of differences",
            rtol=1e-5,
            atol=1e-7,
        )


def _leaders(act: Any, network: Network, ttl: int, what: str) -> IntArray:
    leaders = np.asarray(act.leaders(network, ttl))
    V = len(network)
    require(
        leaders.shape == (V,) and leaders.dtype.kind == "i",
        f"the leaders of {what} must be whole numbers of shape ({V},), got {short(leaders)}",
    )
    require(
        ((leaders >= -1) & (leaders < V)).all(),
        f"the leaders of {what} must be agents 0 … {V - 1}, or -1 for nobody; got {short(leaders)}",
    )
    selves = np.flatnonzero(leaders == np.arange(V))
    require(
        selves.size == 0,
        f"agent {selves[0] if selves.size else ''} is its own leader under {what}; expected -1",
    )
    again = np.asarray(act.leaders(network, ttl))
    require(np.array_equal(leaders, again), f"{what} names other leaders when it is asked again")
    return leaders


def _check_follow(act: Any, offered: Array, what: str) -> None:
    for i, arm in enumerate(offered):
        index = untouched(act.follow, arm, offered, what=f"follow of {what}")
        require(
            isinstance(index, int | np.integer) and 0 <= index < len(offered),
            f"follow of {what} must return an index 0 … {len(offered) - 1}, got {short(index)}",
        )
        require(
            (offered[index] == arm).all(),
            f"follow of {what} takes action {index} where the leader's arm is offered as {i}",
        )
