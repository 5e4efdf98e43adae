"""schemathesis over the OpenAPI document: answers are as documented, whatever is sent."""

import logging

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from coopbandits.fleet.http.app import make_app
from fleet.http.face_twin import FaceTwin

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


NAMES = sorted(operations(FaceTwin()))


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_as_documented(name, mode, caplog):
    caplog.set_level(logging.CRITICAL)
    face = FaceTwin(rule="sum")
    face.last_notes = 2
    operation = operations(face)[name]
    strategy = operation.as_strategy(generation_mode=mode)
    if mode is GenerationMode.NEGATIVE and name not in CASES:
        pytest.skip("there is nothing that could be wrong")

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
        wanted = CHECKS + [checks.negative_data_rejection] * (mode is GenerationMode.NEGATIVE)
        case.validate_response(answer, checks=wanted)

    check()
