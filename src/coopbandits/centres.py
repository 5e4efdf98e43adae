"""Which agents decide for their neighbourhoods?

The centres are agents of whom no two hear each other, and such that everybody else hears at least
one: a maximal independent set. Among these, the set with the largest total weight is wanted, where
an agent weighs as much as the neighbourhood that it speaks for, w_v = |N_γ(v)|, itself included.
Like the clique cover this is hard in general. On each connected component:

1. **Merge** agents with the same neighbourhood: one of them can stand for all.
2. **Improve** a greedy set by swaps (`heavy_independent_set`).
3. **Prove** it, where the component is not too large. A dense one is searched exhaustively: few
   agents fit together, and of each clique at most one is chosen, which bounds what is still to
   come. A sparse one goes to an integer program (HiGHS),

       max Σ w_v x_v    subject to    Σ_{v in C} x_v ≤ 1 for every clique C of a family,

   where every edge lies in a clique of the family.

What cannot be proven is bounded: by the heaviest members of a clique cover, or by what HiGHS had
shown at its node limit. All effort is limited by counts, never by time: the same graph always gets
the same centres.
"""

from dataclasses import dataclass
from math import floor

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, frozen
from coopbandits.clique_cover import (
    AgentSet,
    closed_neighbourhoods,
    components,
    cover_by_cliques,
    heavy_independent_set,
    members,
)

DENSE = 0.25
"""The part of all pairs that are edges, from which on a component is searched, not programmed."""
SEARCH_AGENTS = 400
"""The largest component that is searched."""
SEARCH_NODES = 100_000
"""The most nodes of the search."""
PROGRAM_EDGES = 10_000
"""The most edges of a component that is handed to HiGHS."""
PROGRAM_NODES = 1_000
"""The most nodes of its search."""


