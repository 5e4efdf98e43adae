"""LK-GP-UCB (Wu & Amini 2026): GoB.Lin with any kernel."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.kernels import Kernel
from coopbandits.listen import Everyone
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Laplacian
from coopbandits.width import SelfNormalised, Width


def LaplacianKernelUCB(
    kernel: Kernel,
    *,
    rho: float = 1.0,
    width: Width | None = None,
    ridge: float = 1.0,
    lag: int = 0,
    **options: Unpack[Options],
) -> Policy:
    r"""LK-GP-UCB: argmax mean_v(x) + w·σ_v(x), K((v, x), (u, x')) = [(L + ρI)⁻¹]_{vu}·K_x(x, x').

    The squared norm of F in the RKHS of this K is Σ‖f_v − f_u‖² over the edges + ρ·Σ‖f_v‖². The
    width is `SelfNormalised()` unless given: w = B + (R/√λ)·√(log det(I + K/λ) + 2 ln(1/δ)), for
    every λ; V is 1 there, for one learner decides for all.

    Deviation from the paper: as `GoBLin`, agents take turns within a round (`lag=0`) or all decide
    at once (`lag=1`); edges have no weights.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        rho: ρ; a small one binds neighbours tightly.
        width: How sure am I? `SelfNormalised()`, if not given.
        ridge: λ.
        lag: 0 for turns within a round, 1 for all at once.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.LaplacianKernelUCB(cb.kernels.RBF(), rho=2.0).similarity
        Laplacian(rho=2.0)
    """
    return Policy(
        name="Laplacian-KernelUCB",
        kernel=kernel,
        listen=Everyone(lag=lag),
        similarity=Laplacian(rho),
        width=SelfNormalised() if width is None else width,
        act=UpperBound(),
        ridge=ridge,
        **known_options(LaplacianKernelUCB, options),
    )
