"""What a node shows of itself, and that its log lines are read where logs are read."""

import json

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.fleet.core import views
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.face import Decide, Reward
from coopbandits.lab import read_log
from coopbandits.lab.logs.fit import fit_kernel
from coopbandits.records import Logged
from fleet.driven import Driven, Wires, linear, path, request, settings_of


def fleet(network=None, **changes):
    network = network or path()
    wires = Wires([Driven(settings_of(name, network, **changes)) for name in network.names])
    wires.link_all()
    for _ in range(3):
        wires.pass_time(1.0)
    return wires


def lines_of(node, after=0, most=10**6):
    return [*views.log(node.core, node.store, after, most)]


class TestLog:
    @pytest.fixture
    def played(self, rng):
        rules = RewardRules(rule="last", wait=5.0, default=0.25)
        [node] = fleet(
            cb.Network.from_edges([], names=["a"]), control=0.3, rewards=rules
        ).nodes.values()
        told = {}
        for number in range(30):
            asked = request(rng, exclude=[f"a{number % 4}"])
            reply = node.ask(Decide(asked))
            rewards = [float(k + number) for k in range(number % 3)]
            for value in rewards:
                node.ask(Reward(reply.event_id, value))
            told[reply.event_id] = asked, reply, (rewards or [0.25])[-1]
            node.tick(1.0)
        node.tick(10.0)
        return node, told

    def test_lines_are_records_with_what_was_offered_taken_and_earned(self, played):
        node, told = played
        lines = lines_of(node)
        assert {line["event_id"] for line in lines} == {*told}
        assert len(lines) == 30
        for line in lines:
            asked, reply, reward = told[line["event_id"]]
            read = Logged.from_dict(json.loads(json.dumps(line)))
            allowed = [a for a in asked.actions if a.id not in asked.exclude]
            np.testing.assert_array_equal(read.contexts, [a.context for a in allowed])
            assert allowed[read.action].id == reply.action
            assert (read.reward, read.agent, read.propensity) == (reward, "a", reply.propensity)
            fingerprint = node.settings.policy.fingerprint
            assert read.policy == (fingerprint if reply.group == "learner" else "control")
            assert line["group"] == reply.group

    def test_lines_are_read_by_the_lab_to_the_bit_and_kernels_fitted_to_them(
        self, played, tmp_path
    ):
        node, told = played
        file = tmp_path / "log.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines_of(node)))
        log = read_log(file, network=node.settings.network)
        assert len(log.rewards) == 30
        assert sorted(log.rewards) == sorted(reward for *_, reward in told.values())
        assert np.isfinite(fit_kernel(log, "rbf", most=30).evidence)

    def test_lines_come_from_behind_a_place_and_so_many(self, played):
        node, _ = played
        lines = lines_of(node)
        places = [line["position"] for line in lines]
        assert places == sorted(places)
        for after in (0, places[3], places[-1], node.store.position):
            assert lines_of(node, after) == [line for line in lines if line["position"] > after]
        pages, after = [], 0
        while page := lines_of(node, after, 4):
            pages += page
            after = page[-1]["position"]
        assert pages == lines

    def test_decisions_of_several_starts_have_numbers_of_their_own(self, played, tmp_path, rng):
        node, _ = played
        node = node.again()
        for _ in range(5):
            node.ask(Reward(node.ask(Decide(request(rng))).event_id, 1.0))
        node.tick(10.0)
        rounds = [line["round"] for line in lines_of(node)]
        assert sorted(rounds) == [*range(1, 36)]

    def test_events_without_a_reward_are_left_out(self, rng):
        [node] = fleet(
            cb.Network.from_edges([], names=["a"]), rewards=RewardRules(wait=2.0)
        ).nodes.values()
        node.ask(Decide(request(rng)))
        node.tick(5.0)
        assert lines_of(node) == []


