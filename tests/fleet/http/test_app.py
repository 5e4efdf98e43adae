import asyncio
import json
import logging
import math
import socket
from urllib.parse import quote

import httpx
import msgspec
import pytest

from coopbandits.fleet.api import (
    Arm,
    DecideReply,
    EventReply,
    PeersReply,
    SimilarityReply,
    StatusReply,
)
from coopbandits.fleet.face import KINDS, RefusedError
from coopbandits.fleet.http.app import make_app
from coopbandits.fleet.http.problems import MOST_DETAIL
from coopbandits.fleet.http.routes import ROUTES
from coopbandits.fleet.http.server import _listen
from fleet.http.asking import BASE, JSON, body, kind_of, say, talk
from fleet.http.face_twin import FaceTwin

DECIDE = ("POST", "/v1/decide")


@pytest.fixture
def face():
    return FaceTwin()


def test_a_decision_is_taken_rewarded_and_found_again(face):
    decided, rewarded, found = talk(
        face,
        (*DECIDE, {"json": body(event_id="one")}),
        ("POST", "/v1/events/one/reward", {"json": {"value": 0.5}}),
        ("GET", "/v1/events/one"),
    )
    reply = msgspec.json.decode(decided.content, type=DecideReply)
    assert (reply.event_id, reply.action, reply.ranking) == ("one", "b", ["b", "a"])
    assert rewarded.status_code == 204
    assert rewarded.content == b""
    assert "content-length" not in rewarded.headers
    event = msgspec.json.decode(found.content, type=EventReply)
    assert (event.state, event.reward, event.values) == ("closed", 0.5, 1)


def test_the_same_id_gets_the_same_answer_and_another_body_409(face):
    first, again, other = talk(
        face,
        (*DECIDE, {"json": body(event_id="one")}),
        (*DECIDE, {"json": body(event_id="one")}),
        (*DECIDE, {"json": body("c", event_id="one")}),
    )
    assert first.content == again.content
    assert other.status_code == 409
    assert kind_of(other) == "event-differs"


def test_several_decisions_are_taken_or_none(face):
    good = {"decisions": [body(event_id="one"), body(event_id="two", deferred=True)]}
    bad = {"decisions": [body(event_id="three"), body("a", "a")]}
    taken, refused, missing, activated, again = talk(
        face,
        ("POST", "/v1/decide-many", {"json": good}),
        ("POST", "/v1/decide-many", {"json": bad}),
        ("GET", "/v1/events/three"),
        ("POST", "/v1/events/two/activate"),
        ("GET", "/v1/events/two"),
    )
    assert [each["event_id"] for each in taken.json()["decisions"]] == ["one", "two"]
    assert kind_of(refused) == "invalid"
    assert kind_of(missing) == "unknown-event"
    assert activated.status_code == 204
    assert again.json()["state"] == "open"


def test_a_key_is_counted_once_and_reaches_the_face(face):
    face.rule = "sum"
    reward = ("POST", "/v1/events/one/reward")
    keyed = {"json": {"value": 2}, "headers": {"idempotency-key": "k-1"}}
    *_, found = talk(
        face,
        (*DECIDE, {"json": body(event_id="one")}),
        (*reward, keyed),
        (*reward, keyed),
        (*reward, {"json": {"value": 2}}),
        ("GET", "/v1/events/one"),
    )
    assert found.json()["values"] == 2


@pytest.mark.parametrize("key", ["", "with blank", "x" * 65, "é"])
def test_a_key_of_another_form_is_refused(face, key):
    answer = say(
        face,
        "POST",
        "/v1/events/one/reward",
        json={"value": 2},
        headers={"idempotency-key": key.encode()},
    )
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["detail"]


@pytest.mark.parametrize("event_id", ["a/b", "a%2Fb", "a/reward", "?", "#", "...", "%", "+"])
def test_every_id_finds_its_own_event(face, event_id):
    path = f"/v1/events/{quote(event_id, safe='')}"
    _, rewarded, found, page = talk(
        face,
        (*DECIDE, {"json": body(event_id=event_id)}),
        ("POST", f"{path}/reward", {"json": {"value": 1}}),
        ("GET", path),
        ("GET", f"{path}/reward"),
    )
    assert rewarded.status_code == 204
    assert found.json()["event_id"] == event_id
    assert kind_of(page) == "method-not-allowed"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/status", StatusReply),
        ("/v1/peers", PeersReply),
        ("/v1/similarity", SimilarityReply),
    ],
)
def test_views_are_of_their_types(face, path, kind):
    assert msgspec.json.decode(say(face, "GET", path).content, type=kind) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_face_refuses_becomes_its_problem(face, kind):
    face.refusal = RefusedError(kind, "why", retry_after=1.2)
    answer = say(face, *DECIDE, json=body())
    assert (answer.status_code, kind_of(answer)) == (KINDS[kind][0], kind)
    assert answer.headers["retry-after"] == "2"
    assert answer.json()["retry_after"] == 1.2
    assert answer.json()["detail"] == "why"


