"""OFUL (Abbasi-Yadkori et al. 2011): LinUCB with the self-normalised width."""

from typing import Never, Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options, refuse_kernel
from coopbandits.similarity import Alone
from coopbandits.width import SelfNormalised


def OFUL(
    *given: Never,
    width: SelfNormalised | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""OFUL: argmax θ̂ᵀx + w·σ(x), w = B + (R/√λ)·√(log det(I + K/λ) + 2 ln(1/δ)).

    The norm bound B, the noise level R and δ are those of `width`.

    Args:
        width: Norm bound, noise level and δ; `SelfNormalised()`, if not given.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.OFUL(width=cb.width.SelfNormalised(norm=2.0, noise=0.1)).width.norm
        2.0
    """
    refuse_kernel("OFUL", given, options, instead="KernelUCB(kernel, width=SelfNormalised())")
    return Policy(
        name="OFUL",
        kernel=Linear(),
        listen=Myself(),
        similarity=Alone(),
        width=SelfNormalised() if width is None else width,
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **known_options(OFUL, options),
    )
