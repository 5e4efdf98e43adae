import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError
from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.problems.enclosures import enclosed, fourth_moment
from coopbandits.problems.optimum import certified
from coopbandits.problems.rkhs import Part

KERNELS = [
    RBF(0.3),
    RBF((0.2, 0.6)),
    Matern(nu=0.3, lengthscale=0.5),
    Matern(nu=0.5, lengthscale=0.5),
    Matern(nu=1.0, lengthscale=0.5),
    Matern(nu=1.3, lengthscale=0.5),
    Matern(nu=1.5, lengthscale=0.4),
    Matern(nu=2.0, lengthscale=0.4),
    Matern(nu=2.5, lengthscale=(0.3, 0.5)),
    Matern(nu=6.2, lengthscale=0.4),
    Linear(0.7),
    0.5 * RBF(0.4) + Linear(),
    RBF(0.5) * Linear(),
    RBF(0.5) * Matern(nu=2.5, lengthscale=0.8),
    Matern(nu=0.5) * Linear() + 0.2 * RBF(0.3),
]
SETS = {
    "box": cb.Box([0.0, -0.2], [1.0, 0.9]),
    "pinned": cb.Box([0.0, 0.3], [1.0, 0.3]),
    "triangle": cb.Polytope([[1.0, 1.0]], [1.0], [0.0, 0.0]),
    "pentagon": cb.Polytope([[2, 1], [-1, 1], [1, 3]], [1.6, 0.5, 2.2], [0, 0], [1, 1]),
    "edge": cb.Polytope([[1.0, 1.0], [-1.0, -1.0]], [1.0, -1.0], [0.0, 0.0]),
}


def part_of(kernel, seed=0, count=12, dim=2):
    rng = np.random.default_rng(seed)
    X, weights = rng.random((count, dim)), rng.normal(size=count)
    return Part(kernel, 0.2, weights / np.sqrt(weights @ kernel(X, X) @ weights), X)


def second_differences(f, X, delta, step=1e-4):
    """δᵀ∇²f δ at each row, by differences."""
    return (f(X + step * delta) - 2 * f(X) + f(X - step * delta)) / step**2


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_enclosures_hold_at_random_points_of_random_boxes(rng, kernel):
    Y = rng.random((5, 2))
    for _ in range(12):
        c, h = rng.random(2), 0.3 * rng.random(2)
        k = enclosed(kernel, c[None], h[None], Y)
        X = c + h * rng.uniform(-1, 1, size=(300, 2))
        delta = h * rng.choice([-1.0, 1.0], size=(300, 2)) * rng.random((300, 1))
        values = kernel(X, Y)
        assert (k.low - 1e-12 <= values).all()
        assert (values <= k.high + 1e-12).all()
        slope = np.abs((kernel.gradient(X, Y) * delta[:, None, :]).sum(axis=2))
        assert (slope <= k.slope + 1e-9).all()
        # curvature, away from kinks that differences would step over
        apart = np.linalg.norm(X[:, None] - Y[None], axis=2) > 0.02
        curve = second_differences(lambda x: kernel(x, Y), X, delta)
        rise, fall = np.broadcast_to(k.rise, curve.shape), np.broadcast_to(k.fall, curve.shape)
        assert (curve <= rise + 1e-5)[apart].all()
        assert (curve >= -fall - 1e-5)[apart].all()


def test_enclosures_shrink_to_the_kernel_with_their_boxes(rng):
    kernel, c, Y = Matern(nu=2.5) * Linear() + RBF(), rng.random((1, 2)), rng.random((4, 2))
    k = enclosed(kernel, c, np.zeros((1, 2)), Y)
    np.testing.assert_allclose(k.low, kernel(c, Y), rtol=1e-12)
    np.testing.assert_allclose(k.high, kernel(c, Y), rtol=1e-12)
    assert (k.rise == 0).all()
    assert (k.fall == 0).all()


