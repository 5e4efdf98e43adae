import math
import tomllib

from hypothesis import given, strategies as st

from coopbandits.lab.experiments.toml_text import keys_of, line_of, to_toml

TEXT = """\
# an experiment
trials = 3

[networks."Erdős-Rényi"]   # a name with blanks and such
kind = "erdos_renyi"
agents = 20

[policies.eager]
kind = "EagerKernelUCB"
kernel = { kind = "RBF", lengthscale = 0.5 }
labels = [
  1,
  2,
]
ttl = 2
similarity.kind = "Evidence"
"""

plain = st.one_of(
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
keys = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(keys, st.dictionaries(keys, values, max_size=3), min_size=1, max_size=3)


@given(
    settings=st.dictionaries(keys, plain | st.lists(plain, max_size=3), max_size=3), rooms=tables
)
def test_what_is_written_is_read_back(settings, rooms):
    whole = {**settings, **{room: {"entry": table} for room, table in rooms.items()}}
    assert tomllib.loads(to_toml(whole)) == whole


def test_infinity_and_nan_are_written_as_toml_has_them():
    read = tomllib.loads(to_toml({"a": math.inf, "b": -math.inf, "c": math.nan}))
    assert (read["a"], read["b"]) == (math.inf, -math.inf)
    assert math.isnan(read["c"])


def test_a_key_is_found_in_its_line():
    for path, line in {
        ("trials",): 2,
        ("networks", "Erdős-Rényi"): 4,
        ("networks", "Erdős-Rényi", "agents"): 6,
        ("policies", "eager", "kernel"): 10,
        ("policies", "eager", "kernel", "lengthscale"): 10,
        ("policies", "eager", "ttl"): 15,
        ("policies", "eager", "similarity", "kind"): 16,
        ("policies", "eager", "not there"): 8,
        ("policies", "other"): None,
    }.items():
        assert line_of(TEXT, path) == line, path


def test_keys_of_an_assignment():
    assert keys_of('policies."a b".eta = 0') == ("policies", "a b", "eta")
    assert keys_of("no assignment") == ()
