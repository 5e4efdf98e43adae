r"""How strong is the noise, and how strong the signal? Learnt from agents taken one by one.

Each agent by itself has the evidence p(y | σ², κ) of `statistics.py`, whatever it shares with
others. The product over all agents heard from says how strong the noise σ² is, and the ratio
κ = σ²/s² of noise to the prior variance of the weights. κ is searched on a grid; for each κ the
best σ² is known in closed form.

An agent whose rewards are on quite another scale than everyone's would drown all others in what
looks like noise. `outlandish` finds such agents, and they are set aside.

Both have weak priors, which matter for the first few observations only: a signal as strong as the
noise, give or take a factor of e, and half of the rewards' mean square being noise, worth two
observations.
"""

import numpy as np

from coopbandits.arrays import Array, BoolArray
from coopbandits.statistics import Statistics

# κ over the contexts' mean square |φ|²: from a signal 100 times the noise to a hundredth of it
_RATIOS = np.geomspace(1e-2, 1e2, 21)
_SPREAD = 1.0
_PSEUDO_COUNT = 2.0
# Keeps a logarithm finite where all rewards, or all contexts, are 0.
_TINY = 1e-200


# How many times the common mean square of rewards makes an agent outlandish.
_OUTLANDISH = 50.0


def outlandish(statistics: Statistics, heard: BoolArray) -> BoolArray:
    """Tell which agents' rewards are on quite another scale than the others': (B, N).

    The common mean square is that of the three quarters of the agents with the least. Where more
    than one in ten agents (and more than one) exceeds it by far, the population is uneven, and
    nobody is outlandish.
    """
    square = np.where(heard, statistics.q / np.maximum(statistics.n, 1.0), np.inf)
    count = heard.sum(axis=1)
    least = np.sort(square, axis=1)
    kept = np.arange(square.shape[1]) < np.maximum((3 * count + 3) // 4 - (count < 4), 1)[:, None]
    kept &= np.isfinite(least)
    common = np.where(kept, least, 0.0).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    found = heard & (square > _OUTLANDISH * common[:, None])
    few = found.sum(axis=1) <= np.maximum(count // 10, 1)
    return np.asarray(found & few[:, None])


def levels(
    statistics: Statistics, heard: BoolArray, noise: float | None = None
) -> tuple[Array, Array]:
    """Return σ² and κ in each view, of statistics (B, N, …): (B,), (B,).

    Args:
        statistics: Of the agents in each view.
        heard: (B, N) which of them count.
        noise: σ, where it is known.
    """
    s, _, projected = statistics.spectrum
    n = np.maximum((statistics.n * heard).sum(axis=1), 1.0)
    scale = np.maximum((s.sum(axis=-1) * heard).sum(axis=1) / n, _TINY)
    square = np.maximum((statistics.q * heard).sum(axis=1) / n, _TINY)
    ratio = scale[:, None] * _RATIOS  # (B, R)
    unexplained, logdet = np.empty_like(ratio), np.empty_like(ratio)
    for j in range(len(_RATIOS)):
        kappa = ratio[:, j, None, None]
        left = statistics.q - (projected**2 / (s + kappa)).sum(axis=-1)
        unexplained[:, j] = (left * heard).sum(axis=1)
        logdet[:, j] = (np.log1p(s / kappa).sum(axis=-1) * heard).sum(axis=1)
    if noise is None:
        n = n + _PSEUDO_COUNT
        prior = 0.5 * _PSEUDO_COUNT * square
        variance = (np.maximum(unexplained, 0.0) + prior[:, None]) / n[:, None]
    else:
        variance = np.full_like(ratio, noise**2)
        logdet = logdet + unexplained / noise**2
    fit = -0.5 * (logdet + n[:, None] * np.log(variance))
    fit -= 0.5 * (np.log(_RATIOS) / _SPREAD) ** 2
    weight = np.exp(fit - fit.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return (
        np.exp((weight * np.log(variance)).sum(axis=1)),
        np.exp((weight * np.log(ratio)).sum(axis=1)),
    )
