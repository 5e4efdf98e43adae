r"""How much have observations told? The information gain, of given data and at its largest.

$$\Upsilon(A) = \tfrac12 \log\det(I + K_A/\lambda)$$

It is what the rewards of A tell about F if F is a Gaussian process and the noise has variance λ
(Definition 1 takes λ = R²). The paper's bounds hold log det(I + K/λ), which is twice that.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_count, as_flag, as_positive, check_size, frozen
from coopbandits.errors import ParameterError
from coopbandits.theory.matrices import as_gram, eigenvalues


def information_gain(K: object, *, ridge: float = 1.0) -> float:
    """Return ½ log det(I + K/λ) of observations with Gram matrix K: (n, n).

    Args:
        K: (n, n) the Gram matrix.
        ridge: λ.

    Example:
        >>> bool(np.isclose(cb.theory.information_gain(np.eye(2)), np.log(2)))
        True
    """
    return 0.5 * float(np.log1p(eigenvalues(K) / as_positive(ridge, "ridge")).sum())


def running_logdet(K: Array, ridge: float) -> Array:
    """Return log det(I + K/λ) of the first 1 … n observations: (n, n) -> (n,).

    The n-th step adds log(1 + σ²/λ) for the variance σ² before the n-th observation: the product of
    these factors is the determinant (the proof of Lemma 3 misplaces its λ's).
    """
    factor = np.linalg.cholesky(K / ridge + np.eye(len(K)))
    return np.cumsum(2 * np.log(np.diagonal(factor)))


@dataclass(frozen=True, eq=False)
class GreedyGain:
    """The observations that a greedy choice takes, and how much more any others could tell.

    Attributes:
        chosen: (n,) the candidates in the order in which they were taken.
        gains: (n,) the information gain of the first 1 … n of them.
        upper_bound: No n of the candidates tell more.

    Example:
        >>> found = cb.theory.greedy_gain(np.eye(3), 2)
        >>> bool(found.gains[-1] <= found.upper_bound + 1e-12)
        True
    """

    chosen: IntArray
    gains: Array
    upper_bound: float

    @property
    def gain(self) -> float:
        """The gain of all n: at least (1 − 1/e) of the largest possible."""
        return float(self.gains[-1])


def greedy_gain(K: object, count: int, *, ridge: float = 1.0, repeats: bool = True) -> GreedyGain:
    r"""Choose n of m candidates one by one, each time the one of which least is known.

    The gain is monotone and submodular, so greedy choice reaches at least (1 − 1/e) of the largest
    gain Υ_n of any n candidates (Nemhauser et al. 1978; Srinivas et al. 2010, 2). And since no
    observation tells more after others than before, Υ_n ≤ Υ(first k chosen) + n·(most that one
    candidate would add to these), for every k: often a much nearer bound. `upper_bound` is the
    least of all these.

    Args:
        K: (m, m) the candidates' Gram matrix.
        count: n.
        ridge: λ.
        repeats: Whether a candidate may be observed more than once, as an action can; without, n
            candidates must be different, as in Definition 1's sets.

    Example:
        >>> K = np.diag([1.0, 4.0, 2.0])
        >>> cb.theory.greedy_gain(K, 2, repeats=False).chosen.tolist()
        [1, 2]
    """
    gram, n, lam = as_gram(K), as_count(count, "count"), as_positive(ridge, "ridge")
    eigenvalues(gram)
    if not as_flag(repeats, "repeats") and n > len(gram):
        raise ParameterError(
            f"count={n} of {len(gram)} candidates without repeats; take fewer, or repeats=True"
        )
    check_size(n, len(gram), what=f"count={n}", advice="take a smaller count, or fewer candidates")
    variance = np.diagonal(gram).copy()
    rows = np.empty((n, len(gram)))
    chosen, gains = np.empty(n, dtype=np.int64), np.empty(n)
    gain, bound = 0.0, np.inf
    for step in range(n):
        best = int(np.argmax(variance))
        bound = min(bound, gain + n * 0.5 * np.log1p(max(variance.max(), 0.0) / lam))
        pivot = max(variance[best], 0.0) + lam
        known = rows[:step, best] @ rows[:step]
        rows[step] = (gram[best] - known) / np.sqrt(pivot)
        gain += 0.5 * np.log(pivot / lam)
        if not repeats:
            variance[best] = -np.inf
        variance = variance - rows[step] ** 2
        chosen[step], gains[step] = best, gain
    left = float(np.log1p(max(variance.max(), 0.0) / lam))
    bound = min(bound, gain + n * 0.5 * left, gain / (1 - 1 / np.e))
    return GreedyGain(frozen(chosen), frozen(gains), float(max(bound, gain)))
