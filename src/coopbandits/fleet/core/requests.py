"""What is asked of a node: decisions, rewards, activations. Each is an entry, then an answer.

An answer is given once the entries it rests on are durable. What is asked again is answered as it
was the first time.
"""

from typing import TYPE_CHECKING

from coopbandits.errors import InputError
from coopbandits.fleet.api import DecideManyReply, DecideRequest
from coopbandits.fleet.core.actions import Answer, Recall
from coopbandits.fleet.core.deciding import Choice, Offer, chosen, digest, reply_of
from coopbandits.fleet.core.entries import Activated, Decided, Rewarded
from coopbandits.fleet.face import Activate, Decide, DecideMany, RefusedError, Request, Reward

if TYPE_CHECKING:
    from coopbandits.fleet.core.node import NodeCore


def take(core: "NodeCore", ticket: int, request: Request) -> None:
    """Take a request: append what follows, and answer or refuse."""
    try:
        if isinstance(request, Decide):
            decide(core, ticket, [request.request], many=False)
        elif isinstance(request, DecideMany):
            decide(core, ticket, request.request.decisions, many=True)
        elif isinstance(request, Reward):
            if core.events.check_reward(request.event_id, request.key):
                core.own.check_reward(core.events.known[request.event_id])
                entry = Rewarded(core.now, request.event_id, request.value, request.key)
                core.events.rewarded(entry)
                core.journal.append(entry)
            core.journal.when_synced(core.journal.position, Answer(ticket, None))
        elif isinstance(request, Activate):
            if core.events.find(request.event_id).deferred:
                activated = Activated(core.now, request.event_id)
                core.events.activated(activated)
                core.journal.append(activated)
            core.journal.when_synced(core.journal.position, Answer(ticket, None))
    except RefusedError as error:
        core.journal.do(Answer(ticket, error))


def decide(core: "NodeCore", ticket: int, requests: list[DecideRequest], *, many: bool) -> None:
    """Take decisions, all or none; those of ids that are known are as they were."""
    positions, new = [], []
    seen: set[str] = set()
    for request in requests:
        name = request.event_id
        if name is not None and name in seen:
            raise RefusedError("invalid", f"the event id {name} stands twice in one request")
        if name is not None:
            seen.add(name)
        known = None if name is None else core.events.known.get(name)
        if known is None:
            if name is not None:
                _check_not_gone(core, name)
            new.append((request, Offer.of(request, core.settings.mode)))
            positions.append(0)
        elif known.digest != digest(request):
            raise RefusedError(
                "event-differs",
                f"event {name} was decided already, for another request; give each decision an "
                "id of its own",
            )
        else:
            positions.append(known.position)
    _check_sizes(core, [offer for _, offer in new])
    made = [_decided(core, request, offer) for request, offer in new]
    answer: Answer | Recall
    if len(made) == len(requests):
        replies = [reply_of(entry) for _, entry in made]
        answer = Answer(ticket, DecideManyReply(replies) if many else replies[0])
    else:
        left = iter(made)
        places = tuple(place or next(left)[0] for place in positions)
        answer = Recall(ticket, places, many)
    core.journal.when_synced(max([*positions, *(place for place, _ in made)]), answer)


def _check_not_gone(core: "NodeCore", name: str) -> None:
    try:
        core.events.find(name)
    except RefusedError as error:
        if error.kind != "unknown-event":
            raise


def _check_sizes(core: "NodeCore", offers: list[Offer]) -> None:
    """Refuse contexts that the agent cannot take, before any decision of a request is taken."""
    dims = {offer.contexts.shape[1] for offer in offers}
    known = core.agent._inbox.dim
    if len(dims) > 1 or (dims and known not in (None, *dims)):
        raise RefusedError(
            "invalid",
            f"contexts have {', '.join(map(str, sorted(dims)))} numbers; expected "
            f"{known or 'as many in all decisions'}",
        )
    for offer in offers:
        try:
            core.agent._check_own(core.agent._units.scaled(offer.contexts))
        except InputError as error:
            raise RefusedError("invalid", str(error)) from error


def _decided(core: "NodeCore", request: DecideRequest, offer: Offer) -> tuple[int, Decided]:
    """Take one decision, and return its position and its entry."""
    number = core.counts.decisions + 1
    # The time is in it as decisions of a log that an older one replaced had the same numbers.
    name = request.event_id or f"e{int(1000 * core.now):x}.{number:x}"
    choice = chosen(core.agent, core.settings, offer, name)
    entry = _entry(core, request, offer, choice, name, number)
    position = core.journal.append(entry)
    core.counts.decided(entry)
    core.events.decided(entry, position)
    if core.settings.policy.forget is not None:  # what is known has faded by a round
        core.learning.news = True
    core.journal.note(
        "decided", event_id=name, action=entry.ids[entry.index], group=entry.group,
        propensity=entry.propensity,
    )  # fmt: skip
    return position, entry


def _entry(
    core: "NodeCore", request: DecideRequest, offer: Offer, choice: Choice, name: str, number: int
) -> Decided:
    return Decided(
        seen=core.applied,
        at=core.now,
        event=name,
        digest=digest(request),
        number=number,
        round=choice.round,
        ids=offer.ids,
        contexts=offer.contexts.astype("<f8").tobytes(),
        allowed=offer.allowed,
        index=choice.index,
        order=choice.order,
        scores=choice.scores.astype("<f8").tobytes(),
        propensity=choice.propensity,
        group=choice.group,
        mode=core.settings.mode,
        version=core.version,
        agreed=choice.agreed,
        deferred=request.deferred,
    )
