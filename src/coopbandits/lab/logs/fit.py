r"""Which kernel, ridge and noise suit this log? Those that make its rewards most likely.

Each agent's rewards are taken as y ~ N(c, s²(K_x + λI)), independent of the others' given the
parameters, so that nobody's likeness to anybody is assumed. The log evidence, summed over agents,
is maximised over ℓ and λ by L-BFGS-B from several starts, s² and c profiled out (`marginal.py`).

What comes out is on the rewards' own scale: the kernel is s²·K_x, the ridge s²·λ is the variance of
the noise, so that a policy's mean and σ are rewards too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopbandits.arrays import Array, IntArray, as_choice, as_count, as_flag, as_number, short
from coopbandits.errors import InputError, ParameterError
from coopbandits.gp.compositions import JointKernel, composition
from coopbandits.gp.network_kernel import ONE_AGENT
from coopbandits.gp.posterior import Posterior
from coopbandits.kernels import RBF, Kernel, Linear, Matern, Scaled
from coopbandits.lab.logs.fit_words import at_bounds, hardly_a_signal, not_identified
from coopbandits.lab.logs.log import Log, as_log
from coopbandits.lab.logs.marginal import Data, Family, Marginal, marginal

KERNELS = ("linear", "rbf", "matern")

_LEAST = 10
_REACH = np.log(100.0)  # lengthscales from 1/100 to 100 times what the contexts suggest
_RIDGES = (np.log(1e-6), np.log(1e4))
_STARTS = 3  # how many of the grid's best points are followed up


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """A kernel, ridge and noise that suit a log, to be given to a policy.

    Attributes:
        name: Of the kernel: "linear", "rbf" or "matern".
        kernel: s²·K_x: `kernel=` of a policy.
        ridge: R², the noise's variance: `ridge=` of a policy.
        noise: R, the standard deviation of a reward around its expectation.
        scale: s, the standard deviation of expected rewards; 1 for a linear kernel, whose
            lengthscale says it.
        centre: c: subtract it from rewards before agents learn them.
        eta: 2R, a start for `eta=`: bounds two posterior standard deviations above the mean.
        norm: The largest norm of an agent's posterior mean under `kernel`: a start for `norm=` of
            widths, and rather too small than too large.
        evidence: log p of the rewards used.
        observations: How many rewards were used.
        agents: Of how many agents.
        errors: Standard errors of the logarithms of "lengthscale" (one or one a dimension), "noise"
            and "scale"; NaN where a parameter is at its bound or not identified.
        warnings: In words, what the log cannot tell.
    """

    name: str
    kernel: Kernel
    ridge: float
    noise: float
    scale: float
    centre: float
    eta: float
    norm: float
    evidence: float
    observations: int
    agents: int
    errors: dict[str, float | tuple[float, ...]]
    warnings: tuple[str, ...]

    @property
    def evidence_per_observation(self) -> float:
        """log p a reward: to compare kernels on the same log."""
        return self.evidence / self.observations

    @property
    def lengthscale(self) -> float | tuple[float, ...]:
        """ℓ, of all dimensions or each."""
        inner = self.kernel.kernel if isinstance(self.kernel, Scaled) else self.kernel
        assert isinstance(inner, Linear | RBF | Matern)
        return inner.lengthscale

    def predict(self, X: Array, y: Array, at: Array) -> Array:
        """Return the posterior mean at contexts, given an agent's own: (n, d), (n,), (m, d)."""
        joint = JointKernel(self.kernel, ONE_AGENT, composition("hadamard"))
        posterior = Posterior(joint, self.ridge)
        posterior.extend(np.zeros(len(y), dtype=np.int64), X, y - self.centre)
        if not len(y):
            return np.full(len(at), self.centre)
        return posterior.predict(np.zeros(len(at), dtype=np.int64), at).mean + self.centre


