"""Eager-KernelTS: Eager-KernelUCB that acts on a draw from its posterior."""

from typing import Unpack

from coopbandits.act import Sample
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Neighbourhood
from coopbandits.policy import Options, Policy
from coopbandits.say import Everything, Say
from coopbandits.similarity import Evidence, Similarity
from coopbandits.width import Width, chosen_width


def EagerKernelTS(
    kernel: Kernel,
    *,
    similarity: Similarity | None = None,
    ttl: int = 1,
    ridge: float = 1.0,
    eta: float | None = None,
    width: Width | None = None,
    compose: str = "hadamard",
    features: Basis | None = None,
    say: Say | None = None,
    samples: int = 1,
    **options: Unpack[Options],
) -> Policy:
    r"""Eager-KernelTS: Coop-KernelTS on the whole γ-neighbourhood's observations.

    No regret bound is known. K_z is learnt by `Evidence` unless a similarity is given.
    With `samples` > 1 decisions know their propensity (`act.Sample`).
    """
    return Policy(
        name="Eager-KernelTS",
        kernel=kernel,
        listen=Neighbourhood(),
        similarity=Evidence() if similarity is None else similarity,
        width=chosen_width(eta, width),
        act=Sample(samples),
        ttl=ttl,
        ridge=ridge,
        features=features,
        say=Everything() if say is None else say,
        compose=compose,
        **options,
    )
