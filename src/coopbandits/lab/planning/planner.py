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
from coopbandits.arrays import Array, as_count, short
from coopbandits.errors import ParameterError
from coopbandits.listen import Centre, Clique, Listen, Neighbourhood
from coopbandits.network import MOST_DENSE, Network, as_network
from coopbandits.network.diameter import diameter_of
from coopbandits.network.lags import as_lags, transmissions
from coopbandits.protocol.messages import message_size
from coopbandits.theory.network_numbers import independence_number

MOST_TTLS = 6
"""How many values of γ are listed where none are named."""
NEAR = 0.1
"""How much above the best listed factor still counts as near it."""
# From how many agents of a large network distances are searched, and from how many at a time.
_SEARCHED, _TOGETHER = 1_000, 200
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
        mean_distance: Over all pairs that reach each other; NaN if there are none. Above 20,000
            agents from 1,000 of them to all.
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
            among them; above 20,000 agents, whose neighbourhoods soon are everyone, 1 alone.
        dim: d, how many numbers a context has; for bytes only.
        attached: How many numbers more go with a context where K_z is learnt: d for `Evidence`
            under a linear kernel, 64 under others, 0 where K_z is given. Dist needs none.
    """
    V = len(as_network(network))
    plain = message_size(as_count(dim, "dim"))
    size = plain + 8 * as_count(attached, "attached", least=0)
    diameter, farthest, mean_distance = _distances(network)
    if ttls is None:
        chosen = _default_ttls(diameter) if V <= MOST_DENSE else [1]
    else:
        chosen = _as_ttls(ttls)

    # beyond the farthest agent no message has anything left to reach
    hops = min(chosen[-1], farthest + 1)
    carriers = {name: listen.carrier(network) for name, listen in LISTENS.items()}
    course = {c: transmissions(c, hops, hops) for c in set(carriers.values())}
    rows = []
    for ttl in chosen:
        sent = {name: int(course[c][min(ttl, hops) - 1]) for name, c in carriers.items()}
        sizes = {"coop": size, "eager": size, "dist": plain}
        rows.append(_row(network, ttl, sent, {name: sent[name] * sizes[name] for name in sent}))
    degrees = network.arcs.counts
    return Inspection(
        network=network,
        agents=V,
        edges=int(degrees.sum()) // (1 if network.directed else 2),
        components=len(network.components),
        diameter=diameter,
        mean_degree=float(degrees.mean()),
        max_degree=int(degrees.max()),
        mean_distance=mean_distance,
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
        delays = _delays(listen, network, ttl)
        heard, delay = len(delays) / V, float(delays.mean()) if len(delays) else float("nan")
        factor, best = (sqrt(count / V) for count in groups[name])
        outlooks[name] = Outlook(factor, best, heard, delay, sent[name], sizes[name])
    reach = network.lags(ttl).sources.counts
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


def _distances(network: Network) -> tuple[int, int, float]:
    """Return the diameter of the largest component, the longest distance, and the mean one."""
    V, largest = len(network), max(network.components, key=len)
    agents = np.arange(V)
    if V > MOST_DENSE:
        agents = np.unique(np.linspace(0, V - 1, _SEARCHED).astype(np.int64))
    longest, within, total, pairs = 0, 0, 0.0, 0
    inside = np.zeros(V, dtype=np.bool_)
    inside[largest] = True
    for start in range(0, len(agents), _TOGETHER):
        some = agents[start : start + _TOGETHER]
        apart = network.distances_from(some.tolist())
        apart[~np.isfinite(apart)] = 0.0
        longest = max(longest, int(apart.max()))
        within = max(within, int(apart[inside[some]][:, inside].max(initial=0.0)))
        total, pairs = total + float(apart.sum()), pairs + int(np.count_nonzero(apart))
    if V > MOST_DENSE and not network.directed:
        within = int(diameter_of(network.arcs.within(largest), directed=False))
        longest = max(longest, within)
    return within, longest, total / pairs if pairs else float("nan")


def _delays(listen: Listen, network: Network, ttl: int) -> Array:
    """Return after how many rounds agents use the news of others, for each pair that does: (n,)."""
    lags = as_lags(listen.lags(network, ttl), len(network))
    used = lags.rounds[lags.sources.rows != lags.sources.agents].astype(np.float64)
    if isinstance(listen, Centre):  # the others use their centre's news: they follow it
        leaders = FollowCentre().leaders(network, ttl)
        followers = np.flatnonzero(leaders >= 0)
        used = np.append(used, network.lags(ttl).between(followers, leaders[followers]))
    return used


def counted(count: int, what: str) -> str:
    """Say how many there are of what: "1 agent", "2,000 agents"."""
    return f"{count:,} {what}" + "s" * (count != 1)
