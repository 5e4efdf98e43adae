"""Coop-KernelTS: Coop-KernelUCB that acts on a draw from its posterior (Bayesian, §7)."""

from typing import Unpack

from coopbandits.act import Sample
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Clique
from coopbandits.policy import Options, Policy
from coopbandits.say import Everything, Say
from coopbandits.similarity import Evidence, Similarity
from coopbandits.width import Width, chosen_width


def CoopKernelTS(
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
    r"""Coop-KernelTS: argmax of one draw from N(F̂_v, (η²/λ)·Σ_v), given the clique's observations.

    η = √λ is the Bayesian posterior for Gaussian noise of variance λ. No regret bound is proven
    here. K_z is learnt by `Evidence` unless a similarity is given.
    With `samples` > 1 decisions know their propensity (`act.Sample`).
    """
    return Policy(
        name="Coop-KernelTS",
        kernel=kernel,
        listen=Clique(),
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
