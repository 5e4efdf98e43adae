"""schemathesis over the OpenAPI document: a node answers as documented, whatever is sent."""

import asyncio
import logging
from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from coopbandits.fleet.api import Action, DecideRequest
from coopbandits.fleet.face import Decide
from coopbandits.fleet.http.app import make_app
from fleet.http.core_face import CoreFace

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
# 2,000 cases in all; an operation without parameters has one request to offer.
CASES = {
    "decide": 300,
    "decide-many": 100,
    "reward": 300,
    "activate": 100,
    "event": 100,
    "log": 100,
}


def schema_of(face):
    return schemathesis.openapi.from_asgi("/openapi.json", make_app(face, hosts=None))


def operations(face):
    return {
        each.ok().definition.raw["operationId"]: each.ok()
        for each in schema_of(face).get_all_operations()
    }


NAMES = sorted(operations(CoreFace()))


# What takes no parameters cannot be asked wrongly.
ASKED = [(name, GenerationMode.POSITIVE) for name in NAMES]
ASKED += [(name, GenerationMode.NEGATIVE) for name in CASES]


@pytest.mark.parametrize(("name", "mode"), ASKED, ids=lambda given: getattr(given, "value", given))
def test_answers_are_as_documented(name, mode, caplog):
    caplog.set_level(logging.CRITICAL)
    face = CoreFace()
    asyncio.run(face.ask(Decide(DecideRequest([Action("a", [1.0])], event_id="known"))))
    operation = operations(face)[name]
    strategy = operation.as_strategy(generation_mode=mode)
    answered = Counter()

    @settings(
        max_examples=CASES.get(name, 1),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
        deadline=None,
    )
    @given(case=strategy)
    def check(case):
        answer = case.call()
        answered[answer.status_code] += 1
        wanted = CHECKS + [checks.negative_data_rejection] * (mode is GenerationMode.NEGATIVE)
        case.validate_response(answer, checks=wanted)

    check()
    refused = {"event": {404}, "reward": {204, 404}, "activate": {404}}
    if mode is GenerationMode.POSITIVE:
        assert answered.keys() & refused.get(name, {200}), answered
