"""LinUCB (Li et al. 2010): every agent on its own, linear rewards."""

from typing import Never, Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, refuse_kernel
from coopbandits.similarity import Alone
from coopbandits.width import Width, chosen_width


def LinUCB(
    *given: Never,
    eta: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""LinUCB with pooled arms: argmax θ̂ᵀx + η·√(xᵀA⁻¹x), A = λI + Σxxᵀ.

    Its α is η. It is KernelUCB with the linear kernel.
    """
    refuse_kernel("LinUCB", given, options, instead="KernelUCB(kernel)")
    return Policy(
        name="LinUCB",
        kernel=Linear(),
        listen=Myself(),
        similarity=Alone(),
        width=chosen_width(eta, width),
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **options,
    )
