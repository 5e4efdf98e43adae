"""Events: whatever is told of them in whatever order, a model of a few lines says the same."""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coopbandits.fleet.core.entries import Activated, Decided, Rewarded
from coopbandits.fleet.core.events import Events
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.face import Decide, RefusedError, Reward
from fleet.driven import Driven, path, request, settings_of

TTL, MOST = 50.0, 10


def decision(event, at, deferred=False):
    return Decided(
        seen=0, at=at, event=event, digest=b"d", number=1, round=1, ids=["a", "b"], contexts=b"",
        allowed=[0, 1], index=1, order=[1, 0], scores=b"", propensity=0.5, group="learner",
        mode="online", version="v", deferred=deferred,
    )  # fmt: skip


def passed(events, now):
    """Let time pass as the core does."""
    events.due(now)
    events.expire(now)
    for name in [*events.ready]:
        events.closed(name, events.outcome(events.known[name]), recorded=False)
    events.forget(now)


@dataclass
class Told:
    """All that was told of an event."""

    id: str
    at: float
    began: float | None  # from when its waiting time runs; None while it is deferred
    rewards: list = field(default_factory=list)
    keys: list = field(default_factory=list)
    closed: bool = False
    reward: float | None = None


class Model:
    """The rules for rewards as the documentation has them: nothing is fast."""

    def __init__(self, rules):
        self.rules, self.known, self.gone = rules, [], []

    def find(self, event_id):
        return next((one for one in self.known if one.id == event_id), None)

    def pass_(self, now):
        rules, over = self.rules, len(self.known) - self.rules.most
        for number, one in enumerate(self.known):
            answered = rules.rule == "first" and one.rewards
            waited = rules.wait and one.began is not None and one.began + rules.wait <= now
            old = one.at + rules.ttl <= now or number < over
            if not one.closed and (answered or waited or old):
                one.closed, one.reward = True, self.value(one)
        while self.known and self.known[0].closed and (
            self.known[0].at + rules.ttl <= now or len(self.known) > rules.most
        ):  # fmt: skip
            self.gone = [*self.gone, self.known.pop(0).id][-rules.most :]

    def value(self, one):
        if not one.rewards:
            return None if one.began is None else self.rules.default
        return {"first": one.rewards[0], "last": one.rewards[-1], "sum": sum(one.rewards)}[
            self.rules.rule
        ]


@st.composite
def any_rules(draw):
    kind = draw(st.sampled_from(["first", "last", "sum"]))
    wait = draw(st.sampled_from([5.0, 20.0, TTL] + [None] * (kind == "first")))
    default = draw(st.sampled_from([None, 0.25])) if wait else None
    return RewardRules(rule=kind, wait=wait, default=default, ttl=TTL, most=MOST)


backs = st.integers(0, 14)  # an event is named by how many were decided since


class EventsAgainstModel(RuleBasedStateMachine):
    @initialize(rules=any_rules())
    def begin(self, rules):
        self.events, self.model, self.now, self.place = Events(rules), Model(rules), 0.0, 0

    def both_pass(self):
        passed(self.events, self.now)
        self.model.pass_(self.now)

    def refused(self, event_id, call):
        """Tell whether both refuse to know an event."""
        if self.model.find(event_id) is not None:
            return False
        kind = "event-expired" if event_id in self.model.gone else "unknown-event"
        with pytest.raises(RefusedError, match=event_id) as caught:
            call()
        assert caught.value.kind == kind
        return True

    @rule(step=st.sampled_from([0.0, 0.5, 1.0, 4.5, 5.0, 20.0, 49.0, 60.0]))
    def wait(self, step):
        self.now += step
        self.both_pass()

    def name(self, back):
        return f"e{max(0, self.place - back)}"

    @rule(deferred=st.booleans())
    def decide(self, deferred):
        self.place += 1
        self.events.decided(decision(self.name(0), self.now, deferred), self.place)
        self.model.known.append(Told(self.name(0), self.now, None if deferred else self.now))
        self.both_pass()

    @rule(back=backs, value=st.integers(-3, 3), key=st.sampled_from([None, "k1", "k2"]))
    def reward(self, back, value, key):
        name = self.name(back)
        if self.refused(name, lambda: self.events.check_reward(name, key)):
            return
        one = self.model.find(name)
        if key is not None and key in one.keys:
            assert not self.events.check_reward(name, key)
        elif one.closed:
            with pytest.raises(RefusedError, match="is closed") as caught:
                self.events.check_reward(name, key)
            assert caught.value.kind == "event-closed"
        else:
            assert self.events.check_reward(name, key)
            self.events.rewarded(Rewarded(self.now, name, float(value), key))
            one.rewards.append(float(value))
            one.keys += [key] if key else []
            one.began = self.now if one.began is None else one.began
            self.both_pass()

    @rule(back=backs)
    def activate(self, back):
        name = self.name(back)
        if self.refused(name, lambda: self.events.find(name)):
            return
        one = self.model.find(name)
        if self.events.find(name).deferred and not one.closed:
            self.events.activated(Activated(self.now, name))
            one.began = self.now
            self.both_pass()

    @rule()
    @precondition(lambda self: self.place)
    def restart(self):
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(self.events.stored()))
        self.events = Events.restored(self.events.rules, stored)

    @invariant()
    def agree(self):
        if not hasattr(self, "model"):
            return
        rules = self.model.rules
        assert [*self.events.known] == [one.id for one in self.model.known]
        assert len(self.events.known) <= MOST
        assert self.events.open == sum(not one.closed for one in self.model.known)
        assert not self.events.ready
        for one in self.model.known:
            shown = self.events.reply(self.events.find(one.id))
            state = "closed" if one.closed else "deferred" if one.began is None else "open"
            assert (shown.state, shown.reward) == (state, one.reward)
            assert (shown.values, shown.decided_at) == (len(one.rewards), one.at)
            until = one.at + rules.ttl
            if rules.wait is not None and one.began is not None:
                until = min(until, one.began + rules.wait)
            assert shown.closes_at == (None if one.closed else until)


EventsAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestEventsAgainstModel = EventsAgainstModel.TestCase


def refused(kind):
    return pytest.raises(RefusedError, match=kind)


@pytest.mark.parametrize(("kind", "counts"), [("first", 1.0), ("last", 3.0), ("sum", 6.0)])
def test_of_three_rewards_the_rule_says_what_counts(kind, counts):
    events = Events(RewardRules(rule=kind, wait=5.0))
    events.decided(decision("e", 0.0), 1)
    for at, value in ((1.0, 1.0), (2.0, 2.0), (3.0, 3.0)):
        if kind != "first" or at == 1.0:
            assert events.check_reward("e", None)
            events.rewarded(Rewarded(at, "e", value))
        else:
            with refused("is closed: its rewards were counted"):
                events.check_reward("e", None)
        passed(events, at)
    passed(events, 5.0)
    assert (events.known["e"].closed, events.known["e"].reward) == (True, counts)


def test_a_deferred_event_waits_for_its_activation_and_its_time_runs_from_then():
    events = Events(RewardRules(wait=5.0, default=0.25, ttl=50.0))
    for name in ("activated", "rewarded", "forgotten"):
        events.decided(decision(name, 0.0, deferred=True), 1)
    passed(events, 7.0)
    assert events.open == 3
    events.activated(Activated(7.0, "activated"))
    events.rewarded(Rewarded(7.0, "rewarded", 1.0))
    passed(events, 11.9)
    assert [one.closed for one in events.known.values()] == [False, True, False]
    passed(events, 12.0)
    assert [one.reward for one in events.known.values()] == [0.25, 1.0, None]
    assert events.open == 1
    events.expire(50.0)
    assert [*events.ready] == ["forgotten"]
    assert events.outcome(events.known["forgotten"]) is None


def test_a_key_is_counted_once_also_after_the_event_closed():
    events = Events(RewardRules())
    events.decided(decision("e", 0.0), 1)
    assert events.check_reward("e", "k")
    events.rewarded(Rewarded(1.0, "e", 2.0, "k"))
    passed(events, 1.0)
    assert not events.check_reward("e", "k")
    with refused("counted as 2; a reward that came twice .* Idempotency-Key"):
        events.check_reward("e", "another")


def test_of_the_keys_of_an_event_the_last_sixteen_are_known():
    events = Events(RewardRules(rule="sum", wait=5.0))
    events.decided(decision("e", 0.0), 1)
    for number in range(20):
        events.rewarded(Rewarded(1.0, "e", 1.0, f"k{number}"))
    known = [events.check_reward("e", f"k{number}") for number in range(20)]
    assert known == [True] * 4 + [False] * 16


def test_rewards_of_an_event_that_closed_without_any_are_refused_with_the_reason():
    events = Events(RewardRules(wait=5.0))
    events.decided(decision("e", 0.0), 1)
    passed(events, 5.0)
    with refused("its rewards were counted, there was none in time"):
        events.check_reward("e", None)


def test_what_waits_for_its_time_is_bounded_by_what_is_known_not_by_what_was_decided():
    events = Events(RewardRules(wait=900.0, default=0.25, ttl=1000.0, most=10))
    for number in range(2_000):
        events.decided(decision(f"e{number}", float(number % 7)), number)
        passed(events, 7.0)
    assert len(events.known) == 10
    assert len(events._due) < 200
    passed(events, 900.0)
    closed = [one.id for one in events.known.values() if one.closed]
    assert closed == [one.id for one in events.known.values() if one.at == 0.0]
    assert closed


def test_of_ids_of_events_that_are_gone_as_many_are_known_as_of_events():
    events = Events(RewardRules(ttl=1.0, most=10))
    for number in range(25):
        events.decided(decision(f"e{number}", float(number)), number)
        passed(events, float(number))
    passed(events, 99.0)
    kinds = []
    for number in range(25):
        with pytest.raises(RefusedError, match=f"e{number}") as caught:
            events.find(f"e{number}")
        kinds.append(caught.value.kind)
    assert kinds == ["unknown-event"] * 15 + ["event-expired"] * 10


def test_an_id_is_known_then_gone_then_new(rng):
    """As users see it: the same answer, then 410, and a new decision once `most` more expired."""
    rules = RewardRules(ttl=TTL, most=MOST)
    node = Driven(settings_of("a", path("ab"), rewards=rules))
    node.write()
    asked, other = (request(rng, event_id="one") for _ in range(2))
    first = node.ask(Decide(asked))
    node.ask(Reward("one", 1.0))
    node.tick(TTL / 2)
    assert node.ask(Decide(asked)) == first
    with pytest.raises(RefusedError) as refused:
        node.ask(Decide(other))
    assert refused.value.kind == "event-differs"
    node.tick(TTL)
    for ask in (Decide(asked), Decide(other), Reward("one", 1.0)):
        with pytest.raises(RefusedError) as refused:
            node.ask(ask)
        assert refused.value.kind == "event-expired"
    for _ in range(MOST):
        node.decide(rng)
    node.tick(2 * TTL)
    assert node.ask(Decide(other)).event_id == "one"
    assert node.core.counts.decisions == MOST + 2
