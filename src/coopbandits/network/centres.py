"""Which agents decide for their neighbourhoods?

The centres are agents of whom no two hear each other, and such that everybody else hears at least
one: a maximal independent set. Among these, the set with the largest total weight is wanted, where
an agent weighs as much as the neighbourhood that it speaks for, w_v = |N_γ(v)|, itself included.
Like the clique cover this is hard in general. On each connected component:

1. **Merge** agents with the same neighbourhood: one of them can stand for all.
2. **Improve** a greedy set by swaps (`heavy_independent_set`).
3. **Relax**: solve the linear program (HiGHS, interior point)

       max Σ w_v x_v    subject to    Σ_{v in C} x_v ≤ 1 for every clique C of a family, x ≥ 0,

   where every edge lies in a clique of the family. Its value is an upper bound, and often, as on
   paths, its solution is a set already.
4. **Search** exhaustively, which is quick where the network is dense: few agents fit together, and
   of each clique at most one is chosen, which bounds what is still to come.
5. **Integer program** (HiGHS): the same with x whole, where it is tiny or the bound came close.

The stages end as soon as one proves its answer. Components too large for all of them are bounded
by the heaviest members of a clique cover. All effort is limited by counts, never by time: the same
graph always gets the same centres.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING

import numpy as np

from coopbandits.arrays import Array, IntArray, frozen
from coopbandits.network.agent_sets import (
    AgentSet,
    closed_neighbourhoods,
    components,
    everyone,
    members,
)
from coopbandits.network.clique_cover import Stage
from coopbandits.network.independent_set import heavy_independent_set
from coopbandits.network.sparse_rows import SparseRows, alike

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RELAXED_EDGES = 200_000
"""The most edges of a component whose linear relaxation is solved."""
SEARCH_AGENTS = 1_000
"""The largest component that is searched."""
SEARCH_EFFORT = 6_000_000
"""Nodes of the search, times the number of agents in the component."""
PROGRAM_SIZE = 20_000
"""The most coefficients of an integer program."""
PROGRAM_GAP = 0.03
"""How far above the best set the bound may be, in parts of its weight, for an integer program to be
tried: HiGHS closes wider gaps too slowly to be worth its minutes."""
PROGRAM_ALWAYS = 1_000
"""The most coefficients of an integer program that is tried whatever the gap."""
PROGRAM_EFFORT = 700_000
"""Nodes of the integer program, times the number of its coefficients."""
SOLVER_ERROR = 1e-3
"""Far above the solver's tolerances (1e-6), far below the whole numbers that weights are."""


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


def choose_centres(neighbours: SparseRows) -> Centres:
    """Choose a maximal independent set, as heavy as bounded effort finds, and assign all agents.

    An agent that is no centre follows its adjacent centre of largest degree, of equal ones the
    lowest.

    Args:
        neighbours: Symmetric, nobody in its own row: who hears whom.
    """
    weights = neighbours.counts + 1
    indices, upper_bound = bounded_independent_set(neighbours, weights)
    of = _nearest(neighbours, indices)
    is_centre = np.isin(np.arange(len(of)), indices)
    heard = np.bincount(neighbours.rows[is_centre[neighbours.agents]], minlength=len(of)) > 0
    if (heard == is_centre).any():  # a centre hears none, everyone else hears one
        raise AssertionError(f"{indices} is no maximal independent set; please report this graph")
    return Centres(frozen(indices), frozen(of), int(weights[indices].sum()), upper_bound)


def extended_centres(centres: Centres, stages: Sequence[Stage]) -> Centres:
    """Let newcomers follow the centres of before, who stay, as do those who follow them.

    A newcomer follows its adjacent centre of largest degree of those that are there; who hears none
    is a centre.

    Args:
        centres: Of the agents of before, who keep their numbers.
        stages: Who hears whom, symmetric, nobody in its own row, and who had left, each time that
            some joined.
    """
    indices, of = set(centres.indices.tolist()), centres.of
    for neighbours, absent in stages:
        there = indices - set(absent)
        for agent in range(len(of), len(neighbours)):
            if not there & set(neighbours[agent].tolist()):
                there.add(agent)
        indices |= there
        nearest = _nearest(neighbours, np.array(sorted(there), dtype=np.int64))
        of = np.concatenate([of, nearest[len(of) :]])
    last = stages[-1][0]
    chosen, weights = np.array(sorted(indices)), last.counts + 1
    bound = bounded_independent_set(last, weights)[1]
    return Centres(frozen(chosen), frozen(of), int(weights[chosen].sum()), bound)


