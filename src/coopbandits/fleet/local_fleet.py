"""A fleet's folder on one machine: its file, and a folder with configuration, key and log a site.

| file | what |
|---|---|
| `fleet.toml`, `policy.toml` | sites, edges, γ, policy, endpoints, public keys (`topology.py`) |
| `SITE/node.toml` | the node's configuration; may be edited |
| `SITE/key` | its private key |
| `SITE/log/` | its log (`store/folder.py`) |

What is there is never written over, but for `fleet.toml` and `policy.toml` when sites are added.
"""

import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import coopbandits as cb
from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.fleet.configuration import Http, NodeFile, plain
from coopbandits.fleet.core.settings import checked
from coopbandits.fleet.core.sites import grown, layout
from coopbandits.fleet.keys import public_of, read_private_key, write_private_key
from coopbandits.fleet.reading import converted, durable_text, read_toml
from coopbandits.fleet.topology import Topology
from coopbandits.spec.toml_text import to_toml

FLEET = "fleet.toml"
_HOST = "127.0.0.1"
_MOST = 64


@dataclass(frozen=True, slots=True)
class LocalFleet:
    """A fleet's folder.

    Attributes:
        topology: As it stands in the folder.
        nodes: By site, the path of its configuration.
    """

    topology: Topology
    nodes: dict[str, Path]


def prepared(
    folder: Path, *, topology: Path | None, agents: int | None, port: int, control: float = 0.0
) -> LocalFleet:
    """Make a fleet's folder, or take the one that is there, with sites that have come since.

    Args:
        folder: Where.
        topology: A fleet's file; its endpoints and keys may be missing.
        agents: So many sites on a circle, in place of a file.
        port: From here on, free ports are given to nodes.
        control: The share of the control group, for nodes that are new.
    """
    wanted = _wanted(folder, topology, agents)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sites = {name: folder / folder_name(name) for name in wanted.network.names}
        free = _free_ports(port, _taken(wanted, sites.values()))
        keys, links = dict(wanted.public_keys), dict(wanted.links)
        for name, site in sites.items():
            site.mkdir(exist_ok=True)
            path = site / "key"
            private = read_private_key(path) if path.exists() else write_private_key(path)
            if keys.setdefault(name, public_of(private)) != public_of(private):
                raise ParameterError(f"the key {path} is not the one of sites.{name}")
            if not (site / "node.toml").exists():
                said = NodeFile(
                    name=name, topology=f"../{FLEET}", folder="log", key="key", control=control,
                    log_level="warning",
                    http=Http(port=next(free)),
                )  # fmt: skip
                durable_text(site / "node.toml", to_toml(plain(said)))
        for name in sites:
            if name not in links:
                links[name] = f"tcp/{_HOST}:{next(free)}"
        made = replace(wanted, public_keys=keys, links=links)
        made.write(folder / FLEET)
    except OSError as error:
        raise ParameterError(
            f"cannot keep a fleet in {folder}: {error.strerror}; name a folder that can be written "
            "to by --out"
        ) from error
    return LocalFleet(made, {name: site / "node.toml" for name, site in sites.items()})


def folder_name(name: str) -> str:
    """Return what a site's folder is called: its name, with what paths cannot hold escaped."""
    quoted = quote(name, safe=" ")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def circle(agents: int) -> Topology:
    """Return a fleet of so many sites on a circle, which learn whom to trust."""
    if not 1 <= agents <= _MOST:
        raise ParameterError(f"--agents must be from 1 to {_MOST} on one machine, got {agents}")
    names = [f"site-{number}" for number in range(1, agents + 1)]
    edges = {(min(v, u), max(v, u)) for v in range(agents) for u in [(v + 1) % agents] if u != v}
    network = cb.Network.from_edges([(names[v], names[u]) for v, u in sorted(edges)], names=names)
    policy = cb.EagerKernelUCB(
        cb.kernels.Linear(), similarity=cb.similarity.Evidence(), ttl=2, eta=0.3, intercept=10.0
    )
    return Topology("fleet", network, policy, {}, {})


def _wanted(folder: Path, topology: Path | None, agents: int | None) -> Topology:
    """Return the fleet that is asked for, with the endpoints and keys that the folder has."""
    if topology is not None and agents is not None:
        raise ParameterError("--agents and --topology are both given; one says how many sites")
    asked = None if topology is None else Topology.read(topology)
    if asked is not None:
        checked(asked.policy, asked.network)
    if not (folder / FLEET).exists():
        return asked or circle(5 if agents is None else agents)
    there = Topology.read(folder / FLEET)
    sites = len(there.network)
    if agents is not None and agents != sites:
        raise ParameterError(
            f"{folder} holds a fleet of {sites} sites, and --agents {agents} was given; leave it "
            "out to go on with that fleet, or name another folder by --out"
        )
    if asked is None:
        return there
    for what, one, other in (
        ("the fleet", there.fleet, asked.fleet),
        ("the policy", there.policy.fingerprint[:12], asked.policy.fingerprint[:12]),
    ):
        if one != other:
            raise ParameterError(
                f"{topology}: {what} is {other}, but {folder} holds one of {one}, whose logs go on "
                "under it only; name another folder by --out"
            )
    try:
        grown(there.network, *layout(asked.network))
    except CoopBanditsError as error:
        raise ParameterError(f"{topology}: {error}") from error
    return replace(
        asked,
        links={**there.links, **asked.links},
        public_keys={**asked.public_keys, **there.public_keys},
    )


def _taken(topology: Topology, sites: Iterable[Path]) -> set[int]:
    """Return the ports that the folder has given to nodes."""
    taken = {int(endpoint.rpartition(":")[2]) for endpoint in topology.links.values()}
    for path in (site / "node.toml" for site in sites):
        if path.exists():
            taken.add(converted(NodeFile, read_toml(path), str(path)).http.port)
    return taken


def _free_ports(first: int, taken: set[int]) -> Iterator[int]:
    """Yield ports that nobody has been given, or listens at."""
    for port in range(first, 2**16):
        if port in taken:
            continue
        try:
            socket.create_server((_HOST, port)).close()
        except OSError:
            continue
        yield port
    raise ParameterError(f"no port from {first} on is free; give a lower --port")
