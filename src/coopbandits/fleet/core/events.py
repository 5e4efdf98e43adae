"""Events: decisions from the moment they are taken until nothing is known of them any more.

An event is open until its rewards are counted, then closed, and known until `ttl`; then it is gone.
It closes at its first reward (rule "first"), or `wait` seconds after the decision, at the last
reward or their sum; with no reward by then at the default one, if there is any and the event is not
deferred. Time comes from whoever calls.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from coopbandits.fleet.api import EventReply, Group
from coopbandits.fleet.core.entries import Activated, Decided, Rewarded
from coopbandits.fleet.core.settings import RewardRules
from coopbandits.fleet.face import RefusedError

# So many more times than two of each known event may wait, before those of past ones are dropped.
_SPARE = 100


@dataclass(slots=True)
class Event:
    """One decision, and what became of it.

    Attributes:
        id: Its id.
        digest: Of the request.
        position: Of its entry in the log.
        round: The agent's; 0 if nothing is learnt from it.
        at: When it was decided.
        counts_from: From when its waiting time runs.
        action: What was taken.
        propensity: With which probability.
        group: Who decided.
        deferred: Whether it waits for its activation.
        values: How many rewards have come.
        value: What they come to by the rule.
        keys: Of the rewards that have come with one.
        closed: Whether it takes no more rewards.
        reward: What counted.
        recorded: Whether it stands in the node's feed.
    """

    id: str
    digest: bytes
    position: int
    round: int
    at: float
    counts_from: float
    action: str
    propensity: float | None
    group: Group
    deferred: bool = False
    values: int = 0
    value: float = 0.0
    keys: tuple[str, ...] = ()
    closed: bool = False
    reward: float | None = None
    recorded: bool = False


@dataclass(slots=True)
class Events:
    """The events that are known.

    Attributes:
        rules: Which rewards count, and when.
        known: By id, in the order in which they were decided.
        gone: Hashes of the ids of the last events that have expired.
        ready: Ids of events that are to close now, in order.
    """

    rules: RewardRules
    known: OrderedDict[str, Event] = field(default_factory=OrderedDict)
    gone: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    ready: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _due: list[tuple[float, str]] = field(default_factory=list)
    open: int = 0

    def decided(self, entry: Decided, position: int) -> Event:
        """Open an event."""
        event = Event(
            entry.event,
            entry.digest,
            position,
            entry.round,
            entry.at,
            entry.at,
            entry.ids[entry.index],
            entry.propensity,
            entry.group,
            entry.deferred,
        )
        self.known[event.id] = event
        self.open += 1
        if self.rules.wait is not None:
            heapq.heappush(self._due, (entry.at + self.rules.wait, event.id))
        return event

    def find(self, event_id: str) -> Event:
        """Return an event, or refuse to: 404 or 410."""
        event = self.known.get(event_id)
        if event is not None:
            return event
        if _mark(event_id) in self.gone:
            raise RefusedError(
                "event-expired",
                f"event {event_id} has expired: events are known for {self.rules.ttl:g} s, and at "
                f"most {self.rules.most} of them",
            )
        raise RefusedError(
            "unknown-event", f"there is no event {event_id}; its id is what decide answered"
        )

    def check_reward(self, event_id: str, key: str | None) -> bool:
        """Tell whether a reward is new; refuse it if the event takes no more."""
        event = self.find(event_id)
        if key is not None and key in event.keys:
            return False
        if event.closed or event_id in self.ready:
            raise RefusedError(
                "event-closed",
                f"event {event_id} is closed: its rewards were counted"
                + (
                    f" as {event.reward:g}"
                    if event.reward is not None
                    else (", there was none in time" if not event.values else "")
                )
                + "; a reward that came twice can be told apart by an Idempotency-Key",
            )
        return True

    def rewarded(self, entry: Rewarded) -> None:
        """Count a reward."""
        event = self.known[entry.event]
        event.values += 1
        event.value = event.value + entry.value if self.rules.rule == "sum" else entry.value
        if entry.key is not None:
            event.keys = (*event.keys[-15:], entry.key)
        self._activate(event, entry.at)
        if self.rules.rule == "first":
            self.ready[event.id] = None

    def activated(self, entry: Activated) -> None:
        """Let a deferred event count, and its waiting time run from now."""
        self._activate(self.known[entry.event], entry.at)

    def _activate(self, event: Event, at: float) -> None:
        if event.deferred:
            event.deferred, event.counts_from = False, at
            if self.rules.wait is not None:
                heapq.heappush(self._due, (at + self.rules.wait, event.id))

    def due(self, now: float) -> None:
        """Let events whose time has come be ready to close."""
        while self._due and self._due[0][0] <= now:
            _, event_id = heapq.heappop(self._due)
            event = self.known.get(event_id)
            wait = self.rules.wait
            if event is None or event.closed or wait is None:
                continue
            if event.deferred or event.counts_from + wait > now:
                continue  # waits for its activation, or longer than at first
            self.ready[event_id] = None

    def _schedule(self) -> None:
        """Let each open event, and no other, have one time."""
        wait = self.rules.wait
        if wait is not None:
            opened = [one for one in self.known.values() if not one.closed]
            self._due = [(one.counts_from + wait, one.id) for one in opened]
            heapq.heapify(self._due)

    def outcome(self, event: Event) -> float | None:
        """Return what an event's rewards come to; None for nothing."""
        if event.values:
            return event.value
        return None if event.deferred else self.rules.default

    def closed(self, event_id: str, reward: float | None, *, recorded: bool) -> Event:
        """Close an event."""
        event = self.known[event_id]
        self.ready.pop(event_id, None)
        if not event.closed:
            self.open -= 1
        event.closed, event.reward, event.recorded = True, reward, recorded
        return event

    def expire(self, now: float) -> None:
        """Let open events whose time is over close, with what has come by then."""
        for event in self._old(now):
            if not event.closed:
                self.ready[event.id] = None

    def forget(self, now: float) -> None:
        """Forget closed events whose time is over."""
        for event in list(self._old(now)):
            if not event.closed:
                break
            del self.known[event.id]
            self.gone[_mark(event.id)] = None
            if len(self.gone) > self.rules.most:
                self.gone.popitem(last=False)
        if len(self._due) > 2 * len(self.known) + _SPARE:
            self._schedule()

    def over(self, now: float) -> int:
        """Return the position of the last event that has to close, as it expires; 0 for none."""
        return max((event.position for event in self._old(now)), default=0)

    def _old(self, now: float) -> Iterator[Event]:
        surplus = len(self.known) - self.rules.most
        for event in self.known.values():
            if event.at + self.rules.ttl > now and surplus <= 0:
                return
            surplus -= 1
            yield event

    def reply(self, event: Event) -> EventReply:
        """Return an event as it is shown."""
        until = event.at + self.rules.ttl
        if self.rules.wait is not None and not event.deferred:
            until = min(until, event.counts_from + self.rules.wait)
        return EventReply(
            event_id=event.id,
            state="closed" if event.closed else "deferred" if event.deferred else "open",
            action=event.action,
            propensity=event.propensity,
            group=event.group,
            decided_at=event.at,
            closes_at=None if event.closed else until,
            values=event.values,
            reward=event.reward,
            recorded=event.recorded,
        )

    def stored(self) -> dict[str, Any]:
        """Return plain values that `restore` takes."""
        return {
            "known": [
                [getattr(event, name) for name in Event.__slots__] for event in self.known.values()
            ],
            "gone": [*self.gone],
            "ready": [*self.ready],
        }

    @classmethod
    def restored(cls, rules: RewardRules, stored: dict[str, Any]) -> "Events":
        """Make it of what `stored` returned."""
        made = cls(rules)
        for values in stored["known"]:
            event = Event(*values)
            event.keys = tuple(event.keys)
            made.known[event.id] = event
            made.open += not event.closed
        made._schedule()
        made.gone = OrderedDict.fromkeys(stored["gone"])
        made.ready = OrderedDict.fromkeys(stored["ready"])
        return made


def _mark(event_id: str) -> bytes:
    return blake2b(event_id.encode(), digest_size=8).digest()