def _nearest(neighbours: SparseRows, indices: IntArray) -> IntArray:
    """Return each agent's adjacent centre of largest degree, of equal ones the lowest: (V,).

    A centre is its own; −1 for who hears none.
    """
    # the best centres first, so that the first that an agent hears is the one
    order = indices[np.argsort(-neighbours.counts[indices], kind="stable")]
    of = np.full(len(neighbours), -1)
    for centre in order.tolist():
        heard = neighbours[centre]
        of[heard[of[heard] < 0]] = centre
    of[indices] = indices
    return of


def bounded_independent_set(neighbours: SparseRows, weights: IntArray) -> tuple[IntArray, int]:
    """Find a heavy maximal independent set, ascending, and a weight that none exceeds.

    Args:
        neighbours: Symmetric, nobody in its own row.
        weights: (V,) whole numbers above 0, equal for agents with the same neighbourhood.
    """
    closed = [np.sort(np.append(row, v)) for v, row in enumerate(neighbours)]
    hoods = SparseRows.of_lists(closed)
    _, twins = np.unique(alike(hoods.agents, starts=hoods.starts), return_index=True)
    chosen: list[int] = []
    upper_bound = 0
    for agents in components(neighbours, np.sort(twins)):
        picked, bound = _choose(neighbours.within(agents), weights[agents])
        chosen += agents[picked].tolist()
        upper_bound += bound
    return np.array(sorted(chosen), dtype=np.int64), upper_bound


def _choose(neighbours: SparseRows, weights: IntArray) -> tuple[list[int], int]:
    """Choose a heavy independent set of a connected graph, and bound the heaviest from above."""
    agents = len(neighbours)
    # Ties go to low indices: every weight is scaled up and gets its agent's rank from the end
    # added. The ranks of any set sum up to less than the scale, so a heavier set stays heavier.
    scale = agents * (agents + 1) // 2 + 1
    ranked = weights * scale + np.arange(agents, 0, -1)

    def better(one: list[int], other: list[int]) -> list[int]:
        return max(one, other, key=lambda chosen: int(ranked[chosen].sum()))

    # The swaps go by the plain weights: on ranks alone they would shift whole chains of agents.
    picked = heavy_independent_set(neighbours, weights)
    bound = _cover_bound(neighbours, weights)
    cliques: list[list[int]] = []
    if 0 < len(neighbours.agents) <= 2 * RELAXED_EDGES:
        cliques = _edge_clique_cover(neighbours)
        solved, value = _relax(cliques, ranked / scale)
        picked, bound = better(picked, solved), min(bound, floor(value + SOLVER_ERROR))
    if weights[picked].sum() < bound and agents <= SEARCH_AGENTS:
        picked, proven = _search(neighbours, ranked, picked)
        bound = int(weights[picked].sum()) if proven else bound
    weight, size = int(weights[picked].sum()), sum(map(len, cliques))
    close = size <= PROGRAM_SIZE and bound <= (1 + PROGRAM_GAP) * weight
    if weight < bound and cliques and (close or size <= PROGRAM_ALWAYS):
        solved, value = _program(cliques, ranked / scale)
        picked = better(picked, _fill(neighbours, ranked, solved))
        bound = min(bound, floor(value + SOLVER_ERROR))
    return picked, bound


def _fill(neighbours: SparseRows, weights: IntArray, picked: list[int]) -> list[int]:
    """Make an independent set maximal: a solver that is stopped may leave room for more."""
    free = np.ones(len(neighbours), dtype=np.bool_)
    free[picked] = False
    for agent in picked:
        free[neighbours[agent]] = False
    while free.any():
        agent = int(np.where(free, weights, 0).argmax())
        picked = [*picked, agent]
        free[neighbours[agent]] = False
        free[agent] = False
    return sorted(picked)


