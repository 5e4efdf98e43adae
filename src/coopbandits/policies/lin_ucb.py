"""LinUCB (Li et al. 2010): every agent on its own, linear rewards."""

from typing import Never, Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options, refuse_kernel
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

    Args:
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.LinUCB(eta=0.3) == cb.KernelUCB(cb.kernels.Linear(), eta=0.3)
        True
        >>> problem = cb.problems.clustered_linear(cb.Network.grid(3, 3))
        >>> cb.play(problem, cb.LinUCB(eta=0.3), rounds=5).actions.shape
        (5, 9)
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
        **known_options(LinUCB, options),
    )
