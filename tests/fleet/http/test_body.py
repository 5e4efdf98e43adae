import asyncio
import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from coopbandits.fleet.api import DecideRequest
from coopbandits.fleet.face import RefusedError
from coopbandits.fleet.http import body as bodies
from fleet.http.asking import JSON, body, kind_of, say, talk
from fleet.http.face_twin import FaceTwin

ACTION = '{"id":"a","context":[1]}'


def with_action(text, more=""):
    return f'{{"actions":[{text}]{more}}}'


def with_number(text):
    return with_action(f'{{"id":"a","context":[{text}]}}')


MALFORMED = {
    "nothing": "",
    "half": '{"actions":',
    "two": with_action(ACTION) * 2,
    "byte order mark": "\ufeff" + with_action(ACTION),
    "comment": with_action(ACTION) + "//",
    "NaN": with_number("NaN"),
    "Infinity": with_number("-Infinity"),
    "infinite": with_number("1e999"),
    "too large": with_number("1.1e15"),
    "endless digits": with_number("9" * 5000),
    "boolean": with_number("true"),
    "text": with_number('"1"'),
    "null": with_number("null"),
    "leading zero": with_number("01"),
    "hexadecimal": with_number("0x1"),
    "empty context": with_number(""),
    "no action": '{"actions":[]}',
    "too many": with_action(",".join([ACTION] * 1001)),
    "unknown key": with_action(ACTION, ',"more":1'),
    "empty id": with_action(ACTION, ',"event_id":""'),
    "long id": with_action(ACTION, f',"event_id":"{"x" * 201}"'),
    "blank in id": with_action(ACTION, ',"event_id":"a b"'),
    "newline after id": with_action(ACTION, ',"event_id":"a\\n"'),
    "no segment of a path": with_action(ACTION, ',"event_id":".."'),
    "lone surrogate": with_action('{"id":"\\ud800","context":[1]}'),
    "wrong surrogates": with_action('{"id":"\\udc00\\ud800","context":[1]}'),
    "raw control": with_action('{"id":"a\n","context":[1]}'),
    "array": "[]",
    "deep": "[" * 100_000,
    "deep below": '{"actions":' * 50_000,
    "deep unknown": '{"x":' + "[" * 100_000 + "]" * 100_000 + "}",
    "key twice": with_action(ACTION, ',"deferred":true,"deferred":false'),
    "key twice, first lost": with_action(ACTION, f',"actions":[{ACTION}]'),
    "key twice, escaped": with_action('{"id":"a","\\u0069d":"b","context":[1]}'),
    "key twice, null": with_action(ACTION, ',"event_id":null,"event_id":"x"'),
    "key twice, as a name": with_action('{"id":"deferred","context":[1],"id":"deferred"}'),
    "key twice, in the second": with_action(ACTION + ',{"id":"b","context":[1],"context":[2]}'),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_not_the_declared_json_is_refused(text):
    face = FaceTwin()
    answer = say(face, "POST", "/v1/decide", content=text.encode(), headers=JSON)
    assert (answer.status_code, kind_of(answer)) == (400, "malformed")
    many = f'{{"decisions":[{text}]}}'
    answer = say(face, "POST", "/v1/decide-many", content=many.encode(), headers=JSON)
    if text != with_action(ACTION) * 2 and text:
        assert kind_of(answer) == "malformed"
    assert face.asked == 0


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"], ids=repr
)
def test_invalid_utf_8_is_refused(data):
    content = b'{"actions":[{"id":"%s","context":[1]}]}' % data
    answer = say(FaceTwin(), "POST", "/v1/decide", content=content, headers=JSON)
    assert (answer.status_code, kind_of(answer)) == (400, "malformed")


@pytest.mark.parametrize(
    "text",
    [
        '{"value":1,"value":2}',
        '{"value":NaN}',
        '{"value":1e16}',
        "{}",
        '{"value":1,"v\\u0061lue":2}',
    ],
)
def test_rewards_are_as_strict(text):
    face = FaceTwin()
    answer = say(face, "POST", "/v1/events/x/reward", content=text.encode(), headers=JSON)
    assert (answer.status_code, kind_of(answer)) == (400, "malformed")
    assert face.asked == 0


