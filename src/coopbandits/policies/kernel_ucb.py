"""KernelUCB (Valko et al. 2013): every agent on its own, any kernel."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy
from coopbandits.similarity import Alone
from coopbandits.width import Width, chosen_width


def KernelUCB(
    kernel: Kernel,
    *,
    eta: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""KernelUCB: argmax mean(x) + (η/√λ)·σ(x)."""
    return Policy(
        name="KernelUCB",
        kernel=kernel,
        listen=Myself(),
        similarity=Alone(),
        width=chosen_width(eta, width),
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **options,
    )
