"""A start from a stored state, from the one before, or from the whole log gives the same node."""

import msgspec
import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.fleet.api import DecideManyRequest
from coopbandits.fleet.core.opening import opened
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.core.state import VERSION, stored
from coopbandits.fleet.face import Activate, DecideMany, RefusedError, Reward
from coopbandits.fleet.ports import DamageError, Entry
from coopbandits.fleet.store import MemoryStore
from fleet.driven import DIM, Driven, Wires, linear, path, request, settings_of

ALONE = cb.Network.from_edges([("a", "b")], names=["a", "b"])
NODES = {
    "ucb": {"policy": linear()},
    "ts": {"policy": cb.LinTS()},
    "exploring": {"policy": linear().exploring(0.3)},
    "evidence": {"policy": linear(similarity=cb.similarity.Evidence(chains=2))},
    "embedding": {"policy": linear(similarity=cb.similarity.MeanEmbedding(0.7))},
    "fading": {"policy": linear(forget=cb.forget.Exponential(20.0))},
    "control": {"control": 0.4},
    "off": {"mode": "off"},
    "apprentice": {"mode": "apprentice"},
    "apprentice, ts": {"mode": "apprentice", "policy": cb.LinTS()},
    "sums of rewards": {
        "rewards": RewardRules(rule="sum", wait=3.0, default=0.0, ttl=30.0, most=15)
    },
}


def plain(core):
    """Return the state of a core as plain values, but for the time, which a replay lags behind."""
    state = msgspec.msgpack.decode(stored(core))
    del state["now"]
    return state


def lived(name, rounds=32, **more):
    """A node in a pair that has decided, been rewarded in all ways, and learnt."""
    changes = {"pace": 2.0, "snapshot_every": 25, "have_every": 1.0, **NODES[name], **more}
    wires = Wires([Driven(settings_of(site, path("ab"), **changes)) for site in "ab"])
    wires.link_all()
    wires.settle()
    rng = np.random.default_rng(5)
    events = []
    for number in range(rounds):
        for site in wires.nodes.values():
            deferred = number % 7 == 3
            event = site.decide(rng, deferred=deferred).event_id
            events.append((site, event))
            ask = rng.integers(4)
            try:
                if ask == 0:
                    site.ask(Activate(event))
                elif ask < 3:
                    site.ask(Reward(event, float(rng.normal()), f"k{number}"))
                if number > 4 and number % 5 == 0:
                    late, old = events[-int(rng.integers(3, 8))]
                    late.ask(Reward(old, 1.0))
            except RefusedError:
                pass
        wires.pass_time(1.0)
    a = wires.nodes["a"]
    assert not a.core.learning.busy
    return a


@pytest.mark.parametrize("name", NODES)
def test_a_replay_of_the_whole_log_and_a_stored_state_give_the_same_to_the_bit(name):
    node = lived(name)
    assert len(node.store.snapshots()) == 2
    live = plain(node.core)
    for states in (True, False):
        core = opened(node.settings, node.keys, node.store, states=states)
        assert plain(core) == live
        assert core.agent.to_bytes() == node.core.agent.to_bytes()


@pytest.mark.parametrize("name", ["ucb", "evidence", "ts"])
def test_decisions_taken_before_data_were_durable_are_replayed_without_them(name):
    changes = {"pace": 1.0, **NODES[name]}
    node = Driven(settings_of("a", ALONE, **changes))
    node.write()
    rng = np.random.default_rng(6)
    for _ in range(12):
        events = [node.decide(rng).event_id for _ in range(2)]
        node.tick(1.0)
        node.holding = True
        for event in events:
            node.ask(Reward(event, float(rng.normal())))
        assert node.core.journal.unapplied
        for _ in range(2):
            node.decide(rng)
        node.sync()
        assert not node.core.journal.unapplied
    live = plain(node.core)
    assert plain(opened(node.settings, node.keys, node.store)) == live


