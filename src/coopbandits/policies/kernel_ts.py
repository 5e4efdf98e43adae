"""KernelTS (GP-TS, Chowdhury & Gopalan 2017): every agent on its own, acting on a draw."""

from typing import Unpack

from coopbandits.act import Sample
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Alone
from coopbandits.width import Width, chosen_width


def KernelTS(
    kernel: Kernel,
    *,
    eta: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    samples: int = 1,
    **options: Unpack[Options],
) -> Policy:
    r"""KernelTS: argmax of one draw from N(mean, (η²/λ)·Σ).

    With `width=InformationGain(…)` it is GP-TS on a finite set; its v is IGP-UCB's β at δ/2.

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        samples: How many functions are drawn to know a choice's propensity (`act.Sample`).
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.KernelTS(cb.kernels.RBF()).act
        Sample(samples=1)
    """
    return Policy(
        name="KernelTS",
        kernel=kernel,
        listen=Myself(),
        similarity=Alone(),
        width=chosen_width(eta, width),
        act=Sample(samples),
        ridge=ridge,
        features=features,
        **known_options(KernelTS, options),
    )
