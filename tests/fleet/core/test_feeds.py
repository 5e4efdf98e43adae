"""Newcomers that start from checkpoints, logs that are cut, and starts from what is left."""

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.agent import feeds
from coopbandits.fleet.checkpoint import Checkpoint, FeedBase
from coopbandits.fleet.core.actions import Arrived
from coopbandits.fleet.core.entries import Based, Received
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.core.wire import Base, Have, Take, Want, decoded, encoded
from coopbandits.fleet.keys import HashKeys
from coopbandits.fleet.ports import DamageError
from coopbandits.fleet.record import Feed
from coopbandits.fleet.store import MemoryStore, SqliteStore
from coopbandits.protocol.messages import Observation
from fleet.driven import DIM, Driven, Wires, linear, path, settings_of

OFTEN = {
    "checkpoint_every": 100, "snapshot_every": 60, "keep_entries": 50, "have_every": 1.0,
    "want_timeout": 0.5,
}  # fmt: skip
POLICIES = {
    "linear": linear(),
    "evidence": linear(similarity=cb.similarity.Evidence(chains=2)),
    "fading": linear(forget=cb.forget.Exponential(40.0)),
    "window": linear(forget=cb.forget.Window(70)),
    "fourier": cb.EagerKernelUCB(
        cb.kernels.RBF(), similarity=cb.similarity.Same(), ttl=2, features=cb.features.Fourier(8)
    ),
}


def pair(policy=None, **changes):
    """Two sites of three, the third not there yet."""
    options = {**OFTEN, "policy": policy or linear(), **changes}
    wires = Wires([Driven(settings_of(name, path("abc"), **options)) for name in "ab"])
    wires.link_all()
    wires.settle()
    for node in wires.nodes.values():
        node.write()
    return wires, options


def join(wires, name, options):
    node = Driven(settings_of(name, path("abc"), **options), now=wires.nodes["b"].now)
    wires.nodes[name] = node
    for near in node.core.exchange.neighbours:
        wires.link(near, name)
    for _ in range(8):
        wires.settle()
        wires.pass_time(3.0)
    return node


