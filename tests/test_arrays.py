from fractions import Fraction

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.arrays import (
    as_choice,
    as_count,
    as_flag,
    as_floats,
    as_number,
    as_seed,
    check_size,
    is_listing,
    is_real,
    is_whole,
    short,
)
from coopbandits.errors import ParameterError, ShapeError

SPANS = [np.timedelta64(3, "s"), np.timedelta64(3), np.datetime64("2020-01-01")]
TEXTS = np.array(["auto", "growing"])


@pytest.mark.parametrize("value", SPANS, ids=repr)
def test_a_span_or_a_point_of_time_is_no_number(value):
    assert not is_whole(value)
    assert not is_real(value)
    with pytest.raises(ParameterError, match=r"dim must be a number, got np\.(time|date)"):
        as_number(value, "dim")
    with pytest.raises(
        ParameterError, match=r"dim must be a whole number >= 1, got np\.(time|date)"
    ):
        as_count(value, "dim")
    for many in ([value, value], np.array([value, value]), [1.0, value]):
        with pytest.raises(ShapeError, match="contexts must be an array of numbers"):
            as_floats(many, "contexts")


@pytest.mark.parametrize("value", [3, np.int8(3), 3.0, np.float32(3), Fraction(3), np.array(3.0)])
def test_numbers_of_all_kinds_are_numbers(value):
    assert as_number(value, "dim") == 3.0
    np.testing.assert_array_equal(as_floats([value, value], "contexts"), [3.0, 3.0])


def test_a_choice_is_one_of_its_texts():
    assert as_choice("b", "way", ("a", "b")) == "b"
    assert type(as_choice(np.str_("b"), "way", ("a", "b"))) is str
    with pytest.raises(ParameterError, match=r"^way='d' is not known; expected 'a', 'b' or 'c'$"):
        as_choice("d", "way", ("a", "b", "c"))
    with pytest.raises(ParameterError, match=r"^way=3 is not known; expected 'a' or a number$"):
        as_choice(3, "way", ["a"], otherwise="a number")
    with pytest.raises(ParameterError, match=r"^way=None is not known; expected 'a'$"):
        as_choice(None, "way", ["a"])


def _play(**options):
    network = cb.Network.path(2)
    return cb.play(cb.problems.clustered_linear(network), cb.LinUCB(), 2, **options)


def _gains(of):
    problem = cb.problems.clustered_linear(cb.Network.path(2), dim=2)
    policy = cb.LinUCB()
    return cb.theory.run_gains(problem, policy, cb.play(problem, policy, 2), of=of)


@pytest.mark.parametrize(
    ("option", "call"),
    {
        "engine": lambda text: _play(engine=text),
        "compose": lambda text: cb.CoopKernelUCB(kernel=cb.kernels.RBF(), compose=text),
        "follow": lambda text: cb.DistKernelUCB(kernel=cb.kernels.RBF(), follow=text),
        "refresh": lambda text: cb.similarity.Evidence(refresh=text),
        "sample": lambda text: cb.similarity.MeanEmbedding(sample=text),
        "source": lambda text: cb.theory.gain_rate(cb.kernels.RBF(), 5, dim=2, source=text),
        "of": _gains,
    }.items(),
)
@pytest.mark.parametrize(
    "given", [TEXTS, np.array("auto"), ["auto"], b"auto", None, 3, np.nan, str], ids=repr
)
def test_an_option_that_is_a_text_takes_nothing_else(option, call, given):
    with pytest.raises(ParameterError, match=f"{option}=.* is not known; expected '"):
        call(given)


def test_a_bandwidth_is_one_number_or_a_text():
    with pytest.raises(ParameterError, match="bandwidth must be a number"):
        cb.similarity.MeanEmbedding(bandwidth=np.array([1.0, 2.0]))
    with pytest.raises(
        ParameterError, match=r"bandwidth='mean' is not known.*'median' or a number"
    ):
        cb.similarity.MeanEmbedding(bandwidth="mean")
    assert cb.similarity.MeanEmbedding(bandwidth="median").bandwidth == "median"


