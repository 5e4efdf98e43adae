"""`coop replay`: what would other policies have earned on a log?"""

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coopbandits.policies
from coopbandits.arrays import short
from coopbandits.errors import NetworkError, ParameterError
from coopbandits.kernels import Scaled
from coopbandits.lab.edge_lists import read_edges
from coopbandits.lab.logs.fit import Fit, compare_kernels, fit_kernel
from coopbandits.lab.logs.log import Log
from coopbandits.lab.logs.log_files import read_log
from coopbandits.lab.logs.replay import Replay, replay_policy
from coopbandits.lab.terminal import show_json, show_table, show_words
from coopbandits.network import Network
from coopbandits.policy import Policy
from coopbandits.similarity import Evidence
from coopbandits.width import InformationGain, SelfNormalised, Srinivas


def main(options: argparse.Namespace) -> int:
    """Replay a log with some policies, their kernel, ridge and width fitted to it.

    Args:
        options: `log`, a path; `network`, a file of one edge a line, or None for agents that hear
            nobody; `policies`, names such as "EagerKernelUCB"; `kernel`, "linear", "rbf" or
            "matern", or None for the likeliest; `ttl`; `seed`; `json`, whether to print JSON; and
            `uniform`, if it is there, whether all actions were as likely in a log that does not
            say.
    """
    log = read_log(options.log)
    network = None if options.network is None else read_network(options.network, log)
    known = coopbandits.policies.__all__
    if not options.policies:
        raise ParameterError(f"no policy is given; expected some of {', '.join(known)}")
    for name in options.policies:
        if name not in known:
            raise ParameterError(
                f"policy {short(name)} is not known; expected some of {', '.join(known)}"
            )
    fits = _Fits(log, options.kernel)
    found, shown = [], []
    for name in options.policies:
        policy, centre = configured(name, fits, options.ttl)
        shown.append(f"{name}, Evidence" if isinstance(policy.similarity, Evidence) else name)
        found.append(
            replay_policy(
                log,
                policy,
                network=network,
                uniform=bool(getattr(options, "uniform", False)),
                centre=centre,
                seed=options.seed,
            )
        )
    if options.json:
        show_json([_facts(name, r) for name, r in zip(options.policies, found, strict=True)])
        return 0
    show_table(
        f"mean reward a decision while learning; the log's own is {found[0].logged:.4g}",
        ["policy", "mean", "95% interval", "rounds", "decisions used"],
        [_row(name, r) for name, r in zip(shown, found, strict=True)],
    )
    show_words(["kernel, ridge and width were fitted to the same log (coop fit)"])
    return 0


class _Fits:
    """The fits that policies ask for, each made once."""

    def __init__(self, log: Log, kernel: str | None) -> None:
        self._log, self._kernel = log, kernel
        self._made: dict[str | None, Fit] = {}

    def of(self, *, linear: bool) -> Fit:
        """Return the fit of the wanted kernel, or of a linear one."""
        name = "linear" if linear else self._kernel
        if name not in self._made:
            self._made[name] = (
                compare_kernels(self._log)[0] if name is None else fit_kernel(self._log, name)
            )
        return self._made[name]


def configured(name: str, fits: _Fits, ttl: int) -> tuple[Policy, float]:
    """Make a policy by its name with what was fitted; return what to subtract from rewards too."""
    make: Callable[..., Policy] = getattr(coopbandits.policies, name)
    takes = inspect.signature(make).parameters
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
    return make(**{key: answers[key] for key in answers if key in takes}), fit.centre


def read_network(path: str | Path, log: Log) -> Network:
    """Read edges between a log's agents, by their names, or their numbers where they have none."""
    edges = read_edges(Path(path))
    pairs = edges.names[edges.edges]
    if log.names is None:
        if pairs.dtype.kind != "i":
            raise NetworkError(
                f"{path} names agents by text, such as {short(str(pairs[0, 0]))}, but the log has "
                "numbers; expected the same in both"
            )
        return Network.from_edges(pairs, agents=log.agents)
    named = [(str(i), str(j)) for i, j in pairs.tolist()]
    return Network.from_edges(named, names=log.names)


def _row(name: str, found: Replay) -> list[str]:
    low, high = found.interval
    return [
        name,
        f"{found.mean:.4g}",
        f"{low:.4g} … {high:.4g}",
        str(len(found.rewards)),
        str(found.used),
    ]


def _facts(name: str, found: Replay) -> dict[str, Any]:
    return {
        "policy": name,
        "mean": found.mean,
        "interval": found.interval,
        "level": found.level,
        "rounds": len(found.rewards),
        "accepted": found.accepted,
        "used": found.used,
        "floor": found.floor,
        "logged": found.logged,
    }