class TestStatus:
    def test_counts_what_happened(self, rng):
        node = fleet(path("ab"), control=0.5).nodes["a"]
        for number in range(20):
            event = node.ask(Decide(request(rng))).event_id
            if number < 15:
                node.ask(Reward(event, 2.0))
        shown = views.status(
            node.core, ready=True, version="v", started_at=1.0, disk=7, now=node.now
        )
        assert (shown.decisions, shown.open_events) == (20, 5)
        assert shown.rewards.learner.count + shown.rewards.control.count == 15
        assert shown.own_records == shown.rewards.learner.count == shown.observations
        assert (shown.position, shown.synced) == (node.store.position,) * 2
        assert (shown.fleet, shown.node, shown.mode, shown.disk_bytes) == (
            "driven",
            "a",
            "online",
            7,
        )
        assert shown.control_share == 0.5
        assert (shown.refused, shown.quarantined, shown.agreement) == ({}, [], None)

    def test_the_difference_is_that_of_learner_and_control_group_whatever_the_mode_was(self, rng):
        network = cb.Network.from_edges([], names=["a"])
        [node] = fleet(network, mode="off").nodes.values()

        def earn(value, count):
            for _ in range(count):
                node.ask(Reward(node.ask(Decide(request(rng))).event_id, value))

        earn(-100.0, 5)
        node = node.again(mode="online", control=0.5)
        earn(1.0, 20)
        node = node.again(mode="apprentice")
        earn(-50.0, 5)
        for core in (node.core, node.again(states=False).core):
            rewards = core.counts.rewards
            assert rewards.baseline.count == 10
            assert rewards.baseline.mean == pytest.approx(-75.0)
            assert rewards.learner.count + rewards.control.count == 20
            assert (rewards.learner.mean, rewards.control.mean) == (1.0, 1.0)
            assert (rewards.difference, rewards.half_width) == (0.0, 0.0)


class TestPeers:
    def test_distances_links_and_records_are_shown(self):
        wires = fleet()
        for node in wires.nodes.values():
            node.play(2)
        for _ in range(3):
            wires.pass_time(1.0)
        wires.link("b", "c", up=False)
        shown = views.peers(wires.nodes["b"].core)
        found = {
            p.name: (p.distance, p.neighbour, p.linked, p.records, p.heard) for p in shown.peers
        }
        assert found == {
            "a": (1, True, True, 2, True),
            "b": (0, False, None, 2, True),
            "c": (1, True, False, 2, True),
            "d": (2, False, None, 2, True),
            "e": (3, False, None, 0, False),
        }
        assert shown.edges == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
        assert (shown.node, shown.ttl) == ("b", 2)
        assert {p.name for p in shown.peers if p.worth} == {*"abcd"}

    def test_how_far_a_neighbour_is_behind_is_known_once_it_has_said_so(self):
        wires = fleet(path("ab"))
        a = wires.nodes["a"]
        a.play(3)
        assert [p.behind for p in views.peers(a.core).peers] == [None, 3]
        wires.pass_time(11.0)
        wires.pass_time(11.0)
        assert [p.behind for p in views.peers(a.core).peers] == [None, 0]

    def test_a_site_without_a_way_has_no_distance(self):
        network = cb.Network.from_edges([("a", "b")], names=[*"abc"])
        shown = views.peers(Driven(settings_of("a", network)).core)
        assert [p.distance for p in shown.peers] == [0, 1, None]


def test_similarity_is_the_row_of_k_z_by_name():
    shared = cb.similarity.Clusters([0, 0, 1, 0, 1])
    node = Driven(settings_of("b", path(), policy=linear(similarity=shared)))
    shown = views.similarity(node.core)
    assert shown.worth == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.0}
    assert (shown.node, shown.estimated) == ("b", False)
    estimated = linear(similarity=cb.similarity.Evidence(chains=2))
    assert views.similarity(Driven(settings_of("b", path(), policy=estimated)).core).estimated
