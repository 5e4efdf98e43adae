import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import ParameterError


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [1, 3, 5, 40])
def test_the_linear_bound_holds_and_is_met_by_an_even_spread(rng, n, ridge):
    d = 5
    bound = cb.theory.gain_bound(n, rank=d, ridge=ridge)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert cb.theory.information_gain(X @ X.T, ridge=ridge) <= bound + 1e-12
    even = np.eye(d)[np.arange(n) % d]
    if n <= d or n % d == 0:
        assert cb.theory.information_gain(even @ even.T, ridge=ridge) == pytest.approx(bound)


def test_the_bound_by_a_tail_holds_for_every_rank(rng):
    # a kernel that is a sum of a part of rank D and a rest, at contexts drawn as they come
    n, ridge = 30, 0.5
    loadings = rng.normal(size=(n, 12)) * 0.5 ** np.arange(12)
    K = loadings @ loadings.T
    gain = cb.theory.information_gain(K, ridge=ridge)
    bounds = []
    for D in range(1, 12):
        tail = (loadings[:, D:] ** 2).sum(axis=1).max()
        bounds.append(
            cb.theory.gain_bound(n, rank=D, tail=tail, ridge=ridge, largest=np.diagonal(K).max())
        )
    assert gain <= min(bounds)
    assert 0 < np.argmin(bounds) < 10  # neither all rank nor all tail: the trade-off is there


def test_the_bound_is_a_gain_that_widths_take():
    network = cb.Network.path(2)
    problem = cb.problems.fully_cooperative(network, kernel=cb.kernels.Linear(), dim=2)

    def gain(n):
        return cb.theory.gain_bound(n, rank=2)

    assert gain(0) == 0
    width = cb.width.InformationGain(noise=0.1, gain=gain)
    agent = cb.KernelUCB(kernel=problem.kernel, width=width).agent(0, network)
    agent.observe([1.0, 0.0], 0.5)
    found = agent.decide([[1.0, 0.0], [0.0, 1.0]])
    assert found.width == pytest.approx(1 + 0.1 * np.sqrt(2 * (gain(1) + 1 + np.log(20))))


def test_the_rates_grow_as_stated():
    rate = cb.theory.gain_rate
    for n in (100, 10_000):
        assert rate(cb.kernels.Linear(), n, dim=7) == pytest.approx(7 * np.log(n))
        assert rate(cb.kernels.RBF(), n, dim=3) == pytest.approx(np.log(n) ** 4)
        # ν = 5/2, d = 5: n^(1/2)·(ln n)^(1/2), and by Srinivas et al. n^(30/35)·ln n
        matern = cb.kernels.Matern(nu=2.5)
        assert rate(matern, n, dim=5) == pytest.approx(np.sqrt(n * np.log(n)))
        assert rate(matern, n, dim=5, source="srinivas") == pytest.approx(n ** (6 / 7) * np.log(n))


def test_a_smoother_kernel_has_the_lower_rate():
    n = 10**6
    rates = [cb.theory.gain_rate(cb.kernels.Matern(nu=nu), n, dim=2) for nu in (0.5, 1.5, 2.5, 20)]
    assert rates == sorted(rates, reverse=True)


def test_an_unknown_kernel_or_source_is_refused():
    product = cb.kernels.RBF() * cb.kernels.Linear()
    with pytest.raises(ParameterError, match="no rate is known for"):
        cb.theory.gain_rate(product, 10, dim=2)
    with pytest.raises(ParameterError, match="expected 'vakili' or 'srinivas'"):
        cb.theory.gain_rate(cb.kernels.RBF(), 10, dim=2, source="krause")


def test_a_rate_beyond_all_numbers_is_refused():
    with pytest.raises(ParameterError, match=r"in dim=2147483648 is too large .*; take a smaller"):
        cb.theory.gain_rate(cb.kernels.RBF(), 100, dim=2**31)