def fit_kernel(
    log: Log,
    kernel: str = "rbf",
    *,
    ard: bool = False,
    nu: float = 2.5,
    centre: float | None = None,
    most: int = 200,
    agents: int = 25,
) -> Fit:
    """Fit one kernel to a log.

    Refused: logs with fewer than 10 rewards, of agents with one decision each, with equal rewards
    or equal contexts; nothing can be told from them.

    Args:
        log: Propensities are not needed: how actions were chosen does not matter to the evidence,
            as long as it depended on the past and the contexts alone.
        kernel: "linear", "rbf" or "matern".
        ard: Whether each dimension has a lengthscale of its own.
        nu: Of Matérn: 0.5, 1.5 or 2.5.
        centre: c; the most likely, if not given. 0 for agents that are told rewards as they are.
        most: Of how many decisions of an agent use is made; of more, as many at even distances. The
            cost rises with its cube.
        agents: Of how many agents use is made; of more, as many at even distances.
    """
    kernel = as_choice(kernel, "kernel", KERNELS)
    as_flag(ard, "ard")
    if as_number(nu, "nu") not in (0.5, 1.5, 2.5):
        raise ParameterError(f"nu must be 0.5, 1.5 or 2.5, got {short(nu)}")
    c = None if centre is None else as_number(centre, "centre")
    data = _data(as_log(log), as_count(most, "most", least=2), as_count(agents, "agents"))
    family = Family(kernel, float(nu), ard)
    X = np.concatenate([X for X, _ in data])
    reference = _reference(family, X)
    bounds = [(ref - _REACH, ref + _REACH) for ref in reference]
    bounds += [_RIDGES] * family.has_ridge
    best = _climbed(family, data, c, bounds, _starts(family, data, c, reference))
    found = marginal(family, data, best, centre=c)
    return _settled(family, data, best, found, bounds, c)


def compare_kernels(
    log: Log,
    kernels: Sequence[str] = KERNELS,
    *,
    ard: bool = False,
    nu: float = 2.5,
    centre: float | None = None,
    most: int = 200,
    agents: int = 25,
) -> tuple[Fit, ...]:
    """Fit several kernels to a log, the likeliest first; arguments as of `fit_kernel`."""
    if isinstance(kernels, str) or not kernels:
        raise ParameterError(
            f"kernels must name some of {', '.join(map(repr, KERNELS))}, got {short(kernels)}"
        )
    fits = [
        fit_kernel(log, name, ard=ard, nu=nu, centre=centre, most=most, agents=agents)
        for name in kernels
    ]
    return tuple(sorted(fits, key=lambda fit: -fit.evidence))


def _data(log: Log, most: int, agents: int) -> Data:
    """Choose whose and which rewards are used, not looking at them: (n, d), (n,) of each."""
    owners, taken, rewards = log.owners, log.taken, log.rewards
    able = [v for v in range(log.agents) if (owners == v).sum() >= 2]
    data = []
    for v in _evenly(np.array(able, dtype=np.int64), agents):
        mine = _evenly(np.flatnonzero(owners == v), most)
        data.append((taken[mine], rewards[mine]))
    count = sum(len(y) for _, y in data)
    if count < _LEAST:
        raise InputError(
            f"the log has {count} rewards of agents with at least two decisions; at least {_LEAST} "
            "are needed to tell noise from signal"
        )
    y = np.concatenate([y for _, y in data])
    if np.ptp(y) <= 1e-12 * np.abs(y).max():
        raise InputError(
            f"all {count} rewards are {y[0]:g}; a kernel and a noise cannot be told from rewards "
            "that do not vary"
        )
    if all(np.ptp(X, axis=0).max() == 0 for X, _ in data):
        raise InputError(
            "each agent's taken contexts are all equal, so no lengthscale can be told; log actions "
            "of different contexts"
        )
    return data


