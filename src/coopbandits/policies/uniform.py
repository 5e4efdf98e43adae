"""Uniform: any action, at random; what learning must beat."""

from typing import Never, Unpack

from coopbandits.act import AtRandom
from coopbandits.kernels import Linear
from coopbandits.listen import Myself
from coopbandits.policy import Options, Policy, refuse_kernel
from coopbandits.similarity import Alone
from coopbandits.width import Fixed


def Uniform(*given: Never, **options: Unpack[Options]) -> Policy:
    """Choose each action with the same probability, and learn nothing."""
    refuse_kernel("Uniform", given, options, instead="KernelUCB(kernel)")
    return Policy(
        name="Uniform",
        kernel=Linear(),
        listen=Myself(),
        similarity=Alone(),
        width=Fixed(0.0),
        act=AtRandom(),
        **options,
    )
