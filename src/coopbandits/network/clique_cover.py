"""How few cliques can share out the agents?

A clique cover splits the agents into groups in which everybody hears everybody. The smallest
possible number of groups, χ̄, is the number of colours that the complement needs, so no fast
method finds it for every graph. What is done here:

1. **Fold.** If v hears everyone whom u hears, u included, then v can join u's clique, whichever
   that will be: v is set aside. Paths, trees and their powers vanish entirely by this rule. What
   is left falls apart into components, and each is covered on its own.
2. **Build** a cover greedily, clique by clique.
3. **Regroup**: pour the cliques, in another order, into a greedy cover; it never has more of them
   (Culberson's iterated greedy).
4. **Dissolve** the smallest clique and look for other places for its members; who is in the way
   there must look for a place in turn (a tabu search).
5. **Search** exhaustively, branching over the agent with the fewest places left.

Steps 3 to 5 are for components of up to `IMPROVED_AGENTS`, on sets that are kept as the bits of one
integer; in larger ones their limits would leave them no time to find anything.

A set of agents of whom no two hear each other needs one clique per member: the largest one found
is the lower bound, and the work stops where a cover meets it. A search that comes to its end
proves its cover as well. All effort is limited by counts, and there is no randomness: the same
graph always gets the same cover. Steps 1 and 2 and the bound take time that follows the pairs that
hear each other.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import IntArray, frozen
from coopbandits.network.agent_sets import (
    AgentSet,
    closed_neighbourhoods,
    components,
    everyone,
    members,
)
from coopbandits.network.independent_set import heavy_independent_set
from coopbandits.network.sparse_rows import SparseRows

Stage = tuple[SparseRows, Sequence[int]]
"""A network's growth: who hears whom then, and who had left."""

IMPROVED_AGENTS = 5_000
"""The largest component whose cover is improved on after it is built."""
REGROUP_EFFORT = 600_000
"""Passes of step 3, times the number of agents in the component."""
DISSOLVE_EFFORT = 4_000_000
"""Moves of step 4, times the number of cliques to choose from."""
SEARCH_EFFORT = 4_000_000
"""Nodes of step 5, times the number of agents in the component."""


@dataclass(frozen=True, eq=False)
class CliqueCover:
    """A partition of the agents into cliques, and how far from the smallest it may be.

    Attributes:
        labels: (V,) the clique of each agent, an index into `cliques`.
        cliques: The members of each clique, ascending; cliques in order of their lowest member.
        lower_bound: No clique cover of this graph has fewer cliques.
    """

    labels: IntArray
    cliques: tuple[tuple[int, ...], ...]
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no cover has fewer cliques."""
        return len(self.cliques) == self.lower_bound


def cover_by_cliques(neighbours: SparseRows) -> CliqueCover:
    """Partition the agents into cliques, as few as bounded effort finds.

    Args:
        neighbours: Symmetric, nobody in its own row: who hears whom.
    """
    kernel, followers = _fold(neighbours)
    lower_bound = cliques_found = 0
    label: dict[int, int] = {}
    for component in components(neighbours, kernel):
        cliques, bound = _cover_component(neighbours.within(component))
        for clique in cliques:
            label |= {int(component[member]): cliques_found for member in clique}
            cliques_found += 1
        lower_bound += bound
    for agent, leader in reversed(followers):
        label[agent] = label[leader]
    labels = np.array([label[agent] for agent in range(len(neighbours))], dtype=np.int64)
    return _cover_of(neighbours, labels, lower_bound)


def extended_cover(cover: CliqueCover, stages: Sequence[Stage]) -> CliqueCover:
    """Let newcomers into the cliques of before, which stay: who hears whom only grows.

    A newcomer joins the clique of which it hears all, and all hear it, with the most members that
    are there; of equal ones the first; else it is its own.

    Args:
        cover: Of the agents of before, who keep their numbers.
        stages: Who hears whom, symmetric, nobody in its own row, and who had left, each time that
            some joined.
    """
    labels: list[int] = cover.labels.tolist()
    sizes = [len(clique) for clique in cover.cliques]
    for neighbours, absent in stages:
        there = [*sizes]
        for agent in absent:
            there[labels[agent]] -= 1
        for agent in range(len(labels), len(neighbours)):
            heard: dict[int, int] = {}
            for other in neighbours[agent].tolist():
                if other < agent:
                    heard[labels[other]] = heard.get(labels[other], 0) + 1
            places = [
                (-there[clique], clique)
                for clique, count in heard.items()
                if count == sizes[clique] and there[clique]
            ]
            joined = min(places)[1] if places else len(sizes)
            if not places:
                sizes.append(0)
                there.append(0)
            labels.append(joined)
            sizes[joined] += 1
            there[joined] += 1
    last = stages[-1][0]
    ones = np.ones(len(last), dtype=np.int64)
    independent = heavy_independent_set(last, ones, enough=len(sizes))
    return _cover_of(last, np.array(labels), len(independent))


def _cover_of(neighbours: SparseRows, labels: IntArray, lower_bound: int) -> CliqueCover:
    """Check a cover, and number its cliques by their lowest members."""
    grouped: dict[int, list[int]] = {}
    for agent, clique in enumerate(labels.tolist()):
        grouped.setdefault(clique, []).append(agent)
    number = {clique: index for index, clique in enumerate(grouped)}
    labels = np.array([number[clique] for clique in labels.tolist()], dtype=np.int64)
    # in a clique everyone hears all others of it
    inside = labels[neighbours.rows] == labels[neighbours.agents]
    heard = np.bincount(neighbours.rows[inside], minlength=len(labels))
    lone = np.flatnonzero(heard != np.bincount(labels)[labels] - 1)
    if lone.size:
        found = grouped[list(grouped)[labels[lone[0]]]]
        raise AssertionError(f"{found} is no clique; please report this graph")
    return CliqueCover(
        labels=frozen(labels),
        cliques=tuple(tuple(clique) for clique in grouped.values()),
        lower_bound=lower_bound,
    )


def _fold(neighbours: SparseRows) -> tuple[IntArray, list[tuple[int, int]]]:
    """Set aside who can join another's clique; return who is left, and who follows whom."""
    # whom each hears of those that are left, itself included
    hoods = [{v, *row.tolist()} for v, row in enumerate(neighbours)]
    left = dict.fromkeys(range(len(hoods)))
    followers: list[tuple[int, int]] = []
    folding = True
    while folding:
        folding = False
        for leader in sorted(left, key=lambda v: len(hoods[v])):
            if leader not in left:
                continue
            joining = set(hoods[leader])
            # those who hear few leave few
            for agent in sorted(hoods[leader], key=lambda v: len(hoods[v])):
                joining &= hoods[agent]
                if len(joining) == 1:
                    break
            joining.discard(leader)
            for agent in sorted(joining):
                followers.append((agent, leader))
                del left[agent]
                for other in hoods[agent]:
                    if other != agent:
                        hoods[other].discard(agent)
            folding |= bool(joining)
    return np.array(sorted(left), dtype=np.int64), followers


