"""`coop fit`: which kernel, ridge and noise suit a log?"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from coopbandits.lab.commands.source import read_source, show_columns, written
from coopbandits.lab.logs.configured import Fits, constant_of, deployable, known_policy
from coopbandits.lab.logs.fit import KERNELS, Fit, compare_kernels
from coopbandits.lab.logs.log import Log
from coopbandits.lab.terminal import show_json, show_table, show_words
from coopbandits.scaling import Scaling


def main(options: argparse.Namespace) -> int:
    """Fit kernels to a log, and show them, the likeliest first.

    Args:
        options: `log`, a path, and for a table its columns (`source.py`); `kernels`, names of
            kernels, or none for all; `ard`, whether each dimension has its own lengthscale; `json`,
            whether to print JSON; and, if they are there, `out`, a file for a policy with what was
            found, its name `policy` and its `ttl`.
    """
    log, scaling = read_source(options)
    units = log if scaling is None else log.scaled(scaling)
    fits = compare_kernels(units, options.kernels or KERNELS, ard=bool(options.ard))
    file = _written(options, log, fits[0], scaling)
    if options.json:
        show_json([_facts(fit) for fit in fits])
        return 0
    best = fits[0]
    show_columns(log, scaling)
    show_table(
        f"{best.observations} rewards of {best.agents} agents; ± is a standard error, in percent",
        ["kernel", "log evidence a reward", "lengthscale", "scale", "noise", "ridge", "centre"],
        [_row(fit) for fit in fits],
    )
    words = [f"{fit.name}: {warning}" for fit in fits for warning in fit.warnings]
    call = f"kernel={best.kernel!r}, ridge={best.ridge:.6g}, eta={best.eta:.6g}"
    words.append(f"likeliest: {call}")
    constant = f"or give the policy intercept={constant_of(best):.3g}"
    words.append(f"subtract {best.centre:.6g} from rewards, {constant}")
    if file is not None:
        words.append(f"written: {file}, to be read by coopbandits.Policy.from_spec")
    show_words(words)
    return 0


def _written(
    options: argparse.Namespace, log: Log, best: Fit, scaling: Scaling | None
) -> Path | None:
    """Write a policy with what was found, if it is asked for."""
    out = getattr(options, "out", None)
    if out is None:
        return None
    name = known_policy(getattr(options, "policy", "EagerKernelUCB"))
    fits = Fits(log, best.name, scaling, made={best.name: best})
    policy = deployable(name, fits, getattr(options, "ttl", 1))
    return written(out, policy.to_toml())


def _row(fit: Fit) -> list[str]:
    return [
        fit.name,
        f"{fit.evidence_per_observation:.4f}",
        _with_errors(fit.lengthscale, fit.errors["lengthscale"]),
        "–" if fit.name == "linear" else _with_errors(fit.scale, fit.errors["scale"]),
        _with_errors(fit.noise, fit.errors["noise"]),
        f"{fit.ridge:.4g}",
        f"{fit.centre:.4g}",
    ]


def _with_errors(values: float | tuple[float, ...], errors: float | tuple[float, ...]) -> str:
    return ", ".join(
        f"{value:.3g}" + (f" ± {100 * error:.0f}%" if np.isfinite(error) else "")
        for value, error in zip(np.atleast_1d(values), np.atleast_1d(errors), strict=True)
    )


def _facts(fit: Fit) -> dict[str, Any]:
    return {
        "kernel": fit.name,
        "lengthscale": fit.lengthscale,
        "scale": fit.scale,
        "noise": fit.noise,
        "ridge": fit.ridge,
        "centre": fit.centre,
        "eta": fit.eta,
        "norm": fit.norm,
        "evidence": fit.evidence,
        "observations": fit.observations,
        "agents": fit.agents,
        "errors": fit.errors,
        "warnings": fit.warnings,
    }
