r"""How sure is a mean? Intervals for means and ratios of independent clusters.

Decisions of one round may share what happened in it, so the clusters, not the decisions, are taken
as independent: A_g and B_g are sums over cluster g, and the estimate is ΣA_g / ΣB_g.
"""

import numpy as np

from coopbandits.arrays import Array, as_number
from coopbandits.errors import ParameterError

Interval = tuple[float, float]

_RESAMPLES = 2_000
_AT_ONCE = 1_000_000  # resampled numbers held in memory


def as_level(value: object) -> float:
    """Check a level of confidence."""
    level = as_number(value, "level")
    if not 0.5 <= level < 1:
        raise ParameterError(f"level must be from 0.5 to below 1, such as 0.95, got {level}")
    return level


def by_student(values: Array, level: float) -> Interval:
    r"""The t-interval of a mean: ȳ ± t·s/√G, G − 1 degrees of freedom; (G,) with G >= 2."""
    from scipy.stats import t  # noqa: PLC0415 (heavy)

    G = len(values)
    reach = float(t.ppf((1 + level) / 2, G - 1)) * float(values.std(ddof=1)) / np.sqrt(G)
    return float(values.mean() - reach), float(values.mean() + reach)


def by_bernstein(values: Array, length: float, level: float) -> Interval:
    r"""The empirical Bernstein interval of a mean (Maurer & Pontil 2009, Theorem 4): (G,).

    For independent values from a range of length b, with sample variance V and probability at
    least 1 − δ,

    $$|\bar y - \mathrm{E}y| \le \sqrt{2V\ln(4/\delta)/G} + 7b\ln(4/\delta)/(3(G - 1)).$$

    It holds for every G, and is wide for small ones.
    """
    G, log_term = len(values), float(np.log(4 / (1 - level)))
    reach = float(np.sqrt(2 * values.var(ddof=1) * log_term / G))
    reach += 7 * length * log_term / (3 * (G - 1))
    return float(values.mean() - reach), float(values.mean() + reach)


def by_bootstrap(top: Array, bottom: Array, level: float, rng: np.random.Generator) -> Interval:
    """The BCa bootstrap interval of Σtop/Σbottom (Efron 1987): (G,), (G,).

    Clusters are drawn again with replacement; percentiles are corrected for bias, and for a spread
    that changes with the estimate, as that of importance weights does.
    """
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 (heavy)

    G = len(top)
    whole = top.sum() / bottom.sum()
    at_once = max(1, _AT_ONCE // G)
    drawn = []
    for start in range(0, _RESAMPLES, at_once):
        picked = rng.integers(G, size=(min(at_once, _RESAMPLES - start), G))
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn.append(top[picked].sum(axis=1) / bottom[picked].sum(axis=1))
    again = np.concatenate(drawn)
    again = again[np.isfinite(again)]  # a draw without any weight says nothing
    if np.ptp(again) <= 1e-12 * max(1.0, abs(whole)):
        return float(whole), float(whole)
    below = np.mean(again < whole) + 0.5 * np.mean(again == whole)
    z0 = ndtri(np.clip(below, 1 / len(again), 1 - 1 / len(again)))
    left_out = (top.sum() - top) / (bottom.sum() - bottom)
    gaps = left_out.mean() - left_out
    spread = float((gaps**2).sum())
    a = float((gaps**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    z = ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(again, ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))))
    return float(low), float(high)