def _evenly(values: IntArray, most: int) -> IntArray:
    """Keep at most so many values, at even distances."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(np.int64)]


def _reference(family: Family, X: Array) -> Array:
    """Return the logarithm of the lengthscales that contexts suggest: (1,) or (d,)."""
    dim = X.shape[1]
    spread = np.sqrt((X**2).mean(axis=0)) if family.name == "linear" else X.std(axis=0)
    whole = float(np.sqrt((spread**2).sum())) or 1.0
    if not family.ard:
        return np.log([whole])
    # a dimension that does not vary cannot tell its lengthscale: any will do
    return np.log(np.where(spread > 0, spread * np.sqrt(dim), whole))


def _starts(family: Family, data: Data, centre: float | None, reference: Array) -> list[Array]:
    """Return the best points of a coarse grid."""
    ridges = (1e-2, 0.3, 10.0) if family.has_ridge else (1.0,)
    shifts = (0.1, 0.3, 1.0, 3.0) if family.has_ridge else (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    grid = [
        np.append(reference + np.log(shift), np.log([ridge] * family.has_ridge))
        for shift in shifts
        for ridge in ridges
    ]
    ranked = sorted(grid, key=lambda p: -marginal(family, data, p, centre=centre).value)
    return ranked[:_STARTS]


def _climbed(
    family: Family,
    data: Data,
    centre: float | None,
    bounds: list[tuple[float, float]],
    starts: list[Array],
) -> Array:
    """Return the parameters of highest evidence that any start leads to."""
    from scipy.optimize import minimize  # noqa: PLC0415 (heavy)

    N = sum(len(y) for _, y in data)

    def loss(parameters: Array) -> tuple[float, Array]:
        found = marginal(family, data, parameters, centre=centre)
        return -found.value / N, -found.gradient[:-1] / N

    ends = [
        minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 1e-12, "gtol": 1e-8, "maxiter": 200},
        )
        for start in starts
    ]
    return np.asarray(min(ends, key=lambda end: float(end.fun)).x)


def _settled(
    family: Family,
    data: Data,
    best: Array,
    found: Marginal,
    bounds: list[tuple[float, float]],
    centre: float | None,
) -> Fit:
    """Put a fit onto the rewards' scale, with its errors and warnings."""
    ridge = float(np.exp(best[-1])) if family.has_ridge else 1.0
    ell, s = np.exp(best[: len(best) - family.has_ridge]), found.scale
    kernel = Scaled(family.kernel(ell), s**2) if family.has_ridge else family.kernel(ell / s)
    errors, loose = _errors(family, data, best, found, bounds, centre)
    X, y = (np.concatenate(parts) for parts in zip(*data, strict=True))
    alone = y - (y.mean() if centre is None else centre)
    noise_alone = -0.5 * len(y) * (np.log(2 * np.pi * np.mean(alone**2)) + 1)
    warnings = [
        *hardly_a_signal(found.value - noise_alone, len(best)),
        *at_bounds(family, best, bounds, X),
        *not_identified(errors, loose),
    ]
    return Fit(
        name=family.name,
        kernel=kernel,
        ridge=s**2 * ridge,
        noise=s * float(np.sqrt(ridge)),
        scale=1.0 if isinstance(kernel, Linear) else s,
        centre=found.centre,
        eta=2 * s * float(np.sqrt(ridge)),
        norm=found.norm,
        evidence=found.value,
        observations=len(y),
        agents=len(data),
        errors=errors,
        warnings=tuple(warnings),
    )


def _errors(
    family: Family,
    data: Data,
    best: Array,
    found: Marginal,
    bounds: list[tuple[float, float]],
    centre: float | None,
) -> tuple[dict[str, float | tuple[float, ...]], bool]:
    """Return standard errors from the curvature at the top, and whether there is no top.

    The Hessian over (log ℓ, log λ, log s) is made of central differences of the gradient.
    """
    whole = np.append(best, np.log(found.scale))
    low, high = np.array([*bounds, (-np.inf, np.inf)]).T
    free = np.flatnonzero((whole > low + 1e-3) & (whole < high - 1e-3))
    step = 1e-4

    def gradient(point: Array) -> Array:
        scale = float(np.exp(point[-1]))
        return marginal(family, data, point[:-1], centre=centre, scale=scale).gradient

    rows = []
    for j in free:
        shift = step * (np.arange(len(whole)) == j)
        rows.append((gradient(whole + shift) - gradient(whole - shift))[free] / (2 * step))
    curvature = -0.5 * (np.array(rows) + np.array(rows).T)
    values, vectors = np.linalg.eigh(curvature)
    loose = bool(values[0] <= 1e-6 * values[-1])
    covariance = np.full((len(whole), len(whole)), np.nan)
    if not loose:
        covariance[np.ix_(free, free)] = (vectors / values) @ vectors.T

    def error(weights: dict[int, float]) -> float:
        """Take the standard error of a weighted sum of parameters, named by their index."""
        index, by = list(weights), np.array(list(weights.values()))
        return float(np.sqrt(by @ covariance[np.ix_(index, index)] @ by))

    s, ells = len(whole) - 1, len(best) - family.has_ridge
    if family.has_ridge:
        of_ells = tuple(error({j: 1.0}) for j in range(ells))
        noise, scale = error({s - 1: 0.5, s: 1.0}), error({s: 1.0})
    else:  # its lengthscale is ℓ/s, its noise s
        of_ells = tuple(error({j: 1.0, s: -1.0}) for j in range(ells))
        noise, scale = error({s: 1.0}), 0.0
    shown = of_ells if family.ard else of_ells[0]
    return {"lengthscale": shown, "noise": noise, "scale": scale}, loose
