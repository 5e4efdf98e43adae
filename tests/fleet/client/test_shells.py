"""Both clients, waiting and awaiting, against a node in memory whose answers get lost."""

import asyncio
import inspect
import json
import subprocess
import sys

import httpx
import msgspec
import numpy as np
import pytest

from coopbandits.errors import NonFiniteError, ParameterError
from coopbandits.fleet.api import Action, DecideRequest, Problem
from coopbandits.fleet.client import AsyncClient, Client, ClientError, Retries, UnavailableError
from coopbandits.fleet.client.calls import PAGE
from coopbandits.fleet.http.app import make_app
from fleet.http.face_twin import FaceTwin
from fleet.processes import ENVIRONMENT

ACTIONS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
QUICK = Retries(first_wait=0.001, most_wait=0.002, deadline=5.0)
OK, LOST, DOWN = "ok", "the answer is lost", "the node is down"


class Wire(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Carries requests to an application in memory; what becomes of each is said before.

    Attributes:
        faults: Of the next requests; all is well behind them.
        sent: All requests.
    """

    def __init__(self, face, *faults):
        self._app = httpx.ASGITransport(make_app(face))
        self.faults, self.sent = list(faults), []

    async def handle_async_request(self, request):
        self.sent.append(request)
        fault = self.faults.pop(0) if self.faults else OK
        if isinstance(fault, int):
            problem = Problem("/problems/x", "Title", fault, "detail", retry_after=0.001)
            headers = {"content-type": "application/problem+json"}
            return httpx.Response(fault, headers=headers, content=msgspec.json.encode(problem))
        if fault == DOWN:
            raise httpx.ConnectError("refused")
        plain = httpx.Request(request.method, request.url, headers=request.headers,
                              content=request.content)  # fmt: skip
        answer = await self._app.handle_async_request(plain)
        content = await answer.aread()
        if fault == LOST:
            raise httpx.ReadError("reset")
        return httpx.Response(answer.status_code, headers=answer.headers, content=content)

    def handle_request(self, request):
        return asyncio.run(self.handle_async_request(request))


class Waiting:
    """`Client`, as tests use both."""

    def __init__(self, wire, retries=QUICK):
        self._made = lambda: Client("http://127.0.0.1:8080", transport=wire, retries=retries)

    def __getattr__(self, name):
        def call(*given, **more):
            with self._made() as client:
                found = getattr(client, name)(*given, **more)
                return list(found) if name == "log" else found

        return call


class Awaiting(Waiting):
    """`AsyncClient`, as tests use both."""

    def __init__(self, wire, retries=QUICK):
        self._new = lambda: AsyncClient("http://127.0.0.1:8080", transport=wire, retries=retries)

    def __getattr__(self, name):
        async def run(given, more):
            async with self._new() as client:
                if name == "log":
                    return [record async for record in client.log(*given, **more)]
                return await getattr(client, name)(*given, **more)

        return lambda *given, **more: asyncio.run(run(given, more))


both = pytest.mark.parametrize("shell", [Waiting, Awaiting])


@pytest.fixture
def face():
    return FaceTwin(rule="sum")


@both
def test_a_decision_is_taken_rewarded_and_found(face, shell):
    node = shell(Wire(face))
    decision = node.decide(ACTIONS, event_id="an/id?with%#", deferred=True)
    assert decision.action in ACTIONS
    assert node.event("an/id?with%#").state == "deferred"
    assert node.activate(decision.event_id) is None
    assert node.reward(decision.event_id, np.float64(0.5)) is None
    assert node.event(decision.event_id).values == 1
    many = node.decide_many([DecideRequest([Action("a", [1.0])]) for _ in range(3)]).decisions
    assert len({one.event_id for one in many}) == 3
    assert node.status().decisions == 4
    assert node.peers().node == node.similarity().node == "north"


@both
@pytest.mark.parametrize("fault", [LOST, DOWN, 502, 503, 507, 408, 429])
def test_whatever_happens_to_an_answer_each_call_counts_once(face, shell, fault):
    wire = Wire(face, fault, fault)
    node = shell(wire)
    decision = node.decide(ACTIONS)
    assert [*face.events] == [decision.event_id]  # made by the client, and the same in each try
    assert len({request.content for request in wire.sent}) == 1
    assert len(wire.sent) == 3
    wire.faults[:] = [fault, fault]
    node.reward(decision.event_id, 2.0)
    assert face.events[decision.event_id].values == [2.0]
    keys = {request.headers["idempotency-key"] for request in wire.sent[3:]}
    assert (len(keys), len(wire.sent)) == (1, 6)
    wire.faults[:] = [fault]
    many = node.decide_many([DecideRequest([Action("a", [1.0])])] * 2)
    assert len(face.events) == 1 + len(many.decisions) == 3


@both
def test_two_rewards_are_two_though_they_are_alike(face, shell):
    node = shell(Wire(face, OK, LOST, LOST))
    event = node.decide(ACTIONS).event_id
    node.reward(event, 1.0)
    node.reward(event, 1.0)
    assert face.events[event].values == [1.0, 1.0]


@both
def test_what_is_refused_for_good_is_sent_once(face, shell):
    wire = Wire(face)
    with pytest.raises(ClientError, match="refused with 404") as refused:
        shell(wire).reward("nobody", 1.0)
    assert refused.value.kind == "unknown-event"
    assert len(wire.sent) == 1


@both
def test_a_node_that_stays_away_is_given_up_at_the_deadline(face, shell):
    wire = Wire(face, *[DOWN] * 10_000)
    node = shell(wire, Retries(first_wait=0.01, most_wait=0.02, deadline=0.2))
    with pytest.raises(UnavailableError, match="did not succeed within") as given_up:
        node.decide(ACTIONS)
    assert "ConnectError refused" in str(given_up.value)
    assert 2 <= len(wire.sent) < 60
    assert face.events == {}


@both
@pytest.mark.parametrize("limit", [None, 1, PAGE, PAGE + 7, 5_000])
def test_a_log_is_read_page_by_page_each_event_once(face, shell, limit):
    lines = [{"position": 2 * number, "value": number} for number in range(1, 2 * PAGE + 12)]
    face.log = lambda after, most: iter([r for r in lines if r["position"] > after][:most])
    wire = Wire(face, OK, LOST, 503)
    assert shell(wire).log(limit=limit) == lines[:limit]
    wire.faults[:] = []
    assert shell(wire).log(after=2 * PAGE, limit=limit) == lines[PAGE:][:limit]
    for request in wire.sent:
        assert int(request.url.params["limit"]) <= PAGE


def test_a_log_that_grows_while_it_is_read_is_read_to_its_end(face):
    lines = [{"position": number} for number in range(1, 6)]
    face.log = lambda after, most: iter([r for r in lines if r["position"] > after][:most])
    found = []
    with Client("http://127.0.0.1:8080", transport=Wire(face)) as node:
        for record in node.log():
            found.append(record["position"])
            if len(found) == 3:
                lines.append({"position": 6})
    assert found == [1, 2, 3, 4, 5, 6]


@both
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.inf])
def test_numbers_that_are_not_finite_are_refused_before_anything_is_sent(face, shell, bad):
    wire = Wire(face)
    with pytest.raises(NonFiniteError, match="expected a number"):
        shell(wire).reward("one", bad)
    with pytest.raises(NonFiniteError, match="the context of action 'a'"):
        shell(wire).decide({"a": [bad]})
    assert wire.sent == []


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://x", "http://", "http://x:y"])
def test_an_address_that_is_none_is_refused(kind, url):
    with pytest.raises(ParameterError, match="expected a node's, such as"):
        kind(url)


def test_both_clients_have_the_same_methods():
    def methods(kind):
        return {
            name: inspect.signature(method).parameters.keys()
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)
    assert len(methods(Client)) >= 9


def test_the_client_needs_no_numpy():
    """As `pip install 'coopbandits[client]'` leaves it: neither NumPy nor what needs it."""
    code = """
import sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "scipy", "numba", "networkx", "starlette", "zenoh"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuses())
from coopbandits.fleet.client import AsyncClient, Client, Retries
import coopbandits
client = Client("http://127.0.0.1:1", retries=Retries(deadline=0.01))
try:
    client.decide({"a": [1.0, 2.0]})
except coopbandits.errors.CoopBanditsError as error:
    print(type(error).__name__)
client.close()
print(sorted(name for name in sys.modules if name in ("numpy", "scipy")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.stdout.split() == ["UnavailableError", "[]"], done.stderr


def test_records_of_a_log_are_those_that_the_node_wrote(face):
    with Client("http://127.0.0.1:8080", transport=Wire(face)) as node:
        for number in range(3):
            event = node.decide(ACTIONS, event_id=f"e{number}").event_id
            node.reward(event, float(number))
            face.close(event)
        assert [record["reward"] for record in node.log()] == [0.0, 1.0, 2.0]
        assert json.loads(json.dumps([*node.log(after=1)])) == [*node.log()][1:]