def _cover_component(neighbours: SparseRows) -> tuple[list[list[int]], int]:
    """Cover a connected graph; return the cliques and the lower bound."""
    cliques = _build(neighbours)
    ones = np.ones(len(neighbours), dtype=np.int64)
    if len(neighbours) > IMPROVED_AGENTS:
        # few of many are tried: whoever hears few comes first, and is in nobody's way
        sparsest = neighbours.renumbered(np.argsort(neighbours.counts, kind="stable"))
        return cliques, len(heavy_independent_set(sparsest, ones, enough=len(cliques)))
    strangers = heavy_independent_set(neighbours, ones, enough=len(cliques))
    if len(cliques) == len(strangers):
        return cliques, len(strangers)
    cover: list[AgentSet] = [sum(1 << agent for agent in clique) for clique in cliques]
    hoods = closed_neighbourhoods(neighbours)
    proven = False
    for improve in (_regroup, _dissolve):
        if len(cover) > len(strangers):
            cover = improve(hoods, cover, len(strangers))
    if len(cover) > len(strangers):
        cover, proven = _search(hoods, cover, strangers)
    bound = len(cover) if proven else len(strangers)
    return [list(members(clique)) for clique in cover], bound


def _build(neighbours: SparseRows) -> list[list[int]]:
    """Start each clique from who hears the fewest, add who keeps it open to the most."""
    hoods = [set(row.tolist()) for row in neighbours]
    left = np.ones(len(hoods), dtype=np.bool_)
    cover: list[list[int]] = []
    for first in np.argsort(neighbours.counts, kind="stable").tolist():
        if not left[first]:
            continue
        clique, open_to = [first], {v for v in hoods[first] if left[v]}
        while open_to:
            agent = max(open_to, key=lambda v: (len(hoods[v] & open_to), -v))
            clique.append(agent)
            open_to &= hoods[agent]
        cover.append(clique)
        left[clique] = False
    return cover


