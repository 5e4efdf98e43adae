import numpy as np
import pytest
from scipy import stats

from coopbandits.kernels import RBF, Linear, Matern
from coopbandits.lab.logs.marginal import Family, marginal

FAMILIES = [
    Family(name, nu=nu, ard=ard)
    for name, nu in [
        ("linear", 2.5),
        ("rbf", 2.5),
        ("matern", 0.5),
        ("matern", 1.5),
        ("matern", 2.5),
    ]
    for ard in (False, True)
]


def kernel_of(family, ell):
    ell = tuple(ell) if family.ard else float(ell[0])
    if family.name == "matern":
        return Matern(nu=family.nu, lengthscale=ell)
    return {"linear": Linear, "rbf": RBF}[family.name](ell)


@pytest.fixture
def data(rng):
    """Three agents of different histories, one of them with a context twice."""
    data = [(rng.normal(size=(n, 2)), 3.0 + rng.normal(size=n)) for n in (7, 4, 9)]
    data[0][0][3] = data[0][0][2]
    return data


def parameters_of(family):
    start = np.log([0.7, 1.6] if family.ard else [0.9])
    return np.append(start, [np.log(0.3)] * family.has_ridge)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_evidence_is_the_density_of_a_normal_vector(data, family):
    theta = parameters_of(family)
    ell, ridge = np.exp(theta[: 1 + family.ard]), 0.3 if family.has_ridge else 1.0
    found = marginal(family, data, theta, centre=2.5, scale=1.7)
    expected = 0.0
    for X, y in data:
        K = 1.7**2 * (kernel_of(family, ell)(X, X) + ridge * np.eye(len(y)))
        expected += stats.multivariate_normal(np.full(len(y), 2.5), K).logpdf(y)
    assert found.value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("fixed", [{}, {"centre": 2.5}, {"scale": 1.7}], ids=str)
def test_the_gradient_is_that_of_finite_differences(data, family, fixed):
    theta = parameters_of(family)
    found = marginal(family, data, theta, **fixed)
    for j in range(len(theta)):
        shift = 1e-5 * (np.arange(len(theta)) == j)
        up, down = (marginal(family, data, theta + s, **fixed).value for s in (shift, -shift))
        assert found.gradient[j] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6)
    up, down = (
        marginal(family, data, theta, **{**fixed, "scale": found.scale * np.exp(s)}).value
        for s in (1e-5, -1e-5)
    )
    assert found.gradient[-1] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_profiled_scale_and_centre_are_the_best(data, family):
    theta = parameters_of(family)
    best = marginal(family, data, theta)
    assert best.gradient[-1] == pytest.approx(0.0, abs=1e-8)
    for scale, centre in [(1.01, 0.0), (0.99, 0.0), (1.0, 0.05), (1.0, -0.05)]:
        other = marginal(family, data, theta, scale=best.scale * scale, centre=best.centre + centre)
        assert other.value < best.value


def test_the_norm_is_that_of_the_largest_posterior_mean(data):
    family = Family("rbf")
    found = marginal(family, data, np.log([0.9, 0.3]), centre=2.5, scale=1.7)
    norms = []
    for X, y in data:
        K = 1.7**2 * RBF(0.9)(X, X)
        weights = np.linalg.solve(K + 1.7**2 * 0.3 * np.eye(len(y)), y - 2.5)
        norms.append(np.sqrt(weights @ K @ weights))
    assert found.norm == pytest.approx(max(norms))
