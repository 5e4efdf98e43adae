"""OFUL (Abbasi-Yadkori et al. 2011): LinUCB with the self-normalised width."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy
from coopbandits.similarity import Alone
from coopbandits.width import SelfNormalised


def OFUL(
    *,
    width: SelfNormalised | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""OFUL: argmax θ̂ᵀx + w·σ(x), w = B + (R/√λ)·√(log det(I + K/λ) + 2 ln(1/δ)).

    The norm bound B, the noise level R and δ are those of `width`.
    """
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
