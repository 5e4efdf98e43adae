"""One decision: who serves it, what is chosen, and that a log says it as it was."""

import numpy as np
import pytest
from scipy import stats

import coopbandits as cb
from coopbandits.fleet.api import Action, DecideManyRequest, DecideRequest
from coopbandits.fleet.core.deciding import (
    Offer,
    chosen_again,
    contexts_of,
    digest,
    in_control,
    reply_of,
)
from coopbandits.fleet.core.entries import Decided
from coopbandits.fleet.face import Decide, DecideMany, RefusedError, Reward
from coopbandits.fleet.ports import DamageError
from fleet.driven import DIM, Driven, linear, path, request, settings_of


def node(policy=None, **changes):
    alone = cb.Network.from_edges([("a", "b")], names=["a", "b"])
    made = Driven(settings_of("a", alone, policy=policy or linear(), **changes))
    made.write()
    return made


def contexts(one):
    return np.array([action.context for action in one.actions])


CLOCKS = {
    "stands still": lambda rng, now: now,
    "goes back": lambda rng, now: now - 5.0,
    "jumps": lambda rng, now: now + rng.normal(scale=1e4),
    "goes on": lambda rng, now: now + 0.1,
}


def test_decisions_are_the_same_whatever_the_clock_shows():
    """Alone, without ticks: nothing but requests and the log."""
    made = {}
    for name, clock in CLOCKS.items():
        one, rng, jumps = node(), np.random.default_rng(5), np.random.default_rng(6)
        replies = []
        for number in range(30):
            one.now = clock(jumps, one.now)
            replies.append(one.ask(Decide(request(rng, event_id=f"e{number}"))))
            one.ask(Reward(f"e{number}", float(rng.normal())))
        made[name] = [(reply.action, reply.scores, reply.propensity) for reply in replies]
        assert one.core.agent.known == 30
    assert all(found == made["goes on"] for found in made.values())
    assert len({action for action, *_ in made["goes on"]}) > 1


class TestControlGroup:
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
    def test_is_as_large_a_share_as_was_asked_for(self, share):
        settings = settings_of("a", path(), control=share)
        count = sum(in_control(settings, f"event-{k}") for k in range(20_000))
        low, high = stats.binom.interval(1 - 1e-6, 20_000, share)
        assert low <= count <= high

    def test_depends_on_fleet_node_and_id_alone(self):
        names = [f"event-{k}" for k in range(200)]
        drawn = {}
        for site, fleet, seed in (("a", "f", 0), ("a", "f", 9), ("b", "f", 0), ("a", "g", 0)):
            settings = settings_of(site, path(), control=0.5, fleet=fleet, seed=seed)
            drawn[site, fleet, seed] = [in_control(settings, name) for name in names]
        assert drawn["a", "f", 0] == drawn["a", "f", 9]
        assert drawn["a", "f", 0] != drawn["b", "f", 0]
        assert drawn["a", "f", 0] != drawn["a", "g", 0]
        # whoever is in a small control group is in a larger one
        few = [in_control(settings_of("a", path(), control=0.1, fleet="f"), n) for n in names]
        assert all(large or not small for small, large in zip(few, drawn["a", "f", 0], strict=True))

    def test_is_empty_if_none_was_asked_for(self):
        assert not any(in_control(settings_of("a", path()), f"e{k}") for k in range(1000))

    def test_gets_the_first_action_and_nobody_learns_from_it(self, rng):
        one = node(control=0.5)
        groups = []
        for number in range(40):
            asked = request(rng, event_id=f"e{number}", exclude=["a0"])
            reply = one.ask(Decide(asked))
            groups.append(reply.group)
            assert reply.group == (
                "control" if in_control(one.settings, reply.event_id) else "learner"
            )
            if reply.group == "control":
                assert (reply.action, reply.propensity, reply.scores) == ("a1", 1.0, [])
                assert reply.ranking == ["a1", "a2", "a3"]
            one.ask(Reward(reply.event_id, 1.0))
            event = one.core.events.find(reply.event_id)
            assert (event.closed, event.recorded) == (True, reply.group == "learner")
        assert {*groups} == {"learner", "control"}
        [head] = one.heads().values()
        assert head.sequence == groups.count("learner") == one.core.counts.learner.count
        assert groups.count("control") == one.core.counts.control.count


