"""Who uses a node: decides, rewards, asks again after lost answers, and remembers the answers.

What users were told is the model that the node is held against; nothing here reads its state but
the time that it has reached.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

import msgspec

from coopbandits.fleet.api import Action, DecideManyRequest, DecideRequest
from coopbandits.fleet.face import Activate, Decide, DecideMany, Reward
from fleet.simulation.ledger import Violation
from fleet.simulation.plan import DIM

# Sums of such values are exact, in whatever order they are added.
VALUES = (-1.0, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0)


@dataclass(eq=False)
class Told:
    """One reward that was told: "counted" if that was answered, else "maybe" or "not"."""

    key: str | None
    value: float
    state: str = "not"


@dataclass(eq=False)
class Story:
    """One event as its user knows it.

    Attributes:
        id: The event's.
        request: What was asked.
        reply: What was answered; None if no answer has come yet.
        told: Rewards, in the order in which they were first told.
        at: The node's time when it was asked first.
        busy: Whether an answer is awaited.
        waits: Whether it is deferred, as far as the user knows.
        lost: Whether an older log has replaced the one in which it stood.
        before: What may have counted for it by the time at which an older log replaced the node's.
        over: Whether it is known to take nothing more.
    """

    id: str | None
    request: DecideRequest
    reply: object = None
    told: list[Told] = field(default_factory=list)
    at: float = 0.0
    busy: bool = False
    waits: bool = False
    lost: bool = False
    before: set = field(default_factory=set)
    over: bool = False

    def outcomes(self, rules):
        """Return all values that may count for it by the rules; None for nothing."""
        sure = [one.state == "counted" for one in self.told]
        maybe = [i for i, one in enumerate(self.told) if one.state == "maybe"]
        found = set()
        for size in range(len(maybe) + 1):
            for chosen in combinations(maybe, size):
                values = [one.value for i, one in enumerate(self.told) if sure[i] or i in chosen]
                if not values:
                    found |= {None, rules.default}
                elif rules.rule == "first":
                    found.add(values[0])
                else:
                    found.add(values[-1] if rules.rule == "last" else sum(values))
        return found

    @property
    def rewarded(self):
        """Whether a reward counts for sure."""
        return any(one.state == "counted" for one in self.told)


class Users:
    """The users of one node."""

    def __init__(self, world, host):
        self._world, self._host, self._rules = world, host, host.settings.rewards
        self._rng = Random(f"users {host.name} {world.plan.seed}")
        self.stories: list[Story] = []
        self._by_id: dict[str, Story] = {}
        self._named = 0
        self.unnamed = 0  # decisions without an id, of which no answer has come
        self.calm = False

    def seed_apart(self):
        """Be other users than those of the node of this name."""
        self._rng = Random(f"users of a copy {self._world.plan.seed}")
        self._named = 10_000

    # What they do.

    def work(self):
        """Do one thing, and another some time later."""
        if self.calm:
            return
        self._world.after(self._rng.expovariate(1 / self._world.plan.asking), self.work)
        waiting = [one for one in self.stories[-12:] if not (one.busy or one.lost or one.over)]
        lacking = [one for one in waiting if one.reply is None and one.id is not None]
        known = [one for one in waiting if one.reply is not None]
        draw = self._rng.random()
        if lacking and draw < 0.5:
            self._decide([lacking[0]], many=False)
        elif known and draw < 0.6:
            self._reward(self._rng.choice(known))
        elif known and draw < 0.65:
            self._again(self._rng.choice(known))
        else:
            count = self._rng.choice([1, 1, 1, 2, 4])
            stories = [self._new() for _ in range(count)]
            if count > 1 and known and self._rng.random() < 0.3 and known[0].id is not None:
                stories.append(known[0])
            self._decide(stories, many=len(stories) > 1)

    def burst(self, left):
        """Ask for many decisions, and reward them all."""
        if self.calm or left <= 0:
            return
        self._world.after(0.5, self.burst, left - 20)
        stories = [self._new() for _ in range(20)]
        for one in stories:
            one.id = one.id or self._name()
            one.request = msgspec.structs.replace(one.request, event_id=one.id)
        self._decide(stories, many=True)
        for one in stories:
            self._world.after(self._rng.uniform(1.0, 3.0), self._reward_once, one)

    def _reward_once(self, story):
        if story.reply is not None and not (story.busy or story.lost or story.told or story.over):
            self._reward(story)

    def _name(self):
        self._named += 1
        return f"order-{self._named}"

    def _new(self):
        rng = self._rng
        actions = [
            Action(f"a{i}", [round(rng.uniform(-1, 1), 3) for _ in range(DIM)])
            for i in range(rng.choice([1, 2, 3]))
        ]
        exclude = ["a2"] if len(actions) == 3 and rng.random() < 0.2 else []
        taken = None
        if self._host.settings.mode == "apprentice" and rng.random() < 0.8:
            taken = rng.choice([one.id for one in actions if one.id not in exclude])
        name = self._name() if rng.random() < 0.7 else None
        deferred = rng.random() < 0.15
        request = DecideRequest(actions, name, exclude, taken, deferred)
        return Story(name, request, waits=deferred)

    def _decide(self, stories, *, many):
        requests = [one.request for one in stories]
        for one in stories:
            one.busy = True
            if one not in self.stories:
                self.stories.append(one)
                one.at = self._host.now if self._host.core is None else self._host.core.now
        asked = DecideMany(DecideManyRequest(requests)) if many else Decide(requests[0])
        self._host.ask(asked, lambda kind, reply: self._decided(stories, kind, reply))

    def _decided(self, stories, kind, reply):
        kind = _meant(kind, reply)
        for one in stories:
            one.busy = False
        if kind == "answered":
            replies = reply if isinstance(reply, list) else getattr(reply, "decisions", [reply])
            for one, got in zip(stories, replies, strict=True):
                self._answered(one, got)
            return
        refused = reply.kind if kind == "refused" else None
        if refused == "event-expired" and any(self._may_be_gone(one) for one in stories):
            for one in stories:
                one.over = one.over or self._may_be_gone(one)
        elif refused not in (None, "disk-full"):
            raise Violation(f"{self._host.name}: refused a decision: {refused}: {reply}")
        for one in stories:
            if one.id is None:  # it cannot be asked for again
                one.over = True
                self.unnamed += kind == "lost"

    def _answered(self, story, got):
        if story.reply is not None:
            self._world.count("same answer")
            if got != story.reply and not self._may_be_gone(story):
                raise Violation(f"{self._host.name}: {story.id} was answered in two ways")
            return
        other = self._by_id.get(got.event_id)
        if other not in (None, story) and not other.lost:
            raise Violation(f"{self._host.name}: two decisions are called {got.event_id}")
        story.id, story.reply = got.event_id, got
        story.request = msgspec.structs.replace(story.request, event_id=got.event_id)
        self._by_id[story.id] = story
        self._world.count("decided")

    def _again(self, story):
        """Ask for the same again, or for something else of the same id."""
        draw = self._rng.random()
        if draw < 0.5:
            self._decide([story], many=False)
            return
        sized = any(one.reply and one.reply.group == "learner" for one in self.stories)  # type: ignore[attr-defined]
        if draw < 0.75 and sized:  # contexts of another size
            actions, want = [Action("a0", [0.5] * (DIM + 1))], "invalid"
            request = DecideRequest(actions, self._name())
        else:
            actions, want = [Action("other", [0.0] * DIM)], "event-differs"
            request = msgspec.structs.replace(
                story.request, actions=actions, exclude=[], taken=None
            )
        may_be_gone = want == "event-differs" and self._may_be_gone

        def heard(kind, reply):
            if may_be_gone and may_be_gone(story):
                story.over = True
            elif kind == "answered" or (
                kind == "refused" and reply.kind not in (want, "disk-full", "stopping")
            ):
                raise Violation(f"{self._host.name}: expected {want}, got {kind}: {reply}")
            else:
                self._world.count(f"refused {want}")

        self._host.ask(Decide(request), heard)

    def _reward(self, story):
        rng = self._rng
        if story.waits and rng.random() < 0.6:
            story.busy = True
            self._host.ask(
                Activate(story.id), lambda kind, reply: self._activated(story, kind, reply)
            )
            return
        unsure = [one for one in story.told if one.state == "maybe"]
        keyed = [one for one in story.told if one.state == "counted" and one.key is not None]
        if keyed and rng.random() < 0.25:
            one = rng.choice(keyed)  # once more, as if no answer had come
        elif unsure:
            if rng.random() < 0.2:
                story.over = True  # its user gives up
                return
            one = unsure[0]
        else:
            keyed = self._rules.rule == "sum" or rng.random() < 0.5
            name = f"key-{len(story.told)}" if keyed else None
            one = Told(name, rng.choice(VALUES))
            story.told.append(one)
        story.busy = True
        self._host.ask(
            Reward(story.id, one.value, one.key),
            lambda kind, reply: self._rewarded(story, one, kind, reply),
        )

    def _rewarded(self, story, one, kind, reply):
        kind = _meant(kind, reply)
        story.busy = False
        if kind == "answered":
            story.waits = False
            if one.state != "counted":
                one.state = "counted"
                self._world.count("rewarded")
        elif kind == "lost":
            one.state = "maybe" if one.state == "not" else one.state
        elif kind == "refused" and reply.kind == "event-closed":
            story.over = True
            if one.state == "counted" and one.key is not None:
                raise Violation(f"{self._host.name}: {story.id} forgot the key {one.key}")
            self._check_may_be_closed(story)
        elif kind == "refused" and reply.kind in ("event-expired", "unknown-event"):
            story.over = True
            if not self._may_be_gone(story):
                raise Violation(f"{self._host.name}: {story.id} is gone before its time: {reply}")

    def _check_may_be_closed(self, story):
        """An event of rule "first" closes at no other time than its wait, or when it expires."""
        none = all(one.state == "not" for one in story.told)
        if none and self._rules.wait is None and not (self._may_be_gone(story) or story.lost):
            raise Violation(f"{self._host.name}: {story.id} took no reward and is closed")

    def _activated(self, story, kind, reply):
        story.busy = False
        if kind == "answered":
            story.waits = False
        elif kind == "refused" and reply.kind in ("event-expired", "unknown-event"):
            story.over = True
            if not self._may_be_gone(story):
                raise Violation(f"{self._host.name}: {story.id} is gone before its time: {reply}")

    def _may_be_gone(self, story):
        """Whether an event is so old, or there are so many since, that it may be forgotten."""
        rules = self._rules
        since = len(self.stories) - self.stories.index(story)
        old = self._host.core is not None and self._host.core.now >= story.at + rules.ttl
        return story.lost or old or since >= rules.most - 4

    # An older log has taken the place of the node's.

    def went_back(self, ledger):
        """Take note of what stands in the log by now; the rest may be known to neighbours only."""
        for story in self.stories:
            entry = ledger.decided.get(story.id)
            if story.reply is not None and entry is None:
                story.lost = True
            story.before = story.outcomes(self._rules)
            kept, found = deque(ledger.rewarded.get(story.id, ())), None
            for one in story.told:  # in the order of the log, where one may stand twice
                if one.state == "not":
                    continue
                mark = one.key, one.value
                found = mark if found == mark else None  # as good as the same one before it
                while kept and kept[0] == mark:
                    found = kept.popleft()
                if one.state == "counted" and found is None:
                    one.state = "maybe"


def _meant(kind, reply):
    """A node that stops does not know what was kept; one whose disk is full kept nothing."""
    return "lost" if kind == "refused" and reply.kind == "stopping" else kind
