"""The same node behind FastAPI: its two busiest routes, as the framework's documents write them.

Bodies and answers are pydantic models of what `coopbandits.fleet.api` declares.
"""

from types import SimpleNamespace
from typing import Annotated, Literal

import msgspec
from fastapi import FastAPI, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from coopbandits.fleet import api
from coopbandits.fleet.face import Decide, Face, RefusedError, Reward

Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Identifier = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class Action(BaseModel):
    """One action that may be taken."""

    model_config = ConfigDict(extra="forbid")
    id: Name
    context: Annotated[list[Number], Field(min_length=1, max_length=10_000)]


class DecideRequest(BaseModel):
    """Ask for a decision."""

    model_config = ConfigDict(extra="forbid")
    actions: Annotated[list[Action], Field(min_length=1, max_length=1000)]
    event_id: Identifier | None = None
    exclude: list[Name] = []
    taken: Name | None = None
    deferred: bool = False


class Score(BaseModel):
    """What is believed of one action's reward."""

    id: str
    mean: float
    std: float
    upper: float


class DecideReply(BaseModel):
    """A decision."""

    event_id: str
    action: str
    ranking: list[str]
    scores: list[Score]
    propensity: float | None
    model_version: str
    mode: Literal["online", "apprentice", "off"]
    group: Literal["learner", "control", "baseline"]


class RewardRequest(BaseModel):
    """Say what a decision brought."""

    model_config = ConfigDict(extra="forbid")
    value: Number


def make(face: Face) -> FastAPI:
    """Make the application."""
    app = FastAPI()
    app.state.notes = SimpleNamespace(close=lambda: None)

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> Response:
        return JSONResponse({"type": error.kind, "detail": error.detail}, status_code=409)

    @app.post("/v1/decide")
    async def decide(request: DecideRequest) -> DecideReply:
        asked = api.DecideRequest(
            actions=[api.Action(one.id, one.context) for one in request.actions],
            event_id=request.event_id,
            exclude=request.exclude,
            taken=request.taken,
            deferred=request.deferred,
        )
        reply = await face.ask(Decide(asked))
        assert isinstance(reply, api.DecideReply)
        return DecideReply.model_validate(msgspec.to_builtins(reply))

    @app.post("/v1/events/{event_id}/reward", status_code=204)
    async def reward(
        event_id: Annotated[str, Path(max_length=200)], request: RewardRequest
    ) -> None:
        await face.ask(Reward(event_id, request.value))

    return app
