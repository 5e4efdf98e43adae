import numpy as np
import pytest

import coopbandits as cb
from coopbandits.decision_sets.maximise import climb, maximise

QUADRATIC = np.array([[3.0, 1.0], [1.0, 2.0]])


def bowl(centre):
    """−(x − c)ᵀQ(x − c), highest at c."""

    def function(X):
        away = X - centre
        return -np.einsum("ij,jk,ik->i", away, QUADRATIC, away), -2 * away @ QUADRATIC

    return function


def waves(X):
    """Many peaks, one of them highest: 0.1·x + sin(20x) in each coordinate."""
    return (0.1 * X + np.sin(20 * X)).sum(axis=1), 0.1 + 20 * np.cos(20 * X)


def on_grid(count, dim=2):
    axes = [np.linspace(0, 1, count)] * dim
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)


def test_inside_a_box_the_peak_is_found_to_many_digits(rng):
    found = maximise(cb.Box([0, 0], [1, 1]), bowl([0.3, 0.7]), rng)
    np.testing.assert_allclose(found, [0.3, 0.7], atol=1e-8)


def test_beyond_a_box_the_peak_is_on_its_edge(rng):
    found = maximise(cb.Box([0, 0], [1, 1]), bowl([1.5, 0.2]), rng)
    # at x₁ = 1 the best x₂ solves Q₂₁·(1 − 1.5) + Q₂₂·(x₂ − 0.2) = 0
    np.testing.assert_allclose(found, [1.0, 0.45], atol=1e-8)


@pytest.mark.parametrize(
    "own",
    [
        cb.Polytope([[1, 1]], [1], [0, 0], [1, 1]),
        cb.Polytope([[2, 1], [-1, 1]], [1.2, 0.3], [0, 0], [1, 1]),
        cb.Polytope([[1, 1], [-1, -1]], [1, -1], [0, 0]),
    ],
    ids=repr,
)
def test_on_a_polytope_no_point_of_a_fine_grid_is_higher(own, rng):
    grid = on_grid(201)
    grid = grid[own.contains(grid)]
    for function in (bowl([0.8, 0.9]), bowl([0.2, 0.3]), waves):
        found = maximise(own, function, rng)
        assert own.contains(found[None])[0]
        assert function(found[None])[0][0] >= function(grid)[0].max() - 1e-9


def test_the_highest_of_many_peaks_is_found(rng):
    grid = on_grid(1001)
    found = maximise(cb.Box([0, 0], [1, 1]), waves, rng)
    assert waves(found[None])[0][0] >= waves(grid)[0].max()
    assert waves(found[None])[0][0] <= waves(grid)[0].max() + 2 * 200 * 0.0005**2


def test_a_linear_function_is_highest_at_a_corner_exactly(rng):
    slope = rng.normal(size=12)
    found = maximise(
        cb.Box([-1.0] * 12, [1.0] * 12), lambda X: (X @ slope, np.tile(slope, (len(X), 1))), rng
    )
    np.testing.assert_array_equal(found, np.sign(slope))


def test_of_peaks_in_every_corner_the_highest_is_found(rng):
    # convex in each coordinate, a little higher at its upper end: 2¹⁶ peaks
    def function(X):
        return ((X - 0.47) ** 2).sum(axis=1), 2 * (X - 0.47)

    found = maximise(cb.Box([0.0] * 16, [1.0] * 16), function, rng)
    np.testing.assert_array_equal(found, np.ones(16))


def test_given_coordinates_stay_given(rng):
    found = maximise(cb.Box([0.0, 0.25], [1.0, 0.25]), bowl([0.3, 0.7]), rng)
    # Q₁₁·(x₁ − 0.3) + Q₁₂·(0.25 − 0.7) = 0
    np.testing.assert_allclose(found, [0.45, 0.25], atol=1e-8)
    np.testing.assert_array_equal(maximise(cb.Box([0.2, 0.1], [0.2, 0.1]), waves, rng), [0.2, 0.1])


def test_what_is_known_to_be_good_is_never_missed(rng):
    # a needle that nobody finds by looking, and whose gradient tells nothing
    needle = np.array([0.123456, 0.654321])

    def function(X):
        return (np.abs(X - needle).max(axis=1) < 1e-9).astype(float), np.zeros_like(X)

    box = cb.Box([0, 0], [1, 1])
    assert function(maximise(box, function, rng)[None])[0][0] == 0
    np.testing.assert_array_equal(maximise(box, function, rng, known=needle[None]), needle)


def test_a_climb_that_leads_nowhere_changes_nothing(rng):
    box = cb.Box([0, 0], [1, 1])
    starts = box.sample(rng, 5)

    def misled(X):
        """Its gradient points downhill."""
        values, by_x = bowl([0.5, 0.5])(X)
        return values, -by_x

    looked_at = np.vstack([box.sample(np.random.default_rng(1), 512), box.corners(rng, 64)])
    found = maximise(box, misled, np.random.default_rng(1))
    assert misled(found[None])[0][0] >= misled(looked_at)[0].max()
    np.testing.assert_array_equal(climb(box, lambda X: (X[:, 0], 0 * X), starts), starts)


def test_the_same_stream_gives_the_same_point_to_the_bit():
    box = cb.Box([0, 0], [1, 1], effort=0.5)
    one, two = (maximise(box, waves, np.random.default_rng(4)) for _ in range(2))
    assert one.tobytes() == two.tobytes()


def test_effort_multiplies_what_is_looked_at(rng):
    seen = []

    def counting(X):
        seen.append(len(X))
        return waves(X)

    maximise(cb.Box([0, 0], [1, 1], effort=4), counting, rng)
    assert seen[0] == 4 * 512 + 4
    assert 32 in seen