@pytest.mark.parametrize("name", ["evidence", "sums of rewards", "ts"])
def test_states_that_cannot_be_read_are_passed_over(name):
    node = lived(name)
    live = plain(node.core)
    (last, newest), (first, former) = node.store.snapshots()
    broken = [newest[:-9], newest[:50], b"", b"\xc1", msgspec.msgpack.encode([1])]
    fields = msgspec.msgpack.decode(newest)
    broken += [msgspec.msgpack.encode({**fields, "version": VERSION + 1})]
    for key in fields.keys() - {"policy"}:
        without = {name: value for name, value in fields.items() if name != key}
        broken.append(msgspec.msgpack.encode(without))
    for key in ("agent", "events", "feeds", "counts", "sites", "edges", "epoch", "adoptions"):
        broken.append(msgspec.msgpack.encode({**fields, key: b"noise"}))
    for damaged in broken:
        node.store.put_snapshot(last, damaged)
        assert plain(opened(node.settings, node.keys, node.store)) == live
    node.store.put_snapshot(first, b"noise")
    assert plain(opened(node.settings, node.keys, node.store)) == live
    assert former != newest


def test_the_log_from_any_place_gives_what_it_gave_then():
    """Cut off behind any entry, a log makes a node that goes on from a prefix of its records."""
    node = lived("evidence", rounds=12)
    entries = [entry for _, entry in node.store.entries()]
    for count in range(len(entries) + 1):
        store = MemoryStore()
        store.append(entries[:count])
        again = Driven(node.settings, store, now=node.now)
        assert again.stopped is None
        for feed, head in again.heads().items():
            assert head.sequence <= node.heads()[feed].sequence
        assert again.decide().action
        again.write()
        assert again.stopped is None


def test_a_log_of_another_policy_is_refused_with_and_without_a_stored_state():
    for name in ("ucb", "control"):
        node = lived(name, rounds=30 if name == "ucb" else 5)
        other = settings_of("a", path("ab"), policy=linear(ttl=1))
        for states in (True, False):
            with pytest.raises(ParameterError, match="was written under another policy"):
                opened(other, node.keys, node.store, states=states)


def test_a_log_without_its_beginning_and_without_a_state_is_refused():
    node = lived("ucb")
    node.store.cut(5, {})
    with pytest.raises(DamageError, match="begins at entry 5, and no stored state"):
        opened(node.settings, node.keys, node.store, states=False)
    node.store.put_snapshot(node.store.position, b"noise")
    node.store.put_snapshot(node.store.position - 1, b"noise")
    with pytest.raises(DamageError, match="begins at entry 5, and no stored state"):
        opened(node.settings, node.keys, node.store)


def test_an_entry_of_a_newer_release_is_refused():
    node = lived("ucb", rounds=3)
    node.store.append([Entry(99, b"\x80")])
    with pytest.raises(DamageError, match=r"is of kind 99; .* it was written by a newer one"):
        opened(node.settings, node.keys, node.store)


def test_an_empty_log_is_a_node_that_knows_nothing():
    core = opened(settings_of("a", ALONE), lived("ucb", rounds=1).keys, MemoryStore())
    assert (core.journal.position, core.epoch, core.counts.decisions) == (0, 0, 0)


def test_event_ids_of_all_starts_differ():
    node, seen = Driven(settings_of("a", ALONE)), set()
    for restored in (False, True, False, True):
        for _ in range(5):
            event = node.decide().event_id
            assert event not in seen
            seen.add(event)
        node = node.again(restored=restored)
    assert node.core.counts.decisions == 20


def test_a_restored_log_begins_an_epoch_that_none_was_before():
    node = Driven(settings_of("a", ALONE))
    epochs = [node.core.epoch]
    for _ in range(3):
        node = node.again(restored=True)
        epochs.append(node.core.epoch)
    assert epochs == sorted(set(epochs))
    assert node.again().core.epoch == epochs[-1]