def played(wires, rounds):
    for number in range(rounds // 50):
        for name in "ab":
            wires.nodes[name].play(50, seed=number)
        wires.pass_time(1.0)
        wires.pass_time(1.0)


@pytest.mark.parametrize("name", POLICIES)
def test_a_newcomer_from_checkpoints_has_the_sums_of_those_who_took_every_record(name):
    wires, options = pair(POLICIES[name], rewards=RewardRules(most=20))
    played(wires, 250)
    a, b = wires.nodes["a"], wires.nodes["b"]
    assert a.store.first > 1
    assert a.store.records("a", a.core.epoch, 1, 1, 10**6) == []  # they were cut
    newcomer = join(wires, "c", options)
    taken = [one for one in newcomer.entries() if isinstance(one, Received)]
    assert sum(one.last - one.first + 1 for one in taken) < 250
    own = {feed: digest for feed, digest in newcomer.sums().items() if feed[0] != "c"}
    assert own == a.sums() == b.sums()
    assert newcomer.heads() == a.heads() == b.heads()
    assert newcomer.core.agent.known == b.core.agent.known == 500
    again = newcomer.again()
    assert (again.sums(), again.heads()) == (newcomer.sums(), newcomer.heads())


def test_sums_are_those_of_a_fleet_that_never_signs_a_checkpoint():
    """Cutting changes nothing but what is kept: the same rounds without it give the same sums."""
    found = []
    for changes in ({}, {"checkpoint_every": 100_000, "snapshot_every": 10**9}):
        wires, _ = pair(**changes)
        played(wires, 250)
        a, b = wires.nodes["a"], wires.nodes["b"]
        assert (a.store.first > 1) == (not changes)
        assert a.sums() == b.sums()
        found.append(sorted(a.sums().values()))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_a_log_takes_is_bounded_once_it_is_cut(kind, tmp_path):
    network = cb.Network.from_edges([("a", "b")], names=["a", "b"])
    options = {**OFTEN, "rewards": RewardRules(most=20)}
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a", identity="a")
    node = Driven(settings_of("a", network, **options), store)
    node.write()
    sizes = []
    for number in range(12):
        node.play(50, seed=number)
        sizes.append((node.store.position + 1 - node.store.first, node.store.disk_bytes))
    entries, taken = np.array(sizes).T
    # entries by snapshots, records by the last two checkpoints
    assert entries.max() <= 4 * OFTEN["snapshot_every"] + 3 * 100
    late, early = taken[8:].max(), taken[5:8].max()
    assert late <= 1.25 * early
    if kind == "memory":
        records = sum(len(feed) for feed in store._feeds.values())
        assert records <= 4 * 100
    store.close()


@pytest.mark.parametrize("policy", ["linear", "evidence", "fading"])
def test_a_node_that_starts_after_cuts_is_as_it_was(policy):
    wires, _ = pair(POLICIES[policy], rewards=RewardRules(most=20), pace=0.5)
    for name in "ab":
        wires.nodes[name].core.learning.due = 0.0
    played(wires, 250)
    for node in wires.nodes.values():
        assert node.store.first > 1
        assert node.core.learning.adoptions > 1
        agent = node.core.agent
        queries = np.random.default_rng(1).normal(size=(4, DIM))
        before = agent.predict(queries, learn=False)
        facts = (
            node.heads(), node.sums(), node.core.events.stored(), node.core.counts.stored(),
            node.core.epoch, node.core.learning.adoptions, agent.known, agent.awaiting,
        )  # fmt: skip
        again = node.again()
        core = again.core
        assert facts == (
            again.heads(), again.sums(), core.events.stored(), core.counts.stored(),
            core.epoch, core.learning.adoptions, core.agent.known, core.agent.awaiting,
        )  # fmt: skip
        after = core.agent.predict(queries, learn=False)
        np.testing.assert_array_equal(after.mean, before.mean)
        np.testing.assert_array_equal(after.std, before.std)
        with pytest.raises(DamageError, match=r"begins at entry \d+, and no stored state"):
            again.again(states=False)


def test_whose_records_were_cut_is_answered_with_the_checkpoint():
    wires, _ = pair()
    played(wires, 250)
    b = wires.nodes["b"]
    base = b.core.feeds.origins["a"].base
    b.outbox.clear()
    b.handle(Arrived("a", encoded(Want("a", base.place[0], 0, 99))))
    [message] = [decoded(data) for _, data in b.outbox]
    assert message == Base("a", base.data)


def test_a_checkpoint_that_is_not_what_records_add_up_to_is_refused():
    a, b = (Driven(settings_of(name, path("abc"), **OFTEN)) for name in "ab")
    a.write()
    a.play(110)
    [epoch] = [epoch for _, epoch in a.heads()]
    records = a.store.records("a", epoch, 1, 110, 10**6)
    b.handle(Arrived("a", encoded(Take("a", epoch, 1, records))))
    held = b.core.feeds.origins["a"].epochs[epoch]
    assert held.marked.sequence == 100
    other = feeds.extended(
        b.core.agent, None, 0, np.ones((100, DIM)), np.ones(100), range(1, 101), np.empty((100, 0))
    )
    wrong = FeedBase(epoch, 100, held.marked.hash, DIM, feeds.stored_sums(other))
    lied = Checkpoint.signed(a.settings.policy.fingerprint, "a", (wrong,), HashKeys("a"))
    b.handle(Arrived("a", encoded(Base("a", lied.data))))
    assert b.core.exchange.refused == {"base": 1}
    assert "is not what its records add up to" in b.noted("refused")[-1]["reason"]
    b.handle(Arrived("a", encoded(Base("a", a.core.feeds.origins["a"].base.data))))
    assert b.core.exchange.refused == {"base": 1}
    assert b.core.feeds.origins["a"].place == (epoch, 100)
    assert b.sums() == a.sums()  # of all hundred and ten


def based(origin, dim, *, epoch=5, sequence=100, sums=None, settled=None):
    """Sign a checkpoint with sums of contexts of some size."""
    policy, network = linear(), path("abc")
    agent = policy_agent(policy, network, dim)
    number = network.index(origin)
    rng = np.random.default_rng(3)
    made = feeds.extended(
        agent, None, number, rng.normal(size=(100, dim)), rng.normal(size=100),
        range(1, 101), np.empty((100, 0)),
    )  # fmt: skip
    stored = feeds.stored_sums(made) if sums is None else sums
    base = FeedBase(epoch, sequence, bytes(32), dim if settled is None else settled, stored)
    fingerprint = Driven(settings_of("a", network)).settings.policy.fingerprint
    return Checkpoint.signed(fingerprint, origin, (base,), HashKeys(origin))


def policy_agent(policy, network, dim):
    agent = policy.agent("a", network, expire=100)
    feeds.settle_dimension(agent, dim)
    return agent


@pytest.mark.parametrize("together", [True, False])
def test_checkpoints_of_contexts_of_two_sizes_do_not_end_a_newcomer(together):
    """The first that is applied says how many numbers a context has; the other is of no use."""
    node = Driven(settings_of("b", path("abc")))
    node.write()
    node.holding = together
    for origin, dim in (("a", DIM), ("c", DIM + 1)):
        node.handle(Arrived(origin, encoded(Base(origin, based(origin, dim).data))))
    if together:
        node.sync()
    assert node.stopped is None
    assert [origin for origin, _ in node.sums()] == ["a"]
    again = node.again()
    assert again.sums() == node.sums()
    again.write()
    again.play(2)
    assert again.heads()["b", again.core.epoch].sequence == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"sums": b""}, {"sums": b"noise" * 9}, {"sequence": 101}, {"sequence": 0},
        {"settled": DIM + 1}, {"settled": 65535},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("settled", [True, False], ids=["d known", "d not known"])
