"""Endpoints: what each route of the table does with a request, over a `Face`."""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import Receive, Scope

from coopbandits.fleet.face import Activate, Decide, DecideMany, Face, RefusedError, Reward
from coopbandits.fleet.http import body
from coopbandits.fleet.http.answers import Answer, Stream, headers_of, of_value
from coopbandits.fleet.http.metrics import MEDIA_TYPE as METRICS_TYPE, Metrics
from coopbandits.fleet.http.routes import EVENT_ID, JSON, KEY, QUERY, Health
from coopbandits.fleet.http.streams import Notes, log_lines

Run = Callable[[Scope, Receive], Awaitable[Answer | Stream]]

_EVENT_ID = re.compile(EVENT_ID.encode())
_KEY = re.compile(KEY.encode())
_WHOLE = re.compile(r"[0-9]{1,19}")
_DONE = Answer(204, headers_of(JSON)[1:])


class Endpoints:
    """What each route does.

    Args:
        face: The node.
        metrics: What `/metrics` shows.
        notes: What `/v1/notes` streams.
        limit: How many bytes a body may have.
        timeout: Within how many seconds a body must have come.
    """

    def __init__(
        self, face: Face, metrics: Metrics, notes: Notes, limit: int, timeout: float
    ) -> None:
        self._face, self._of_metrics, self._of_notes = face, metrics, notes
        self._limit, self._timeout = limit, timeout

    def runs(self) -> dict[str, Run]:
        """Return what runs, by the route's name."""
        return {
            "decide": self._decide,
            "decide-many": self._decide_many,
            "reward": self._reward,
            "activate": self._activate,
            "event": self._event,
            "status": self._status,
            "peers": self._peers,
            "similarity": self._similarity,
            "log": self._log,
            "notes": self._notes,
            "healthz": self._healthz,
            "readyz": self._readyz,
            "metrics": self._metrics,
        }

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        headers = scope["headers"]
        body.require_json(headers)
        return await body.read(headers, receive, self._limit, self._timeout)

    async def _decide(self, scope: Scope, receive: Receive) -> Answer:
        request = body.decode_decide(await self._read(scope, receive))
        _check_id(request.event_id)
        reply = await self._face.ask(Decide(request))
        assert reply is not None
        return of_value(reply)

    async def _decide_many(self, scope: Scope, receive: Receive) -> Answer:
        request = body.decode_many(await self._read(scope, receive))
        for each in request.decisions:
            _check_id(each.event_id)
        reply = await self._face.ask(DecideMany(request))
        assert reply is not None
        return of_value(reply)

    async def _reward(self, scope: Scope, receive: Receive) -> Answer:
        event_id, key = _event_id(scope), _key(scope)
        request = body.decode_reward(await self._read(scope, receive))
        await self._face.ask(Reward(event_id, request.value, key=key))
        return _DONE

    async def _activate(self, scope: Scope, receive: Receive) -> Answer:
        await self._face.ask(Activate(_event_id(scope)))
        return _DONE

    async def _event(self, scope: Scope, receive: Receive) -> Answer:
        return of_value(self._face.event(_event_id(scope)))

    async def _status(self, scope: Scope, receive: Receive) -> Answer:
        return of_value(self._face.status())

    async def _peers(self, scope: Scope, receive: Receive) -> Answer:
        return of_value(self._face.peers())

    async def _similarity(self, scope: Scope, receive: Receive) -> Answer:
        return of_value(self._face.similarity())

    async def _log(self, scope: Scope, receive: Receive) -> Stream:
        numbers = _query(scope)
        return log_lines(self._face.log(numbers["after"], numbers["limit"]))

    async def _notes(self, scope: Scope, receive: Receive) -> Stream:
        return self._of_notes.stream()

    async def _healthz(self, scope: Scope, receive: Receive) -> Answer:
        return of_value(Health())

    async def _readyz(self, scope: Scope, receive: Receive) -> Answer:
        if not self._face.status().ready:
            raise RefusedError("not-ready", "the node starts or stops; try again later", 1.0)
        return of_value(Health())

    async def _metrics(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(200, headers_of(METRICS_TYPE), self._of_metrics.text())


def _event_id(scope: Scope) -> str:
    found = unquote_to_bytes(scope["path_params"]["event_id"])
    if _EVENT_ID.fullmatch(found) is None:
        raise RefusedError(
            "malformed",
            f"{found[:200]!r} is no id of an event; expected 1 to 200 visible ASCII characters",
        )
    return found.decode("ascii")


def _check_id(event_id: str | None) -> None:
    if event_id is None:
        return
    # `$` in the declared pattern also matches before a newline at the end.
    if event_id.endswith("\n"):
        raise RefusedError("malformed", "event_id ends with a newline; expected visible characters")
    if event_id in (".", ".."):
        raise RefusedError(
            "malformed", f"no path can name the event {event_id!r}; choose another event_id"
        )


def _key(scope: Scope) -> str | None:
    value = body.header(scope["headers"], b"idempotency-key")
    if value is None:
        return None
    if _KEY.fullmatch(value) is None:
        raise RefusedError(
            "malformed", "expected 1 to 64 visible ASCII characters as Idempotency-Key"
        )
    return value.decode("ascii")


def _query(scope: Scope) -> dict[str, int]:
    """Return the numbers of the query by name."""
    found = {name: parameter.default for name, parameter in QUERY.items()}
    seen: set[str] = set()
    text = scope["query_string"].decode("latin-1")
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name not in QUERY or name in seen:
            again = "comes twice" if name in seen else f"is not known; expected {', '.join(QUERY)}"
            raise RefusedError("malformed", f"the query's parameter {name!r} {again}")
        least, most = QUERY[name].least, QUERY[name].most
        if _WHOLE.fullmatch(value) is None or not least <= int(value) <= most:
            raise RefusedError(
                "malformed",
                f"the query has {name}={value!r}; expected a whole number from {least} to {most}",
            )
        seen.add(name)
        found[name] = int(value)
    return found
