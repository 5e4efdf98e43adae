"""`coop fit`: which kernel, ridge and noise suit a log?"""

import argparse
from typing import Any

import numpy as np

from coopbandits.lab.logs.fit import KERNELS, Fit, compare_kernels
from coopbandits.lab.logs.log_files import read_log
from coopbandits.lab.terminal import show_json, show_table, show_words


def main(options: argparse.Namespace) -> int:
    """Fit kernels to a log, and show them, the likeliest first.

    Args:
        options: `log`, a path; `kernels`, names of kernels, or none for all; `ard`, whether each
            dimension has its own lengthscale; `json`, whether to print JSON.
    """
    log = read_log(options.log)
    fits = compare_kernels(log, options.kernels or KERNELS, ard=bool(options.ard))
    if options.json:
        show_json([_facts(fit) for fit in fits])
        return 0
    best = fits[0]
    show_table(
        f"{best.observations} rewards of {best.agents} agents; ± is a standard error, in percent",
        ["kernel", "log evidence a reward", "lengthscale", "scale", "noise", "ridge", "centre"],
        [_row(fit) for fit in fits],
    )
    words = [f"{fit.name}: {warning}" for fit in fits for warning in fit.warnings]
    call = f"kernel={best.kernel!r}, ridge={best.ridge:.6g}, eta={best.eta:.6g}"
    show_words([*words, f"likeliest: {call}", f"subtract {best.centre:.6g} from rewards"])
    return 0


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
