"""A policy as plain values and as TOML, and back: nothing is lost, and mistakes are placed."""

import copy
import inspect
import pickle
import tomllib
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import coopbandits as cb
from coopbandits import policies as named
from coopbandits.errors import CoopBanditsError, InputError, ParameterError
from coopbandits.spec.kinds import KINDS
from specs import policies

RBF = cb.kernels.RBF(0.5)
EAGER = cb.EagerKernelUCB(kernel=RBF, similarity=cb.similarity.Evidence(), ttl=2, eta=0.3)


def made(name):
    maker = getattr(named, name)
    kernel = {"kernel": RBF} if "kernel" in inspect.signature(maker).parameters else {}
    return maker(**kernel)


def is_plain(value):
    if type(value) is dict:
        return all(type(key) is str and is_plain(held) for key, held in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return type(value) in (str, int, float, bool)


@pytest.mark.parametrize("name", named.__all__)
def test_every_named_policy_is_its_row_of_answers(name):
    policy = made(name)
    spec = policy.spec()
    assert is_plain(spec)
    assert spec["spec"] == 1
    for form in (spec, policy.to_toml()):
        again = cb.Policy.from_spec(form)
        assert (again.fingerprint, again.name) == (policy.fingerprint, policy.name)


@given(policies())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_row_of_answers_comes_back_with_the_same_fingerprint(policy):
    spec = policy.spec()
    assert is_plain(spec)
    assert tomllib.loads(policy.to_toml()) == spec
    for form in (spec, policy.to_toml()):
        again = cb.Policy.from_spec(form)
        assert again.fingerprint == policy.fingerprint
        assert again.name == policy.name
        assert again.spec() == spec


@pytest.mark.parametrize(
    ("room", "module", "method"),
    [
        ("kernel", cb.kernels, "diagonal"),
        ("listen", cb.listen, "lags"),
        ("width", cb.width, "factor"),
        ("act", cb.act, "score"),
        ("say", cb.say, "speaks"),
        ("features", cb.features, "features"),
        ("similarity", cb.similarity, "learner"),
        ("similarity", cb.similarity, "blocks"),
    ],
)
def test_every_public_answer_has_a_word(room, module, method):
    public = {
        value
        for name, value in vars(module).items()
        if isinstance(value, type) and hasattr(value, method) and not name.startswith("_")
    }
    public -= {cb.features.Remembered, cb.Network}  # no answers
    answers = {value for value in public if not getattr(value, "_is_protocol", False)}
    assert answers
    assert answers <= set(KINDS[room].values())


def test_a_spec_may_name_a_policy_and_use_one_word_for_a_table():
    text = """
    spec = 1
    name = "mine"
    kind = "EagerKernelUCB"
    kernel = "RBF"
    eta = 0.3
    intercept = 3
    similarity = { kind = "Clusters", labels = { north = "cold", south = "warm" } }
    """
    policy = cb.Policy.from_spec(text)
    assert policy.name == "mine"
    assert policy.fingerprint == (
        cb.EagerKernelUCB(
            kernel=cb.kernels.RBF(),
            eta=0.3,
            intercept=3.0,
            similarity=cb.similarity.Clusters({"north": "cold", "south": "warm"}),
        ).fingerprint
    )


def test_arms_are_read_as_python_has_them():
    arm, context = cb.arms.Table.separate(2), cb.kernels.Linear()
    policy = cb.KernelUCB(kernel=cb.arms.kernel(arm=arm, context=context))
    spec = {
        "spec": 1,
        "kind": "KernelUCB",
        "kernel": {
            "kind": "arms",
            "arm": {"kind": "Table", "matrix": [[1, 0], [0, 1]]},
            "context": "Linear",
        },
    }
    assert cb.Policy.from_spec(spec).fingerprint == policy.fingerprint


def test_a_policy_file_reads_well():
    assert cb.LinUCB(eta=0.3).to_toml() == (
        'spec = 1\nname = "LinUCB"\nttl = 1\nridge = 1.0\ncompose = "hadamard"\nscale = 1.0\n\n'
        '[kernel]\nkind = "Linear"\nlengthscale = 1.0\n\n[listen]\nkind = "Myself"\n\n'
        '[similarity]\nkind = "Alone"\n\n[width]\nkind = "Fixed"\neta = 0.3\n\n'
        '[act]\nkind = "UpperBound"\n\n[say]\nkind = "Everything"\n'
    )


def test_long_arrays_are_broken_into_lines(rng):
    matrix = np.cov(rng.normal(size=(30, 90)))
    labels = cb.similarity.Clusters(rng.integers(9, size=300))
    for K_z in (cb.similarity.Known(matrix=matrix), labels):
        policy = replace(EAGER, similarity=K_z)
        text = policy.to_toml()
        assert cb.Policy.from_spec(text).fingerprint == policy.fingerprint
    assert max(map(len, text.splitlines())) <= 88


class Mine:
    def factor(self, *, logdet, count, ridge, agents):
        return np.ones(len(logdet))


class MyRBF(cb.kernels.RBF):
    pass


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"width": Mine()}, r"width: a policy file knows no width .*Mine.*in Python"),
        ({"kernel": MyRBF()}, r"kernel: a policy file knows no kernel MyRBF"),
        ({"kernel": RBF * MyRBF()}, r"kernel\.right: a policy file knows no kernel MyRBF"),
        ({"width": cb.width.InformationGain(gain=abs)}, r"width\.gain: .*cannot be written"),
    ],
    ids=["own width", "own kernel", "own part of a kernel", "a function"],
)
def test_an_answer_of_ones_own_is_refused(changes, complaint):
    with pytest.raises(ParameterError, match=complaint):
        replace(EAGER, **changes).spec()


