# mypy: disable-error-code="call-arg"
import numpy as np
import pytest

from coopbandits.similarity import noise_levels as module
from coopbandits.similarity.noise_levels import STEP, noise_levels


def spectra(rng, noise, n=20, m=4, strength=1.0):
    """Eigenvalues, Qᵀb, Σy² and n of agents with noise levels of their own."""
    X = rng.normal(size=(len(noise), n, m)) / np.sqrt(m)
    theta = strength * rng.normal(size=(len(noise), m))
    y = np.einsum("unm,um->un", X, theta) + noise[:, None] * rng.normal(size=(len(noise), n))
    S, b = np.einsum("uni,unj->uij", X, X), np.einsum("uni,un->ui", X, y)
    s, Q = np.linalg.eigh(S)
    return (
        (s, np.einsum("uij,ui->uj", Q, b), (y**2).sum(axis=1), np.full(len(noise), float(n))),
        (X, y),
    )


def told(s, p, q, n):
    """Add whose rewards tell how noisy they are: all but those that were 0 throughout."""
    return s, p, q, n, q > 0


def literal(X, y, me):
    """The same from dense Gaussian log-densities, as the docstring says it."""
    N, n, _ = X.shape
    square = (y**2).mean(axis=1)
    middle, size = square[me], (X[me] ** 2).sum() / n
    low = int(np.floor(np.log(1e-3 * middle) / STEP))
    levels = STEP * np.arange(low, int(np.ceil(np.log(1.5 * square.max()) / STEP)) + 1)
    weakest = int(np.floor(np.log(0.03 * middle / size) / STEP))
    strongest = int(np.ceil(np.log(4.0 * middle / size) / STEP))
    base = np.exp(-0.5 * (levels - np.log(0.5 * middle)) ** 2) + 1e-3
    base *= 0.5 / base.sum()
    strengths, evidence, found = range(weakest, strongest + 1, 2), [], []
    for i in strengths:
        log = np.empty((N, len(levels)))
        for u in range(N):
            for j, level in enumerate(levels):
                K = np.exp(STEP * i) * X[u] @ X[u].T + np.exp(level) * np.eye(n)
                log[u, j] = -0.5 * (y[u] @ np.linalg.solve(K, y[u]) + np.linalg.slogdet(K)[1])
        like = np.exp(log - log.max(axis=1, keepdims=True))
        start = np.log(base) + np.log(like + 1e-300).sum(axis=0)
        start = np.exp(start - start.max())
        pi = 0.5 * (start / start.sum() + base / base.sum())
        for _ in range(module._ITERATIONS):
            r = like * pi
            pi = base + (r / r.sum(axis=1, keepdims=True)).sum(axis=0)
            pi /= pi.sum()
        r = like * pi
        evidence.append(log.max(axis=1) + np.log(r.sum(axis=1)))
        found.append(np.exp((r * levels).sum(axis=1) / r.sum(axis=1)))
    gains = np.array(evidence)
    total = np.maximum(gains - gains.max(axis=0), -3.0).sum(axis=1)
    total -= 0.5 * (STEP * np.array(strengths) - np.log(0.5 * middle / size)) ** 2
    best = int(total.argmax())
    return found[best], np.exp(STEP * strengths[best])


def test_levels_are_those_of_the_literal_formula(rng):
    given, (X, y) = spectra(rng, np.array([0.2, 0.2, 1.0, 0.5, 0.2]), n=6)
    found, s2 = noise_levels(*told(*given), np.arange(5), 1)
    expected, strength = literal(X, y, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert s2 == pytest.approx(strength)


def test_quiet_and_noisy_agents_are_told_apart(rng):
    noise = np.where(np.arange(14) < 7, 0.3, 3.0)
    given, _ = spectra(rng, noise)
    found, _ = noise_levels(*told(*given), np.arange(14), 0)
    assert (np.abs(np.log(found / noise**2)) < 0.8).all()


@pytest.mark.parametrize("odd", [2, 5])
def test_agents_on_another_scale_do_not_set_that_of_the_others(rng, odd):
    given, _ = spectra(rng, np.full(10, 0.3))
    alone, strength = noise_levels(*told(*given), np.arange(10), 9)
    s, p, q, n = given
    p[:odd] *= 100.0
    q[:odd] *= 1e4
    found, s2 = noise_levels(*told(s, p, q, n), np.arange(10), 9)
    assert (np.abs(np.log(found[odd:] / alone[odd:])) < 0.7).all()
    assert abs(np.log(s2 / strength)) <= 2 * STEP + 1e-9


def test_few_observations_are_read_in_the_light_of_the_others(rng):
    """Two observations of four numbers cannot tell noise from signal; the others can."""
    given, _ = spectra(rng, np.full(30, 0.3), n=12)
    few, _ = spectra(rng, np.full(1, 0.3), n=2)
    rows = [np.concatenate(pair) for pair in zip(given, few, strict=True)]
    found, _ = noise_levels(*told(*rows), np.arange(31), 0)
    assert abs(np.log(found[30] / 0.09)) < 0.7


@pytest.mark.parametrize("scale", [0.0, 1e-40, 1e40])
def test_any_finite_rewards_give_finite_levels(rng, scale):
    (s, p, q, n), _ = spectra(rng, np.full(4, 0.3), n=3)
    found, s2 = noise_levels(*told(s, scale * p, scale**2 * q, n), np.arange(4), 0)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert np.isfinite(s2)


def test_rewards_that_were_all_0_do_not_say_how_noisy_they_are(rng):
    """Of clicks the first are mostly 0: an agent without any is as noisy as is common."""
    (s, p, q, n), _ = spectra(rng, np.full(8, 0.3), n=10)
    p[2:5], q[2:5] = 0.0, 0.0
    for me in (0, 2):
        found, _ = noise_levels(*told(s, p, q, n), np.arange(8), me)
        others = np.delete(found, [2, 3, 4])
        np.testing.assert_allclose(found[2:5], found[2])
        assert others.min() < found[2] < others.max()


def test_where_all_rewards_are_0_levels_are_finite_and_equal(rng):
    (s, p, q, n), _ = spectra(rng, np.full(4, 0.3), n=5)
    found, s2 = noise_levels(*told(s, 0 * p, 0 * q, n), np.arange(4), 0)
    assert np.isfinite(found).all()
    assert s2 > 0
    np.testing.assert_allclose(found, found[0])


def test_one_agent_with_wide_contexts_does_not_set_the_size_of_tasks(rng):
    """s² is that of tasks, whatever the spread of one peer's contexts."""
    (s, p, q, n), _ = spectra(rng, np.full(12, 0.3))
    _, s2 = noise_levels(*told(s, p, q, n), np.arange(12), 0)
    wide = np.where(np.arange(12) == 11, 1e4, 1.0)  # contexts 100 times as wide, tasks as much less
    found, after = noise_levels(
        *told(s * wide[:, None], p * np.sqrt(wide)[:, None], q, n), np.arange(12), 0
    )
    assert abs(np.log(after / s2)) <= 2 * STEP
    np.testing.assert_allclose(found[:11], 0.09, rtol=0.6)
