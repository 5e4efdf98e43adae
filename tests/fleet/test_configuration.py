"""One frozen configuration of file, environment and command; whatever is wrong is named."""

from pathlib import Path

import msgspec
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.fleet.configuration import NodeFile, read_configuration
from coopbandits.fleet.core.settings import checked
from coopbandits.fleet.local_fleet import circle, folder_name, prepared
from coopbandits.fleet.reading import keys_of, with_assignments, with_environment
from coopbandits.fleet.topology import Topology


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fleet"


@pytest.fixture
def fleet(folder):
    return prepared(folder, topology=None, agents=3, port=23_000)


@pytest.fixture
def path(fleet):
    return fleet.nodes["site-2"]


def test_what_was_prepared_is_a_configuration(fleet, path):
    found = read_configuration(path, {})
    assert found.settings.name == "site-2"
    assert found.settings.network == fleet.topology.network
    policy = checked(circle(3).policy, fleet.topology.network)
    assert found.settings.policy.fingerprint == policy.fingerprint
    assert found.listen == fleet.topology.links["site-2"]
    assert set(found.peers) == {"site-1", "site-3"}
    assert found.keys.public == fleet.topology.public_keys["site-2"]
    assert found.folder == path.parent / "log"


def test_command_goes_before_environment_and_environment_before_file(path):
    path.write_text(path.read_text().replace("pace = 0.2", "pace = 0.4"))
    port = read_configuration(path, {}).said.http.port
    environment = {"COOP_HTTP_PORT": "8081", "COOP_MODE": "off", "PATH": "/bin"}
    assert read_configuration(path, {}).settings.pace == 0.4
    assert read_configuration(path, environment).said.http.port == 8081 != port
    found = read_configuration(path, environment, ["http.port=8082", "rewards.wait=2.5"])
    assert (found.said.http.port, found.settings.mode) == (8082, "off")
    assert found.settings.rewards.wait == 2.5


@pytest.mark.parametrize("key", keys_of(NodeFile), ids=".".join)
def test_every_setting_has_a_variable_and_a_key(key):
    by_variable, by_key = {}, {}
    with_environment(NodeFile, by_variable, {"COOP_" + "_".join(key).upper(): "1"})
    with_assignments(NodeFile, by_key, [f"{'.'.join(key)}=1"])
    expected = "1"
    for part in reversed(key):
        expected = {part: expected}
    assert by_variable == by_key == expected


@pytest.mark.parametrize("key", keys_of(NodeFile), ids=".".join)
def test_every_setting_is_documented_with_its_default(key):
    text = (Path(__file__).resolve().parents[2] / "docs" / "fleet.md").read_text("utf-8")
    rows = [row for row in text.splitlines() if row.startswith("|") and f"`{'.'.join(key)}`" in row]
    assert len(rows) == 1
    default = NodeFile("", "", "", "")
    for part in key:
        default = getattr(default, part)
    if default not in (None, ""):
        shown = default if isinstance(default, str) else f"{default:g}" if default < 1 else None
        shown = shown or f"{default:.0f}"
        assert shown in rows[0].replace(",", "")


def test_no_two_settings_have_one_variable():
    names = ["_".join(key).upper() for key in keys_of(NodeFile)]
    assert len(set(names)) == len(names) > 20