@dataclass(frozen=True, eq=False)
class Centres:
    """The agents that decide for others, and how far from the heaviest such set they may be.

    Attributes:
        indices: (c,) the centres, ascending.
        of: (V,) the centre of each agent; a centre is its own.
        weight: Σ |N_γ(v)| over the centres.
        upper_bound: No independent set weighs more.
    """

    indices: IntArray
    of: IntArray
    weight: int
    upper_bound: int

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no independent set weighs more."""
        return self.weight == self.upper_bound


def choose_centres(adjacency: BoolArray) -> Centres:
    """Choose a maximal independent set, as heavy as bounded effort finds, and assign all agents.

    An agent that is no centre follows its adjacent centre of largest degree, of equal ones the
    lowest.

    Args:
        adjacency: (V, V) symmetric, with an empty diagonal: who hears whom.
    """
    neighbourhoods = closed_neighbourhoods(adjacency)
    weights = adjacency.sum(axis=1) + 1
    twins: dict[AgentSet, int] = {}
    for agent, neighbourhood in enumerate(neighbourhoods):
        twins.setdefault(neighbourhood, agent)
    chosen: list[int] = []
    upper_bound = 0
    for component in components(neighbourhoods, sum(1 << agent for agent in twins.values())):
        agents = np.array(component)
        picked, bound = _choose(adjacency[np.ix_(agents, agents)], weights[agents])
        chosen += agents[picked].tolist()
        upper_bound += bound
    indices = np.array(sorted(chosen), dtype=np.int64)

    heard = adjacency[:, indices]
    speaks = np.zeros(len(adjacency), dtype=np.bool_)
    speaks[indices] = True
    if (heard.any(axis=1) == speaks).any():  # a centre hears none, everyone else hears one
        raise AssertionError(f"{indices} is no maximal independent set; please report this graph")
    of = indices[np.where(heard, weights[indices], 0).argmax(axis=1)]
    of[indices] = indices
    return Centres(
        indices=frozen(indices),
        of=frozen(of),
        weight=int(weights[indices].sum()),
        upper_bound=upper_bound,
    )


def _choose(adjacency: BoolArray, weights: IntArray) -> tuple[list[int], int]:
    """Choose a heavy independent set of a connected graph, and bound the heaviest from above."""
    agents = len(adjacency)
    # Ties go to low indices: every weight is scaled up and gets its agent's rank from the end
    # added. The ranks of any set sum up to less than the scale, so a heavier set stays heavier.
    scale = agents * (agents + 1) // 2 + 1
    ranked = weights * scale + np.arange(agents, 0, -1)
    picked = heavy_independent_set(adjacency, ranked)
    bound = sum(int(weights[list(clique)].max()) for clique in cover_by_cliques(adjacency).cliques)
    edges = int(adjacency.sum()) // 2
    if int(weights[picked].sum()) == bound:
        return picked, bound
    if 2 * edges >= DENSE * agents * (agents - 1) and agents <= SEARCH_AGENTS:
        picked, proven = _search(adjacency, ranked, picked)
        bound = int(weights[picked].sum()) if proven else bound
    elif edges <= PROGRAM_EDGES:
        solved, dual_bound = _program(adjacency, ranked / scale)
        bound = min(bound, floor(dual_bound + 1e-6))
        picked = max(solved, picked, key=lambda chosen: int(ranked[chosen].sum()))
    return picked, bound


def _search(adjacency: BoolArray, gains: IntArray, picked: list[int]) -> tuple[list[int], bool]:
    """Go through all heavier independent sets; return the heaviest, and whether it is proven.

    Branch and bound: the agents that still fit are shared out into cliques, heavy ones first; the
    first of each clique is its heaviest, and the sum of these bounds what can be added.
    """
    order = np.argsort(-gains, kind="stable")
    gain: list[int] = gains[order].tolist()
    neighbourhoods = closed_neighbourhoods(adjacency[np.ix_(order, order)])
    record, record_set = int(gains[picked].sum()), picked
    nodes = 0

    def extend(fitting: AgentSet, chosen: list[int], weight: int) -> None:
        nonlocal record, record_set, nodes
        if not fitting:
            if weight > record:
                record, record_set = weight, sorted(order[chosen].tolist())
            return
        bounded, bound, rest = [], 0, fitting
        while rest:
            clique_left = rest
            bound += gain[next(members(rest))]
            while clique_left:
                agent = next(members(clique_left))
                clique_left &= neighbourhoods[agent] & ~(1 << agent)
                rest ^= 1 << agent
                bounded.append((agent, bound))
        for agent, most in reversed(bounded):
            if weight + most <= record or nodes >= SEARCH_NODES:
                return
            nodes += 1
            extend(fitting & ~neighbourhoods[agent], [*chosen, agent], weight + gain[agent])
            fitting ^= 1 << agent

    extend((1 << len(adjacency)) - 1, [], 0)
    return record_set, nodes < SEARCH_NODES


def _program(adjacency: BoolArray, gains: Array) -> tuple[list[int], float]:
    """Solve the integer program: the best set found (perhaps none), and a bound on the best."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 (heavy)
    from scipy.sparse import csr_array  # noqa: PLC0415

    cliques = _edge_clique_cover(adjacency)
    rows = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    columns = np.concatenate([np.array(clique) for clique in cliques])
    shape = (len(cliques), len(adjacency))
    at_most_one = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    solution = milp(
        -gains,
        integrality=np.ones(len(gains), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(at_most_one, ub=1),
        options={"node_limit": PROGRAM_NODES, "mip_rel_gap": 0},
    )
    picked = [] if solution.x is None else np.flatnonzero(solution.x > 0.5).tolist()
    bound = solution.mip_dual_bound
    return picked, float(gains.sum()) if bound is None else -float(bound)


def _edge_clique_cover(adjacency: BoolArray) -> list[list[int]]:
    """Find cliques such that both ends of every edge lie in one of them, greedily."""
    neighbourhoods = closed_neighbourhoods(adjacency)
    uncovered = [hood & ~(1 << v) for v, hood in enumerate(neighbourhoods)]
    cliques: list[list[int]] = []
    for first in range(len(adjacency)):
        while uncovered[first]:
            clique: AgentSet = 1 << first
            open_to = neighbourhoods[first] & ~clique
            while open_to:
                # who covers the most new edges; members are ascending, so ties go to the lowest
                new_edges = {v: (uncovered[v] & clique).bit_count() for v in members(open_to)}
                agent = max(new_edges, key=new_edges.__getitem__)
                clique |= 1 << agent
                open_to &= neighbourhoods[agent] & ~clique
            for agent in members(clique):
                uncovered[agent] &= ~clique
            cliques.append(list(members(clique)))
    return cliques
