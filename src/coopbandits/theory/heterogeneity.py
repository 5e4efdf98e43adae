r"""How different are the agents' functions? Υ_z = rank K_z, and what it does to the gain.

With K_z = Σ_i u_i u_iᵀ of rank r, the Gram matrix of K = K_z ⊙ K_x is Σ_i D_i K_x D_i, where D_i
holds u_i of each observation's agent. As det(I + A + B) ≤ det(I + A)·det(I + B), and
|u_i| ≤ 1 where K_z(v, v) ≤ 1,

$$\log\det(I + K/\lambda) \le r \cdot \log\det(I + K_x/\lambda).$$

Deviation from the paper: Lemma 4 prints 2Υ_z(Υ^x + log T); nothing is to be added, and only the
rank among the agents whose observations they are counts (docs/theory.md).
"""

from typing import Any

import numpy as np

from coopbandits.arrays import Array, as_count, as_not_negative, as_positive, short
from coopbandits.errors import ParameterError, SimilarityError
from coopbandits.gp.compositions import Composition, Hadamard, Sum, composition
from coopbandits.network.clique_cover import CliqueCover
from coopbandits.theory.matrices import as_gram, eigenvalues


def heterogeneity(K_z: object, *, tolerance: float | None = None) -> int:
    """Return Υ_z = rank K_z (Definition 2), numerically: (V, V).

    Counted are eigenvalues above `tolerance` times the largest; V·2⁻⁵² if not given, below which
    rounding alone makes them. A kernel such as RBF has full rank at any different contexts, with
    eigenvalues that fall fast: there a larger tolerance says how many directions matter.

    Args:
        K_z: (V, V).
        tolerance: See above.

    Example:
        >>> cb.theory.heterogeneity(np.ones((5, 5))), cb.theory.heterogeneity(np.eye(5))
        (1, 5)
    """
    mu = eigenvalues(K_z, "K_z")
    least = len(mu) * np.finfo(np.float64).eps if tolerance is None else tolerance
    return int((mu > as_not_negative(least, "tolerance") * mu[0]).sum())


def clique_heterogeneity(
    K_z: object, cover: CliqueCover, *, tolerance: float | None = None
) -> tuple[int, ...]:
    """Return the rank of K_z within each clique: what Corollary 1 needs for Coop-KernelUCB.

    Args:
        K_z: (V, V).
        cover: The cliques.
        tolerance: As in `heterogeneity`.

    Example:
        >>> cb.theory.clique_heterogeneity(np.eye(4), cb.Network.path(4).clique_cover(1))
        (2, 2)
    """
    matrix, cover = as_gram(K_z, "K_z"), _as_cover(cover)
    if len(matrix) != len(cover.labels):
        raise SimilarityError(
            f"K_z is for {len(matrix)} agents, but the cover has {len(cover.labels)}; expected one "
            "row for each agent"
        )
    blocks = (matrix[np.ix_(clique, clique)] for clique in cover.cliques)
    return tuple(heterogeneity(block, tolerance=tolerance) for block in blocks)


def clique_heterogeneity_bound(cover: CliqueCover) -> int:
    """Return max |C|², which Remark 6 gives for the Υ_z of a K_z learnt within cliques.

    It holds within each clique, where rank K_z ≤ |C| ≤ |C|². It does not bound the rank among all
    agents: V agents without edges and the identity as K_z have rank V, and max |C|² = 1.

    Args:
        cover: The cliques.

    Example:
        >>> cb.theory.clique_heterogeneity_bound(cb.Network.path(4).clique_cover(1))
        4
    """
    return max(len(clique) for clique in _as_cover(cover).cliques) ** 2


def rank_bound(compose: str | Composition, rank_z: int, rank_x: int) -> int:
    """Bound the rank of K by those of K_z and K_x.

    Hadamard: rank K_z·rank K_x. Sum: rank K_z + rank K_x. Kronecker: rank K_z·rank K_x, and that
    is the rank of the whole grid of agents and contexts.

    Args:
        compose: How K_z and K_x make K.
        rank_z: The rank of K_z.
        rank_x: The rank of K_x.

    Example:
        >>> cb.theory.rank_bound("hadamard", 2, 3), cb.theory.rank_bound("sum", 2, 3)
        (6, 5)
    """
    z, x = as_count(rank_z, "rank_z", least=0), as_count(rank_x, "rank_x", least=0)
    joint = _known(compose)
    return z + x if isinstance(joint, Sum) else z * x


def composed_logdet_bound(
    compose: str | Composition,
    *,
    rank: int,
    action_logdet: float,
    count: int,
    ridge: float = 1.0,
    largest: float = 1.0,
) -> float:
    r"""Bound log det(I + K/λ) of n observations by that of K_x and the rank of K_z (Lemma 4).

    Hadamard and Kronecker: max(1, κ_z)·r·log det(I + K_x/λ).
    Sum, K = (K_z + K_x)/2: r·ln(1 + nκ_z/(2λr)) + log det(I + K_x/λ).

    Args:
        compose: How K_z and K_x make K.
        rank: r, the rank of K_z among the agents that observed.
        action_logdet: log det(I + K_x/λ), twice the information gain of the contexts.
        count: n.
        ridge: λ.
        largest: κ_z, the most that K_z(v, v) is.

    Example:
        >>> cb.theory.composed_logdet_bound("hadamard", rank=3, action_logdet=2.0, count=10)
        6.0
    """
    r, n = as_count(rank, "rank"), as_count(count, "count")
    L, lam = as_not_negative(action_logdet, "action_logdet"), as_positive(ridge, "ridge")
    kappa = as_not_negative(largest, "largest")
    if isinstance(_known(compose), Sum):
        return float(r * np.log1p(n * kappa / (2 * lam * r)) + L)
    return max(1.0, kappa) * r * L


def independent_arms_factor(K_arm: object, *, tolerance: float | None = None) -> float:
    """Return √(K·rank K_arm), by which independent arms raise the bounds (Appendix, D.1).

    K_arm (K, K) says how alike the arms are. K_arm ⊙ K_z ⊙ K_x raises log det(I + K/λ), and so w√L,
    by at most rank K_arm, which is no more than the paper's factor.

    Args:
        K_arm: (K, K).
        tolerance: As in `heterogeneity`.

    Example:
        >>> round(cb.theory.independent_arms_factor(np.eye(4)), 6)
        4.0
    """
    matrix: Array = as_gram(K_arm, "K_arm")
    rank = heterogeneity(matrix, tolerance=tolerance)
    return float(np.sqrt(len(matrix) * rank))


def _as_cover(value: Any) -> CliqueCover:
    if not isinstance(value, CliqueCover):
        raise ParameterError(
            f"{short(value)} is no clique cover; expected what network.clique_cover(ttl) returns"
        )
    return value


def _known(compose: str | Composition) -> Composition:
    joint = composition(compose)
    if not isinstance(joint, Hadamard | Sum):
        raise ParameterError(
            f"nothing is known of the composition {joint!r}; expected 'hadamard', 'sum' or "
            "'kronecker'"
        )
    return joint
