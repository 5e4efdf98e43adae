"""Thompson sampling on continua: the point where one drawn function is highest."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

import coopbandits as cb
from coopbandits.features import Exact, Fourier, Nystrom
from coopbandits.gp.compositions import Hadamard, JointKernel
from coopbandits.gp.network_kernel import DenseKernel
from coopbandits.gp.posterior import Posterior
from coopbandits.gp.sample_path import path_from_posterior, path_from_weights
from coopbandits.kernels import RBF, Linear, Matern

NETWORK = cb.Network.path(3)
BOX = cb.Box([-1.0], [2.0])
R = np.linspace(-1.0, 2.0, 5)[:, None]
FEATURES = {"none": None, "nystrom": Nystrom(R), "fourier": Fourier(64)}


def taught(policy, seed):
    """An agent that knows what it and its neighbour saw, always the same."""
    rng = np.random.default_rng(5)
    agent = policy.agent(1, NETWORK, seed=seed)
    for x, y in zip(rng.uniform(-1, 2, size=(4, 1)), rng.normal(size=4), strict=True):
        agent.observe(x, float(y))
    for t, (x, y) in enumerate(zip(rng.uniform(-1, 2, (3, 1)), rng.normal(size=3), strict=True), 1):
        agent.receive(cb.Message(t, 0, x, float(y), 1))
    return agent


def policy(features=None, **options):
    return cb.EagerKernelTS(
        kernel=RBF(0.6),
        similarity=cb.similarity.Known(matrix=[[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]),
        ridge=0.3,
        features=features,
        **options,
    )


@pytest.mark.parametrize(
    "features", ["none", "nystrom", pytest.param("fourier", marks=pytest.mark.slow)]
)
def test_points_are_chosen_as_often_as_they_are_the_best(features):
    """Against joint draws on a fine grid, whose law is tested elsewhere: the same distribution."""
    mine = policy(FEATURES[features], eta=0.5)
    grid = np.linspace(-1.0, 2.0, 121)[:, None]
    chosen = [float(taught(mine, seed).decide(BOX).context[0]) for seed in range(100)]
    expected = [float(taught(mine, seed).decide(grid).context[0]) for seed in range(1000, 1250)]
    assert ks_2samp(chosen, expected).pvalue > 0.01
    assert len(set(chosen)) > 20  # it does draw


@pytest.mark.parametrize("K_x", [RBF(0.7), Matern(2.5), RBF() + Linear()], ids=repr)
def test_a_drawn_functions_slopes_are_its_differences(rng, K_x):
    kernel = JointKernel(K_x, DenseKernel(np.array([[1.0, 0.4], [0.4, 1.0]])), Hadamard())
    posterior = Posterior(kernel, 0.3)
    posterior.extend(np.array([0, 1, 1]), rng.normal(size=(3, 2)), rng.normal(size=3))
    reference = Nystrom(rng.normal(size=(6, 2)))
    size = reference.size(K_x, 2)
    paths = [
        path_from_posterior(posterior, 1, 2, rng),
        path_from_weights(kernel, reference, 1, rng.normal(size=size), np.eye(size), rng),
    ]
    X, step = rng.normal(size=(5, 2)), 1e-6
    for path in paths:
        values, by_x = path.slopes(X)
        np.testing.assert_array_equal(values, path(X))
        for j, move in enumerate(step * np.eye(2)):
            differences = (path(X + move) - path(X - move)) / (2 * step)
            np.testing.assert_allclose(by_x[:, j], differences, atol=1e-7)


def test_what_a_reference_sample_does_not_hold_is_drawn_too(rng):
    """Far from the reference nothing is known of f: its draws have the prior's variance."""
    own = 0.8
    kernel = JointKernel(RBF(0.5), DenseKernel(np.array([[own]])), Hadamard())
    basis = Nystrom(R)
    X = np.array([[-1.0], [-0.3], [0.4], [7.0]])
    phi = basis.features(kernel.kernel, X)
    mean, root = rng.normal(size=5), 0.3 * np.eye(5)
    draws = np.array(
        [path_from_weights(kernel, basis, 0, mean, root, rng, width=2.0)(X) for _ in range(800)]
    )
    held = phi @ root @ root.T @ phi.T
    expected = 4.0 * (held + own * (kernel.kernel(X, X) - phi @ phi.T))
    np.testing.assert_allclose(draws.mean(axis=0), phi @ mean, atol=4 * 1.8 / np.sqrt(800))
    # 5 standard errors of a covariance of at most 3.2, of draws and of 512 waves
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=5 * 3.2 * np.sqrt(2 / 800))
    assert expected[3, 3] == pytest.approx(4.0 * own, rel=1e-6)


def test_sampling_on_a_box_is_the_same_again_and_after_a_restart():
    for features in FEATURES.values():
        mine = policy(features)
        agent = taught(mine, 3)
        first = agent.preview(
            BOX
        )  # learns what is pending, so the next is the same but for rounding
        np.testing.assert_allclose(agent.preview(BOX), first, atol=1e-6)
        stored = cb.Agent.from_bytes(agent.to_bytes(), policy=mine, network=NETWORK)
        foreseen = agent.preview(BOX)
        one, two = agent.decide(BOX), stored.decide(BOX)
        assert one.context.tobytes() == two.context.tobytes() == foreseen.tobytes()
        assert BOX.contains(one.context[None])[0]


def test_a_linear_draw_is_highest_in_a_corner():
    square = cb.Box([-1.0, -1.0], [1.0, 1.0])
    for features in (None, Exact()):
        agent = cb.LinTS(features=features).agent(0, cb.Network.complete(1))
        agent.observe([1.0, 0.3], 1.0)
        assert (np.abs(agent.decide(square).context) == 1.0).all()
