"""LK-GP-TS (Wu & Amini 2026): LK-GP-UCB that acts on a draw from its posterior."""

from typing import Unpack

from coopbandits.act import Sample
from coopbandits.kernels import Kernel
from coopbandits.listen import Everyone
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Laplacian
from coopbandits.width import SelfNormalised, Width


def LaplacianKernelTS(
    kernel: Kernel,
    *,
    rho: float = 1.0,
    width: Width | None = None,
    ridge: float = 1.0,
    lag: int = 0,
    samples: int = 1,
    **options: Unpack[Options],
) -> Policy:
    r"""LK-GP-TS: argmax of one draw from N(mean_v, w²·Σ_v), K = [(L + ρI)⁻¹]_{vu}·K_x(x, x').

    Mean and Σ are those of `LaplacianKernelUCB`, whose upper bound the draw takes the place of. The
    width is `SelfNormalised()` unless given: w = B + (R/√λ)·√(log det(I + K/λ) + 2 ln(1/δ)).
    `Fixed(√λ)` has w = 1, the Bayesian posterior for Gaussian noise of variance λ.

    Deviation from the paper: as `LaplacianKernelUCB`; of LK-GP-TS only the abstract was at hand,
    and that its draws have the width of LK-GP-UCB is our reading.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        rho: ρ; a small one binds neighbours tightly.
        width: How sure am I? `SelfNormalised()`, if not given.
        ridge: λ.
        lag: 0 for turns within a round, 1 for all at once.
        samples: How many functions are drawn to know a choice's propensity (`act.Sample`).
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.LaplacianKernelTS(cb.kernels.RBF(), rho=2.0).similarity
        Laplacian(rho=2.0)
    """
    return Policy(
        name="Laplacian-KernelTS",
        kernel=kernel,
        listen=Everyone(lag=lag),
        similarity=Laplacian(rho),
        width=SelfNormalised() if width is None else width,
        act=Sample(samples),
        ridge=ridge,
        **known_options(LaplacianKernelTS, options),
    )