class TestModes:
    def test_online_takes_what_an_agent_of_the_same_seed_takes(self, rng):
        for policy in (linear(), linear().exploring(0.3), cb.LinTS()):
            one = node(policy)
            network = one.settings.network
            agent = one.settings.policy.agent("a", network, seed=0)
            for _ in range(12):
                asked = request(rng)
                reply = one.ask(Decide(asked))
                believed = agent.predict(contexts(asked), learn=False)
                decision = agent.decide(contexts(asked), learn=False)
                assert reply.action == f"a{decision.index}"
                assert reply.propensity == decision.propensity
                assert reply.ranking[0] == reply.action
                if reply.scores:
                    found = [[s.mean, s.std, s.upper] for s in reply.scores]
                    expected = np.stack([believed.mean, believed.std, believed.upper], axis=1)
                    np.testing.assert_allclose(found, expected, rtol=1e-12)
                    upper = {s.id: s.upper for s in reply.scores}
                    rest = [upper[name] for name in reply.ranking[1:]]
                    assert rest == sorted(rest, reverse=True)
                one.ask(Reward(reply.event_id, float(reply.action[1:])))
                agent.reward(decision, float(reply.action[1:]))

    def test_off_takes_the_first_action_that_is_allowed_and_learns_nothing(self, rng):
        one = node(mode="off", control=0.5)
        for _ in range(5):
            reply = one.ask(Decide(request(rng, exclude=["a0", "a1"])))
            assert (reply.action, reply.group, reply.mode) == ("a2", "baseline", "off")
            assert (reply.propensity, reply.scores) == (1.0, [])
            one.ask(Reward(reply.event_id, 1.0))
        assert one.heads() == {}
        assert one.core.agent.known == 0
        one.tick(1e10)
        assert not one.core.learning.busy

    @pytest.mark.parametrize("policy", [linear(), cb.LinTS()], ids=["ucb", "ts"])
    def test_an_apprentice_watches_and_says_how_often_it_would_have_done_the_same(
        self, policy, rng
    ):
        one = node(policy, mode="apprentice")
        twin = one.settings.policy.agent("a", one.settings.network, seed=0)
        agreed = 0
        for number in range(20):
            asked = request(rng, taken=f"a{number % 4}" if number % 2 else None)
            reply = one.ask(Decide(asked))
            index = number % 4 if number % 2 else 0
            best = int(twin.rank(contexts(asked), 1, learn=False)[0])
            agreed += best == index
            decision = twin.took(contexts(asked), index)
            assert (reply.action, reply.group) == (f"a{index}", "baseline")
            assert reply.propensity is None
            one.ask(Reward(reply.event_id, float(index)))
            twin.reward(decision, float(index))
        assert one.core.counts.agreement == agreed / 20
        [head] = one.heads().values()
        assert head.sequence == 20  # and it learns from what was taken

    def test_excluded_actions_are_never_taken_and_what_is_chosen_is_the_best_of_the_others(
        self, rng
    ):
        one = node()
        agent = one.settings.policy.agent("a", one.settings.network, seed=0)
        for number in range(10):
            asked = request(rng, exclude=[f"a{number % 4}"])
            reply = one.ask(Decide(asked))
            allowed = [k for k in range(4) if k != number % 4]
            decision = agent.decide(contexts(asked)[allowed], learn=False)
            assert reply.action == f"a{allowed[decision.index]}"
            assert sorted(reply.ranking) == [f"a{k}" for k in allowed]


