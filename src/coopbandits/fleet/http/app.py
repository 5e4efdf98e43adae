"""The ASGI application of a node: routes, strict bodies, problem details, metrics.

    app = make_app(face)

Whatever happens is answered: with what was asked for, or with a problem (RFC 9457).
"""

import logging
from collections.abc import Collection
from importlib.resources.abc import Traversable
from time import perf_counter
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from coopbandits.fleet.face import Face, RefusedError
from coopbandits.fleet.http import body, openapi
from coopbandits.fleet.http.answers import Answer, headers_of, of_problem
from coopbandits.fleet.http.assets import page_folder, read_assets
from coopbandits.fleet.http.endpoints import Endpoints, Run
from coopbandits.fleet.http.metrics import Metrics, RouteMetrics
from coopbandits.fleet.http.problems import KINDS, of_refusal, problem
from coopbandits.fleet.http.routes import JSON, ROUTES
from coopbandits.fleet.http.streams import Notes

logger = logging.getLogger(__name__)

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_INTERNAL = "the node failed, and its log says where; nothing is known of what came of the request"


def make_app(
    face: Face,
    *,
    body_limit: int = 1_000_000,
    body_timeout: float = 10.0,
    subscribers: int = 32,
    heartbeat: float = 15.0,
    hosts: Collection[str] | None = LOOPBACK_HOSTS,
    page: Traversable | None = None,
) -> Starlette:
    """Make the application of a node.

    Its `state.notes.close()` ends the streams, which a server calls before it waits for requests.

    Args:
        face: The node.
        body_limit: How many bytes a body may have.
        body_timeout: Within how many seconds a body must have come.
        subscribers: To how many connections notes are streamed at once.
        heartbeat: Seconds after which a stream says that there is nothing new.
        hosts: Which names of this host (without port) requests may be meant for; None for any. A
            page of another site, whose name is made to point here, is refused by this.
        page: The folder of the page; the package's own, if not given.
    """
    metrics = Metrics(face)
    notes = Notes(face, subscribers, heartbeat, metrics.subscribers.set)
    endpoints = Endpoints(face, metrics, notes, body_limit, body_timeout)
    assets = read_assets(page_folder() if page is None else page)

    def endpoint(name: str, run: Run) -> "_Endpoint":
        return _Endpoint(run, RouteMetrics(metrics, name))

    def fixed(answer: Answer | None) -> Run:
        async def run(scope: Scope, receive: Receive) -> Answer:
            return answer or of_problem(problem("not-found", "the page was not installed"))

        return run

    runs = endpoints.runs() | {
        "openapi": fixed(Answer(200, headers_of(JSON), openapi.document_bytes())),
        "page": fixed(assets.pop("/", None)),
    }
    table = [
        StarletteRoute(route.path, endpoint(route.name, runs[route.name]), methods=[route.method])
        for route in ROUTES
    ]
    table += [
        StarletteRoute(path, endpoint("page", fixed(answer)), methods=["GET"])
        for path, answer in assets.items()
    ]
    unrouted = RouteMetrics(metrics, "none")

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        answer = _of_routing(request.scope, error)
        unrouted.count(answer.status, 0.0)
        return _Response(answer)

    async def fail(request: Request, error: Exception) -> Response:
        return _Response(of_problem(problem("internal", _INTERNAL)))

    app = Starlette(
        routes=table,
        middleware=[Middleware(_Entrance, hosts=hosts)],
        exception_handlers={HTTPException: refuse, Exception: fail},
    )
    app.router.redirect_slashes = False
    app.state.notes = notes
    return app


class _Endpoint:
    """An endpoint as an ASGI application: every outcome becomes an answer, and is counted."""

    __slots__ = ("_metrics", "_run")

    def __init__(self, run: Run, metrics: RouteMetrics) -> None:
        self._run, self._metrics = run, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = perf_counter()
        head = scope["method"] == "HEAD"
        try:
            answer = await self._run(scope, receive)
        except RefusedError as error:
            if error.kind in KINDS:
                answer = of_problem(of_refusal(error))
            else:
                logger.exception("refused for a kind that is not known: %r", error.kind)
                answer = of_problem(problem("internal", _INTERNAL))
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            answer = of_problem(problem("internal", _INTERNAL))
        try:
            if isinstance(answer, Answer):
                await answer.send(send, head)
            elif head:
                await answer.send_head(send)
            else:
                await answer.run(receive, send)
        finally:
            self._metrics.count(answer.status, perf_counter() - start)


class _Entrance:
    """Refuses requests for other hosts, and routes by the path as it was sent.

    Ids of events may hold a slash or a percent sign; only the encoded path tells where they end.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path")
            scope["path"] = quote(scope["path"]) if raw is None else raw.decode("latin-1")
            if self._hosts is not None:
                value = body.header(scope["headers"], b"host") or b""
                host = value.decode("latin-1").lower()
                if not host.endswith("]"):
                    host = host.rpartition(":")[0] or host
                if host not in self._hosts:
                    answer = of_problem(
                        problem(
                            "misdirected",
                            f"the request is for host {value.decode('latin-1')!r}; this node is "
                            f"{', '.join(sorted(self._hosts))}",
                        )
                    )
                    await answer.send(send, scope["method"] == "HEAD")
                    return
        await self._app(scope, receive, send)


class _Response(Response):
    """An `Answer` as a response of Starlette's, for its exception handlers."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(status_code=answer.status)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer.send(send, scope["method"] == "HEAD")


def _of_routing(scope: Scope, error: HTTPException) -> Answer:
    """Return the answer to a path or a method that is not in the table."""
    method, path = scope["method"], scope["path"]
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return of_problem(
            problem("method-not-allowed", f"{path} takes {allowed}, not {method}"),
            (b"allow", allowed.encode()),
        )
    return of_problem(problem("not-found", f"there is nothing at {path}; see /openapi.json"))
