import numpy as np
import pytest

from coopbandits.similarity.context_laws import context_laws


def summed(samples):
    return (
        np.array([float(len(x)) for x in samples]),
        np.array([x.sum(axis=0) for x in samples]),
        np.array([(x**2).sum() for x in samples]),
    )


def test_variances_are_those_of_a_one_way_random_effects_model(rng):
    """With as many observations each, τ² is the variance of means less that within over n."""
    N, n, m, centres = 400, 6, 3, rng.normal(size=(400, 1, 3))
    samples = list(2.0 * centres + rng.normal(size=(N, n, m)))
    precision, total, tau = context_laws(*summed(samples))
    means = np.array([x.mean(axis=0) for x in samples])
    within = np.mean([x.var(axis=0, ddof=1) for x in samples])
    assert tau == pytest.approx(means.var(axis=0, ddof=1).mean() - within / n)
    assert tau == pytest.approx(4.0, rel=0.15)
    np.testing.assert_allclose(precision, n / within)
    np.testing.assert_allclose(total / precision[:, None], means - means.mean(axis=0), atol=1e-12)


def test_one_law_for_all_says_next_to_nothing(rng):
    found = [context_laws(*summed(list(rng.normal(size=(40, 20, 3)))))[2] for _ in range(50)]
    assert np.mean(found) < 0.01  # beside 1/20, the variance of a mean
    assert min(found) == 0.0


@pytest.mark.parametrize(
    "samples",
    [
        [np.ones((1, 2)), np.zeros((1, 2))],
        [np.ones((3, 2)), np.zeros((3, 2))],
        [np.arange(6.0).reshape(3, 2)],
    ],
    ids=["seen once", "never vary", "one agent"],
)
def test_what_cannot_be_measured_says_nothing(samples):
    precision, total, tau = context_laws(*summed(samples))
    assert tau == 0.0
    assert not precision.any()
    assert not total.any()
