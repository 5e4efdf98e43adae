"""LinTS (Agrawal & Goyal 2013): every agent on its own, linear rewards, acting on a draw."""

from typing import Never, Unpack

from coopbandits.act import Sample
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options, refuse_kernel
from coopbandits.similarity import Alone
from coopbandits.width import Width, chosen_width


def LinTS(
    *given: Never,
    eta: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    samples: int = 1,
    **options: Unpack[Options],
) -> Policy:
    r"""LinTS with pooled arms: argmax θ̃ᵀx, θ̃ ~ N(θ̂, η²A⁻¹), A = λI + Σxxᵀ.

    Its v is η. It is KernelTS with the linear kernel.

    Args:
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        samples: How many functions are drawn to know a choice's propensity (`act.Sample`).
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.LinTS(eta=0.3) == cb.KernelTS(cb.kernels.Linear(), eta=0.3)
        True
    """
    refuse_kernel("LinTS", given, options, instead="KernelTS(kernel)")
    return Policy(
        name="LinTS",
        kernel=Linear(),
        listen=Myself(),
        similarity=Alone(),
        width=chosen_width(eta, width),
        act=Sample(samples),
        ridge=ridge,
        features=features,
        **known_options(LinTS, options),
    )
