"""Naive cooperation (§5): what neighbours saw counts as one's own."""

from typing import Unpack

from coopbandits.act import UpperBound
from coopbandits.features import Basis
from coopbandits.kernels import Kernel, Linear
from coopbandits.listen import Neighbourhood
from coopbandits.policy import Options, Policy, known_options
from coopbandits.say import Everything, Say
from coopbandits.similarity import Same
from coopbandits.width import Width, chosen_width


def NaiveCooperation(
    kernel: Kernel | None = None,
    *,
    ttl: int = 1,
    eta: float | None = None,
    width: Width | None = None,
    ridge: float = 1.0,
    features: Basis | None = None,
    say: Say | None = None,
    **options: Unpack[Options],
) -> Policy:
    r"""LinUCB (the default) or, with a kernel and `width=InformationGain(…)`, IGP-UCB on all data.

    The observations of the γ-neighbourhood are taken without reweighting: K_z is all ones.

    Args:
        kernel: K_x; `Linear()`, if not given.
        ttl: γ, the hops after which a message is dropped.
        eta: η, short for `width=Fixed(eta)`; 1, if neither is given.
        width: How sure am I? In place of `eta`.
        ridge: λ.
        features: Finite features that stand for K_x, such as `coopbandits.features.Fourier(64)`.
        say: What do I tell? Everything, if not given.
        options: `intercept`, `scale`, `scaling` and `forget`, as `Policy` has them.

    Example:
        >>> cb.NaiveCooperation(ttl=2).similarity
        Same()
    """
    return Policy(
        name="Naive cooperation",
        kernel=Linear() if kernel is None else kernel,
        listen=Neighbourhood(),
        similarity=Same(),
        width=chosen_width(eta, width),
        act=UpperBound(),
        ttl=ttl,
        ridge=ridge,
        features=features,
        say=Everything() if say is None else say,
        **known_options(NaiveCooperation, options),
    )
