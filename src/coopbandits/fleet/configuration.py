"""A node's configuration: node.toml, then variables COOP_…, then --set, into one frozen value.

    name = "north"
    topology = "../fleet.toml"      # paths are beside this file
    folder = "log"
    key = "key"
    mode = "online"

    [http]
    port = 7800

    [rewards]
    wait = 3600.0
    default = 0.0

`docs/fleet.md` has all settings. A variable joins the keys by underscores: COOP_HTTP_PORT=8081.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from coopbandits.errors import ParameterError
from coopbandits.fleet.api import Mode
from coopbandits.fleet.core.settings import RewardRules, Rule, Settings
from coopbandits.fleet.keys import Ed25519Keys, public_of, read_private_key
from coopbandits.fleet.reading import converted, read_toml, with_assignments, with_environment
from coopbandits.fleet.topology import Topology, check_loopback

Level = Literal["debug", "info", "warning", "error"]
Port = Annotated[int, Meta(ge=0, le=65535)]
Count = Annotated[int, Meta(ge=1, le=10**12)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
# Even an empty log takes a tenth of that.
LogBytes = Annotated[int, Meta(ge=1_000_000, le=10**15)]
Share = Annotated[float, Meta(ge=0, lt=1)]


class Http(Struct, frozen=True):
    """Where users ask.

    Attributes:
        host: A loopback address.
        port: 0 for any that is free.
        body_limit: How many bytes a body may have.
        drain: Seconds that requests under way are given at the end.
    """

    host: str = "127.0.0.1"
    port: Port = 7800
    body_limit: Count = 1_000_000
    drain: Seconds = 10.0


class Rewards(Struct, frozen=True):
    """Which rewards count, and when (`RewardRules`)."""

    rule: Rule = "first"
    wait: Seconds | None = None
    default: float | None = None


class Events(Struct, frozen=True):
    """How long, and how many events are known."""

    ttl: Seconds = 24 * 3600.0
    most: Annotated[int, Meta(ge=10, le=10**9)] = 100_000


class Learning(Struct, frozen=True):
    """How often a node learns: `pace` seconds between two tasks at the least."""

    pace: Seconds = 0.2


class Log(Struct, frozen=True):
    """How a log is kept.

    Attributes:
        most_bytes: It may become so large; then requests are refused as on a full disk.
        snapshot_every: The state is kept at each so many entries.
        keep_entries: So many entries stay, whatever else could be cut.
        checkpoint_every: The node's feed gets a checkpoint at each so many records; the same at all
            nodes of a fleet.
    """

    most_bytes: LogBytes | None = None
    snapshot_every: Count = 5_000
    keep_entries: Count = 1_000_000
    checkpoint_every: Count = 10_000


class NodeFile(Struct, frozen=True):
    """What node.toml says; docs/fleet.md has a table."""

    name: str
    topology: str
    folder: str
    key: str
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    mode: Mode = "online"
    control: Share = 0.0
    explore: Share = 0.0
    log_level: Level = "info"
    http: Http = Http()
    rewards: Rewards = Rewards()
    events: Events = Events()
    learning: Learning = Learning()
    log: Log = Log()


class Configuration(Struct, frozen=True):
    """All that a node is told, checked.

    Attributes:
        said: As it stands in file, environment and command.
        folder: Of the log.
        settings: Of the core.
        keys: Its own, and the others' public ones.
        listen: Where it listens for neighbours.
        peers: Where neighbours listen.
    """

    said: NodeFile
    folder: Path
    settings: Settings
    keys: Ed25519Keys
    listen: str
    peers: dict[str, str]

    @property
    def identity(self) -> str:
        """Whose log a node's is: fleet and site."""
        return f"{self.settings.fleet}/{self.settings.name}"


def read_configuration(
    path: Path, environment: Mapping[str, str], assignments: Iterable[str] = ()
) -> Configuration:
    """Read and check a node's configuration; whatever is wrong is an `InputError`.

    Args:
        path: The file node.toml.
        environment: Variables; those that begin with COOP_ go before the file.
        assignments: KEY=VALUE, which go before both.
    """
    table = read_toml(path)
    with_environment(NodeFile, table, environment)
    with_assignments(NodeFile, table, assignments)
    said = converted(NodeFile, table, str(path))
    return configured(said, path.parent)


def configured(said: NodeFile, beside: Path) -> Configuration:
    """Check what a file says as a whole, with the files that it names."""
    check_loopback(said.http.host, "http.host")
    topology = Topology.read(beside / said.topology)
    settings = Settings(
        fleet=topology.fleet,
        name=said.name,
        network=topology.network,
        policy=topology.policy,
        seed=said.seed,
        mode=said.mode,
        control=said.control,
        explore=said.explore,
        rewards=RewardRules(
            rule=said.rewards.rule,
            wait=said.rewards.wait,
            default=said.rewards.default,
            ttl=said.events.ttl,
            most=said.events.most,
        ),
        pace=said.learning.pace,
        checkpoint_every=said.log.checkpoint_every,
        snapshot_every=said.log.snapshot_every,
        keep_entries=said.log.keep_entries,
    )
    missing = [name for name in topology.network.names if name not in topology.public_keys]
    if missing:
        raise ParameterError(
            f"{beside / said.topology}: sites.{missing[0]} has no public_key, by which its records "
            "are verified; `coop up --topology` makes keys, and writes a file with all of them"
        )
    private = read_private_key(beside / said.key)
    if public_of(private) != topology.public_keys[said.name]:
        raise ParameterError(
            f"the key {beside / said.key} is not the one whose public_key sites.{said.name} has in "
            f"{beside / said.topology}; give the node its own key"
        )
    near = topology.neighbours(said.name)
    unreachable = [name for name in (said.name, *near) if name not in topology.links]
    if unreachable:
        raise ParameterError(
            f"{beside / said.topology}: sites.{unreachable[0]} has no links, where its neighbours "
            'reach it; give it an endpoint such as links = "tcp/127.0.0.1:7850"'
        )
    return Configuration(
        said=said,
        folder=beside / said.folder,
        settings=settings,
        keys=Ed25519Keys(private, topology.public_keys),
        listen=topology.links[said.name],
        peers={name: topology.links[name] for name in near},
    )


def plain(said: NodeFile) -> dict[str, object]:
    """Return a node's file as tables that can be written as TOML; None is left out."""
    found: dict[str, object] = msgspec.to_builtins(said)
    return {
        key: {name: v for name, v in value.items() if v is not None}
        if isinstance(value, dict)
        else value
        for key, value in found.items()
    }
