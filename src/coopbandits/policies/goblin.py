"""GoB.Lin (Cesa-Bianchi, Gentile & Zappella 2013): who is joined by an edge has an alike task."""

from typing import Never, Unpack

from coopbandits.act import UpperBound
from coopbandits.arrays import short
from coopbandits.errors import ParameterError
from coopbandits.kernels import Linear
from coopbandits.listen import Everyone
from coopbandits.policy import Options, Policy, known_options, refuse_kernel
from coopbandits.similarity import Laplacian
from coopbandits.width import Logarithmic, Width


def GoBLin(
    *given: Never,
    alpha: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    lag: int = 0,
    **options: Unpack[Options],
) -> Policy:
    r"""GoB.Lin: argmax wᵀφ̃ + α·√(φ̃ᵀM⁻¹φ̃·ln(t + 1)), φ̃ = A⊗^(−1/2)·φ_v(x), A⊗ = (I + L) ⊗ I_d.

    φ_v(x) is x in the v-th of V blocks of d numbers, and M = I + Σφ̃φ̃ᵀ over all that anyone saw.
    So φ̃ᵀφ̃' = [(I + L)⁻¹]_{vu}·xᵀx': the linear kernel with `Laplacian(1)`, and w is the minimiser
    of Σ(y − w_vᵀx)² + Σ‖w_v‖² + Σ‖w_v − w_u‖², the last over the edges.

    `alpha` (1 unless given) is short for `width=Logarithmic(alpha)`, the width of their
    experiments. That of their theorem, ‖Ũ‖ + R·√(ln(|M|/δ)), is `SelfNormalised(norm, noise, √δ)`.

    Deviation from the paper: it serves one user in a step. Here a round serves all V agents in
    turn, each step knowing all before it; with `lag=1` all at once, knowing all earlier rounds,
    which larger networks need (docs/baselines.md). The first step is at random. Each component of
    the network is one of its own, with its own t.

    Args:
        alpha: α, short for `width=Logarithmic(alpha)`; 1, if neither is given.
        width: How sure am I? In place of `alpha`.
        ridge: λ.
        lag: 0 for turns within a round, 1 for all at once.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.GoBLin(alpha=0.5).similarity
        Laplacian(rho=1.0)
    """
    refuse_kernel("GoBLin", given, options, instead="LaplacianKernelUCB(kernel)")
    if alpha is not None and width is not None:
        raise ParameterError(
            f"alpha={short(alpha)} is short for width=Logarithmic(alpha), but width={short(width)} "
            "is given too; give one of them"
        )
    return Policy(
        name="GoB.Lin",
        kernel=Linear(),
        listen=Everyone(lag=lag),
        similarity=Laplacian(1.0),
        width=Logarithmic(1.0 if alpha is None else alpha) if width is None else width,
        act=UpperBound(),
        ridge=ridge,
        **known_options(GoBLin, options),
    )
