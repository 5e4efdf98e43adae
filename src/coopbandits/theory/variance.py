r"""How much uncertainty can a group pull in all? The variance lemmas, in a form that holds.

n agents pull at once in each round, and whoever judges a pull of round t knows at least all of the
group's pulls up to round t − D. With κ ≥ K(x̃, x̃) and L = log det(I + K/λ) of all the group's pulls:

    quiet rounds:       Σσ² ≤ c·κL/ln(1 + κ/λ)         for every c > 1
    surprising rounds:  at most D·⌊L/ln c⌋, each with Σσ² ≤ nκ
    all rounds:         Σσ² ≤ ⌈(m + D − 1)/m⌉·mnκL/ln(1 + mnκ/λ)     for every m = 1, 2, …

A round is surprising if det(I + K/λ) has grown by more than c within its D last rounds.

| lemma | n | D |
|---|---|---|
| 3, per clique (Coop-KernelUCB) | the clique's size | γ |
| 6, per neighbourhood (a centre's σ at all pulls of its neighbourhood) | \|N_γ(v)\| | γ |
| a centre's σ at its own arms, once for itself and once for each follower | 1 + followers | 2γ |
| one agent alone | 1 | 1 |

Deviation from the paper: Lemmas 3 and 6 print γn + max(1, 1/λ)·L. That uses σ² ≤ log(1 + σ²),
takes x_t for x_{t−γ}, and ignores that pulls of one round do not know of each other; it fails for
one agent already, and no bound of the form a·γn + b·L with constants a, b holds (docs/theory.md).
"""

from typing import TypeVar

import numpy as np

from coopbandits.arrays import Array, as_count, as_not_negative, as_positive

Numbers = TypeVar("Numbers", float, Array)

# Every ratio gives a bound, so the best of a fixed list is one too.
RATIOS: Array = np.exp(np.geomspace(1e-4, 30.0, 160))
RATIOS.setflags(write=False)
_BLOCKS = 10_000


def quiet_variance(logdet: Numbers, *, ratio: float, ridge: float, largest: float) -> Numbers:
    """Bound Σσ² over the rounds that are not surprising: c·κL/ln(1 + κ/λ)."""
    return logdet * (ratio * largest / np.log1p(largest / ridge))


def surprising_rounds(logdet: Numbers, *, ratio: float, delay: int) -> Numbers:
    """Bound how many rounds are surprising: D·⌊L/ln c⌋.

    Of surprising rounds at least D apart, each has more than ln c of L to itself, so there are at
    most ⌊L/ln c⌋; and every other is within D of one of them.
    """
    return delay * np.floor(logdet / np.log(ratio))


def block_variance(
    logdet: Numbers, *, agents: float, delay: int, ridge: float, largest: float
) -> Numbers:
    """Bound Σσ² over all rounds by blocks of m rounds, for the best m.

    Within D = 1 no bound in n, L, κ and λ alone is better: it is met where all pull the same new
    direction in each round.
    """
    # every m gives a bound, so where there are very many the best of some is one too
    m = np.arange(1.0, min(delay, _BLOCKS) + 1)
    if delay > _BLOCKS:
        m = np.append(m, np.floor(np.geomspace(_BLOCKS, delay, _BLOCKS)))
    pulls = m * agents * largest
    return logdet * float((np.ceil((m + delay - 1) / m) * pulls / np.log1p(pulls / ridge)).min())


def variance_bound(
    logdet: float,
    *,
    agents: int = 1,
    delay: int = 1,
    ridge: float = 1.0,
    largest: float = 1.0,
    rounds: int | None = None,
) -> float:
    """Bound Σσ² of all pulls of a group, over all rounds (Lemmas 3 and 6, corrected).

    Args:
        logdet: L = log det(I + K/λ) of all the group's pulls.
        agents: n.
        delay: D.
        ridge: λ.
        largest: κ, the most that K(x̃, x̃) may be.
        rounds: T, if known: Σσ² ≤ nTκ whatever L is.

    Example:
        >>> one, two = (cb.theory.variance_bound(3.0, agents=n) for n in (1, 2))
        >>> one < two
        True
    """
    L, n, D = (
        as_not_negative(logdet, "logdet"),
        as_count(agents, "agents"),
        as_count(delay, "delay"),
    )
    lam, kappa = as_positive(ridge, "ridge"), as_positive(largest, "largest")
    bounds = [block_variance(L, agents=n, delay=D, ridge=lam, largest=kappa)]
    for ratio in RATIOS:
        surprising = surprising_rounds(L, ratio=ratio, delay=D)
        quiet = quiet_variance(L, ratio=ratio, ridge=lam, largest=kappa)
        bounds.append(quiet + n * kappa * surprising)
    if rounds is not None:
        bounds.append(n * kappa * as_count(rounds, "rounds"))
    return float(min(bounds))
