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

from coopbandits.arrays import Array, IntArray

# Hypotheses are left out that are less likely than this share of a sample's weight, once they are
# put together. Of more than so many as are left some are drawn, by systematic resampling.
_RAREST, MOST_HYPOTHESES = 0.08, 100
# What is less likely than this in a sample is not looked at.
_RAREST_OF_SAMPLE = 0.002
# A share of information counts as at least this.
_LEAST_SHARE = 1e-6


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
    found: dict[bytes, tuple[int, Array]] = {}
    delta: dict[bytes, Array] = {}
    weight: dict[bytes, float] = {}
    for chain in range(C):
        K, point = int(facts[chain, 3]), int(facts[chain, 0])
        chances = np.exp(odds[chain, : K + 1] - odds[chain, : K + 1].max())
        if not np.isfinite(chances).all():
            raise np.linalg.LinAlgError("the odds of groups are not finite")
        chances /= C * chances.sum()
        groups = labels[chain].copy()
        groups[me] = K
        told = np.bincount(groups, weights=information[chain], minlength=K + 1)[groups]
        share = information[chain] / np.where(told > 0, told, 1.0)
        _, b, c = weights[point]
        others = b / np.maximum(share, _LEAST_SHARE) + c
        for k in np.flatnonzero(C * chances >= _RAREST_OF_SAMPLE).tolist():
            mine = groups == k
            mine[me] = True
            own = np.where(mine, c, others)
            key = bytes([point]) + mine.tobytes()
            if key not in found:
                found[key], delta[key], weight[key] = (point, mine), np.zeros(N), 0.0
            delta[key] += chances[k] * own
            weight[key] += float(chances[k])
    total = np.array(list(weight.values()))
    kept = np.flatnonzero(total >= min(_RAREST / C, total.max()))
    if len(kept) > MOST_HYPOTHESES:
        cut = (np.arange(MOST_HYPOTHESES) + 0.5) / MOST_HYPOTHESES * total[kept].sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(total[kept]), cut), len(kept) - 1)
        kept, counts = np.unique(kept[drawn], return_counts=True)
        likely = counts / MOST_HYPOTHESES
    else:
        likely = total[kept] / total[kept].sum()
    points = np.array([point for point, _ in found.values()])[kept]
    members = np.array([mine for _, mine in found.values()])[kept]
    own_parts = np.array(list(delta.values()))[kept] / total[kept, None]
    population, group, _ = weights[points].T
    U = np.empty((len(kept), N, 2))
    U[..., 0] = np.sqrt(population)[:, None]
    U[..., 1] = np.sqrt(group)[:, None] * members
    return U, own_parts, likely