def _regroup(
    neighbourhoods: Sequence[AgentSet], cover: list[AgentSet], enough: int
) -> list[AgentSet]:
    """Pour the cliques into a greedy cover again and again, dealt into another order each time.

    Each new clique takes, from one old clique after the other, all who fit. The first i old
    cliques then fill at most i new ones, so the number never grows.
    """
    agents = len(neighbourhoods)
    for turn in range(min(20 * agents, REGROUP_EFFORT // agents)):
        if len(cover) <= enough:
            break
        if turn % 2:
            waiting = cover[::-1]
        else:
            hands = 2 + turn % max(2, len(cover) - 3)
            waiting = [clique for hand in range(hands) for clique in cover[hand::hands]]
        cover = []
        while waiting:
            clique, rest = waiting[0], []
            open_to = _common(neighbourhoods, clique)
            for position, other in enumerate(waiting[1:], start=1):
                if not open_to:
                    rest += waiting[position:]
                    break
                fitting = other & open_to
                if fitting:
                    clique |= fitting
                    open_to &= _common(neighbourhoods, fitting)
                if fitting != other:
                    rest.append(other ^ fitting)
            cover.append(clique)
            waiting = rest
    return cover


def _common(neighbourhoods: Sequence[AgentSet], agents: AgentSet) -> AgentSet:
    """Who could join a clique: the others whom all of its members hear."""
    common = ~agents
    for agent in members(agents):
        common &= neighbourhoods[agent]
    return common


def _dissolve(
    neighbourhoods: Sequence[AgentSet], cover: list[AgentSet], enough: int
) -> list[AgentSet]:
    """Do without the smallest clique, again and again, as long as its members find new places.

    An agent without a place joins the clique where it displaces the fewest. Whoever is displaced
    may not come back to the same clique for some moves, unless it displaces nobody there.
    """
    agents = len(neighbourhoods)
    cliques, homeless = cover, deque[int]()
    barred_until: dict[tuple[int, int], int] = {}
    for move in range(min(200 * agents, DISSOLVE_EFFORT // len(cover))):
        if not homeless:
            cover = cliques
            if len(cover) <= enough:
                break
            *cliques, smallest = sorted(cover, key=int.bit_count, reverse=True)
            homeless.extend(members(smallest))
            barred_until.clear()
        agent = homeless.popleft()
        strangers = ~neighbourhoods[agent]
        # Each move looks from another clique on: equal places take turns.
        start = move % len(cliques)
        place, fewest = -1, agents
        for candidate in (*range(start, len(cliques)), *range(start)):
            displaced = cliques[candidate] & strangers
            if not displaced:
                place = candidate
                break
            count = displaced.bit_count()
            if count < fewest and barred_until.get((agent, candidate), 0) <= move:
                place, fewest = candidate, count
        if place < 0:
            homeless.append(agent)
            continue
        displaced = cliques[place] & strangers
        cliques[place] = (cliques[place] ^ displaced) | 1 << agent
        homeless.extend(members(displaced))
        for other in members(displaced):
            barred_until[other, place] = move + 10 + len(homeless)
    return cover if homeless else cliques


def _search(
    neighbourhoods: Sequence[AgentSet], cover: list[AgentSet], strangers: Sequence[int]
) -> tuple[list[AgentSet], bool]:
    """Go through all smaller covers; return the smallest, and whether the search came to its end.

    Branch and bound in the order of DSATUR: next comes the agent with the fewest cliques open to
    it (told apart up to 3). Agents who don't hear each other are in different cliques of every
    cover, so the search starts from one clique for each.
    """
    cliques = tuple(1 << agent for agent in strangers)
    left = everyone(len(neighbourhoods)) & ~sum(cliques)
    open_to = tuple(neighbourhoods[agent] for agent in strangers)
    nodes = [(left, cliques, open_to)]
    for _ in range(SEARCH_EFFORT // len(neighbourhoods)):
        if not nodes:
            return cover, True
        left, cliques, open_to = nodes.pop()
        if len(cliques) >= len(cover):
            continue
        if not left:
            cover = list(cliques)
            continue
        once = twice = thrice = 0
        for clique_open_to in open_to:
            thrice |= twice & clique_open_to
            twice |= once & clique_open_to
            once |= clique_open_to
        scarce = left & ~once or left & ~twice or left & ~thrice or left
        agent = next(members(scarce))
        alone, heard = 1 << agent, neighbourhoods[agent]
        nodes.append((left ^ alone, (*cliques, alone), (*open_to, heard)))
        # The last one pushed is tried first: the lowest clique before higher ones and a new one.
        for i in reversed(range(len(cliques))):
            if open_to[i] & alone:
                joined = (*cliques[:i], cliques[i] | alone, *cliques[i + 1 :])
                narrowed = (*open_to[:i], open_to[i] & heard, *open_to[i + 1 :])
                nodes.append((left ^ alone, joined, narrowed))
    return cover, not nodes