BAD = {
    "an unknown key": ({}, ["prot=1"], r"--set prot=1: expected KEY=VALUE"),
    "no value": ({}, ["http.port"], "expected KEY=VALUE with the key of a setting"),
    "an unknown variable": ({"COOP_HTP_PORT": "1"}, [], r"COOP_HTP_PORT.*did you mean COOP_HTTP"),
    "no number": ({}, ["http.port=x"], r"node\.toml: http\.port: expected `int`"),
    "no port": ({}, ["http.port=70000"], r"http\.port: expected `int` <= 65535"),
    "no mode": ({}, ["mode=on"], r"mode: invalid enum value 'on'"),
    "an address that others reach": ({}, ["http.host=0.0.0.0"], "no loopback address"),
    "another site's name": ({}, ["name=site-1"], r"is not the one whose public_key sites\.site-1"),
    "no site": ({}, ["name=site-9"], "site-9"),
    "no key": ({}, ["key=nowhere"], "cannot read the private key"),
    "no topology": ({}, ["topology=nowhere.toml"], r"cannot read .*nowhere\.toml"),
    "a default without a time": (
        {},
        ["rewards.default=0"],
        r"rewards\.default needs rewards\.wait",
    ),
    "a sum without a time": ({}, ["rewards.rule=sum"], r"needs rewards\.wait"),
    "all for control": ({}, ["control=1"], r"control: expected `float` < 1"),
    "no share": ({}, ["explore=-0.1"], r"explore: expected `float` >= 0"),
    "events for ever": ({}, ["events.ttl=inf"], r"events\.ttl: expected `float` <= 1"),
    "a wait for ever": ({}, ["rewards.wait=inf"], r"rewards\.wait: expected `float` <= 1"),
    "no learning": ({}, ["learning.pace=inf"], r"learning\.pace: expected `float` <= 1"),
    "no end": ({}, ["http.drain=inf"], r"http\.drain: expected `float` <= 1"),
    "no number of seconds": ({}, ["events.ttl=nan"], r"events\.ttl: expected `float` > 0"),
    "a default that is no number": (
        {},
        ["rewards.wait=1", "rewards.default=inf"],
        r"rewards\.default",
    ),
    "a seed below 0": ({}, ["seed=-1"], r"seed: expected `int` >= 0"),
    "a seed above all": ({}, ["seed=9223372036854775808"], r"seed: expected `int` <= 9223"),
    "no room for a log": ({}, ["log.most_bytes=5"], r"log\.most_bytes: expected `int` >= 1000000"),
    "too many events": ({}, ["events.most=1" + 20 * "0"], r"events\.most: expected `int` <= 1"),
}


@pytest.mark.parametrize(("environment", "assignments", "complaint"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(path, environment, assignments, complaint):
    with pytest.raises(InputError, match=complaint):
        read_configuration(path, environment, assignments)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = 'site-2'\nnmae = 1\n", r"nmae is no setting; did you mean name\?"),
        ("name = 'site-2'\n[http]\nprot = 1\n", r"http\.prot is no setting; did you mean port\?"),
        ("name = 'site-2'\n", "missing required field `topology`"),
        ("name = \n", "is no TOML"),
        ("name = 'site-2'\nhttp = 3\n", r"http: expected `object`"),
    ],
)
def test_a_file_that_is_wrong_is_named(path, text, complaint):
    path.write_text(text)
    with pytest.raises(ParameterError, match=complaint):
        read_configuration(path, {})


def test_a_configuration_is_frozen(path):
    found = read_configuration(path, {})
    with pytest.raises(AttributeError, match="immutable"):
        found.listen = "elsewhere"
    with pytest.raises(AttributeError, match="immutable"):
        found.said.http.port = 1
    assert msgspec.structs.asdict(found.said)["name"] == "site-2"


def test_a_fleets_file_is_read_as_it_was_written(fleet, folder):
    again = Topology.read(folder / "fleet.toml")
    assert again.network == fleet.topology.network
    assert (again.links, again.public_keys) == (fleet.topology.links, fleet.topology.public_keys)
    assert again.policy.fingerprint == fleet.topology.policy.fingerprint


TOPOLOGY = """
fleet = "shops"
policy = "policy.toml"
ttl = 1
sites = ["north", "centre", "south/east"]
edges = [["north", "centre"], ["south/east", "centre"]]
"""


@pytest.fixture
def topology(tmp_path):
    path = tmp_path / "shops.toml"
    path.write_text(TOPOLOGY)
    (tmp_path / "policy.toml").write_text(
        cb.NaiveCooperation(cb.kernels.Linear(), eta=0.5).to_toml()
    )
    return path


def test_a_topology_of_names_gets_keys_and_endpoints(topology, folder):
    made = prepared(folder, topology=topology, agents=None, port=23_000)
    assert made.topology.network.names == ("north", "centre", "south/east")
    assert made.topology.policy.ttl == 1
    assert made.topology.neighbours("centre") == ["north", "south/east"]
    assert sorted(path.parent.name for path in made.nodes.values()) == [
        "centre", "north", "south%2Feast",
    ]  # fmt: skip
    for path in made.nodes.values():
        read_configuration(path, {})