def _cover_bound(neighbours: SparseRows, weights: IntArray) -> int:
    """Bound all independent sets: share out the agents into cliques, take one of each.

    Cliques are filled greedily in order of weight, so that heavy agents share them.
    """
    order = np.argsort(-weights, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    hoods = [set(rank[row].tolist()) for row in (neighbours[v] for v in order.tolist())]
    left, bound = [True] * len(order), 0
    for first in range(len(order)):
        if not left[first]:
            continue
        bound += int(weights[order[first]])
        open_to = {v for v in hoods[first] if left[v]}
        while open_to:
            lowest = min(open_to)
            left[lowest] = False
            open_to &= hoods[lowest]
    return bound


def _first_clique(neighbourhoods: Sequence[AgentSet], agents: AgentSet) -> AgentSet:
    """Collect a maximal clique among some agents, the lowest first."""
    clique = 0
    while agents:
        lowest = agents & -agents
        clique |= lowest
        agents &= neighbourhoods[lowest.bit_length() - 1] ^ lowest
    return clique


def _search(neighbours: SparseRows, weights: IntArray, picked: list[int]) -> tuple[list[int], bool]:
    """Go through all heavier independent sets; return the heaviest, and whether it is proven.

    Branch and bound, heavy agents first. At each node, cliques are filled as long as their
    heaviest members together do not exceed what is missing to the record: a set that beats it must
    contain someone else. The node branches over who that is.
    """
    agents = len(neighbours)
    order = np.argsort(-weights, kind="stable")
    weight: list[int] = weights[order].tolist()
    neighbourhoods = closed_neighbourhoods(neighbours.renumbered(order))
    record, record_set = int(weights[picked].sum()), picked
    nodes = [(everyone(agents), 0, 0)]  # who still fits, who is chosen, what these weigh
    for _ in range(SEARCH_EFFORT // agents):
        if not nodes:
            break
        fitting, chosen, total = nodes.pop()
        if not fitting:
            if total > record:
                record, record_set = total, sorted(order[list(members(chosen))].tolist())
            continue
        beyond, missing = fitting, record - total
        while beyond:
            missing -= weight[next(members(beyond))]
            if missing < 0:
                break
            beyond ^= _first_clique(neighbourhoods, beyond)
        # The last one pushed is tried first: the heaviest, together with all the lighter ones.
        allowed = fitting ^ beyond
        while beyond:
            agent = beyond.bit_length() - 1
            beyond ^= 1 << agent
            nodes.append(
                (allowed & ~neighbourhoods[agent], chosen | 1 << agent, total + weight[agent])
            )
            allowed |= 1 << agent
    return record_set, not nodes


def _relax(cliques: list[list[int]], weights: Array) -> tuple[list[int], float]:
    """Solve the relaxation: its solution if that is a set (else no one), and its value."""
    from scipy.optimize import linprog  # noqa: PLC0415 (heavy)

    at_most_one = _incidence(cliques, len(weights))
    solution = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
        -weights, at_most_one, np.ones(len(cliques)), method="highs-ipm"
    )
    if solution.x is None:
        return [], float(weights.sum())
    whole = np.abs(solution.x - np.round(solution.x)).max() <= SOLVER_ERROR
    return np.flatnonzero(solution.x > 0.5).tolist() if whole else [], -float(solution.fun)


def _program(cliques: list[list[int]], weights: Array) -> tuple[list[int], float]:
    """Solve the integer program: the best set found (perhaps no one), and a bound on the best."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 (heavy)

    at_most_one = _incidence(cliques, len(weights))
    solution = milp(
        -weights,
        integrality=np.ones(len(weights), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(at_most_one, ub=1),
        options={"node_limit": max(1, PROGRAM_EFFORT // at_most_one.nnz), "mip_rel_gap": 0},
    )
    picked = [] if solution.x is None else np.flatnonzero(solution.x > 0.5).tolist()
    bound = solution.mip_dual_bound
    return picked, float(weights.sum()) if bound is None else -float(bound)


def _incidence(cliques: list[list[int]], agents: int) -> "csr_array":
    """Return the (cliques, V) matrix of who is in which clique."""
    from scipy.sparse import csr_array  # noqa: PLC0415 (heavy)

    rows = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    columns = np.concatenate([np.array(clique) for clique in cliques])
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(cliques), agents))


def _edge_clique_cover(neighbours: SparseRows) -> list[list[int]]:
    """Find cliques such that both ends of every edge lie in one of them, greedily."""
    hoods = [set(row.tolist()) for row in neighbours]
    uncovered = [set(hood) for hood in hoods]
    cliques: list[list[int]] = []
    for first in range(len(hoods)):
        while uncovered[first]:
            clique, open_to = {first}, set(hoods[first])
            # how many new edges each would cover
            covers = {v: int(first in uncovered[v]) for v in open_to}
            while open_to:
                agent = max(open_to, key=lambda v: (covers[v], -v))
                clique.add(agent)
                open_to &= hoods[agent]
                for v in open_to & uncovered[agent]:
                    covers[v] += 1
            for agent in clique:
                uncovered[agent] -= clique
            cliques.append(sorted(clique))
    return cliques
