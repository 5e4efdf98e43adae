"""The clients: what calls say and retries decide, carried out by httpx, waiting or awaiting."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from coopbandits.errors import ParameterError
from coopbandits.fleet.api import (
    DecideManyReply,
    DecideReply,
    DecideRequest,
    EventReply,
    PeersReply,
    SimilarityReply,
    StatusReply,
)
from coopbandits.fleet.client import calls
from coopbandits.fleet.client.calls import Actions, Call
from coopbandits.fleet.client.retries import Lost, Outcome, Received, Retries, Send, attempts

T = TypeVar("T")


class Client:
    """A node, to code that waits. It may be shared by threads.

    Args:
        url: The node's address, such as "http://127.0.0.1:8080".
        retries: How often and for how long a call is tried.
        transport: What carries requests, in place of the network; as httpx has it.
    """

    def __init__(
        self,
        url: str,
        *,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retries = retries or Retries()
        # Proxies of the environment do not lead to a node on this machine.
        self._http = httpx.Client(base_url=_address(url), transport=transport, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def decide(
        self,
        actions: Actions,
        event_id: str | None = None,
        exclude: Iterable[str] = (),
        taken: str | None = None,
        deferred: bool = False,
    ) -> DecideReply:
        """Ask which action to take.

        Args:
            actions: Contexts by the actions' ids, or `Action`s.
            event_id: By which the reward will name this decision; made, if not given.
            exclude: Ids of actions that must not be taken this time.
            taken: Which action an outside policy takes; only of a node in mode "apprentice".
            deferred: Whether the event waits for `activate`.
        """
        return self._run(calls.decide(actions, event_id, exclude, taken, deferred))

    def decide_many(self, requests: Iterable[DecideRequest]) -> DecideManyReply:
        """Ask for several decisions; all are taken, or none."""
        return self._run(calls.decide_many(requests))

    def reward(self, event_id: str, value: float) -> None:
        """Say what a decision brought; when this returns, it is durable and counts once."""
        self._run(calls.reward(event_id, value))

    def activate(self, event_id: str) -> None:
        """Let a deferred event count from now on."""
        self._run(calls.activate(event_id))

    def event(self, event_id: str) -> EventReply:
        """Return what became of an event."""
        return self._run(calls.event(event_id))

    def status(self) -> StatusReply:
        """Return how the node is."""
        return self._run(calls.status())

    def peers(self) -> PeersReply:
        """Return all sites as the node sees them."""
        return self._run(calls.peers())

    def similarity(self) -> SimilarityReply:
        """Return whom the node trusts."""
        return self._run(calls.similarity())

    def log(self, after: int = 0, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield closed events, as `coopbandits.records.Logged.from_dict` reads them.

        Args:
            after: The `position` behind which to begin.
            limit: How many at most; None for all.
        """
        pages = calls.LogPages(after, limit)
        while (call := pages.next_call()) is not None:
            yield from pages.take(self._run(call))

    def _run(self, call: Call[T]) -> T:
        steps = attempts(call, self._retries, time.monotonic, time.time, random.random)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                return end.value
            outcome = None
            if isinstance(step, Send):
                try:
                    answer = self._http.request(**_arguments(call, step))
                    outcome = Received(answer.status_code, answer.headers, answer.content)
                except httpx.RequestError as error:
                    outcome = _lost(error)
            else:
                time.sleep(step.seconds)


class AsyncClient:
    """A node, to code that awaits. It belongs to one event loop; methods are those of `Client`.

    Args:
        url: The node's address, such as "http://127.0.0.1:8080".
        retries: How often and for how long a call is tried.
        transport: What carries requests, in place of the network; as httpx has it.
    """

    def __init__(
        self,
        url: str,
        *,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = retries or Retries()
        self._http = httpx.AsyncClient(base_url=_address(url), transport=transport, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def decide(
        self,
        actions: Actions,
        event_id: str | None = None,
        exclude: Iterable[str] = (),
        taken: str | None = None,
        deferred: bool = False,
    ) -> DecideReply:
        """Ask which action to take; see `Client.decide`."""
        return await self._run(calls.decide(actions, event_id, exclude, taken, deferred))

    async def decide_many(self, requests: Iterable[DecideRequest]) -> DecideManyReply:
        """Ask for several decisions; all are taken, or none."""
        return await self._run(calls.decide_many(requests))

    async def reward(self, event_id: str, value: float) -> None:
        """Say what a decision brought; when this returns, it is durable and counts once."""
        await self._run(calls.reward(event_id, value))

    async def activate(self, event_id: str) -> None:
        """Let a deferred event count from now on."""
        await self._run(calls.activate(event_id))

    async def event(self, event_id: str) -> EventReply:
        """Return what became of an event."""
        return await self._run(calls.event(event_id))

    async def status(self) -> StatusReply:
        """Return how the node is."""
        return await self._run(calls.status())

    async def peers(self) -> PeersReply:
        """Return all sites as the node sees them."""
        return await self._run(calls.peers())

    async def similarity(self) -> SimilarityReply:
        """Return whom the node trusts."""
        return await self._run(calls.similarity())

    async def log(self, after: int = 0, limit: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield closed events; see `Client.log`."""
        pages = calls.LogPages(after, limit)
        while (call := pages.next_call()) is not None:
            for record in pages.take(await self._run(call)):
                yield record

    async def _run(self, call: Call[T]) -> T:
        steps = attempts(call, self._retries, time.monotonic, time.time, random.random)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                return end.value
            outcome = None
            if isinstance(step, Send):
                try:
                    answer = await self._http.request(**_arguments(call, step))
                    outcome = Received(answer.status_code, answer.headers, answer.content)
                except httpx.RequestError as error:
                    outcome = _lost(error)
            else:
                await asyncio.sleep(step.seconds)


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ParameterError(f"url is {url!r}; expected a node's, such as 'http://127.0.0.1:8080'")
    return address


def _arguments(call: Call[T], step: Send) -> dict[str, Any]:
    return {
        "method": call.method,
        "url": call.path,
        "content": call.body or None,
        "headers": call.headers,
        "timeout": step.timeout,
    }


def _lost(error: httpx.RequestError) -> Lost:
    return Lost(f"{type(error).__name__} {error}".strip())
