"""Centralised (§2): one agent that pulls V·T arms in turn, the mark to compare with."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.kernels import Kernel
from coopbandits.listen import Everyone
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Same, Similarity
from coopbandits.width import Width, chosen_width


def Centralised(
    kernel: Kernel,
    *,
    similarity: Similarity | None = None,
    ridge: float = 1.0,
    eta: float | None = None,
    width: Width | None = None,
    compose: str = "hadamard",
    lag: int = 0,
    **options: Unpack[Options],
) -> Policy:
    r"""Everyone knows everything at once: round-robin, each pull sees all before it.

    `lag=1` lets all agents decide at once, knowing all earlier rounds. K_z is all ones unless a
    similarity is given. No network is used; its record counts a message from each agent to every
    other.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        similarity: K_z; all ones, if not given.
        ridge: λ.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        compose: How K_z and K_x make K: "hadamard", "kronecker" (the same) or "sum".
        lag: 0 for turns within a round, 1 for all at once.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.Centralised(cb.kernels.RBF(), lag=1).listen
        Everyone(lag=1)
    """
    return Policy(
        name="Centralised",
        kernel=kernel,
        listen=Everyone(lag=lag),
        similarity=Same() if similarity is None else similarity,
        width=chosen_width(eta, width),
        act=UpperBound(),
        ridge=ridge,
        compose=compose,
        **known_options(Centralised, options),
    )
