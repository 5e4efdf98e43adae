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
    """Literal medians; τ² is near the variance of centres, below it as a median of squares is."""
    N, n, m, centres = 400, 6, 3, rng.normal(size=(400, 1, 3))
    samples = list(2.0 * centres + rng.normal(size=(N, n, m)))
    precision, total, tau = context_laws(*summed(samples))
    means = np.array([x.mean(axis=0) for x in samples])
    own = np.array([x.var(axis=0, ddof=1).mean() for x in samples])
    within, off = np.maximum(own, np.median(own)), means - np.median(means, axis=0)
    assert tau == pytest.approx(np.median((off**2).mean(axis=1)) - np.median(within / n))
    assert 4.0 * 0.65 < tau < 4.0 * 0.95
    np.testing.assert_allclose(precision, n / within)
    np.testing.assert_allclose(total / precision[:, None], off, atol=1e-12)


def test_one_law_for_all_says_next_to_nothing(rng):
    found = [context_laws(*summed(list(rng.normal(size=(40, 20, 3)))))[2] for _ in range(50)]
    assert np.mean(found) < 0.01  # beside 1/20, the variance of a mean
    assert min(found) == 0.0


@pytest.mark.parametrize("spread", [30.0, 1e3])
def test_few_agents_with_wide_contexts_do_not_set_what_contexts_say(rng, spread):
    """Neither the variance within agents nor that between them follows two of twelve."""
    samples = list(rng.normal(size=(12, 20, 3)) + np.repeat(rng.normal(size=(3, 1, 3)), 4, axis=0))
    precision, _, tau = context_laws(*summed(samples))
    wide = [x * (spread if u < 2 else 1.0) for u, x in enumerate(samples)]
    after, _, tau_after = context_laws(*summed(wide))
    np.testing.assert_allclose(after[2:], precision[2:], rtol=0.3)
    assert (after[:2] < precision[:2] / 100).all()
    assert tau / 3 < tau_after < 3 * tau


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
