"""Dist-KernelUCB (§4, Algorithm 3): centres learn, the others follow their centre."""

from typing import Unpack

from coopbandits.act import FollowCentre
from coopbandits.features import Basis
from coopbandits.kernels import Kernel
from coopbandits.listen import Centre
from coopbandits.policy import Options, Policy
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
        **options,
    )
