"""A fleet's file, the same at all sites: sites by name, the edges between them, γ and policy.

    fleet = "shops"
    policy = "policy.toml"                      # beside this file; docs/policy-files.md
    ttl = 2                                     # γ, in place of the policy's
    edges = [["north", "centre"], ["south", "centre"]]

    [sites.north]                               # in an order that holds for ever
    links = "tcp/127.0.0.1:7850"                # where its neighbours reach it
    public_key = "…"                            # 64 hexadecimal digits; `coop up` makes them

`sites = ["north", "centre", "south"]` is enough for `coop up`, which fills in the rest.
"""

from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct

from coopbandits.errors import CoopBanditsError, ParameterError
from coopbandits.fleet.keys import PUBLIC_BYTES
from coopbandits.fleet.reading import converted, durable_text, read_toml
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.spec.toml_text import to_toml


class Site(Struct, frozen=True, omit_defaults=True):
    """One site.

    Attributes:
        links: Where its neighbours reach it, such as "tcp/127.0.0.1:7850".
        public_key: Of its records, in hexadecimal digits.
    """

    links: str | None = None
    public_key: str | None = None


class FleetFile(Struct, frozen=True):
    """What a fleet's file says; see the module."""

    fleet: str
    policy: str
    sites: list[str] | dict[str, Site]
    edges: list[tuple[str, str]]
    ttl: int | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """A fleet: who is in it, who is joined to whom, and how all decide.

    Attributes:
        fleet: Its name.
        network: Sites and edges.
        policy: With the fleet's γ.
        links: By site, where neighbours reach it; of those that say.
        public_keys: By site, of those that say.
    """

    fleet: str
    network: Network
    policy: Policy
    links: dict[str, str]
    public_keys: dict[str, bytes]

    @classmethod
    def read(cls, path: Path) -> "Topology":
        """Read a fleet's file, and the policy beside it."""
        said = converted(FleetFile, read_toml(path), str(path))
        sites = dict.fromkeys(said.sites, Site()) if isinstance(said.sites, list) else said.sites
        if len(sites) < len(said.sites):
            raise ParameterError(f"{path}: a site stands twice in sites; each has its own name")
        if not said.fleet.strip() or not sites:
            raise ParameterError(f"{path}: a fleet needs a name that is not blank, and sites")
        for what, name in (("the fleet", said.fleet), *(("a site", name) for name in sites)):
            if not name.isprintable():
                raise ParameterError(
                    f"{path}: {what} is called {name!r}; names are of printable characters"
                )
        policy = read_policy(path.parent / said.policy)
        try:
            network = Network.from_edges(said.edges, names=[*sites])
            if said.ttl is not None:
                policy = replace(policy, ttl=said.ttl)
        except CoopBanditsError as error:
            raise ParameterError(f"{path}: {error}") from error
        links, keys = {}, {}
        for name, site in sites.items():
            if site.links is not None:
                links[name] = checked_endpoint(site.links, f"{path}: sites.{name}.links")
                twin = next(other for other, link in links.items() if link == links[name])
                if twin != name:
                    raise ParameterError(
                        f"{path}: sites.{twin} and sites.{name} have the same links, "
                        f"{site.links!r}; give each site an endpoint of its own"
                    )
            if site.public_key is not None:
                keys[name] = _key(site.public_key, f"{path}: sites.{name}.public_key")
        return cls(said.fleet, network, policy, links, keys)

    def write(self, path: Path) -> None:
        """Write the fleet's file, and the policy beside it as policy.toml."""
        network, names = self.network, self.network.names
        edges = [
            [names[v], names[u]]
            for v in range(len(network))
            for u in network.neighbours(v).tolist()
            if v < u
        ]
        sites = {
            name: {"links": self.links[name], "public_key": self.public_keys[name].hex()}
            for name in names
        }
        durable_text(path.parent / "policy.toml", self.policy.to_toml())
        said = {"fleet": self.fleet, "policy": "policy.toml", "edges": edges, "sites": sites}
        durable_text(path, to_toml(said))

    def neighbours(self, name: str) -> list[str]:
        """Return the names of a site's neighbours on the edges that its policy's messages use."""
        carrier = self.policy.listen.carrier(self.network)
        near = carrier.neighbours(self.network.index(name)).tolist()
        return [self.network.names[v] for v in near]


def read_policy(path: Path) -> Policy:
    """Read a policy's file."""
    table = read_toml(path)
    try:
        return Policy.from_spec(table)
    except CoopBanditsError as error:
        raise ParameterError(f"{path}: {error}") from error


def checked_endpoint(text: str, place: str) -> str:
    """Refuse an endpoint of links that is not on this machine, or has no port."""
    kind, _, address = text.partition("/")
    host, _, port = address.rpartition(":")
    if kind != "tcp" or not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise ParameterError(
            f'{place}: expected an endpoint such as "tcp/127.0.0.1:7850", got {text!r}'
        )
    check_loopback(host.strip("[]"), place)
    return text


def check_loopback(host: str, place: str) -> None:
    """Refuse an address that others than this machine can reach: there is no TLS yet."""
    try:
        inside = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise ParameterError(
            f"{place}: {host!r} is no loopback address. Links and HTTP have neither TLS nor tokens "
            "yet, so a node listens on this machine only; take 127.0.0.1, and a reverse proxy or "
            "an SSH tunnel to reach it from elsewhere"
        )


def _key(text: str, place: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != PUBLIC_BYTES:
        raise ParameterError(f"{place}: expected {2 * PUBLIC_BYTES} hexadecimal digits")
    return key
