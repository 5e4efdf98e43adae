"""Retries: when a call is tried again, how long to wait before, and when to give up. No I/O.

`attempts` is a generator that whoever does the I/O drives: it yields what to do, is sent what came
of it, and returns the call's result. Time and chance are handed in.
"""

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

import msgspec

from coopbandits.errors import ParameterError
from coopbandits.fleet.api import Problem
from coopbandits.fleet.client.calls import Call
from coopbandits.fleet.client.errors import ClientError, UnavailableError, UnexpectedAnswerError

T = TypeVar("T")

# What another try may mend: every call is safe to send again.
AGAIN = frozenset({408, 429, 502, 503, 504, 507})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often, and for how long, a call is tried.

    Attributes:
        timeout: Seconds that one attempt waits for the node to say something.
        deadline: Seconds in which a call must have succeeded; no attempt begins after them.
        first_wait: Seconds before the second attempt, on average; doubled with each further one.
        most_wait: Seconds before an attempt, at most, where the node asks for no more.
    """

    timeout: float = 5.0
    deadline: float = 30.0
    first_wait: float = 0.05
    most_wait: float = 2.0

    def __post_init__(self) -> None:
        for name in ("timeout", "deadline", "first_wait", "most_wait"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ParameterError(f"{name} is {value}; expected a positive number of seconds")


@dataclass(frozen=True, slots=True)
class Send:
    """Send the call, and wait so many seconds for each of its steps."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Received:
    """An answer came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came: the node was not reached, or the answer was lost."""

    reason: str


Step = Send | Wait
Outcome = Received | Lost | None


def attempts(
    call: Call[T],
    retries: Retries,
    clock: Callable[[], float],
    wall: Callable[[], float],
    chance: Callable[[], float],
) -> Generator[Step, Outcome, T]:
    """Try a call until it succeeds, is refused for good, or the deadline passes.

    Args:
        call: What to send.
        retries: How often and for how long.
        clock: Seconds that never go back.
        wall: Seconds since 1970.
        chance: Uniform numbers in [0, 1).
    """
    end = clock() + retries.deadline
    wait = retries.first_wait
    tries = 0
    while True:
        tries += 1
        outcome = yield Send(min(retries.timeout, max(end - clock(), 0.001)))
        asked = 0.0
        if isinstance(outcome, Received):
            if 200 <= outcome.status < 300:
                return call.result(outcome.status, outcome.body)
            problem = _problem(outcome)
            if outcome.status not in AGAIN:
                raise _refused(call, outcome, problem)
            asked = _retry_after(outcome, problem, wall)
            what = f"the last answer was {_shown(outcome, problem)}"
        elif isinstance(outcome, Lost):
            what = f"no answer came: {outcome.reason}"
        else:
            raise TypeError("attempts expects what came of the call")
        # Half of the wait is left to chance: callers that failed together come back apart.
        pause = max(asked, wait * (0.5 + chance()))
        wait = min(2 * wait, retries.most_wait / 1.5)
        if clock() + pause >= end:
            received = outcome if isinstance(outcome, Received) else None
            raise UnavailableError(
                f"{call.method} {call.path} did not succeed within {retries.deadline:g} s, after "
                f"{tries} {'try' if tries == 1 else 'tries'}; {what}; it is safe to call again "
                "with the same event id",
                received.status if received else None,
                _problem(received) if received else None,
            )
        yield Wait(pause)


def _problem(answer: Received) -> Problem | None:
    if not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return None
    try:
        return msgspec.json.decode(answer.body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _retry_after(answer: Received, problem: Problem | None, wall: Callable[[], float]) -> float:
    """Return how many seconds the node asks to wait: of the problem, or else of the header."""
    if problem is not None and problem.retry_after is not None:
        return max(problem.retry_after, 0.0)
    value = answer.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(parsedate_to_datetime(value).timestamp() - wall(), 0.0)
    return 0.0


def _shown(answer: Received, problem: Problem | None) -> str:
    return f"{answer.status}" + (f" ({problem.detail})" if problem is not None else "")


def _refused(call: Call[T], answer: Received, problem: Problem | None) -> ClientError:
    where = f"{call.method} {call.path}"
    if problem is None:
        return UnexpectedAnswerError(
            f"{where} was answered with {answer.status} and no problem details; is the address a "
            "node's, and does nothing stand between?",
            answer.status,
        )
    return ClientError(
        f"{where} was refused with {answer.status}: {problem.title}: {problem.detail}",
        answer.status,
        problem,
    )
