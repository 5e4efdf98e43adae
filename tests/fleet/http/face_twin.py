"""A face in memory: it keeps its promises of ids, keys and closed events, and learns nothing."""

import asyncio
from dataclasses import dataclass, field

import msgspec

from coopbandits.fleet.api import (
    Arm,
    DecideManyReply,
    DecideReply,
    DecideRequest,
    EventReply,
    Peer,
    PeersReply,
    Rewards,
    Score,
    SimilarityReply,
    StatusReply,
)
from coopbandits.fleet.face import Activate, Decide, DecideMany, RefusedError, Reward


@dataclass
class Event:
    request: DecideRequest
    reply: DecideReply
    state: str
    decided_at: float
    values: list[float] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


class FaceTwin:
    """A node without learner or disk. `now` is set by the test; rewards follow a rule."""

    def __init__(self, rule: str = "first", waiting: float = 60.0, ttl: float = 600.0) -> None:
        self.rule, self.waiting, self.ttl = rule, waiting, ttl
        self.now, self.ready, self.refusal = 1000.0, True, None
        self.events: dict[str, Event] = {}
        self.listeners: list[asyncio.Queue] = []
        self.asked = 0
        self.last_notes = None  # a number of notes after which the stream ends

    async def ask(self, request):
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        await asyncio.sleep(0)
        if isinstance(request, Decide):
            reply = self._keep([self._decision(request.request)])[0]
        elif isinstance(request, DecideMany):
            made = [self._decision(each) for each in request.request.decisions]
            ids = [event.reply.event_id for event in made]
            if len(set(ids)) < len(ids):
                raise RefusedError("invalid", "two decisions have one id")
            reply = DecideManyReply(self._keep(made))
        elif isinstance(request, Reward):
            reply = self._reward(request)
        else:
            assert isinstance(request, Activate)
            event = self._found(request.event_id)
            if event.state == "closed":
                raise RefusedError("event-closed", f"{request.event_id} is closed")
            event.state = "open"
            reply = None
        return reply

    def event(self, event_id):
        event = self._found(event_id)
        closed = event.state == "closed"
        return EventReply(
            event_id=event_id,
            state=event.state,
            action=event.reply.action,
            propensity=event.reply.propensity,
            group=event.reply.group,
            decided_at=event.decided_at,
            closes_at=None if closed else event.decided_at + self.waiting,
            values=len(event.values),
            reward=self._counted(event) if closed else None,
            recorded=closed,
        )

    def status(self):
        counted = [self._counted(event) for event in self.events.values() if event.values]
        mean = sum(counted) / len(counted) if counted else None
        return StatusReply(
            fleet="twins",
            node="north",
            mode="online",
            ready=self.ready,
            policy="LinUCB",
            model_version="0-0",
            version="0",
            epoch=1,
            now=self.now,
            started_at=0.0,
            decisions=len(self.events),
            open_events=sum(event.state == "open" for event in self.events.values()),
            observations=len(counted),
            own_records=len(counted),
            adoptions=0,
            learning=False,
            adopted_at=None,
            rewards=Rewards(Arm(len(counted), mean, None), Arm(0, None, None), None, None),
            agreement=None,
            position=len(self.events),
            synced=len(self.events),
            disk_bytes=0,
            refused={"signature": 2},
            quarantined=[],
        )

    def peers(self):
        south = Peer(
            name="south",
            distance=1,
            neighbour=True,
            linked=True,
            heard=True,
            records=0,
            behind=None,
            last_at=None,
            worth=0.5,
        )
        return PeersReply("north", 2, [south], [("north", "south")])

    def similarity(self):
        return SimilarityReply("north", False, 0, {"north": 1.0, "south": 0.5})

    def log(self, after, most):
        closed = [event for event in self.events.values() if event.state == "closed"]
        for position, event in enumerate(closed, 1):
            if after < position <= after + most:
                names = [action.id for action in event.request.actions]
                yield {
                    "schema": 1,
                    "position": position,
                    "round": position,
                    "agent": 0,
                    "contexts": [action.context for action in event.request.actions],
                    "action": names.index(event.reply.action),
                    "reward": self._counted(event),
                    "propensity": event.reply.propensity,
                }

    async def notes(self):
        queue = asyncio.Queue()
        self.listeners.append(queue)
        try:
            if self.last_notes is not None:
                for number in range(self.last_notes):
                    yield {"kind": "decided", "at": float(number)}
                return
            while True:
                yield await queue.get()
        finally:
            self.listeners.remove(queue)

    def close(self, event_id):
        self.events[event_id].state = "closed"

    def _note(self, **fields):
        for queue in self.listeners:
            queue.put_nowait({"at": self.now, **fields})

    def _decision(self, request):
        names = [action.id for action in request.actions]
        open_to = [name for name in names if name not in request.exclude]
        if len(set(names)) < len(names) or not open_to or set(request.exclude) - set(names):
            raise RefusedError("invalid", "actions have unique ids, and one is not excluded")
        if request.taken is not None:
            raise RefusedError("invalid", "the node is not in mode 'apprentice'")
        event_id = request.event_id or f"event-{len(self.events)}"
        known = self.events.get(event_id)
        if known is not None:
            if self.now > known.decided_at + self.ttl:
                raise RefusedError("event-expired", f"{event_id} has expired")
            if msgspec.structs.replace(request, event_id=event_id) != known.request:
                raise RefusedError("event-differs", f"{event_id} was another decision")
            return known
        best = {action.id: sum(action.context) / len(action.context) for action in request.actions}
        ranking = sorted(open_to, key=lambda name: -best[name])
        reply = DecideReply(
            event_id=event_id,
            action=ranking[0],
            ranking=ranking,
            scores=[Score(name, best[name], 1.0, best[name] + 1.0) for name in open_to],
            propensity=1.0,
            model_version="0-0",
            mode="online",
            group="learner",
        )
        state = "deferred" if request.deferred else "open"
        request = msgspec.structs.replace(request, event_id=event_id)
        return Event(request, reply, state, self.now)

    def _keep(self, made):
        for event in made:
            self.events.setdefault(event.reply.event_id, event)
            self._note(kind="decided", event_id=event.reply.event_id, action=event.reply.action)
        return [event.reply for event in made]

    def _reward(self, request):
        event = self._found(request.event_id)
        if request.key is not None and request.key in event.keys:
            return
        if event.state == "closed":
            raise RefusedError("event-closed", f"{request.event_id} is closed")
        if request.key is not None:
            event.keys.add(request.key)
        event.values.append(request.value)
        if self.rule == "first":
            event.state = "closed"
        self._note(kind="rewarded", event_id=request.event_id, value=request.value)

    def _found(self, event_id):
        event = self.events.get(event_id)
        if event is None:
            raise RefusedError("unknown-event", f"{event_id} is not known")
        if self.now > event.decided_at + self.ttl:
            raise RefusedError("event-expired", f"{event_id} has expired")
        return event

    def _counted(self, event):
        picked = event.values[:1] if self.rule == "first" else event.values
        return sum(picked) if self.rule != "last" else (event.values or [0.0])[-1]
