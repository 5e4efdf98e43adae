"""Uniform: any action, at random; what learning must beat."""

from typing import Never, Unpack

from coopbandits.act import AtRandom
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, known_options, refuse_kernel
from coopbandits.similarity import Alone
from coopbandits.width import Fixed


def Uniform(*given: Never, **options: Unpack[Options]) -> Policy:
    """Choose each action with the same probability, and learn nothing.

    Args:
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> agent = cb.Uniform().agent(0, cb.Network.path(2))
        >>> agent.decide([[0.0], [1.0]]).mean is None  # it believes nothing
        True
    """
    refuse_kernel("Uniform", given, options, instead="KernelUCB(kernel)")
    return Policy(
        name="Uniform",
        kernel=Linear(),
        listen=Myself(),
        similarity=Alone(),
        width=Fixed(0.0),
        act=AtRandom(),
        **known_options(Uniform, options),
    )