# Names that look like keys, and characters that must be escaped.
names = st.sampled_from(["id", "deferred", "actions", 'a"id"', "\\", "é", '"', "a:b"]) | st.text(
    st.characters(codec="utf-8"), min_size=1, max_size=5
)
requests = st.fixed_dictionaries(
    {
        "actions": st.lists(
            st.fixed_dictionaries({"id": names, "context": st.just([1.0])}), min_size=1, max_size=4
        )
    },
    optional={
        "event_id": st.none() | st.sampled_from(["deferred", "x"]),
        "exclude": st.lists(names, max_size=2),
        "taken": st.none() | names,
        "deferred": st.booleans(),
    },
)


def written(value, doubled):
    """Write JSON; the object numbered `doubled` has one of its keys twice."""
    count = 0

    def write(each):
        nonlocal count
        if isinstance(each, dict):
            pairs = list(each.items())
            if count == doubled:
                pairs.append(pairs[-1])
            count += 1
            inner = (f"{json.dumps(key)}:{write(one)}" for key, one in pairs)
            return "{" + ",".join(inner) + "}"
        if isinstance(each, list):
            return "[" + ",".join(map(write, each)) + "]"
        return json.dumps(each, ensure_ascii=False)

    return write(value).encode()


@given(requests, st.integers(-1, 4))
def test_exactly_those_texts_are_refused_in_which_a_key_comes_twice(value, doubled):
    data = written(value, doubled)
    if 0 <= doubled <= len(value["actions"]):
        with pytest.raises(RefusedError, match="comes twice"):
            bodies.decode_decide(data)
    else:
        assert bodies.decode_decide(data) == msgspec.convert(value, DecideRequest)


def test_the_shortest_text_takes_no_second_pass(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("a second pass"))
    more = {"event_id": "one", "exclude": ["id"], "taken": "é", "deferred": True}
    request = msgspec.convert(body("a:b", "id", "é", **more), DecideRequest)
    assert bodies.decode_decide(msgspec.json.encode(request)) == request


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/jsonp"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
    ids=str,
)
def test_bodies_of_another_type_are_refused(headers):
    content = json.dumps(body()).encode()
    answer = say(FaceTwin(), "POST", "/v1/decide", content=content, headers=headers)
    assert (answer.status_code, kind_of(answer)) == (415, "unsupported-media-type")


@pytest.mark.parametrize("kind", ["Application/JSON", "application/json; charset=UTF-8"])
def test_json_may_be_named_in_other_ways(kind):
    content = json.dumps(body()).encode()
    answer = say(FaceTwin(), "POST", "/v1/decide", content=content, headers={"content-type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_bodies_may_have_so_many_bytes_and_not_one_more(chunked):
    content = json.dumps(body()).encode()

    async def pieces(data):
        for start in range(0, len(data), 10):
            yield data[start : start + 10]

    def sent(data):
        return {"content": pieces(data) if chunked else data, "headers": JSON}

    limit = len(content)
    fits, large = talk(
        FaceTwin(),
        ("POST", "/v1/decide", sent(content)),
        ("POST", "/v1/decide", sent(content + b" ")),
        body_limit=limit,
    )
    assert fits.status_code == 200
    assert (large.status_code, kind_of(large)) == (413, "too-large")
    assert large.headers["connection"] == "close"


def test_a_body_that_does_not_come_is_not_waited_for():
    async def receive():
        await asyncio.sleep(60)

    with pytest.raises(RefusedError, match="0 bytes of the body came in") as caught:
        asyncio.run(bodies.read([], receive, 100, 0.01))
    assert caught.value.kind == "timeout"


def test_a_body_whose_size_is_said_to_be_too_large_is_not_asked_for():
    async def receive():
        raise AssertionError("asked for")

    headers = [(b"content-length", b"101"), (b"expect", b"100-continue")]
    with pytest.raises(RefusedError, match="more than 100 bytes"):
        asyncio.run(bodies.read(headers, receive, 100, 1.0))


def test_of_a_body_without_end_only_so_much_is_read():
    read = 0

    async def receive():
        nonlocal read
        read += 100
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    with pytest.raises(RefusedError, match="more than 1000 bytes"):
        asyncio.run(bodies.read([], receive, 1000, 1.0))
    assert 1000 < read <= (1 + bodies.DRAINED_BODIES) * 1000 + 200