def test_a_checkpoint_of_sums_that_make_no_sense_never_ends_a_node(changes, settled):
    node = Driven(settings_of("b", path("abc")))
    node.write()
    if settled:
        node.play(2)
    node.handle(Arrived("a", encoded(Base("a", based("a", DIM, **changes).data))))
    node.tick(1.0)
    assert node.stopped is None
    assert not [feed for feed in node.sums() if feed[0] == "a"]
    assert node.again().sums() == node.sums()


def test_an_origin_may_begin_so_many_epochs_and_not_more():
    node = Driven(settings_of("b", path("abc")))
    node.write()
    node.play(1)
    fingerprint = node.settings.policy.fingerprint
    for epoch in range(1, 70):
        feed = Feed(fingerprint, "a", epoch)
        one = Observation(0, 1, np.ones(DIM), 1.0, np.empty(0))
        record = feed.record(feed.beginning, one, HashKeys("a"))
        node.handle(Arrived("a", encoded(Take("a", epoch, 1, [record]))))
    assert len([feed for feed in node.heads() if feed[0] == "a"]) == 64
    assert node.core.exchange.refused == {"take": 5}
    assert "began more than 64 epochs" in node.noted("refused")[0]["reason"]
    agent = policy_agent(linear(), path("abc"), DIM)
    sums = feeds.extended(agent, None, 0, np.ones((1, DIM)), np.ones(1), [1], np.empty((1, 0)))
    many = tuple(
        FeedBase(epoch, 1, bytes(32), DIM, feeds.stored_sums(sums)) for epoch in range(100, 200)
    )
    data = Checkpoint.signed(fingerprint, "a", many, HashKeys("a")).data
    place = node.core.exchange.newest_base("a")
    node.handle(Arrived("a", encoded(Base("a", data))))
    assert node.core.exchange.refused == {"take": 5, "base": 1}
    assert node.core.exchange.newest_base("a") == place
    assert not [one for one in node.entries() if isinstance(one, Based)]
    assert node.again().heads() == node.heads()


def test_offers_of_a_newcomer_name_no_checkpoint_and_no_feed():
    node = Driven(settings_of("b", path("abc")))
    node.handle(Arrived("a", encoded(Have({}, {}, []))))
    assert node.outbox
    for _, data in node.outbox:
        message = decoded(data)
        assert isinstance(message, Have)
        assert (message.heads, message.bases, message.yours) == ({}, {}, [])