class TestGrowth:
    def test_a_site_that_joins_is_learnt_from_after_a_restart_and_a_replay_does_the_same(self):
        node = lived("ucb", rounds=20)
        names = [*"abc"]
        grown = cb.Network.from_edges([("a", "b"), ("a", "c")], names=names)
        known = node.core.agent.known
        node = node.again(network=grown)
        assert node.core.agent.known == known
        assert {*node.core.feeds.origins} == {*names}
        assert {*node.core.exchange.neighbours} == {"b", "c"}
        node.write()
        node.play(3)
        live = plain(node.core)
        for states in (True, False):
            assert plain(opened(node.settings, node.keys, node.store, states=states)) == live

    def test_a_site_that_is_missing_or_moved_is_refused(self):
        for names, edges in ((["b", "a"], [("a", "b")]), (["a", "c"], [("a", "c")])):
            network = cb.Network.from_edges(edges, names=names)
            with pytest.raises(NetworkError, match="the fleet's sites were a, b; now"):
                lived("ucb", rounds=3).again(network=network)

    def test_an_edge_that_goes_leaves_what_was_learnt_out_of_it(self):
        node = lived("ucb", rounds=10)
        apart = cb.Network.from_edges([], names=["a", "b"])
        node = node.again(network=apart)
        assert {*node.core.feeds.origins} == {"a"}
        node.play(2)
        live = plain(node.core)
        for states in (True, False):
            assert plain(opened(node.settings, node.keys, node.store, states=states)) == live
        queries = np.random.default_rng(0).normal(size=(3, DIM))
        assert np.isfinite(node.core.agent.predict(queries, learn=False).mean).all()

    def test_a_site_that_went_out_of_reach_and_comes_back_goes_on_where_its_feed_was(self):
        """Its records are in the log already, and a record is kept once."""
        network = path("abc")
        apart = cb.Network.from_edges([("a", "b")], names=[*"abc"])
        wires = Wires([Driven(settings_of(site, network)) for site in "abc"])
        wires.link_all()
        wires.settle()
        for _ in range(3):
            for site in wires.nodes.values():
                site.play(2, seed=site.store.position)
            wires.pass_time(11.0)
        a = wires.nodes["a"]
        before = a.heads()
        assert len(before) == 3
        a = a.again(network=apart)
        assert {*a.heads()} == {feed for feed in before if feed[0] != "c"}
        a.do(a.core.snapshot())
        for states in (True, False):
            back = a.again(network=network, states=states)
            a = back
            assert back.heads() == before
            assert back.core.agent.known == 18
        wires.nodes["a"] = a
        wires.link("a", "b", up=False)
        wires.link("a", "b")
        wires.nodes["c"].play(3)
        for _ in range(3):
            wires.pass_time(11.0)
        assert a.stopped is None
        assert a.heads() == wires.nodes["c"].heads()
        assert a.sums() == wires.nodes["c"].sums()
        live = plain(a.core)
        for states in (True, False):
            assert plain(opened(a.settings, a.keys, a.store, states=states)) == live


RULES = [
    RewardRules(),
    RewardRules(rule="sum", wait=3.0, default=0.0, ttl=30.0, most=15),
    RewardRules(rule="last", wait=1.0, ttl=1.0, most=10),
    RewardRules(wait=20.0, default=1.0, most=10),
]


@pytest.mark.parametrize("then", range(len(RULES)))
@pytest.mark.parametrize("first", range(len(RULES)))
def test_a_node_may_be_started_with_other_rules_and_shares_and_in_another_mode(first, then):
    """What was counted stays counted; what is open closes by the rules of now."""
    node = lived("ucb", rounds=25, rewards=RULES[first], control=0.2)
    for mode, control in (("online", 0.5), ("apprentice", 0.0), ("off", 0.2)):
        for states in (True, False):
            node = node.again(rewards=RULES[then], mode=mode, control=control, states=states)
            assert node.stopped is None
            node.write()
            node.decide()
            node.tick(100.0)
            assert node.core.events.open <= 1 or RULES[then].wait is None
            assert len(node.core.events.known) <= RULES[then].most


def test_a_reward_is_counted_again_though_fewer_decisions_are_remembered_by_now():
    rules = RewardRules(most=2000)
    node = Driven(settings_of("a", ALONE, rewards=rules, snapshot_every=10**6))
    node.write()
    first = node.decide().event_id
    rng = np.random.default_rng(2)
    for _ in range(12):
        node.ask(DecideMany(DecideManyRequest([request(rng, 1) for _ in range(95)])))
    node.ask(Reward(first, 1.0))
    again = node.again(rewards=RewardRules(most=10))
    assert again.heads() == node.heads()
    assert again.core.agent.known == 1
