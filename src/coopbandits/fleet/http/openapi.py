"""The OpenAPI 3.1 document of a node's interface, made of the table of routes.

Types come from `fleet/api.py` as JSON Schema, problems from the kinds that each route names.
"""

import re
from collections import defaultdict
from functools import cache
from typing import Any

import msgspec

import coopbandits
from coopbandits.fleet.api import Problem
from coopbandits.fleet.http.problems import KINDS, MEDIA_TYPE, problem
from coopbandits.fleet.http.routes import (
    EVENT_ID,
    EVENT_STREAM,
    EVERYWHERE,
    JSON,
    KEY,
    QUERY,
    ROUTES,
    Route,
)

_REF = "#/components/schemas/{name}"
_BODIES = [kind for route in ROUTES for kind in (route.request, route.reply) if kind is not None]
_TYPES: list[type] = list(dict.fromkeys([*_BODIES, Problem]))

_DECIDE = {
    "actions": [
        {"id": "small-model", "context": [1.0, 0.2, 0.7]},
        {"id": "large-model", "context": [0.0, 0.9, 0.7]},
    ]
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "decide": {
        "two actions": {"value": _DECIDE},
        "with an id of the caller's, and one action excluded": {
            "value": _DECIDE | {"event_id": "order-4711", "exclude": ["large-model"]}
        },
    },
    "decide-many": {"two decisions": {"value": {"decisions": [_DECIDE, _DECIDE]}}},
    "reward": {"a success": {"value": {"value": 1.0}}, "a loss": {"value": {"value": -0.25}}},
}

_DESCRIPTION = """\
Ask with `POST /v1/decide` which of several actions to take, do so, and say with
`POST /v1/events/{event_id}/reward` what it brought. A success on a reward means that it is durable
and counts once. The same event id with the same body gets the same answer, so a decision may be
asked for again when an answer was lost; for rewards, an `Idempotency-Key` does the same.
Bodies are JSON in UTF-8, each key once, numbers finite. What is refused has changed nothing, and
says why as `application/problem+json` (RFC 9457).
"""


@cache
def document_bytes() -> bytes:
    """Return the document as JSON."""
    return msgspec.json.encode(document())


def document() -> dict[str, Any]:
    """Return the document."""
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route in ROUTES:
        paths[route.path][route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A coopbandits node",
            "version": coopbandits.__version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": dict(paths),
        "components": {"schemas": schemas},
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": _answers(route),
    }
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", route.path)]
    parameters += [_query_parameter(name) for name in route.query]
    parameters += [_HEADERS[name] for name in route.headers]
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        content = {"schema": _reference(route.request), "examples": EXAMPLES[route.name]}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation


def _answers(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "It was done."}
    if route.reply is not None:
        success = {
            "description": (route.reply.__doc__ or "").partition("\n")[0],
            "content": {route.media: {"schema": _reference(route.reply)}},
        }
    elif route.media is not None:
        kind = "object" if route.media == JSON else "string"
        # Of a stream, OpenAPI 3.1 has no word for the schema of each event.
        shape = {} if route.media == EVENT_STREAM else {"schema": {"type": kind}}
        success = {"description": route.summary, "content": {route.media: shape}}
    by_status: dict[int, list[str]] = defaultdict(list)
    for kind in (*route.problems, *EVERYWHERE):
        by_status[KINDS[kind][0]].append(kind)
    problems = {str(status): _problems(kinds) for status, kinds in sorted(by_status.items())}
    return {str(route.status): success} | problems


def _problems(kinds: list[str]) -> dict[str, Any]:
    shown = {kind: problem(kind, f"{KINDS[kind][1]}: what, and what to do.") for kind in kinds}
    return {
        "description": "; ".join(f"{KINDS[kind][1]} (`{kind}`)" for kind in kinds),
        "headers": {
            "Retry-After": {
                "description": "Seconds after which another try makes sense.",
                "schema": {"type": "integer", "minimum": 0},
            }
        },
        "content": {
            MEDIA_TYPE: {
                "schema": _reference(Problem),
                "examples": {
                    kind: {"value": msgspec.to_builtins(each)} for kind, each in shown.items()
                },
            }
        },
    }


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": "The id of a decision, percent-encoded where a path needs it.",
        "schema": {"type": "string", "pattern": EVENT_ID, "minLength": 1, "maxLength": 200},
    }


def _query_parameter(name: str) -> dict[str, Any]:
    number = QUERY[name]
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": number.meaning,
        "schema": {
            "type": "integer",
            "minimum": number.least,
            "maximum": number.most,
            "default": number.default,
        },
    }


_HEADERS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "Made new for each reward, and sent again with each retry of it: the same "
        "key is counted once.",
        "schema": {"type": "string", "pattern": KEY, "minLength": 1, "maxLength": 64},
    }
}


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