@pytest.mark.parametrize(
    ("changes", "mode", "message"),
    [
        ({"actions": ["a", "b", "a"]}, "online", "the action id 'a' stands twice"),
        ({"sizes": [2, 3]}, "online", "contexts have 2 and 3 numbers"),
        ({"exclude": ["c"]}, "online", "exclude names 'c', which is no action here"),
        ({"exclude": ["a", "b"]}, "online", "all actions are excluded"),
        ({"taken": "a"}, "online", 'does not take; start it with mode = "apprentice"'),
        ({"taken": "a"}, "off", 'which a node in mode "off" does not take'),
        ({"taken": "c"}, "apprentice", "taken names 'c', which is no action that is allowed"),
        ({"taken": "a", "exclude": ["a"]}, "apprentice", "taken names 'a'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(changes, mode, message, rng):
    names = changes.pop("actions", ["a", "b"])
    sizes = changes.pop("sizes", [DIM] * len(names))
    offered = [Action(n, rng.normal(size=d).tolist()) for n, d in zip(names, sizes, strict=True)]
    asked = DecideRequest(offered, **changes)
    with pytest.raises(RefusedError, match=message) as caught:
        Offer.of(asked, mode)
    assert caught.value.kind == "invalid"
    one = node(mode=mode)
    before, position = one.core.agent.to_bytes(), one.store.position
    many = DecideManyRequest([request(rng), asked])
    for call in (Decide(asked), DecideMany(many)):
        with pytest.raises(RefusedError, match=message):
            one.ask(call)
    assert (one.core.agent.to_bytes(), one.store.position) == (before, position)


class TestIds:
    def test_the_same_id_with_the_same_body_gets_the_same_answer(self, rng):
        one = node(control=0.3)
        asked = [request(rng, event_id=f"e{k}") for k in range(6)]
        replies = [one.ask(Decide(each)) for each in asked]
        position = one.store.position
        assert [one.ask(Decide(each)) for each in asked] == replies
        assert one.ask(DecideMany(DecideManyRequest(asked))).decisions == replies
        assert one.store.position == position
        again = one.again()
        assert [again.ask(Decide(each)) for each in asked] == replies
        new = request(rng, event_id="new")
        mixed = again.ask(DecideMany(DecideManyRequest([asked[0], new, asked[3]]))).decisions
        assert [mixed[0], mixed[2]] == [replies[0], replies[3]]
        assert again.ask(Decide(new)) == mixed[1]

    def test_the_same_id_with_another_body_is_refused(self, rng):
        one = node()
        asked = request(rng, event_id="e")
        one.ask(Decide(asked))
        for other in (request(rng, event_id="e"), request(rng, event_id="e", deferred=True)):
            with pytest.raises(RefusedError, match="e was decided already") as caught:
                one.ask(Decide(other))
            assert caught.value.kind == "event-differs"

    def test_an_id_stands_once_in_a_request(self, rng):
        many = [request(rng, event_id="e"), request(rng, event_id="e")]
        with pytest.raises(RefusedError, match="the event id e stands twice in one request"):
            node().ask(DecideMany(DecideManyRequest(many)))

    def test_a_digest_tells_bodies_apart_and_not_ids(self, rng):
        one = request(rng)
        with_id = DecideRequest(one.actions, event_id="e")
        assert digest(one) == digest(with_id)
        others = [
            DecideRequest(one.actions[:3]), DecideRequest(one.actions[::-1]),
            DecideRequest(one.actions, exclude=["a0"]), DecideRequest(one.actions, taken="a0"),
            DecideRequest(one.actions, deferred=True),
        ]  # fmt: skip
        assert len({digest(each) for each in (one, *others)}) == 6


class TestTheLog:
    def test_says_what_was_answered(self, rng):
        one = node(control=0.4)
        for _ in range(8):
            asked = request(rng, exclude=["a2"])
            reply = one.ask(Decide(asked))
            entry = one.entry(one.store.position)
            assert isinstance(entry, Decided)
            assert reply_of(entry) == reply
            np.testing.assert_array_equal(contexts_of(entry), contexts(asked))

    def test_is_right_where_another_build_would_choose_otherwise(self, rng):
        agent = linear().agent("a", path(), expire=100)
        other = linear().agent("a", path(), expire=100)
        one = node()
        asked = request(rng)
        one.ask(Decide(asked))
        entry = one.entry(one.store.position)
        wrong = type(entry)(**{
            **{name: getattr(entry, name) for name in entry.__struct_fields__},
            "index": (entry.index + 1) % 4,
        })  # fmt: skip
        chosen_again(agent, entry)
        chosen_again(other, wrong)
        assert agent.awaiting == other.awaiting == (1,)
        np.testing.assert_array_equal(other._open[1][0], contexts(asked)[wrong.index])
        with pytest.raises(
            DamageError, match="was decision 1 of the agent; replaying it makes it 2"
        ):
            chosen_again(agent, entry)
