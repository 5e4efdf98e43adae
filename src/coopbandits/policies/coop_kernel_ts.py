"""Coop-KernelTS: Coop-KernelUCB that acts on a draw from its posterior (Bayesian, §7)."""

from typing import Unpack

from coopbandits.act import Sample
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Clique
from coopbandits.policy import Options, Policy, known_options
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

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        similarity: K_z, how much others' news is worth; learnt by `Evidence`, if not given.
        ttl: γ, the hops after which a message is dropped.
        ridge: λ.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        compose: How K_z and K_x make K: "hadamard", "kronecker" (the same) or "sum".
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        say: What do I tell? Everything, if not given.
        samples: How many functions are drawn to know a choice's propensity (`act.Sample`).
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.grid(3, 3))
        >>> policy = cb.CoopKernelTS(cb.kernels.Linear(), similarity=problem.similarity, ttl=2)
        >>> cb.play(problem, policy, rounds=5).regret.shape
        (5, 9)
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
        **known_options(CoopKernelTS, options),
    )
