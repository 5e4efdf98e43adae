"""Which policy does a name stand for, once kernel, ridge and width are fitted to a log?"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import coopbandits.policies
from coopbandits.arrays import short
from coopbandits.errors import ParameterError
from coopbandits.kernels import Scaled
from coopbandits.lab.logs.fit import Fit, compare_kernels, fit_kernel
from coopbandits.lab.logs.log import Log
from coopbandits.policy import Policy
from coopbandits.scaling import Scaling
from coopbandits.width import InformationGain, SelfNormalised, Srinivas

# A constant of an agent's own rewards may be so many times the centre, or the spread, of all.
_CONSTANT = 3.0


class Fits:
    """The fits to a log that policies ask for, each made once.

    Args:
        log: In raw units.
        kernel: "linear", "rbf" or "matern"; None for the likeliest.
        scaling: In which units kernels are fitted; None for the log's own.
        made: Fits that are known already, by the name of their kernel.
    """

    def __init__(
        self,
        log: Log,
        kernel: str | None,
        scaling: Scaling | None = None,
        *,
        made: Mapping[str | None, Fit] | None = None,
    ) -> None:
        self.scaling, self._kernel = scaling, kernel
        self._log = log if scaling is None else log.scaled(scaling)
        self._made: dict[str | None, Fit] = dict(made or {})

    def of(self, *, linear: bool) -> Fit:
        """Return the fit of the wanted kernel, or of a linear one."""
        name = "linear" if linear else self._kernel
        if name not in self._made:
            self._made[name] = (
                compare_kernels(self._log)[0] if name is None else fit_kernel(self._log, name)
            )
        return self._made[name]


def known_policy(name: str) -> str:
    """Check the name of a policy."""
    known = coopbandits.policies.__all__
    if name not in known:
        raise ParameterError(
            f"policy {short(name)} is not known; expected some of {', '.join(known)}"
        )
    return name


def configured(name: str, fits: Fits, ttl: int) -> tuple[Policy, float]:
    """Make a policy by its name with what was fitted; return what to subtract from rewards too."""
    make: Callable[..., Policy] = getattr(coopbandits.policies, name)
    takes = _taken_by(name)
    if "ridge" not in takes:  # it learns nothing
        return make(), 0.0
    fit = fits.of(linear="kernel" not in takes)
    kernel, ridge, norm = fit.kernel, fit.ridge, fit.norm
    if "kernel" not in takes:  # k/ℓ² with ridge λ is k with ridge λℓ², and norms shrink by ℓ
        assert isinstance(fit.lengthscale, float)
        ridge, norm = ridge * fit.lengthscale**2, norm / fit.lengthscale
    if name == "IGPUCB":  # its width is for λ >= 1: K/λ with ridge 1 is the same posterior
        kernel, ridge, norm = Scaled(kernel, 1 / ridge), 1.0, norm * ridge**0.5
    widths: dict[str, Any] = {
        "OFUL": SelfNormalised(norm=norm, noise=fit.noise),
        "GPUCB": Srinivas(norm=norm),
        "IGPUCB": InformationGain(norm=norm, noise=fit.noise),
        "LaplacianKernelTS": SelfNormalised(norm=norm, noise=fit.noise),
        "LaplacianKernelUCB": SelfNormalised(norm=norm, noise=fit.noise),
    }
    answers = {"kernel": kernel, "ridge": ridge, "ttl": ttl, "eta": fit.eta, "alpha": fit.eta}
    if name in widths:
        answers["width"] = widths[name]
    made = make(**{key: answers[key] for key in answers if key in takes})
    return replace(made, scaling=fits.scaling), fit.centre


def _taken_by(name: str) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a named policy."""
    return inspect.signature(getattr(coopbandits.policies, name)).parameters


def constant_of(fit: Fit) -> float:
    """Return τ, an `intercept=` for agents that are told rewards as they are."""
    return float(f"{_CONSTANT * max(abs(fit.centre), fit.scale, fit.noise):.3g}")


def deployable(name: str, fits: Fits, ttl: int) -> Policy:
    """Make a policy that takes contexts and rewards as they are: scaling and intercept with it."""
    policy, _ = configured(name, fits, ttl)
    takes = _taken_by(name)
    if "ridge" not in takes:  # it learns nothing
        return policy
    fit = fits.of(linear="kernel" not in takes)
    # cK with ridge cλ and constant √c·τ is the posterior of K, λ and τ
    units = (policy.ridge / fit.ridge) ** 0.5
    return replace(policy, intercept=constant_of(fit) * units)
