r"""K_z of sampled partitions: population, groups and own parts, as weighted loadings.

For each chain and each group k of the others, the asking agent v belongs to k with the odds of the
collapsed sampler, or to a group of its own. Under that hypothesis K_z between v and others is

    K_z(v, u) = a + b·[g(u) = k],    K_z(v, v) = a + b + c = 1

and the other groups are integrated out as groups: all that the n_g members of one say about the
population is a single draw of variance b, however many they are. So each of them has an own part
of variance n_g·b + c instead of one shared by the group: n_g equal agents then say together exactly
what the group says, (S⁻¹ + c)/n_g + b; unequal ones slightly less. Where a = 0 other groups are
strangers.

Agents have noise levels of their own. Rewards of u count in v's units, y_u·σ_v/σ_u, and so do
functions: U_u and √δ_u are multiplied by σ_v/σ_u too.
"""

import numpy as np

from coopbandits.arrays import Array, IntArray

# Hypotheses less likely than this are left out; what is less likely than that in a sample is not
# looked at.
_RAREST, _RAREST_OF_SAMPLE = 0.01, 0.002


def partition_kernels(
    labels: IntArray, me: int, odds: Array, facts: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Return what K_z may be in one view: U (H, N, 2), δ (H, N), and how likely that is (H,).

    Hypotheses that agree in (a, b, c) and in who is with v are put together, whatever other groups
    there are.

    Args:
        labels: (C, N) groups in each sample of the chains.
        me: The asking agent.
        odds: (C, N + 1) log odds of each group without it, then of being alone.
        facts: (C, ·) of each chain: point of the grid of weights first, groups without `me` fourth.
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
        sizes = np.bincount(groups, minlength=K + 1)
        _, b, c = weights[point]
        others = sizes[groups] * b + c
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
    kept = np.flatnonzero(total >= min(_RAREST, total.max()))
    points = np.array([point for point, _ in found.values()])[kept]
    members = np.array([mine for _, mine in found.values()])[kept]
    own_parts = np.array(list(delta.values()))[kept] / total[kept, None]
    total = total[kept]
    population, group, _ = weights[points].T
    U = np.empty((len(total), N, 2))
    U[..., 0] = np.sqrt(population)[:, None]
    U[..., 1] = np.sqrt(group)[:, None] * members
    return U, own_parts, total / total.sum()
