"""OFUL (Abbasi-Yadkori et al. 2011): LinUCB with the self-normalised width."""

from typing import Never, Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, refuse_kernel
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
        **options,
    )
