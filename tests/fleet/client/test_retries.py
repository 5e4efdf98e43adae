"""When a call is tried again, how long is waited, and when it is given up: no clock, no network."""

from email.utils import formatdate

import msgspec
import pytest

from coopbandits.errors import ParameterError
from coopbandits.fleet.api import Problem
from coopbandits.fleet.client import calls
from coopbandits.fleet.client.errors import ClientError, UnavailableError, UnexpectedAnswerError
from coopbandits.fleet.client.retries import AGAIN, Lost, Received, Retries, Send, Wait, attempts
from coopbandits.fleet.face import KINDS

CALL = calls.reward("one", 0.5)
DONE = Received(204, {}, b"")
WALL = 1_700_000_000.0


def problem(status, retry_after=None, **headers):
    found = Problem("/problems/x", "Title", status, "the detail", retry_after)
    media = {"content-type": "application/problem+json"}
    return Received(status, media | headers, msgspec.json.encode(found))


class Played:
    """Attempts with a clock that only waiting and answering move."""

    def __init__(self, outcomes, retries=None, takes=0.0, chance=0.5):
        self.now, self.waits, self.timeouts = 0.0, [], []
        outcomes = iter(outcomes)
        steps = attempts(
            CALL, retries or Retries(), lambda: self.now, lambda: WALL + self.now, lambda: chance
        )
        outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                self.result = end.value
                return
            except ClientError as error:
                self.error = error
                return
            if isinstance(step, Send):
                self.timeouts.append(step.timeout)
                self.now += takes
                outcome = next(outcomes)
            else:
                assert isinstance(step, Wait)
                self.waits.append(step.seconds)
                self.now += step.seconds
                outcome = None


def forever(outcome):
    while True:
        yield outcome


def test_a_success_needs_one_try():
    played = Played([DONE])
    assert (played.result, played.waits, len(played.timeouts)) == (None, [], 1)


@pytest.mark.parametrize("failure", [Lost("cut"), *(problem(s) for s in sorted(AGAIN))], ids=str)
def test_what_another_try_may_mend_is_tried_again(failure):
    played = Played([failure, failure, DONE])
    assert played.result is None
    assert len(played.timeouts) == 3


def test_all_that_a_node_refuses_for_now_is_tried_again_and_nothing_else_is():
    for kind, (status, _) in KINDS.items():
        played = Played([problem(status), DONE])
        again = kind in ("timeout", "recovering", "stopping", "disk-full")
        assert (len(played.timeouts) == 2) is again, kind
        if not again:
            assert played.error.status == status


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 415, 421, 422, 500])
def test_what_is_refused_for_good_is_an_error_at_once(status):
    played = Played([problem(status)])
    assert type(played.error) is ClientError
    assert played.error.kind == "x"
    assert str(played.error) == (
        f"POST /v1/events/one/reward was refused with {status}: Title: the detail"
    )


def test_an_answer_that_no_node_gives_is_named():
    played = Played([Received(404, {"content-type": "text/html"}, b"<html>")])
    assert type(played.error) is UnexpectedAnswerError
    assert "is the address a node's" in str(played.error)
    odd = Received(200, {}, b"<html>")
    steps = attempts(calls.status(), Retries(), lambda: 0.0, lambda: 0.0, lambda: 0.0)
    next(steps)
    with pytest.raises(UnexpectedAnswerError, match="not what a node answers"):
        steps.send(odd)


def test_waits_double_up_to_a_bound_and_chance_moves_them_by_half():
    retries = Retries(first_wait=0.1, most_wait=1.5, deadline=60.0)
    played = Played([Lost("cut")] * 8 + [DONE], retries)
    assert played.waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0])
    for chance in (0.0, 0.999):
        waits = Played([Lost("cut")] * 8 + [DONE], retries, chance=chance).waits
        assert waits == pytest.approx([w * (0.5 + chance) for w in played.waits])
        assert max(waits) <= retries.most_wait


def test_the_node_says_how_long_to_wait_and_its_problem_goes_before_the_header():
    assert Played([problem(503, 7.5), DONE]).waits == [7.5]
    assert Played([problem(507, 7.5, **{"retry-after": "1"}), DONE]).waits == [7.5]


def test_a_header_says_how_long_to_wait_where_no_problem_does():
    def waits(value):
        return Played([Received(503, {"retry-after": value}, b""), DONE]).waits

    assert waits("7") == [7.0]
    assert waits(formatdate(WALL + 9, usegmt=True)) == pytest.approx([9.0], abs=1.0)
    for odd in (formatdate(WALL - 9, usegmt=True), "soon", "", "-3", "٣"):
        assert waits(odd) == [Retries().first_wait]


def test_what_the_node_asks_for_never_shortens_a_wait():
    retries = Retries(first_wait=1.0, most_wait=10.0)
    assert Played([problem(503, 0.001), DONE], retries).waits == [1.0]


@pytest.mark.parametrize("takes", [0.0, 0.7])
def test_no_attempt_begins_after_the_deadline_and_the_error_says_what_came_last(takes):
    retries = Retries(timeout=5.0, deadline=4.0)
    played = Played(forever(problem(503, 0.5)), retries, takes)
    assert isinstance(played.error, UnavailableError)
    assert played.error.status == 503
    assert played.now <= 4.0 + takes
    assert f"{len(played.timeouts)} tries" in str(played.error)
    assert "the last answer was 503 (the detail)" in str(played.error)
    assert "safe to call again" in str(played.error)


def test_a_node_that_asks_for_more_than_is_left_is_not_waited_for():
    played = Played([problem(507, 100.0)])
    assert isinstance(played.error, UnavailableError)
    assert (played.waits, played.now) == ([], 0.0)
    assert "after 1 try" in str(played.error)


def test_an_attempt_waits_no_longer_than_what_is_left():
    played = Played(forever(Lost("no word")), Retries(timeout=3.0, deadline=5.0), takes=2.0)
    assert played.timeouts[0] == 3.0
    assert played.timeouts[-1] < 3.0
    assert played.error.status is None
    assert "no answer came: no word" in str(played.error)


@pytest.mark.parametrize("name", ["timeout", "deadline", "first_wait", "most_wait"])
@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan")])
def test_seconds_are_positive_numbers(name, value):
    with pytest.raises(ParameterError, match=f"{name} is"):
        Retries(**{name: value})
