import copy

import jsonschema
import pytest

import coopbandits as cb
from coopbandits.errors import ExperimentError
from coopbandits.lab.commands.demo import DEMO
from coopbandits.lab.experiments.experiment import experiment_of
from coopbandits.lab.experiments.reproduce import paper_experiment
from coopbandits.lab.experiments.runner import check
from coopbandits.lab.experiments.schema import experiment_schema
from lab_small import small


@pytest.fixture(scope="module")
def validator():
    schema = experiment_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_good_experiments_pass(validator):
    paper = paper_experiment()
    tables = {room: getattr(paper, room) for room in ("networks", "problems", "policies")}
    files = small(policies={"a": {"file": "policy.toml"}, "b": cb.LinUCB().spec()})
    for good in (small(), DEMO, tables, files):
        assert [error.message for error in validator.iter_errors(good)] == []


CHANGES = {
    "an unknown setting": ((), "trails", 3),
    "no whole number": ((), "trials", 2.5),
    "an unknown argument": (("policies", "eager"), "etta", 1.0),
    "an unknown kind": (("policies", "eager"), "kind", "Eager"),
    "an unknown kernel": (("policies", "eager"), "kernel", "RBV"),
    "a kernel's unknown argument": (
        ("policies", "eager"), "kernel", {"kind": "RBF", "length": 1.0},
    ),
    "an unknown answer": (("policies", "eager"), "say", "Nothing"),
    "an answer's unknown argument": (
        ("policies", "eager"), "say", {"kind": "WhenItPays", "gian": 1.0},
    ),
    "a word for a number": (("networks", "path"), "agents", "four"),
    "an unknown engine": (("policies", "eager"), "engine", "exakt"),
    "no list": (("policies", "eager"), "problems", "linear"),
    "a file and more": (("policies",), "mine", {"file": "policy.toml", "eta": 1.0}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_the_schema_refuses_the_lab_refuses_too(validator, name):
    path, key, value = CHANGES[name]
    tables = copy.deepcopy(small())
    place = tables
    for step in path:
        place = place[step]
    place[key] = value
    assert list(validator.iter_errors(tables))
    with pytest.raises(ExperimentError, match=r"."):
        check(experiment_of(tables))


def test_policies_that_draw_can_be_named(validator):
    answers = {"kernel": "Linear", "similarity": "Same", "width": "Fixed", "listen": "Clique"}
    for table in (
        {"kind": "CoopKernelTS", "kernel": "RBF", "eta": 0.3},
        {"kind": "EagerKernelTS", "kernel": "Linear", "similarity": "truth"},
        {"kind": "Policy", "name": "drawn", "act": "Sample", **answers},
        {"kind": "Policy", "act": "Sample", **answers},  # named after its table
        {"kind": "CoopKernelTS", "kernel": "RBF", "samples": 8},
        {"kind": "Policy", "act": {"kind": "Explore", "act": "Sample", "share": 0.2}, **answers},
    ):
        tables = small(policies={"draws": table})
        assert [error.message for error in validator.iter_errors(tables)] == []
        check(experiment_of(tables))


def test_ones_own_kinds_pass_with_any_arguments(validator):
    tables = small(policies={"mine": {"kind": "mine:policy", "anything": [1, 2]}})
    assert not list(validator.iter_errors(tables))
