r"""K_z of sampled partitions: population, groups and own parts, as weighted loadings.

For each chain and each group k of the others, the asking agent v belongs to k with the odds of the
collapsed sampler, or to a group of its own. Under that hypothesis K_z between v and others is

    K_z(v, u) = a + b·[g(u) = k],    K_z(v, v) = a + b + c = 1

and the other groups are integrated out as groups: all that the members of one say about the
population is a single draw of variance b, however many they are. So each of them has an own part
of variance b/f_u + c instead of one shared by the group, where f_u is its share of the group's
information, tr S̃_u/tr S̃_g. Members whose S̃ are multiples of each other then say together exactly
what the group says, S̃_g(I + bS̃_g)⁻¹; others less, never more. Where a = 0 other groups are
strangers.

Agents have noise levels of their own. Rewards of u count in v's units, y_u·σ_v/σ_u, and so do
functions: U_u and √δ_u are multiplied by σ_v/σ_u too.
"""

import numpy as np
from numba import njit

from coopbandits.arrays import Array, IntArray

# Hypotheses are left out that are less likely than this share of a sample's weight, once they are
# put together. Of more than so many as are left some are drawn, by systematic resampling.
_RAREST, MOST_HYPOTHESES = 0.08, 100
# What is less likely than this in a sample is not looked at.
_RAREST_OF_SAMPLE = 0.002
# A share of information counts as at least this.
_LEAST_SHARE = 1e-6
_TINY = 1e-300


@njit(cache=True, error_model="numpy")
def _equal(x, y):
    """Tell whether two rows are the same; most differ early on."""
    for u in range(len(x)):
        if x[u] != y[u]:
            return False
    return True


@njit(cache=True, error_model="numpy")
def _hypotheses(labels, me, odds, facts, information, weights, point, members, own, likely):
    """Collect which groups the asking agent may belong to; return how many hypotheses there are.

    Args:
        labels, me, odds, facts, information, weights: See `partition_kernels`.
        point: (H,) made here: the point of the grid.
        members: (H, N) made here: who is with the asking agent.
        own: (H, N) made here: own parts, times how likely the hypothesis is.
        likely: (H,) made here.
    """
    C, N = labels.shape
    found = 0
    for chain in range(C):
        K, at, groups = int(facts[chain, 3]), int(facts[chain, 0]), labels[chain]
        chances = np.exp(odds[chain, : K + 1] - odds[chain, : K + 1].max())
        chances /= C * chances.sum()
        _, b, c = weights[at]
        told = np.zeros(K + 1)
        for u in range(N):
            told[K if u == me else groups[u]] += information[chain, u]
        for k in range(K + 1):
            if not C * chances[k] >= _RAREST_OF_SAMPLE:
                continue
            for u in range(N):
                members[found, u] = u == me or groups[u] == k
            same = 0
            while same < found and not (
                point[same] == at and _equal(members[same], members[found])
            ):
                same += 1
            if same == found:
                point[same], likely[same], own[same] = at, 0.0, 0.0
                found += 1
            likely[same] += chances[k]
            for u in range(N):
                if members[same, u]:
                    own[same, u] += chances[k] * c
                else:
                    share = information[chain, u] / max(told[groups[u]], _TINY)
                    own[same, u] += chances[k] * (b / max(share, _LEAST_SHARE) + c)
    return found


def partition_kernels(
    labels: IntArray, me: int, odds: Array, facts: Array, information: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Return what K_z may be in one view: U (H, N, 2), δ (H, N), and how likely that is (H,).

    Hypotheses that agree in (a, b, c) and in who is with v are put together, whatever other groups
    there are.

    Args:
        labels: (C, N) groups in each sample of the chains.
        me: The asking agent.
        odds: (C, N + 1) log odds of each group without it, then of being alone.
        facts: (C, ·) of each chain: point of the grid of weights first, groups without `me` fourth.
        information: (C, N) trace of each agent's S̃, own parts integrated out.
        weights: (·, 3) the grid of (a, b, c).
    """
    C, N = labels.shape
    if not np.isfinite(
        np.where(np.arange(N + 1) <= facts[:, 3:4], odds, -np.inf).max(axis=1)
    ).all():
        raise np.linalg.LinAlgError("the odds of groups are not finite")
    H = int(facts[:, 3].sum()) + C
    point, members = np.empty(H, dtype=np.int64), np.empty((H, N), dtype=np.bool_)
    own, total = np.empty((H, N)), np.empty(H)
    H = _hypotheses(labels, me, odds, facts, information, weights, point, members, own, total)
    total = total[:H]
    kept = np.flatnonzero(total >= min(_RAREST / C, total.max()))
    if len(kept) > MOST_HYPOTHESES:
        cut = (np.arange(MOST_HYPOTHESES) + 0.5) / MOST_HYPOTHESES * total[kept].sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(total[kept]), cut), len(kept) - 1)
        kept, counts = np.unique(kept[drawn], return_counts=True)
        likely = counts / MOST_HYPOTHESES
    else:
        likely = total[kept] / total[kept].sum()
    population, group, _ = weights[point[kept]].T
    U = np.empty((len(kept), N, 2))
    U[..., 0] = np.sqrt(population)[:, None]
    U[..., 1] = np.sqrt(group)[:, None] * members[kept]
    return U, own[kept] / total[kept, None], likely
