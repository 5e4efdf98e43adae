"""GP-UCB (Srinivas et al. 2010): every agent on its own, the width of their RKHS theorem."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Alone
from coopbandits.width import Srinivas


def GPUCB(
    kernel: Kernel,
    *,
    width: Srinivas | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""GP-UCB: argmax mean(x) + √β·σ(x), β = 2B² + 300·Υ·ln³(t/δ) (Remark 1).

    `ridge` is their noise variance.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        width: Norm bound and δ; `Srinivas()`, if not given.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.GPUCB(cb.kernels.RBF(), ridge=0.01).width
        Srinivas(norm=1.0, delta=0.05, gain=None)
    """
    return Policy(
        name="GP-UCB",
        kernel=kernel,
        listen=Myself(),
        similarity=Alone(),
        width=Srinivas() if width is None else width,
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **known_options(GPUCB, options),
    )