def test_a_composition_of_ones_own_is_refused():
    class Half(type(EAGER.compose)):
        pass

    with pytest.raises(ParameterError, match=r"compose: .*cannot be written"):
        replace(EAGER, compose=Half()).to_toml()


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("spec",), None, r"^spec: spec is missing; expected spec = 1"),
        (("spec",), 2, r"^spec: .*version 2.*reads 1; install a newer"),
        (("spec",), "1", r"^spec: spec = '1' is no version"),
        (("spec",), True, r"^spec: spec = True is no version"),
        (("name",), 3, r"^name: name must be a text, got 3"),
        (("kind",), "EagerKernelUCBB", r"^kind: there is no policy .*did you mean"),
        (("kind",), "CLUB", r"^kind: there is no policy 'CLUB'"),
        (("kernel", "lengthscale"), -1.0, r"^kernel\.lengthscale: lengthscale must be above 0"),
        (("kernel", "lengthscale"), "long", r"^kernel\.lengthscale: .*must be a number, got 'long"),
        (("kernel", "lenghtscale"), 1.0, r"^kernel\.lenghtscale: RBF knows no.*'lengthscale'\?"),
        (("kernel", "kind"), "RBV", r"^kernel\.kind: there is no kernel 'RBV'; did you mean 'RBF'"),
        (("kernel", "kind"), 3, r"^kernel\.kind: there is no kernel 3; expected a name"),
        (("kernel", "kind"), None, r"^kernel: the kernel has no kind; expected one of Linear"),
        (("kernel",), None, r"^kernel: Policy needs kernel = …, which is not given"),
        (("kernel",), 3, r"^kernel: 3 is no kernel; expected a table with a kind"),
        (("similarity", "features"), {"kind": "Fourier", "count": 3},
         r"^similarity\.features: the number of features must be even, got 3"),
        (("similarity", "noise"), date(2026, 1, 1), r"^similarity\.noise: noise must be a number"),
        (("ttl",), 0, r"^ttl: ttl must be a whole number >= 1, got 0"),
        (("ridge",), "x", r"^ridge: ridge must be a number, got 'x'"),
        (("compose",), "xor", r"^compose: compose='xor' is not known"),
        (("scaling",), {"kind": "Scaling", "shift": 0, "spread": [1, 0]},
         r"^scaling\.spread: .*spread must be above 0"),
        (("forget",), {"kind": "Exponential", "half_life": 0}, r"^forget\.half_life: .*above 0"),
        (("eta",), 0.3, r"^eta: Policy knows no 'eta'"),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(path, value, complaint):
    spec = EAGER.spec()
    place = spec
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(InputError, match=complaint) as caught:
        cb.Policy.from_spec(spec)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (None, r"None is no spec.*policy\.spec\(\)"),
        ([1], r"\[1\] is no spec"),
        ("policy.toml", r"no TOML.*opens no file"),
        ("spec = ", "no TOML"),
    ],
    ids=str,
)
def test_what_is_no_spec_is_refused(spec, complaint):
    with pytest.raises(ParameterError, match=complaint):
        cb.Policy.from_spec(spec)


def places(table, path=()):
    """Every place of a spec."""
    for key, value in table.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


junk = st.one_of(
    st.none(),
    st.integers(-2, 2**80),
    st.floats(),
    st.text(max_size=3),
    st.booleans(),
    st.lists(st.integers() | st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just(date(2026, 1, 1)),
)


@given(policies(), junk, st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_anything_at_any_place_is_taken_or_refused_in_our_words(policy, value, data):
    spec = copy.deepcopy(policy.spec())
    path = data.draw(st.sampled_from(list(places(spec))))
    place = spec
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    try:
        again = cb.Policy.from_spec(spec)
    except CoopBanditsError as error:
        assert str(error)  # noqa: PT017
    else:
        assert cb.Policy.from_spec(again.to_toml()).fingerprint == again.fingerprint
