r"""How many directions do observations fill? Two effective dimensions.

With the eigenvalues μ_1 ≥ μ_2 ≥ … of the Gram matrix K, and L = log det(I + K/λ):

    d_eff = tr K(K + λI)⁻¹ = Σ μ_i/(μ_i + λ),      d_eff ≤ L ≤ d_eff·(1 + ln(1 + μ_1/λ))
    d̃ = min {j : j·λ·ln T ≥ Σ_{i>j} μ_i},          L ≥ (d̃ − 1)·ln(1 + ln T)

The first is the usual one; the second is that of Valko et al. 2013, of which Remark 1 says
Υ ≥ Ω(d̃ ln ln T). docs/theory.md derives the constants.
"""

import numpy as np

from coopbandits.arrays import as_count, as_positive
from coopbandits.theory.matrices import eigenvalues


def effective_dimension(K: object, *, ridge: float = 1.0) -> float:
    """Return d_eff = tr K(K + λI)⁻¹ of observations with Gram matrix K: (n, n).

    Args:
        K: (n, n) the Gram matrix.
        ridge: λ.

    Example:
        >>> round(cb.theory.effective_dimension(np.eye(4)), 6)  # 1/(1 + λ) of each
        2.0
    """
    mu = eigenvalues(K)
    return float((mu / (mu + as_positive(ridge, "ridge"))).sum())


def valko_dimension(K: object, *, ridge: float = 1.0, rounds: int | None = None) -> int:
    """Return d̃ = min {j : j·λ·ln T ≥ Σ_{i>j} μ_i} (Valko et al. 2013, Definition 1).

    Args:
        K: (n, n).
        ridge: λ.
        rounds: T; n if not given.

    Example:
        >>> cb.theory.valko_dimension(np.diag([5.0, 0.0, 0.0]), rounds=100)
        1
    """
    mu = eigenvalues(K)
    T = as_count(len(mu) if rounds is None else rounds, "rounds")
    # summed from the small end, so that what is left of a finite rank is rounding only
    tails = np.append(np.cumsum(mu[::-1])[::-1], 0.0)
    negligible = len(mu) * np.finfo(np.float64).eps * tails[0]
    enough = np.arange(len(mu) + 1) * as_positive(ridge, "ridge") * np.log(T) + negligible
    return int(np.argmax(enough >= tails))
