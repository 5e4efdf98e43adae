"""How fast are the peers? Seconds per operation of MABWiser, River, scikit-learn and BoTorch.

    make bench    # installs them in an environment of their own, and runs all

Prints one JSON object; a missing library is an error, not a gap.

One thread everywhere. Bandits: linear rewards, contexts on the unit sphere, noise 0.3. Gaussian
processes: RBF kernel, length 1, scale 1, noise variance 1, float64, exact, nothing tuned.
"""

import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from statistics import median
from time import process_time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import gpytorch
import numpy as np
import torch
from botorch.models import SingleTaskGP
from mabwiser.mab import MAB, LearningPolicy
from numpy.typing import NDArray
from river.bandit import LinUCBDisjoint
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

torch.set_num_threads(1)

ARMS, DIM, DECISIONS, POINTS, SEED = 8, 10, 500, 5000, 0
WARM_UP = 10  # rounds per arm before the clock starts
TEST_POINTS = 8
REPEATS = 3  # of a Gaussian process's operation: the median is reported
LIBRARIES = (
    *("mabwiser", "river", "scikit-learn", "botorch", "gpytorch", "linear-operator", "torch"),
    *("numpy", "scipy", "pandas"),
)

Array = NDArray[np.float64]


def sphere(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Draw n points on the unit sphere."""
    x = rng.standard_normal((n, dim))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def bandit_data(arms: int, dim: int, rounds: int, seed: int) -> tuple[Array, Array]:
    """Contexts (rounds × dim) and the reward of every arm (rounds × arms)."""
    rng = np.random.default_rng(seed)
    contexts, tasks = sphere(rng, rounds, dim), sphere(rng, arms, dim)
    return contexts, contexts @ tasks.T + 0.3 * rng.standard_normal((rounds, arms))


def mabwiser_linucb(arms: int, dim: int, decisions: int, seed: int) -> float:
    """Mean seconds of MABWiser's LinUCB (disjoint) per decision: predict + partial_fit."""
    warm = WARM_UP * arms
    contexts, rewards = bandit_data(arms, dim, warm + decisions, seed)
    forced = np.arange(warm) % arms
    policy = MAB(list(range(arms)), LearningPolicy.LinUCB(alpha=1.0), seed=seed)
    policy.fit(forced, rewards[np.arange(warm), forced], contexts[:warm])
    start = process_time()
    for context, reward in zip(contexts[warm:], rewards[warm:], strict=True):
        row = context[None]
        arm = policy.predict(row)
        policy.partial_fit(np.array([arm]), reward[arm : arm + 1], row)
    return (process_time() - start) / decisions


def river_linucb(arms: int, dim: int, decisions: int, seed: int) -> float:
    """Mean seconds of River's LinUCBDisjoint per decision: pull + update, contexts as dicts."""
    warm = WARM_UP * arms
    contexts, rewards = bandit_data(arms, dim, warm + decisions, seed)
    # River takes dicts of floats: converting is the data's work, so it is not timed.
    rows = [dict(enumerate(context)) for context in contexts.tolist()]
    values = rewards.tolist()
    policy, ids = LinUCBDisjoint(seed=seed), list(range(arms))
    for t in range(warm):
        policy.update(t % arms, rows[t], values[t][t % arms])
    start = process_time()
    for row, reward in zip(rows[warm:], values[warm:], strict=True):
        arm = policy.pull(ids, row)
        policy.update(arm, row, reward[arm])
    return (process_time() - start) / decisions


def gp_data(n: int, dim: int, seed: int) -> tuple[Array, Array, Array]:
    """n + 1 inputs and targets (the last is the new one), and the points to predict at."""
    rng = np.random.default_rng(seed)
    x = sphere(rng, n + 1 + TEST_POINTS, dim)
    y = np.sin(3 * x[: n + 1, 0]) + rng.standard_normal(n + 1)
    return x[: n + 1], y, x[n + 1 :]


def sklearn_posterior(x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Refit scikit-learn's Gaussian process; mean and variance of f at the points."""
    model = GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=1.0, optimizer=None)
    mean, std = model.fit(x, y).predict(at, return_std=True)
    return mean, std**2


def botorch_model(x: Array, y: Array) -> SingleTaskGP:
    """Give BoTorch's SingleTaskGP the fixed kernel, noise and zero mean; no transforms."""
    model = SingleTaskGP(
        torch.from_numpy(x),
        torch.from_numpy(y)[:, None],
        likelihood=gpytorch.likelihoods.GaussianLikelihood(),
        covar_module=gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
        mean_module=gpytorch.means.ZeroMean(),
        outcome_transform=None,  # without this BoTorch standardises the targets
    ).double()
    model.likelihood.noise = 1.0
    model.covar_module.outputscale = 1.0
    model.covar_module.base_kernel.lengthscale = 1.0
    return model.eval()


def botorch_posterior(
    model: SingleTaskGP, x: Array, y: Array, at: Array
) -> tuple[Array, Array, SingleTaskGP]:
    """Condition on new points; mean and variance of f at the points, and the new model."""
    new = model.condition_on_observations(torch.from_numpy(x), torch.from_numpy(y)[:, None])
    answer = new.posterior(torch.from_numpy(at))
    return answer.mean[:, 0].numpy(), answer.variance[:, 0].numpy(), new


def median_seconds(operation: Callable[[], object]) -> float:
    """Median seconds of REPEATS calls."""
    seconds = []
    for _ in range(REPEATS):
        start = process_time()
        operation()
        seconds.append(process_time() - start)
    return median(seconds)


def sklearn_refit(n: int, dim: int, seed: int) -> float:
    """Seconds of one scikit-learn refit on n + 1 points and a prediction at 8."""
    x, y, at = gp_data(n, dim, seed)
    return median_seconds(lambda: sklearn_posterior(x, y, at))


def botorch_condition(n: int, dim: int, seed: int, *, fast_pred_var: bool = False) -> float:
    """Seconds of BoTorch's condition_on_observations with one point and a prediction at 8.

    BoTorch turns fast_pred_var on unless told otherwise; on, the variance comes from the
    updated cache, off, from a new Cholesky factor of all n + 1 points. Both are exact here.
    """
    x, y, at = gp_data(n, dim, seed)
    with (
        torch.no_grad(),
        gpytorch.settings.fast_pred_var(fast_pred_var),
        gpytorch.settings.max_cholesky_size(n + 2),
    ):
        model = botorch_model(x[:n], y[:n])
        model.posterior(torch.from_numpy(at)).variance  # noqa: B018  fills the caches
        # The first conditioning fills the cache of the root inverse too.
        botorch_posterior(model, x[n:], y[n:], at)
        return median_seconds(lambda: botorch_posterior(model, x[n:], y[n:], at))


def botorch_rebuilt(x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Build BoTorch's model anew; mean and variance of f at the points."""
    with (
        torch.no_grad(),
        gpytorch.settings.fast_pred_var(False),
        gpytorch.settings.max_cholesky_size(len(x) + 1),
    ):
        answer = botorch_model(x, y).posterior(torch.from_numpy(at))
        return answer.mean[:, 0].numpy(), answer.variance[:, 0].numpy()


def botorch_refit(n: int, dim: int, seed: int) -> float:
    """Seconds of BoTorch built anew on n + 1 points and a prediction at 8: what conditioning saves.

    Here it saves less than nothing: linear_operator 0.6 answers one new point with a QR
    factorisation of all n + 1, and gpytorch 1.15 does not find the mean it has updated.
    """
    x, y, at = gp_data(n, dim, seed)
    return median_seconds(lambda: botorch_rebuilt(x, y, at))


def disagreement(n: int, dim: int, seed: int) -> dict[str, float]:
    """Largest difference of each library's mean or variance from (K + I)⁻¹ in numpy."""
    x, y, at = gp_data(n, dim, seed)

    def kernel(a: Array, b: Array) -> Array:
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))

    inverse, cross = np.linalg.inv(kernel(x, x) + np.eye(n + 1)), kernel(at, x)
    mean, variance = cross @ inverse @ y, 1.0 - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    found = {"sklearn": sklearn_posterior(x, y, at), "botorch, anew": botorch_rebuilt(x, y, at)}
    for fast in (False, True):
        with (
            torch.no_grad(),
            gpytorch.settings.fast_pred_var(fast),
            gpytorch.settings.max_cholesky_size(n + 2),
        ):
            model = botorch_model(x[:n], y[:n])
            model.posterior(torch.from_numpy(at)).variance  # noqa: B018  fills the caches
            name = "botorch, fast_pred_var " + ("on" if fast else "off")
            found[name] = botorch_posterior(model, x[n:], y[n:], at)[:2]
    return {
        name: float(max(abs(m - mean).max(), abs(v - variance).max()))
        for name, (m, v) in found.items()
    }


def main() -> None:
    """Print every number and version as one JSON object; any failure ends the run."""
    wrong = disagreement(50, DIM, SEED)
    if max(wrong.values()) > 1e-8:
        raise SystemExit(f"a library does not compute the posterior we time: {wrong}")
    report = {
        "settings": {
            "arms": ARMS,
            "dim": DIM,
            "decisions": DECISIONS,
            "n": POINTS,
            "seed": SEED,
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
        "versions": {name: version(name) for name in LIBRARIES},
        "largest error at n = 50": wrong,
        "seconds": {
            "mabwiser_linucb": mabwiser_linucb(ARMS, DIM, DECISIONS, SEED),
            "river_linucb": river_linucb(ARMS, DIM, DECISIONS, SEED),
            "sklearn_refit": sklearn_refit(POINTS, DIM, SEED),
            "botorch_refit": botorch_refit(POINTS, DIM, SEED),
            "botorch_condition": botorch_condition(POINTS, DIM, SEED),
            "botorch_condition, fast_pred_var on": botorch_condition(
                POINTS, DIM, SEED, fast_pred_var=True
            ),
        },
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
