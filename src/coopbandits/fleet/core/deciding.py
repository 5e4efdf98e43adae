"""One decision: which policy serves it, what the agent chooses, and how both are written down."""

from dataclasses import dataclass
from hashlib import blake2b

import msgspec
import numpy as np

from coopbandits.agent import Agent, feeds
from coopbandits.agent.decision import Prediction
from coopbandits.arrays import Array
from coopbandits.errors import InputError, LocalProtocolError
from coopbandits.fleet.api import DecideReply, DecideRequest, Group, Mode, Score
from coopbandits.fleet.core.entries import Decided
from coopbandits.fleet.core.settings import Settings
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.ports import DamageError


@dataclass(frozen=True, eq=False, slots=True)
class Offer:
    """What may be chosen from: ids, contexts (K, d), and which actions are not excluded."""

    ids: list[str]
    contexts: Array
    allowed: list[int]
    taken: int | None

    @classmethod
    def of(cls, request: DecideRequest, mode: Mode) -> "Offer":
        """Check a request as a whole."""
        ids = [action.id for action in request.actions]
        if len(set(ids)) < len(ids):
            double = next(name for name in ids if ids.count(name) > 1)
            raise RefusedError("invalid", f"the action id {double!r} stands twice; ids are unique")
        sizes = {len(action.context) for action in request.actions}
        if len(sizes) > 1:
            raise RefusedError(
                "invalid",
                f"contexts have {min(sizes)} and {max(sizes)} numbers; expected as many in each",
            )
        unknown = [name for name in request.exclude if name not in ids]
        if unknown:
            raise RefusedError("invalid", f"exclude names {unknown[0]!r}, which is no action here")
        allowed = [i for i, name in enumerate(ids) if name not in request.exclude]
        if not allowed:
            raise RefusedError("invalid", "all actions are excluded; leave at least one")
        taken = None
        if request.taken is not None:
            if mode != "apprentice":
                raise RefusedError(
                    "invalid",
                    f'taken says what an outside policy does, which a node in mode "{mode}" does '
                    'not take; start it with mode = "apprentice", or leave taken out',
                )
            if request.taken not in ids or ids.index(request.taken) not in allowed:
                raise RefusedError(
                    "invalid", f"taken names {request.taken!r}, which is no action that is allowed"
                )
            taken = ids.index(request.taken)
        contexts = np.array([action.context for action in request.actions], dtype=np.float64)
        return cls(ids, contexts, allowed, taken)


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """What was chosen: the agent's round (0: not asked), the action, how likely, the beliefs."""

    round: int
    index: int
    order: list[int]
    scores: Array
    propensity: float | None
    group: Group
    agreed: bool | None = None


def digest(request: DecideRequest) -> bytes:
    """Return what tells a request from others of the same event id."""
    plain = msgspec.structs.replace(request, event_id=None)
    return blake2b(msgspec.json.encode(plain), digest_size=16).digest()


def in_control(settings: Settings, event_id: str) -> bool:
    """Tell whether the fixed policy serves an event: by its id alone, so always the same way."""
    return _drawn(settings, event_id, b"control")[0] < settings.control


def explored(settings: Settings, event_id: str, actions: int) -> int | None:
    """Return any of K actions for a share of the events, by the event's id alone; else None."""
    hit, place = _drawn(settings, event_id, b"explore")
    return int(place * actions) if hit < settings.explore else None


def _drawn(settings: Settings, event_id: str, purpose: bytes) -> tuple[float, float]:
    """Return two numbers in [0, 1) that follow from an event's id: no state, nothing to replay."""
    text = f"{settings.fleet}/{settings.name}/{event_id}".encode()
    drawn = blake2b(text, digest_size=16, person=purpose).digest()
    return int.from_bytes(drawn[:6], "big") / 2**48, int.from_bytes(drawn[6:12], "big") / 2**48


