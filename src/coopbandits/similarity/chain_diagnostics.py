r"""What did the Gibbs chains of an agent find, and do they agree? Diagnostics of `Evidence`.

R̂ is Gelman and Rubin's potential scale reduction factor, each chain split in two halves: with W the
mean variance within the 2C half chains of n sweeps and B/n the variance of their means,

    R̂ = √( ((n − 1)/n·W + B/n) / W )

near 1 where chains, wherever they started, wander over the same values.
"""

from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray


@dataclass(frozen=True, eq=False)
class ChainDiagnostics:
    """What chains found that went on for some sweeps. Made by `Agent.diagnostics`.

    Attributes:
        agents: (n,) whom it is about: those heard from, the asking agent among them.
        groups: (C, n) labels of each chain after its last sweep.
        together: (n, n) in which share of all samples two agents were in one group.
        noise: (n,) σ of each agent's rewards, in the policy's units.
        population: a, what all agents share, on average over samples.
        group: b, what a group shares.
        own: c, what each agent has for itself.
        moved: Which share of the visited agents changed their group (acceptance).
        r_hat: R̂ of the number of groups.

    Example:
        >>> agent = cb.EagerKernelUCB(cb.kernels.Linear()).agent(0, cb.Network.path(2))
        >>> for origin in (0, 1):
        ...     agent.observe([1.0, 0.0], 1.0, origin=origin)
        >>> decision = agent.decide(np.eye(2))
        >>> found = agent.diagnostics(sweeps=50)
        >>> found.groups.shape, found.agents.tolist()
        ((4, 2), [0, 1])
        >>> bool(abs(found.population + found.group + found.own - 1) < 1e-12)
        True
    """

    agents: IntArray
    groups: IntArray
    together: Array
    noise: Array
    population: float
    group: float
    own: float
    moved: float
    r_hat: float


def diagnosed(
    agents: IntArray, samples: IntArray, facts: Array, noise: Array, weights: Array
) -> ChainDiagnostics:
    """Summarise samples of C chains: labels (C, T, n), facts (C, T, ·) of `gibbs.sample`."""
    a, b, c = weights[facts[..., 0].astype(np.int64)].mean(axis=(0, 1)).tolist()
    flat = samples.reshape(-1, samples.shape[2])
    together = np.zeros((flat.shape[1], flat.shape[1]))
    for one in flat:
        together += np.equal.outer(one, one)
    visited = max(float(facts[..., 4].sum()), 1.0)
    return ChainDiagnostics(
        agents=agents,
        groups=samples[:, -1].copy(),
        together=together / len(flat),
        noise=noise,
        population=a,
        group=b,
        own=c,
        moved=float(facts[..., 5].sum()) / visited,
        r_hat=r_hat(samples.max(axis=2) + 1.0),
    )


def r_hat(traces: Array) -> float:
    """Return the split R̂ of C traces of T numbers; 1 where nothing varies: (C, T)."""
    n = traces.shape[1] // 2
    halves = np.concatenate([traces[:, :n], traces[:, -n:]])
    within, between = halves.var(axis=1, ddof=1).mean(), halves.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt(((n - 1) / n * within + between) / within))
