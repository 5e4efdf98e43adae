r"""Which γ suits this network?

A larger γ lets news travel further: fewer groups that learn apart, at the price of more messages
and of older news. What each γ costs, and what the paper promises for it, of a network alone:

| | regret per agent, relative to a lone agent's | from |
|---|---|---|
| Coop | √(χ̄(G_γ)/V) | Theorem 1, Corollary 1 |
| Dist | √(α(G_γ)/V) | Theorem 2; agents with one reward function |
| Eager | √((γ + α(G_γ))/V) | a conjecture of the paper's conclusion; nothing is proven |

A factor is the ratio of the bounds' leading terms for agents that are alike (Υ_z = 1), constants
and logarithms dropped; docs/planner.md says what that leaves out. χ̄ and α are hard to compute, so
both come as an interval. A factor is that of the interval's upper end, which is what can be
promised; the cover that Coop plays with is the one found.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from coopbandits.act import FollowCentre
from coopbandits.arrays import Array, IntArray, as_count, short
from coopbandits.errors import ParameterError
from coopbandits.listen import Centre, Clique, Listen, Neighbourhood
from coopbandits.network import Network, as_network
from coopbandits.network.lags import lags, transmissions
from coopbandits.protocol.messages import message_size
from coopbandits.theory.network_numbers import independence_number

MOST_TTLS = 6
"""How many values of γ are listed where none are named."""
NEAR = 0.1
"""How much above the best listed factor still counts as near it."""
LISTENS: dict[str, Listen] = {"coop": Clique(), "eager": Neighbourhood(), "dist": Centre()}


@dataclass(frozen=True)
class Outlook:
    """What one algorithm makes of one γ.

    Attributes:
        factor: The bound on regret per agent, relative to a lone agent's: what can be promised.
        best_factor: The same at the lower end of what χ̄ or α may be; `factor` where they are known.
        heard: How many others' news an agent uses, on average.
        delay: After how many rounds it is known, on average; NaN where nobody uses any.
        messages: That cross an edge in each round, from round γ on, copies included.
        bytes: Their size.
    """

    factor: float
    best_factor: float
    heard: float
    delay: float
    messages: int
    bytes: int


@dataclass(frozen=True)
class TtlRow:
    """What one γ costs and promises.

    Attributes:
        ttl: γ.
        mean_neighbourhood: |N_γ(v)|, v included, averaged over agents.
        largest_neighbourhood: The largest |N_γ(v)|.
        cliques: How many cliques cover G_γ, as found: χ̄(G_γ) is at most this.
        fewest_cliques: χ̄(G_γ) is at least this.
        independent: How many agents of whom no two hear each other were found: α(G_γ) is at least
            this.
        most_independent: α(G_γ) is at most this.
        centres: How many agents decide for the others under Dist.
        coop: Coop-KernelUCB.
        eager: Eager-KernelUCB.
        dist: Dist-KernelUCB.
    """

    ttl: int
    mean_neighbourhood: float
    largest_neighbourhood: int
    cliques: int
    fewest_cliques: int
    independent: int
    most_independent: int
    centres: int
    coop: Outlook
    eager: Outlook
    dist: Outlook


@dataclass(frozen=True)
class Inspection:
    """A network's facts, and a row for each γ.

    Attributes:
        network: What was inspected.
        agents: V.
        edges: How many; arcs in a directed network.
        components: How many parts cannot reach each other (arcs taken as edges).
        diameter: The largest distance within the largest component; of agents that reach each
            other, in a directed network.
        mean_degree: To how many an agent sends, on average.
        max_degree: To how many at most.
        mean_distance: Over all pairs that reach each other; NaN if there are none.
        message_bytes: The size of one message of Coop and Eager.
        rows: One for each γ, ascending.
    """

    network: Network = field(repr=False)
    agents: int
    edges: int
    components: int
    diameter: int
    mean_degree: float
    max_degree: int
    mean_distance: float
    message_bytes: int
    rows: tuple[TtlRow, ...]

    @property
    def counts(self) -> str:
        """How many agents and edges there are, in words."""
        kind = "arc" if self.network.directed else "edge"
        return f"{counted(self.agents, 'agent')}, {counted(self.edges, kind)}"

    @property
    def paper_ttl(self) -> int:
        """γ of the paper's experiments: max(1, ⌊diameter/2⌋)."""
        return max(1, self.diameter // 2)

    @property
    def near_ttl(self) -> int:
        """The smallest γ listed whose factor under Coop is within 10% of the best listed.

        No more than that: it knows neither what a message costs nor how alike the agents are.
        """
        best = min(row.coop.factor for row in self.rows)
        return next(row.ttl for row in self.rows if row.coop.factor <= (1 + NEAR) * best)

    @property
    def least_factor(self) -> float:
        """1/√V: the factor if everyone heard everyone at once. No γ can promise less."""
        return 1 / sqrt(self.agents)


def inspect_network(
    network: Network, *, ttls: Iterable[int] | None = None, dim: int = 10, attached: int = 0
) -> Inspection:
    """Work out what each γ costs and promises on a network.

    Args:
        network: Who can send to whom.
        ttls: Which values of γ; if not given, up to six from 1 to the diameter, the paper's choice
            among them.
        dim: d, how many numbers a context has; for bytes only.
        attached: How many numbers more go with a context where K_z is learnt: d for `Evidence`
            under a linear kernel, 64 under others, 0 where K_z is given. Dist needs none.
    """
    V = len(as_network(network))
    plain = message_size(as_count(dim, "dim"))
    size = plain + 8 * as_count(attached, "attached", least=0)
    apart = network.distances[~np.eye(V, dtype=np.bool_)]
    apart = apart[np.isfinite(apart)]
    largest = max(network.components, key=len)
    within = network.distances[np.ix_(largest, largest)]
    diameter = int(within[np.isfinite(within)].max())
    chosen = _default_ttls(diameter) if ttls is None else _as_ttls(ttls)

    # beyond the farthest agent no message has anything left to reach
    hops = int(min(chosen[-1], apart.max(initial=0.0) + 1))
    carriers = {name: listen.carrier(network) for name, listen in LISTENS.items()}
    course = {c: transmissions(c, hops, hops) for c in set(carriers.values())}
    rows = []
    for ttl in chosen:
        sent = {name: int(course[c][min(ttl, hops) - 1]) for name, c in carriers.items()}
        sizes = {"coop": size, "eager": size, "dist": plain}
        rows.append(_row(network, ttl, sent, {name: sent[name] * sizes[name] for name in sent}))
    degrees = network.adjacency.sum(axis=1)
    return Inspection(
        network=network,
        agents=V,
        edges=int(degrees.sum()) // (1 if network.directed else 2),
        components=len(network.components),
        diameter=diameter,
        mean_degree=float(degrees.mean()),
        max_degree=int(degrees.max()),
        mean_distance=float(apart.mean()) if apart.size else float("nan"),
        message_bytes=size,
        rows=tuple(rows),
    )


def _as_ttls(ttls: Any) -> list[int]:
    if not isinstance(ttls, Iterable) or isinstance(ttls, str):
        raise ParameterError(f"ttls must be whole numbers such as [1, 2, 3], got {short(ttls)}")
    chosen = sorted({as_count(ttl, "a ttl") for ttl in ttls})
    if not chosen:
        raise ParameterError("ttls names no γ; name at least one, or leave it out")
    return chosen


def _default_ttls(diameter: int) -> list[int]:
    """Spread γ from 1 to the diameter, densely where it is small; half of the diameter is in."""
    if diameter <= MOST_TTLS:
        return list(range(1, max(1, diameter) + 1))
    spread = np.geomspace(1, diameter, MOST_TTLS - 1).round().astype(int).tolist()
    return sorted({*spread, diameter // 2})


def _row(network: Network, ttl: int, sent: dict[str, int], sizes: dict[str, int]) -> TtlRow:
    V = len(network)
    cover, centres = network.clique_cover(ttl), network.centres(ttl)
    alpha = independence_number(network, ttl)
    groups = {
        "coop": (len(cover.cliques), cover.lower_bound),
        "eager": (ttl + alpha.most, ttl + alpha.least),
        "dist": (alpha.most, alpha.least),
    }
    outlooks = {}
    for name, listen in LISTENS.items():
        heard, delay = _news(_lags_between(listen, network, ttl))
        factor, best = (sqrt(count / V) for count in groups[name])
        outlooks[name] = Outlook(factor, best, heard, delay, sent[name], sizes[name])
    reach: IntArray = (network.distances <= ttl).sum(axis=0)
    return TtlRow(
        ttl=ttl,
        mean_neighbourhood=float(reach.mean()),
        largest_neighbourhood=int(reach.max()),
        cliques=len(cover.cliques),
        fewest_cliques=cover.lower_bound,
        independent=alpha.least,
        most_independent=alpha.most,
        centres=len(centres.indices),
        **outlooks,
    )


def _lags_between(listen: Listen, network: Network, ttl: int) -> Array:
    """Return after how many rounds v uses the news of another agent: (V, V), inf for never."""
    between = listen.lags(network, ttl)
    if isinstance(listen, Centre):  # the others use their centre's news: they follow it
        leaders = FollowCentre().leaders(network, ttl)
        followers = np.flatnonzero(leaders >= 0)
        pairs = followers, leaders[followers]
        between[pairs] = lags(network, ttl)[pairs]
    np.fill_diagonal(between, np.inf)
    return between


def _news(between: Array) -> tuple[float, float]:
    """Return how many others an agent uses the news of, and how old it is, on average."""
    used = between[np.isfinite(between)]
    return len(used) / len(between), float(used.mean()) if len(used) else float("nan")


def counted(count: int, what: str) -> str:
    """Say how many there are of what: "1 agent", "2,000 agents"."""
    return f"{count:,} {what}" + "s" * (count != 1)