def test_what_is_too_large_is_refused_with_its_size():
    check_size(10**4, 10**4, what="a table", advice="take fewer rows")
    refused = r"a table would take 80 GB for 10,000 × 1,000,000 numbers; .* 2 GB; take fewer rows"
    with pytest.raises(ParameterError, match=refused):
        check_size(10**4, 10**6, what="a table", advice="take fewer rows")
    with pytest.raises(ParameterError, match=r"would take inf GB"):
        check_size(10.0**300, 10.0**300, what="a table", advice="take fewer rows")


def test_what_cannot_be_spelt_out_is_named_by_its_kind():
    class Silent:
        def __repr__(self):
            raise RuntimeError("no words")

    assert short(Silent()) == "a value of type Silent"
    with pytest.raises(
        ParameterError, match="dim must be at most 2147483648, got a value of type int"
    ):
        as_count(10**5000, "dim")


def test_a_list_is_a_sequence_or_an_array_with_a_first_axis():
    for many in ([], (1,), range(3), np.ones(2), np.eye(2)):
        assert is_listing(many)
    for other in (None, 3, "ab", b"ab", {}, {1}, np.array(3), np.ndarray, np, iter([1])):
        assert not is_listing(other)
    assert not is_listing(range(10**30))
    with pytest.raises(
        ShapeError, match=r"contexts must be an array of numbers.*got range\(0, 1000"
    ):
        as_floats(range(10**12), "contexts")


def test_a_flag_is_true_or_false():
    assert as_flag(True, "unit")
    assert not as_flag(False, "unit")
    for other in (None, 1, "True", np.array([True, False])):
        with pytest.raises(ParameterError, match="unit must be True or False, got"):
            as_flag(other, "unit")


def faced(problem):
    return problem.round(1, 0).expected


SEEDED = {
    "a network": lambda seed: cb.Network.erdos_renyi(30, 0.3, seed=seed),
    "another network": lambda seed: cb.Network.barabasi_albert(30, 2, seed=seed),
    "linear tasks": lambda seed: faced(cb.problems.clustered_linear(PATH, seed=seed)),
    "functions": lambda seed: faced(cb.problems.kernel(PATH, seed=seed)),
    "one function": lambda seed: faced(cb.problems.fully_cooperative(PATH, seed=seed)),
    "arms": lambda seed: faced(cb.problems.arms(PATH, seed=seed)),
    "a run": lambda seed: cb.play(WORLD, cb.Uniform(), rounds=20, seed=seed).rewards,
    "an agent": lambda seed: [
        agent.decide(np.eye(9)).index
        for agent in [cb.Uniform().agent(0, PATH, seed=seed)]
        for _ in range(20)
    ],
}
PATH = cb.Network.path(3)
WORLD = cb.problems.clustered_linear(PATH)


@pytest.mark.parametrize("made", SEEDED.values(), ids=SEEDED)
def test_a_seed_may_be_drawn_from_a_generator_or_be_any(made):
    def same(one, other):
        return one == other if isinstance(one, cb.Network) else np.array_equal(one, other)

    drawn = [made(np.random.default_rng(4)) for _ in range(2)]
    assert same(*drawn)
    seed = as_seed(np.random.default_rng(4))
    assert same(drawn[0], made(seed))
    rng = np.random.default_rng(4)
    assert not same(made(rng), made(rng))  # each call draws its own
    assert not same(made(None), made(None))


def test_seeds_that_are_none_are_refused():
    for seed in (-1, 1.0, "1", True, 2**129, np.random.RandomState(0), [1]):
        with pytest.raises(ParameterError, match=r"seed must be "):
            as_seed(seed)
    with pytest.raises(ParameterError, match=r"got 'x'; a numpy\.random\.Generator, or None"):
        cb.play(WORLD, cb.Uniform(), rounds=1, seed="x")
    assert as_seed(np.int64(3)) == 3
    assert as_seed(2**100) == 2**100
    assert 0 <= as_seed(None) < 2**63


@pytest.mark.parametrize("seed", [None, np.random.default_rng(0)], ids=["None", "a generator"])
def test_where_a_seed_must_be_said_none_will_do(seed):
    with pytest.raises(ParameterError, match=r"whole number >= 0.*part of the policy, the same"):
        cb.features.Fourier(64, seed=seed)
    policy = cb.OFUL()
    run = cb.play(WORLD, policy, rounds=2)
    with pytest.raises(ParameterError, match=r"whole number >= 0.*the seed that play was given"):
        cb.theory.run_bound(WORLD, policy, run, seed=seed)
