r"""Noise and signal variance that all agents share, by the evidence of agents taken one by one.

Each agent by itself has the evidence p(y | σ², κ) of `gp/statistics.py`, whatever it shares with
others. The product over all agents heard from says how strong the noise σ² is, and the ratio
κ = σ²/s² of noise to the prior variance of the weights. κ is searched on a grid; for each κ the
best σ² is known in closed form.

An agent whose rewards are on quite another scale than everyone's would drown all others in what
looks like noise. `scale_outliers` finds such agents, and they are set aside.

Both have weak priors, which matter for the first few observations only: a signal as strong as the
noise, give or take a factor of e, and half of the rewards' mean square being noise, worth two
observations.
"""

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.gp.statistics import Statistics

# κ over the contexts' mean square |φ|²: from a signal 100 times the noise to a hundredth of it,
# in steps of a factor
_STEP, _REACH = float(np.log(1e2) / 10), 10
_SPREAD = 1.0
_PSEUDO_COUNT = 2.0
# Keeps a logarithm finite where all rewards, or all contexts, are 0.
_TINY = 1e-200


# How many times the common mean square of rewards makes an agent a scale outlier.
_OUTLIER = 50.0


def scale_outliers(table: Statistics, index: IntArray, heard: BoolArray) -> BoolArray:
    """Tell which agents' rewards are on quite another scale than the others': (B, N).

    The common mean square is that of the three quarters of the agents with the least. Where more
    than one in ten agents (and more than one) exceeds it by far, the population is uneven, and
    nobody is an outlier.
    """
    square = np.where(heard, (table.q / np.maximum(table.n, 1.0))[index], np.inf)
    count = heard.sum(axis=1)
    least = np.sort(square, axis=1)
    kept = np.arange(square.shape[1]) < np.maximum((3 * count + 3) // 4 - (count < 4), 1)[:, None]
    kept &= np.isfinite(least)
    common = np.where(kept, least, 0.0).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    found = heard & (square > _OUTLIER * common[:, None])
    few = found.sum(axis=1) <= np.maximum(count // 10, 1)
    return np.asarray(found & few[:, None])


def common_noise(
    table: Statistics, index: IntArray, heard: BoolArray, noise: float | None = None
) -> tuple[Array, Array]:
    """Return σ² and κ in each of B views: (B,), (B,).

    Args:
        table: Statistics of agents, (P, …).
        index: (B, N) which of them are in each view.
        heard: (B, N) which of these count.
        noise: σ, where it is known.
    """
    s, _, projected = table.spectrum
    squares = projected**2

    def total(values: Array) -> Array:
        return np.asarray((values[index] * heard).sum(axis=1))

    n = np.maximum(total(table.n), 1.0)
    scale = np.maximum(total(s.sum(axis=-1)) / n, _TINY)
    square = np.maximum(total(table.q) / n, _TINY)
    # ratios on one grid for all views, around the scale of each: what they share is computed once
    middle = np.rint(np.log(scale) / _STEP).astype(np.int64)
    places = middle[:, None] + np.arange(-_REACH, _REACH + 1)
    ratio = np.exp(_STEP * places)  # (B, R)
    unexplained, logdet = np.empty_like(ratio), np.empty_like(ratio)
    for place in np.unique(places):
        here = places == place
        views = np.flatnonzero(here.any(axis=1))
        kappa = np.exp(_STEP * place)
        left = table.q - (squares / (s + kappa)).sum(axis=-1)
        grown = np.log1p(s / kappa).sum(axis=-1)
        mine = index[views]
        unexplained[here] = (left[mine] * heard[views]).sum(axis=1)
        logdet[here] = (grown[mine] * heard[views]).sum(axis=1)
    if noise is None:
        n = n + _PSEUDO_COUNT
        prior = 0.5 * _PSEUDO_COUNT * square
        variance = (np.maximum(unexplained, 0.0) + prior[:, None]) / n[:, None]
    else:
        variance = np.full_like(ratio, noise**2)
        logdet = logdet + unexplained / noise**2
    fit = -0.5 * (logdet + n[:, None] * np.log(variance))
    fit -= 0.5 * (np.log(ratio / scale[:, None]) / _SPREAD) ** 2
    weight = np.exp(fit - fit.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return (
        np.exp((weight * np.log(variance)).sum(axis=1)),
        np.exp((weight * np.log(ratio)).sum(axis=1)),
    )
