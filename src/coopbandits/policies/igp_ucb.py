"""IGP-UCB (Chowdhury & Gopalan 2017): every agent on its own, the information-gain width."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Alone
from coopbandits.width import InformationGain


def IGPUCB(
    kernel: Kernel,
    *,
    width: InformationGain | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""IGP-UCB: argmax mean(x) + β·σ(x), β = B + R·√(2(Υ + 1 + ln(1/δ))) (Remark 1).

    Their theorem takes ridge = 1 + 2/T.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        width: Norm bound, noise level and δ; `InformationGain()`, if not given.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> T = 100
        >>> cb.IGPUCB(cb.kernels.RBF(), ridge=1 + 2 / T).ridge
        1.02
    """
    return Policy(
        name="IGP-UCB",
        kernel=kernel,
        listen=Myself(),
        similarity=Alone(),
        width=InformationGain() if width is None else width,
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **known_options(IGPUCB, options),
    )
