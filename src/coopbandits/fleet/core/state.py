"""The state of a core as bytes, so that a start need not replay all of its log.

It is an index: the log from its beginning gives the same state, to the bit. Versioned; MessagePack.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from coopbandits.agent import Agent
from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.fleet.core.events import Events
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.core.sites import Layout, founded, grown
from coopbandits.fleet.core.statistics import Counts
from coopbandits.fleet.ports import DamageError
from coopbandits.network import Network

if TYPE_CHECKING:
    from coopbandits.fleet.core.node import NodeCore

# 2: rewards of the baseline are counted apart.
VERSION = 2


def stored(core: "NodeCore") -> bytes:
    """Put a core into bytes; no learning task may be under way."""
    return msgspec.msgpack.encode({**_of_log(core), "now": core.now})


def same(one: "NodeCore", other: "NodeCore") -> bool:
    """Tell whether two cores have done the same, to the bit; clocks may differ."""
    return msgspec.msgpack.encode(_of_log(one)) == msgspec.msgpack.encode(_of_log(other))


def _of_log(core: "NodeCore") -> dict[str, Any]:
    """Return all that follows from the log."""
    return {
        "version": VERSION,
        "policy": core.settings.policy.fingerprint,
        "networks": core._layouts,
        "agent": core.agent.to_bytes(),
        "events": core.events.stored(),
        "feeds": core.feeds.stored(),
        "counts": core.counts.stored(),
        "position": core.journal.position,
        "applied": core.applied,
        "epoch": [core.own.epoch, core.own.epoch_began, core.own.started_at],
        "adoptions": core.learning.stored(),
    }


def network_of(data: bytes) -> Network:
    """Return the network in which a core was stored, as it grew out of those before."""
    read = _read(data)
    with _sensible():
        layouts = _layouts(read)
        network = founded(*layouts[0])
        for sites, edges in layouts[1:]:
            network = grown(network, sites, edges)
        return network


def _layouts(read: dict[str, Any]) -> list[Layout]:
    return [(sites, [(v, u) for v, u in edges]) for sites, edges in read["networks"]]


def restore(core: "NodeCore", data: bytes) -> None:
    """Let a new core be what was stored."""
    read = _read(data)
    check_policy(core.settings, read.get("policy"))
    with _sensible():
        core.agent = Agent.from_bytes(
            read["agent"], policy=core.settings.policy, network=core.agent.network
        )
        core.learning.move(core.agent)
        core._layouts = _layouts(read)
        core._set_up()
        core.events = Events.restored(core.settings.rewards, read["events"])
        core.feeds.restore(read["feeds"])
        core.counts = Counts.restored(read["counts"])
        core.journal.position, core.applied = read["position"], read["applied"]
        core._snapshot_at, core._restorable = read["position"], read["applied"]
        core.own.epoch, core.own.epoch_began, core.own.started_at = read["epoch"]
        core.now = read["now"]
        core.learning.restore(read["adoptions"])


def check_policy(settings: Settings, fingerprint: object) -> None:
    """Refuse what was written under another policy: its records are read by nobody else."""
    if fingerprint != settings.policy.fingerprint:
        raise ParameterError(
            f"the log of {settings.name} was written under another policy than "
            f"{settings.policy.name} ({settings.policy.fingerprint[:12]}): its observations are of "
            "other features or units. Give the node the policy of its log, or an empty folder"
        )


@contextmanager
def _sensible() -> Iterator[None]:
    """Say of a stored state that it makes no sense."""
    try:
        yield
    except (CoopBanditsError, LookupError, TypeError, ValueError) as error:
        raise DamageError(f"the stored state makes no sense: {error}") from error


def _read(data: bytes) -> dict[str, Any]:
    try:
        read = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise DamageError(f"the stored state makes no sense: {error}") from error
    if not isinstance(read, dict) or read.get("version") not in range(1, VERSION + 1):
        raise DamageError("the stored state is of another version")
    return read
