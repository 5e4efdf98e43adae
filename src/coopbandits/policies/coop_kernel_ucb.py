"""Coop-KernelUCB (Algorithm 1): learn from the own clique of G_γ, weighed by K_z."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Clique
from coopbandits.policy import Options, Policy, known_options
from coopbandits.say import Everything, Say
from coopbandits.similarity import Evidence, Similarity
from coopbandits.width import Width, chosen_width


def CoopKernelUCB(
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
    **options: Unpack[Options],
) -> Policy:
    r"""Coop-KernelUCB: argmax F̂_v(z_v, x) + (η/√λ)·σ_v(z_v, x) over the clique's observations.

    The only one of the three with a regret bound for agents whose problems differ (Theorem 1; its
    rate, for its constants do not hold as printed, see docs/paper-map.md). K_z is learnt by
    `Evidence` unless a similarity is given.

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
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> problem = cb.problems.clustered_linear(cb.Network.grid(3, 3))
        >>> policy = cb.CoopKernelUCB(cb.kernels.Linear(), similarity=problem.similarity, ttl=2)
        >>> cb.play(problem, policy, rounds=5).regret.shape
        (5, 9)
    """
    return Policy(
        name="Coop-KernelUCB",
        kernel=kernel,
        listen=Clique(),
        similarity=Evidence() if similarity is None else similarity,
        width=chosen_width(eta, width),
        act=UpperBound(),
        ttl=ttl,
        ridge=ridge,
        features=features,
        say=Everything() if say is None else say,
        compose=compose,
        **known_options(CoopKernelUCB, options),
    )
