import pickle

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.decision_sets.decision_set import as_decision_set, covering
from coopbandits.errors import NonFiniteError, ParameterError, ShapeError

TRIANGLE = cb.Polytope([[1.0, 1.0]], [1.0], [0.0, 0.0])
SIMPLEX = cb.Polytope([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], [1.0, -1.0], [0.0, 0.0, 0.0])
SETS = {
    "box": cb.Box([-1.0, 2.0], [1.0, 5.0]),
    "pinned box": cb.Box([-1.0, 2.0, 0.5], [1.0, 2.0, 0.5]),
    "point": cb.Box([0.25], [0.25]),
    "triangle": TRIANGLE,
    "simplex": SIMPLEX,
    "diamond": cb.Polytope([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 1, 1, 1]),
    "vertex": cb.Polytope([[1.0, 1.0]], [0.0], [0.0, 0.0]),
    "sliver": cb.Polytope([[1.0, -1.0], [-1.0, 1.0]], [1e-3, 1e-3], [0.0, 0.0], [1.0, 1.0]),
}


@pytest.mark.parametrize("name", SETS)
class TestEverySet:
    def test_contains_what_is_drawn_from_it_and_its_corners(self, name, rng):
        own = SETS[name]
        for X in (own.sample(rng, 200), own.corners(rng, 16), own.spread):  # type: ignore[attr-defined]
            assert X.shape[1] == own.dim
            assert own.contains(X).all()
            # exactly, up to the last bits
            assert (own.b[:, None] + 1e-12 >= own.A @ X.T).all()
        assert len(own.sample(rng, 7)) == 7

    def test_does_not_contain_what_lies_outside_of_its_box(self, name):
        own = SETS[name]
        assert not own.contains(np.array([own.high + 0.1, own.low - 0.1])).any()

    def test_the_nearest_point_is_no_further_than_any_other(self, name, rng):
        own = SETS[name]
        X = own.sample(rng, 2000)
        for x in rng.normal(scale=3.0, size=(20, own.dim)):
            nearest = own.nearest(x)  # type: ignore[attr-defined]
            assert own.contains(nearest[None])[0]
            distance = np.linalg.norm(nearest - x)
            assert distance <= np.linalg.norm(X - x, axis=1).min() + 1e-9
        np.testing.assert_array_equal(own.nearest(X[3]), X[3])  # type: ignore[attr-defined]

    @pytest.mark.parametrize("scale", [1e6, 1e12, 1e50])
    def test_from_far_away_no_point_lies_further_that_way_than_the_nearest(self, name, rng, scale):
        own = SETS[name]
        X = own.sample(rng, 200)
        for x in rng.normal(size=(20, own.dim)):
            nearest = own.nearest(scale * x)  # type: ignore[attr-defined]
            assert own.contains(nearest[None])[0]
            assert ((X - nearest) @ x).max() < 1e-5 * np.linalg.norm(x)

    def test_is_a_value(self, name):
        own = SETS[name]
        again = pickle.loads(pickle.dumps(own))
        assert again == own
        assert hash(again) == hash(own)
        assert all(own != other for key, other in SETS.items() if key != name)
        with pytest.raises(ValueError, match="read-only"):
            own.low[0] = 3.0


def test_points_of_a_box_cover_it_more_evenly_than_chance(rng):
    # the largest gap between neighbours, against that of independent uniform points
    even, chance = np.sort(covering(rng, 200, 1)[:, 0]), np.sort(rng.random(200))
    assert np.diff(even).max() < 0.5 * np.diff(chance).max()
    cells = np.unique((covering(rng, 400, 2) * 10).astype(int), axis=0)
    assert len(cells) == 100


def test_one_draw_is_uniform(rng):
    firsts = np.sort([cb.Box([0.0], [1.0]).sample(rng, 1)[0, 0] for _ in range(400)])
    assert np.abs(firsts - np.linspace(0, 1, 400)).max() < 0.1  # Kolmogorov: 7 in 10,000