def test_preparing_again_changes_nothing(topology, folder):
    prepared(folder, topology=topology, agents=None, port=23_000)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    prepared(folder, topology=None, agents=None, port=24_000)
    prepared(folder, topology=topology, agents=None, port=24_000)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_sites_join_a_fleet_behind_those_that_are_there(topology, folder):
    before = prepared(folder, topology=topology, agents=None, port=23_000)
    text = TOPOLOGY.replace('"south/east"]\n', '"south/east", "west"]\n')
    topology.write_text(text.replace("edges = [", 'edges = [["west", "centre"], '))
    after = prepared(folder, topology=topology, agents=None, port=23_000)
    assert after.topology.network.names[-1] == "west"
    assert after.topology.public_keys.items() >= before.topology.public_keys.items()
    assert after.topology.links.items() >= before.topology.links.items()
    assert read_configuration(after.nodes["west"], {}).settings.name == "west"


REFUSED = {
    "another order of sites": (
        lambda text: text.replace('"north", "centre", "s', '"centre", "north", "s'),
        "their order is another",
    ),
    "another name": (lambda text: text.replace('"shops"', '"stores"'), "the fleet is stores"),
    "another γ": (lambda text: text.replace("ttl = 1", "ttl = 2"), "the policy is"),
    "a site twice": (lambda text: text.replace('"centre", "s', '"north", "s'), "stands twice"),
    "an edge to nobody": (lambda text: text.replace('[["north"', '[["nrth"'), "nrth"),
    "no sites": (lambda text: text.replace('["north", "centre", "south/east"]', "[]"), "and sites"),
    "an unknown key": (lambda text: text + "gamma = 2\n", "gamma is no setting"),
    "a name for a terminal": (
        lambda text: text.replace('"north"', '"no\\u001brth"'),
        r"a site is called 'no\\x1brth'; names are of printable characters",
    ),
    "a name of two lines": (
        lambda text: text.replace('"shops"', '"sh\\nops"'),
        r"the fleet is called 'sh\\nops'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "complaint"), REFUSED.values(), ids=REFUSED)
def test_a_topology_that_does_not_go_on_is_refused_and_the_folder_stays(
    topology, folder, change, complaint
):
    prepared(folder, topology=topology, agents=None, port=23_000)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    topology.write_text(change(TOPOLOGY))
    with pytest.raises(InputError, match=complaint):
        prepared(folder, topology=topology, agents=None, port=23_000)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_another_number_of_agents_is_refused(folder, fleet):
    with pytest.raises(ParameterError, match="holds a fleet of 3 sites, and --agents 4"):
        prepared(folder, topology=None, agents=4, port=23_000)
    with pytest.raises(ParameterError, match="both given"):
        prepared(folder, topology=folder / "fleet.toml", agents=3, port=23_000)
    for agents in (0, 65):
        with pytest.raises(ParameterError, match="from 1 to 64"):
            prepared(folder.with_name("other"), topology=None, agents=agents, port=23_000)


@pytest.mark.parametrize("agents", [1, 2, 3, 5])
def test_a_circle_joins_each_site_to_the_next(agents):
    network = circle(agents).network
    assert len(network) == agents
    degrees = {len(network.neighbours(v)) for v in range(agents)}
    assert degrees == {min(2, agents - 1)}


def test_a_policy_that_no_node_can_run_is_refused_before_anything_is_made(topology, folder):
    (topology.parent / "policy.toml").write_text(cb.Uniform().to_toml())
    with pytest.raises(ParameterError, match="act at random"):
        prepared(folder, topology=topology, agents=None, port=23_000)
    assert not folder.exists()


@pytest.mark.parametrize(
    "endpoint", ["tcp/0.0.0.0:7000", "tcp/10.1.2.3:7000", "tcp/a.example:7000"]
)
def test_links_listen_on_loopback_only(fleet, folder, path, endpoint):
    file = folder / "fleet.toml"
    file.write_text(file.read_text().replace(fleet.topology.links["site-1"], endpoint))
    with pytest.raises(ParameterError, match=r"sites\.site-1\.links: .* is no loopback address"):
        read_configuration(path, {})


@pytest.mark.parametrize("endpoint", ["7000", "udp/127.0.0.1:7000", "tcp/127.0.0.1", "tcp/:7000"])
def test_what_is_no_endpoint_is_refused(fleet, folder, path, endpoint):
    file = folder / "fleet.toml"
    file.write_text(file.read_text().replace(fleet.topology.links["site-1"], endpoint))
    with pytest.raises(ParameterError, match="expected an endpoint such as"):
        read_configuration(path, {})


@pytest.mark.parametrize(
    ("sites", "complaint"),
    [
        ("[sites.a]\nlnks = 'x'", r"sites\.a\.lnks is no setting; did you mean links\?"),
        ("[sites.a]\nlinks = 3", r"sites\.?.*: expected `str \| null`"),
        ("[sites]\na = 3", r"sites\.a: expected a table with links, public_key, got 3"),
        ('[sites]\n"a\\u001b" = {l = 1}', r"sites\.'a\\x1b'\.l is no setting"),
        ("[sites.a]\nlinks = 'tcp/127.0.0.1:7001'\n[sites.b]\nlinks = 'tcp/127.0.0.1:7001'",
         r"sites\.a and sites\.b have the same links, 'tcp/127\.0\.0\.1:7001'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_site_is_named(topology, sites, complaint):
    topology.write_text(f"fleet = 'x'\npolicy = 'policy.toml'\nedges = []\n{sites}\n")
    with pytest.raises(ParameterError, match=complaint):
        Topology.read(topology)


def test_a_file_that_is_nested_too_deeply_is_refused(path):
    path.write_text(f"name = {'[' * 100_000}{']' * 100_000}\n")
    with pytest.raises(ParameterError, match="nested too deeply"):
        read_configuration(path, {})


@pytest.mark.parametrize(
    "key",
    ["events.ttl", "rewards.wait", "learning.pace", "http.drain", "events.most", "seed",
     "log.most_bytes", "log.snapshot_every", "log.keep_entries", "http.body_limit"],
)  # fmt: skip
def test_no_setting_is_without_bounds(path, key):
    found = read_configuration(path, {}, ["events.ttl=100", "rewards.wait=10"])
    assert found.settings.rewards.ttl == 100
    for value in ("inf", "-inf", "nan", "1e400", "-1", "9" * 30):
        with pytest.raises(InputError, match=rf"{key}: (expected|number out of range)"):
            read_configuration(path, {}, [f"{key}={value}"])


def test_a_key_of_another_node_is_refused(fleet, path):
    other = fleet.nodes["site-1"].parent / "key"
    (path.parent / "key").write_bytes(other.read_bytes())
    with pytest.raises(ParameterError, match="give the node its own key"):
        read_configuration(path, {})


@pytest.mark.parametrize("name", [".", "..", "a/b", "a b", "ü", "con:", "%2E"])
def test_names_become_folders_beside_each_other(tmp_path, name):
    folder = tmp_path / folder_name(name)
    folder.mkdir()
    assert folder.resolve().parent == tmp_path.resolve()


def test_names_never_share_a_folder():
    names = [".", "..", "%2E", "a/b", "a%2Fb", "A", "a", "a b", "a%20b"]
    assert len({folder_name(name) for name in names}) == len(names)


def test_a_key_that_was_made_is_kept_when_preparing_was_cut_off(folder):
    first = prepared(folder, topology=None, agents=2, port=23_000)
    (folder / "fleet.toml").unlink()
    again = prepared(folder, topology=None, agents=2, port=23_000)
    assert again.topology.public_keys == first.topology.public_keys
    ports = [read_configuration(path, {}).said.http.port for path in again.nodes.values()]
    ports += [int(end.rpartition(":")[2]) for end in again.topology.links.values()]
    assert len(set(ports)) == 4