def chosen(agent: Agent, settings: Settings, offer: Offer, event_id: str) -> Choice:
    """Choose an action; a `RefusedError` if the agent cannot take what is offered."""
    allowed = offer.allowed
    fixed = allowed[0] if offer.taken is None else offer.taken
    no_scores = np.empty((3, 0))
    if settings.mode == "off":
        return Choice(0, fixed, allowed, no_scores, 1.0, "baseline")
    if settings.mode == "online" and in_control(settings, event_id):
        return Choice(0, fixed, allowed, no_scores, 1.0, "control")
    contexts = offer.contexts[allowed]
    try:
        if settings.mode == "apprentice":
            best = allowed[int(agent.rank(contexts, 1, learn=False)[0])]
            believed = agent.predict(contexts, learn=False)
            decision = agent.took(contexts, allowed.index(fixed))
            order, scores = _ranked(believed, allowed, None)
            return Choice(decision.id, fixed, order, scores, None, "baseline", agreed=best == fixed)
        return _learner_chose(agent, settings, offer, event_id)
    except (InputError, LocalProtocolError) as error:
        raise RefusedError("invalid", str(error)) from error


def _learner_chose(agent: Agent, settings: Settings, offer: Offer, event_id: str) -> Choice:
    """Let the agent choose, and take any other action in its place where the node explores.

    p(a) = (1 − share)·p_agent(a) + share/K. The agent is sure of its choice (p_agent = 1), or knows
    nothing and takes each action alike, or its draw has no known probability.
    """
    count = len(offer.allowed)
    other = explored(settings, event_id, count)
    first, decision = feeds.decide_or_take(agent, offer.contexts[offer.allowed], other)
    index, chance = decision.index, first.propensity
    assert index is not None
    if index != first.index and chance == 1.0:
        chance = 0.0
    if chance is not None:
        chance = (1.0 - settings.explore) * chance + settings.explore / count
    order, scores = _ranked(first.scores, offer.allowed, offer.allowed[index])
    return Choice(decision.id, offer.allowed[index], order, scores, chance, "learner")


def chosen_again(agent: Agent, entry: Decided) -> None:
    """Let the agent take a decision as it stands in the log."""
    contexts = contexts_of(entry)[entry.allowed]
    at = entry.allowed.index(entry.index)
    if entry.group == "baseline":
        agent.rank(contexts, 1, learn=False)
        decision = agent.took(contexts, at)
    else:
        decision = feeds.decide_again(agent, contexts, at)
    if decision.id != entry.round:
        raise DamageError(
            f"the log says that event {entry.event} was decision {entry.round} of the agent; "
            f"replaying it makes it {decision.id}"
        )


def contexts_of(entry: Decided) -> Array:
    """Return the contexts of all actions of a decision: (K, d)."""
    return np.frombuffer(entry.contexts, dtype="<f8").reshape(len(entry.ids), -1).astype(np.float64)


def reply_of(entry: Decided) -> DecideReply:
    """Return what was answered, from what stands in the log."""
    scores = np.frombuffer(entry.scores, dtype="<f8").reshape(3, -1).tolist()
    mode: Mode = entry.mode  # type: ignore[assignment]
    return DecideReply(
        event_id=entry.event,
        action=entry.ids[entry.index],
        ranking=[entry.ids[i] for i in entry.order],
        scores=[
            Score(entry.ids[i], mean, std, upper)
            for i, mean, std, upper in zip(entry.allowed, *scores, strict=False)
        ],
        propensity=entry.propensity,
        model_version=entry.version,
        mode=mode,
        group=entry.group,
    )


def _ranked(
    believed: Prediction | None, allowed: list[int], first: int | None
) -> tuple[list[int], Array]:
    """Rank the allowed actions by their upper bounds, behind the one that was taken."""
    if believed is None:
        return allowed, np.empty((3, 0))
    by_bound = [allowed[i] for i in np.argsort(-believed.upper, kind="stable").tolist()]
    if first is not None:
        by_bound.remove(first)
        by_bound.insert(0, first)
    return by_bound, np.stack([believed.mean, believed.std, believed.upper])
