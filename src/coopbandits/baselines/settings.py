"""Are an algorithm's settings sound, and does its run fit into memory?"""

from dataclasses import replace
from typing import Any, Self

from coopbandits.arrays import as_not_negative, as_positive, short
from coopbandits.engines import Simulation
from coopbandits.errors import ParameterError
from coopbandits.width import SelfNormalised, Width, as_delta, chosen_width


def settled_width(eta: float | None, width: Width | None) -> Width:
    """Settle `eta=` and `width=`: one of them, or the self-normalised width."""
    given: object = width
    if given is not None and (not isinstance(given, Width) or isinstance(given, type)):
        raise ParameterError(
            f"width={short(width)} is no width; expected a value such as "
            "coopbandits.width.SelfNormalised()"
        )
    if eta is None and width is None:
        return SelfNormalised()
    return chosen_width(eta, width)


def settle_bound(algorithm: Any) -> None:
    """Check λ, B, R, δ and η, which bear the same names in all that have them."""
    settled = {
        "ridge": as_positive(algorithm.ridge, "ridge"),
        "norm": as_not_negative(algorithm.norm, "norm"),
        "noise": as_not_negative(algorithm.noise, "noise"),
        "delta": as_delta(algorithm.delta),
    }
    if algorithm.eta is not None:
        settled["eta"] = as_not_negative(algorithm.eta, "eta")
    for field, value in settled.items():
        object.__setattr__(algorithm, field, value)


class Named:
    """An algorithm that has a name, and can be given another."""

    def named(self, name: str) -> Self:
        """Return the same algorithm under another name."""
        return replace(self, name=name)  # type: ignore[type-var]


def as_name(value: object) -> str:
    """Check what tables and figures call an algorithm."""
    if not isinstance(value, str):
        raise ParameterError(f"name must be a text, got {short(value)}")
    return value


def check_memory(name: str, needed: float, simulation: Simulation) -> None:
    """Refuse a run whose factors need too many bytes, before it starts."""
    if needed > simulation.memory_limit:
        raise ParameterError(
            f"{simulation.rounds} rounds of {name} with {simulation.agents} agents need about "
            f"{needed / 1e9:.1f} GB for factors, above memory_limit={simulation.memory_limit:.3g} "
            "bytes; raise the limit, play fewer rounds, or on a smaller network"
        )
