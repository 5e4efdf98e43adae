"""Dist-KernelUCB (§4, Algorithm 3): centres learn, the others follow their centre."""

from typing import Unpack

from coopbandits.act import FollowCentre
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Centre
from coopbandits.policy import Options, Policy, known_options
from coopbandits.similarity import Same
from coopbandits.width import Width, chosen_width


def DistKernelUCB(
    kernel: Kernel,
    *,
    ttl: int = 1,
    ridge: float = 1.0,
    eta: float | None = None,
    width: Width | None = None,
    follow: str = "nearest",
    patience: int | None = None,
    features: Basis | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""Dist-KernelUCB, for agents with one reward function and, ideally, one fixed decision set.

    Centres are the heaviest independent set of G_γ and play KernelUCB on their γ-neighbourhood's
    observations. Any other agent plays KernelUCB on its own until its centre's first choice
    arrives, and from then on pulls the centre's last arm it has heard of.

    Deviation from the paper: where decision sets change, `follow="nearest"` takes the offered
    action nearest to that arm; `follow="same"` refuses. Where centres may fall silent, `patience=`
    lets agents decide for themselves after so many decisions without news (`act.FollowCentre`).

    Args:
        kernel: K_x, between action contexts, such as `coopbandits.kernels.RBF()`.
        ttl: γ, the hops after which a message is dropped.
        ridge: λ.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        follow: "nearest" or "same", what to do where the centre's last arm is not offered.
        patience: After how many decisions without news an agent decides for itself; never, if None.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> problem = cb.problems.fully_cooperative(cb.Network.complete(4))
        >>> run = cb.play(problem, cb.DistKernelUCB(cb.kernels.RBF()), rounds=5)
        >>> bool((run.actions[1:, 1:] == run.actions[:-1, :1]).all())  # agent 0 is the centre
        True
    """
    return Policy(
        name="Dist-KernelUCB",
        kernel=kernel,
        listen=Centre(),
        similarity=Same(),
        width=chosen_width(eta, width),
        act=FollowCentre(follow, patience),
        ttl=ttl,
        ridge=ridge,
        features=features,
        **known_options(DistKernelUCB, options),
    )
