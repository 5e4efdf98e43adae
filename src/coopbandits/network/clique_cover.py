"""How few cliques can share out the agents?

A clique cover splits the agents into groups in which everybody hears everybody. The smallest
possible number of groups, χ̄, is the number of colours that the complement needs, so no fast
method finds it for every graph. What is done here, on sets of agents that are kept as the bits of
one integer:

1. **Fold.** If v hears everyone whom u hears, u included, then v can join u's clique, whichever
   that will be: v is set aside. Paths, trees and their powers vanish entirely by this rule. What
   is left falls apart into components, and each is covered on its own.
2. **Build** a cover greedily, clique by clique.
3. **Regroup**: pour the cliques, in another order, into a greedy cover; it never has more of them
   (Culberson's iterated greedy).
4. **Dissolve** the smallest clique and look for other places for its members; who is in the way
   there must look for a place in turn (a tabu search).
5. **Search** exhaustively, branching over the agent with the fewest places left.

A set of agents of whom no two hear each other needs one clique per member: the largest one found
is the lower bound, and the work stops where a cover meets it. A search that comes to its end
proves its cover as well. All effort is limited by counts, and there is no randomness: the same
graph always gets the same cover.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import BoolArray, IntArray, frozen
from coopbandits.network.agent_sets import (
    AgentSet,
    all_adjacent,
    closed_neighbourhoods,
    components,
    everyone,
    members,
)
from coopbandits.network.independent_set import heavy_independent_set

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


def cover_by_cliques(adjacency: BoolArray) -> CliqueCover:
    """Partition the agents into cliques, as few as bounded effort finds.

    Args:
        adjacency: (V, V) symmetric, with an empty diagonal: who hears whom.
    """
    neighbourhoods = closed_neighbourhoods(adjacency)
    kernel, followers = _fold(neighbourhoods)
    lower_bound = cliques_found = 0
    label: dict[int, int] = {}
    for component in components(neighbourhoods, kernel):
        cliques, bound = _cover_component(adjacency[np.ix_(component, component)])
        for clique in cliques:
            label |= {component[member]: cliques_found for member in members(clique)}
            cliques_found += 1
        lower_bound += bound
    for agent, leader in reversed(followers):
        label[agent] = label[leader]

    grouped: dict[int, list[int]] = {}
    for agent in range(len(adjacency)):
        grouped.setdefault(label[agent], []).append(agent)
    labels = np.empty(len(adjacency), dtype=np.int64)
    for index, clique_members in enumerate(grouped.values()):
        labels[clique_members] = index
        if not all_adjacent(neighbourhoods, clique_members):
            raise AssertionError(f"{clique_members} is no clique; please report this graph")
    return CliqueCover(
        labels=frozen(labels),
        cliques=tuple(tuple(clique) for clique in grouped.values()),
        lower_bound=lower_bound,
    )


def _fold(neighbourhoods: Sequence[AgentSet]) -> tuple[AgentSet, list[tuple[int, int]]]:
    """Set aside who can join another's clique; return who is left, and who follows whom."""
    left = everyone(len(neighbourhoods))
    followers: list[tuple[int, int]] = []
    folding = True
    while folding:
        folding = False
        for leader in sorted(members(left), key=lambda v: (neighbourhoods[v] & left).bit_count()):
            if not left >> leader & 1:
                continue
            alone = 1 << leader
            joining = left
            for agent in members(neighbourhoods[leader] & left):
                joining &= neighbourhoods[agent]
                if joining == alone:
                    break
            joining ^= alone
            followers += [(agent, leader) for agent in members(joining)]
            left ^= joining
            folding |= joining != 0
    return left, followers


def _cover_component(adjacency: BoolArray) -> tuple[list[AgentSet], int]:
    """Cover a connected graph; return the cliques and the lower bound."""
    neighbourhoods = closed_neighbourhoods(adjacency)
    cover = _build(neighbourhoods)
    strangers = heavy_independent_set(
        adjacency, np.ones(len(adjacency), dtype=np.int64), enough=len(cover)
    )
    for improve in (_regroup, _dissolve):
        if len(cover) > len(strangers):
            cover = improve(neighbourhoods, cover, len(strangers))
    if len(cover) == len(strangers):
        return cover, len(cover)
    cover, proven = _search(neighbourhoods, cover, strangers)
    return cover, len(cover) if proven else len(strangers)


def _build(neighbourhoods: Sequence[AgentSet]) -> list[AgentSet]:
    """Start each clique from who hears the fewest, add who keeps it open to the most."""
    left = everyone(len(neighbourhoods))
    cover: list[AgentSet] = []
    for first in sorted(members(left), key=lambda v: neighbourhoods[v].bit_count()):
        if not left >> first & 1:
            continue
        clique, agent, open_to = 0, first, left
        while True:
            clique |= 1 << agent
            open_to &= neighbourhoods[agent] & ~(1 << agent)
            if not open_to:
                break
            agent = max(members(open_to), key=lambda v: (neighbourhoods[v] & open_to).bit_count())
        cover.append(clique)
        left &= ~clique
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
