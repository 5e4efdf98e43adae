"""What a node shows of itself; nothing changes."""

from collections.abc import Iterator
from math import isfinite

from coopbandits.fleet.api import Peer, PeersReply, SimilarityReply, StatusReply
from coopbandits.fleet.core.deciding import contexts_of
from coopbandits.fleet.core.entries import Decided, Ended, Recorded, read
from coopbandits.fleet.core.node import NodeCore
from coopbandits.fleet.ports import Store
from coopbandits.records import Logged


def status(
    core: NodeCore, *, ready: bool, version: str, started_at: float, disk: int, now: float
) -> StatusReply:
    """Return how a node is."""
    settings, me = core.settings, core.feeds.origins[core.settings.name]
    return StatusReply(
        fleet=settings.fleet,
        node=settings.name,
        mode=settings.mode,
        ready=ready,
        policy=settings.policy.name,
        model_version=core.version,
        version=version,
        epoch=core.epoch,
        now=now,
        started_at=started_at,
        decisions=core.counts.decisions,
        open_events=core.events.open,
        observations=core.agent.known,
        own_records=me.records,
        adoptions=core.learning.adoptions,
        learning=core.learning.busy,
        adopted_at=core.learning.adopted_at,
        rewards=core.counts.rewards,
        agreement=core.counts.agreement,
        position=core.journal.position,
        synced=core.journal.synced,
        disk_bytes=disk,
        refused=dict(core.exchange.refused),
        quarantined=[one.name for one in core.feeds.origins.values() if one.quarantined],
        control_share=settings.control,
    )


def peers(core: NodeCore) -> PeersReply:
    """Return all sites as the node sees them."""
    network, exchange, trusted = core.agent.network, core.exchange, core.worth
    own = core.feeds.origins[core.settings.name].records
    found = []
    for name in network.names:
        origin, neighbour = core.feeds.origins.get(name), exchange.neighbours.get(name)
        distance = exchange.distances[name]
        behind = None
        if neighbour is not None and neighbour.answered:
            behind = max(0, own - sum(sequence for _, sequence, _ in neighbour.holds))
        found.append(
            Peer(
                name=name,
                distance=int(distance) if isfinite(distance) else None,
                neighbour=neighbour is not None,
                linked=None if neighbour is None else neighbour.linked,
                heard=name in trusted,
                records=0 if origin is None else origin.records,
                behind=behind,
                last_at=None if origin is None else origin.last_at,
                worth=trusted.get(name, 0.0),
            )
        )
    names = network.names
    edges = [
        (names[v], names[u])
        for v in range(len(network))
        for u in network.neighbours(v).tolist()
        if v < u
    ]
    return PeersReply(core.settings.name, core.settings.policy.ttl, found, edges)


def similarity(core: NodeCore) -> SimilarityReply:
    """Return whom the node trusts."""
    estimates = core.agent._plan.estimator is not None
    known = core.agent.estimated if estimates else core.agent.known
    return SimilarityReply(core.settings.name, estimates, known, core.worth)


def log(core: NodeCore, store: Store, after: int, most: int) -> Iterator[dict[str, object]]:
    """Yield closed events that have a reward, as records of a log."""
    fingerprint = core.settings.policy.fingerprint
    for position, stored in store.entries(after):
        entry = read(stored, position) if stored.kind in _CLOSING else None
        closed: list[tuple[str, float | None, int]] = []
        if isinstance(entry, Recorded):
            closed = [(entry.event, entry.value, entry.decided)]
        elif isinstance(entry, Ended):
            closed = entry.events
        for event, value, decided in closed:
            found = store.entry(decided) if value is not None else None
            if found is None or value is None:
                continue
            decision = read(found, decided)
            assert isinstance(decision, Decided)
            policy = fingerprint if decision.group == "learner" else decision.group
            line = Logged(
                round=decision.number,
                agent=core.settings.name,
                contexts=contexts_of(decision)[decision.allowed],
                action=decision.allowed.index(decision.index),
                reward=value,
                propensity=decision.propensity,
                policy=policy,
            )
            more = {"position": position, "event_id": event, "at": decision.at}
            yield {**line.to_dict(), **more, "group": decision.group}
            most -= 1
        if most <= 0:
            return


# Of the entries that close events.
_CLOSING = (5, 7)