@pytest.mark.parametrize(
    "kernel",
    [
        RBF((0.3, 0.7)),
        Matern(nu=2.5, lengthscale=0.4),
        Matern(nu=4.2),
        0.3 * RBF(0.5) * Matern(nu=3.5) + RBF(2.0),
        RBF(0.5) + Linear(),
    ],
    ids=repr,
)
def test_the_fourth_moment_bounds_the_curvature_of_every_function_by_its_norm(rng, kernel):
    H = np.array([[0.1, 0.2]])
    moment = fourth_moment(kernel, H)
    assert np.isfinite(moment).all()
    for seed in range(5):
        part = part_of(kernel, seed)
        X = rng.random((200, 2))
        curve = second_differences(lambda x, f=part: f(x)[0], X, H[0] * [1, -1])
        assert (np.abs(curve) <= part.norm * np.sqrt(moment) + 1e-5).all()
    # the bump itself meets it: its curvature at the top is √(m₄/3) for RBF
    if isinstance(kernel, RBF):
        top = second_differences(lambda x: kernel(x, np.zeros((1, 2)))[:, 0], np.zeros((1, 2)), H)
        np.testing.assert_allclose(np.abs(top), np.sqrt(moment / 3), rtol=1e-4)
    assert fourth_moment(Matern(nu=2.0), H) == np.inf
    assert fourth_moment(RBF() * Linear(), H) == np.inf


@pytest.mark.parametrize(
    ("kernel", "own"),
    [(kernel, SETS["box"]) for kernel in KERNELS]
    + [(kernel, own) for kernel in (KERNELS[1], KERNELS[3], KERNELS[-1]) for own in SETS.values()],
    ids=repr,
)
def test_no_point_of_a_fine_grid_is_above_a_certified_maximum(kernel, own):
    part = part_of(kernel)
    found = part.optimum(own, 1e-6)
    axes = [np.linspace(low, high, 81) for low, high in zip(own.low, own.high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = part(grid[own.contains(grid)])[0]
    assert values.max() <= found.value + 1e-6
    assert found.value <= found.upper <= found.value + 1e-6
    assert own.contains(found.point[None])[0]
    assert part(found.point[None])[0][0] == pytest.approx(found.value, abs=1e-12)
    assert found.parts < 20_000


def test_a_maximum_that_is_known_is_found():
    # one bump: its top is at its centre, or at the nearest point of the set
    bump = Part(RBF(0.3), 1.0, np.array([2.0]), np.array([[0.4, 0.7]]))
    inside = bump.optimum(SETS["box"], 1e-9)
    np.testing.assert_allclose(inside.point, [0.4, 0.7], atol=1e-5)
    assert inside.value == pytest.approx(3.0, abs=1e-9)
    edge = bump.optimum(SETS["triangle"], 1e-9)
    np.testing.assert_allclose(edge.point, [0.35, 0.65], atol=1e-5)
    assert edge.value == pytest.approx(1 + 2 * np.exp(-0.005 / 0.18), abs=1e-9)


def test_a_linear_function_is_certified_exactly_and_at_once():
    part = part_of(Linear(), dim=6)
    found = part.optimum(cb.Box([-1.0] * 6, [1.0] * 6), 1e-12)
    slope = part.weights @ part.contexts
    assert found.value == pytest.approx(0.2 + np.abs(slope).sum(), rel=1e-12)
    assert found.parts == 1


def test_three_dimensions_are_certified_within_few_parts():
    part = part_of(RBF(0.4), count=60, dim=3)
    found = part.optimum(cb.Box([0.0] * 3, [1.0] * 3), 1e-6)
    X = cb.Box([0.0] * 3, [1.0] * 3).sample(np.random.default_rng(0), 20_000)
    assert part(X)[0].max() <= found.upper
    assert found.gap <= 1e-6
    assert found.parts < 50_000


def test_what_cannot_be_certified_within_the_budget_is_said():
    box = cb.Box([0.0, 0.0], [1.0, 1.0])

    def function(X):
        return np.zeros(len(X)), np.zeros_like(X)

    def bounds(C, H):  # of a function of which little is certain
        return np.zeros(len(C)), np.zeros_like(C), np.linalg.norm(H, axis=1)

    with pytest.raises(ParameterError, match=r"not be certified to 1e-06 within 1000 parts"):
        certified(box, function, bounds, tolerance=1e-6, budget=1000)
    assert certified(box, function, bounds, tolerance=0.1, budget=10_000).value == 0


def test_a_kernel_of_ones_own_has_no_certificate():
    class Own:
        def __call__(self, X, Y):
            return RBF()(X, Y)

        def diagonal(self, X):
            return np.ones(len(X))

    with pytest.raises(ParameterError, match="has no certified bounds"):
        part_of(Own()).optimum(SETS["box"], 1e-6)