def test_without_a_time_to_wait_no_header_says_so(face):
    face.refusal = RefusedError("stopping", "why")
    answer = say(face, *DECIDE, json=body())
    assert "retry-after" not in answer.headers
    assert "retry_after" not in answer.json()


@pytest.mark.parametrize("failure", [RuntimeError("secret"), RefusedError("nonsense", "secret")])
def test_a_fault_of_the_node_is_logged_and_not_shown(face, failure, caplog):
    face.refusal = failure
    with caplog.at_level(logging.ERROR):
        answer = say(face, *DECIDE, json=body())
    assert (answer.status_code, kind_of(answer)) == (500, "internal")
    assert "secret" not in answer.text
    assert "secret" in caplog.text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_never_leave(face, number, caplog):
    status = face.status
    face.status = lambda: msgspec.structs.replace(status(), agreement=number)
    answer = say(face, "GET", "/v1/status")
    assert (answer.status_code, kind_of(answer)) == (500, "internal")
    assert "not finite" in caplog.text


@pytest.mark.parametrize("path", ["/nothing", "/v1/decide/", "/v1/events/", "//", "/v1", "/%"])
def test_what_is_not_there_is_a_problem(face, path):
    answer = say(face, "GET", BASE + path)
    assert (answer.status_code, kind_of(answer)) == (404, "not-found")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_another_method_is_refused_and_told_which_is_taken(face, route, method):
    answer = say(face, method, route.path.format(event_id="one"))
    assert (answer.status_code, kind_of(answer)) == (405, "method-not-allowed")
    assert answer.headers["allow"] == {"GET": "GET, HEAD", "POST": "POST"}[route.method]


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET"], ids=lambda route: route.name
)
def test_head_gives_the_head_of_get(face, route):
    face.last_notes = 0
    path = route.path.format(event_id="one")
    _, got, head = talk(
        face, (*DECIDE, {"json": body(event_id="one")}), ("GET", path), ("HEAD", path)
    )
    assert head.content == b""
    assert head.status_code == got.status_code == 200
    if route.name != "metrics":  # its length changes with every request
        assert head.headers == got.headers


def test_answers_are_neither_kept_nor_guessed_at(face):
    for path in ("/v1/status", "/v1/log", "/nothing", "/metrics", "/openapi.json"):
        headers = say(face, "GET", path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_the_name_of_an_action_comes_back_as_json_only(face):
    name = "<script>alert(1)</script>\u2028"
    answer = say(face, *DECIDE, json=body(name))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["action"] == name


def test_readiness_follows_the_status_and_health_does_not(face):
    assert say(face, "GET", "/readyz").json() == {"status": "ok"}
    face.ready = False
    answer = say(face, "GET", "/readyz")
    assert (answer.status_code, kind_of(answer)) == (503, "not-ready")
    assert say(face, "GET", "/healthz").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1:80"])
def test_requests_for_another_host_are_refused(face, host):
    answer = say(face, "GET", "/v1/status", headers={"host": host})
    assert (answer.status_code, kind_of(answer)) == (421, "misdirected")


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:9", "[::1]:80", "[::1]", "localhost"])
def test_requests_for_this_machine_are_taken(face, host):
    assert say(face, "GET", "/v1/status", headers={"host": host}).status_code == 200


def test_details_quote_only_the_beginning_of_what_was_sent(face):
    answer = say(face, *DECIDE, content=b'{"%s": 1}' % (b"x" * 100_000), headers=JSON)
    assert kind_of(answer) == "malformed"
    assert len(answer.json()["detail"]) == MOST_DETAIL


def test_the_log_is_json_lines_between_positions(face):
    for number in range(120):
        say(face, *DECIDE, json=body(event_id=str(number)))
        say(face, "POST", f"/v1/events/{number}/reward", json={"value": number})
    whole, part, none = (
        [json.loads(line) for line in answer.text.splitlines()]
        for answer in talk(
            face,
            ("GET", "/v1/log"),
            ("GET", "/v1/log?after=50&limit=60"),
            ("GET", "/v1/log?after=9223372036854775807"),
        )
    )
    assert [line["reward"] for line in whole] == list(range(120))
    assert part == whole[50:110]
    assert none == []


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "after=",
        "after=1.5",
        "limit=0",
        "limit=10001",
        "after=9223372036854775808",
        "after=1&after=2",
        "befor=1",
        "after=%D9%A1",
        "limit=+1",
        "after=1_0",
        "limit=1%0A",
    ],
)
def test_a_query_that_is_not_declared_is_refused(face, query):
    answer = say(face, "GET", f"/v1/log?{query}")
    assert (answer.status_code, kind_of(answer)) == (400, "malformed")