def test_walks_through_a_simplex_have_the_moments_of_a_uniform_law(rng):
    X = SIMPLEX.sample(rng, 4000)
    np.testing.assert_allclose(X.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(X.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(X.var(axis=0), 1 / 18, atol=0.006)  # that of Dirichlet(1, 1, 1)


def test_corners_are_all_of_few_and_some_of_many(rng):
    assert len(np.unique(cb.Box([0.0] * 4, [1.0] * 4).corners(rng, 64), axis=0)) == 16
    some = cb.Box([0.0] * 30, [1.0] * 30).corners(rng, 64)
    assert some.shape == (64, 30)
    assert np.isin(some, [0.0, 1.0]).all()


def test_a_polytope_finds_its_box_and_its_directions():
    np.testing.assert_allclose(TRIANGLE.low, [0, 0])
    np.testing.assert_allclose(TRIANGLE.high, [1, 1])
    assert TRIANGLE.span.shape == (2, 2)
    assert SIMPLEX.span.shape == (3, 2)
    np.testing.assert_allclose(SIMPLEX.span.T @ np.ones(3), 0.0, atol=1e-12)
    assert {tuple(row) for row in np.round(SIMPLEX.vertices, 9).tolist()} == {
        (1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 1.0),
    }
    assert repr(TRIANGLE) == "Polytope(1 inequalities of 2 numbers)"
    assert repr(cb.Box([0], [1])) == "Box(low=[0.0], high=[1.0])"


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: cb.Box([0, 2], [1, 1]), ParameterError, "low is above its high at index 1: 2 > 1"),
        (lambda: cb.Box([0, np.nan], [1, 1]), NonFiniteError, "low must be finite, got nan"),
        (lambda: cb.Box([0, 0], [1, np.inf]), NonFiniteError, "high must be finite, got inf"),
        (lambda: cb.Box([0, 0], [1]), ShapeError, r"shapes \(2,\) and \(1,\)"),
        (lambda: cb.Box(0, 1), ShapeError, r"expected \(d,\)"),
        (lambda: cb.Box([], []), ShapeError, r"expected \(d,\)"),
        (lambda: cb.Box([0], [1], effort=0), ParameterError, "effort must be above 0"),
        (lambda: cb.Polytope([[1, 1]], [1]), ParameterError, "not bounded in coordinate 0"),
        (lambda: cb.Polytope([[0, 1]], [1], [0, 0]), ParameterError, "bounded in coordinate 0"),
        (
            lambda: cb.Polytope([[1, 0], [-1, 0]], [0, -1], [0, 0], [1, 1]),
            ParameterError,
            "the polytope is empty",
        ),
        (lambda: cb.Polytope([[1, 0], [-1, 0]], [0, -1]), ParameterError, "the polytope is empty"),
        (lambda: cb.Polytope([[1, 1]], [1, 2]), ShapeError, r"\(1, 2\) and \(2,\)"),
        (lambda: cb.Polytope([[1, 1]], [1], [0]), ShapeError, r"low has shape \(1,\)"),
        (lambda: cb.Polytope([[1, 1]], [1], [2, 0], [1, 1]), ParameterError, "above its high"),
        (lambda: cb.Polytope([[1, np.nan]], [1]), NonFiniteError, "A must be finite"),
        (lambda: as_decision_set([[0, 1]]), ParameterError, r"is no continuum; expected .*Box"),
    ],
)
def test_bad_sets_are_refused_with_one_clear_error(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("effort", [2**31, 1e50, 1001.0])
def test_an_effort_that_no_search_can_make_is_refused(effort):
    for make in (
        lambda: cb.Box([0.0], [1.0], effort=effort),
        lambda: cb.Polytope([[1.0], [-1.0]], [1.0, 0.0], effort=effort),
    ):
        with pytest.raises(
            ParameterError, match=r"effort must be at most 1000, got .* points; take"
        ):
            make()
    assert cb.Box([0.0], [1.0], effort=1000).effort == 1000.0
    wide = np.ones(1000)
    with pytest.raises(ParameterError, match="maximum in 1000 dimensions with effort=1000 would"):
        cb.Box(-wide, wide, effort=1000)
