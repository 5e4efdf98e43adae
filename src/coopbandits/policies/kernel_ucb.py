"""KernelUCB (Valko et al. 2013): every agent on its own, any kernel."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options
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
    r"""KernelUCB: argmax mean(x) + (η/√λ)·σ(x).

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> agent = cb.KernelUCB(cb.kernels.RBF(0.5)).agent(0, cb.Network.path(2))
        >>> decision = agent.decide([[0.0], [1.0]])
        >>> decision.mean, decision.std
        (0.0, 1.0)
    """
    return Policy(
        name="KernelUCB",
        kernel=kernel,
        listen=Myself(),
        similarity=Alone(),
        width=chosen_width(eta, width),
        act=UpperBound(),
        ridge=ridge,
        features=features,
        **known_options(KernelUCB, options),
    )