def test_a_log_that_cannot_be_read_is_refused_before_the_answer_begins(face):
    def log(after, most):
        raise RefusedError("stopping", "why")
        yield

    face.log = log
    assert kind_of(say(face, "GET", "/v1/log")) == "stopping"


def test_requests_are_counted_by_route_and_status(face):
    text = talk(
        face,
        (*DECIDE, {"json": body()}),
        (*DECIDE, {"json": {}}),
        ("GET", "/nothing"),
        ("GET", "/metrics"),
    )[-1].text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines['coopbandits_http_requests_total{route="decide",status="200"}'] == "1.0"
    assert lines['coopbandits_http_requests_total{route="decide",status="400"}'] == "1.0"
    assert lines['coopbandits_http_requests_total{route="none",status="404"}'] == "1.0"
    assert lines['coopbandits_http_request_seconds_count{route="decide"}'] == "2.0"
    assert lines["coopbandits_decisions_total"] == "1.0"
    assert lines['coopbandits_refused_messages_total{reason="signature"}'] == "2.0"
    assert float(lines["process_resident_memory_bytes"]) > 0


def test_rewards_are_counted_by_group(face):
    status = face.status()
    arms = {
        "learner": Arm(3, 0.5, 0.1),
        "control": Arm(2, 0.25, None),
        "baseline": Arm(7, -2.0, 1.0),
    }
    rewards = msgspec.structs.replace(status.rewards, **arms)
    face.status = lambda: msgspec.structs.replace(status, rewards=rewards)
    lines = say(face, "GET", "/metrics").text.splitlines()
    for group, arm in arms.items():
        assert f'coopbandits_rewards_total{{group="{group}"}} {arm.count:.1f}' in lines
        assert f'coopbandits_reward_mean{{group="{group}"}} {arm.mean}' in lines


def test_two_applications_count_apart(face):
    say(face, *DECIDE, json=body())
    assert 'route="decide",status="200"' not in say(FaceTwin(), "GET", "/metrics").text


def test_the_page_and_its_files_run_no_script_but_their_own(face, tmp_path):
    for name in ("index.html", "page.css", "page.js", "notes.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    answers = talk(face, ("GET", "/"), ("GET", "/page.css"), ("GET", "/page.js"), page=tmp_path)
    assert [each.text for each in answers] == ["index.html", "page.css", "page.js"]
    assert [each.headers["content-type"].partition(";")[0] for each in answers] == [
        "text/html",
        "text/css",
        "text/javascript",
    ]
    for each in answers:
        assert each.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in each.headers["content-security-policy"]
        assert each.headers["x-content-type-options"] == "nosniff"
    others = talk(face, ("GET", "/notes.txt"), ("GET", "/index.html"), page=tmp_path)
    assert {each.status_code for each in others} == {404}
    assert kind_of(talk(face, ("GET", "/"), page=tmp_path / "none")[0]) == "not-found"


def test_the_installed_page_is_served(face):
    answer = say(face, "GET", "/")
    assert answer.status_code == 200
    assert "<html" in answer.text


def test_an_error_past_all_endpoints_is_a_problem_too(face):
    app = make_app(face)

    async def run():
        async def broken(scope, receive, send):
            raise RuntimeError("secret")

        app.router.routes[0].app = broken  # type: ignore[attr-defined]
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.post("/v1/decide", json=body())

    answer = asyncio.run(run())
    assert (answer.status_code, kind_of(answer)) == (500, "internal")
    assert "secret" not in answer.text


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head():
    listening = _listen("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
