"""Which policies might suit a log? Each on its own, all alike, or K_z estimated, at several γ.

All have the kernel, the ridge and the scaling that make the log's rewards likeliest, the log's own
constant, and finite features, so that agents can run for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coopbandits.arrays import as_choice
from coopbandits.errors import ParameterError
from coopbandits.features import Basis, Exact, reference
from coopbandits.lab.logs.configured import constant_of
from coopbandits.lab.logs.fit import KERNELS, Fit, fit_kernel
from coopbandits.lab.logs.fit_words import HARDLY
from coopbandits.lab.logs.log import Log
from coopbandits.lab.logs.spans import fit_scaling, needs_scaling
from coopbandits.network import Network
from coopbandits.policies import EagerKernelUCB, KernelUCB
from coopbandits.policy import Policy
from coopbandits.scaling import Scaling
from coopbandits.similarity import Evidence, Same

# Log evidence that differs by less is no reason to leave prices in cents as they are.
_TELLING = 3.0
# A kernel without finitely many features is looked at through so many contexts of the log.
_REFERENCE, _SAMPLE = 40, 2_000


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy that might suit a log.

    Attributes:
        name: In words, such as "estimated, γ = 2".
        policy: What it stands for, which takes contexts and rewards as they are.
        risk: How much it relies on others; of equally good ones the most cautious is taken: alone,
            then estimated, then all alike, which does harm where agents differ.
    """

    name: str
    policy: Policy
    risk: int


@dataclass(frozen=True, eq=False)
class Suited:
    """The kernel and the scaling that suit a log.

    Attributes:
        fit: Of the kernel.
        scaling: Of contexts; None for contexts as they are.
        tried: All fits, the likeliest first: whether contexts were scaled, and the fit.
    """

    fit: Fit
    scaling: Scaling | None
    tried: tuple[tuple[bool, Fit], ...]


def suited(log: Log, kernels: Sequence[str] = KERNELS, *, most: int = 100) -> Suited:
    """Choose kernel and scaling by the log evidence, or the simplest where none shows a signal.

    Where scaling hardly matters to the evidence, contexts are scaled if some numbers of theirs are
    far from size 1, and else left as they are.

    Args:
        log: In raw units.
        kernels: Which to try.
        most: Of how many decisions of an agent use is made.
    """
    scaling, needed = fit_scaling(log), needs_scaling(log)
    units = {True: log.scaled(scaling), False: log}
    names = [as_choice(name, "kernels", KERNELS) for name in kernels]
    if not names:
        raise ParameterError(f"kernels must name some of {', '.join(map(repr, KERNELS))}")
    simplest, *others = (
        fit_kernel(units[needed], name, most=most) for name in sorted(names, key=KERNELS.index)
    )
    fit = max((simplest, *others), key=lambda one: one.evidence)
    other = fit_kernel(units[not needed], fit.name, most=most)
    tried = [(needed, simplest), *((needed, one) for one in others), (not needed, other)]
    scaled = needed if other.evidence <= fit.evidence + _TELLING else not needed
    fit = fit if scaled is needed else other
    if fit.warnings and fit.warnings[0].startswith(HARDLY):
        scaled, fit = needed, simplest
    ranked = tuple(sorted(tried, key=lambda one: -one[1].evidence))
    return Suited(fit, scaling if scaled else None, ranked)


def candidates(
    log: Log, network: Network | None, ttls: Sequence[int], best: Suited
) -> list[Candidate]:
    """Return the policies to compare, the most cautious first.

    Args:
        log: In raw units.
        network: Who hears whom; None if nobody hears anybody.
        ttls: γ, each.
        best: Kernel and scaling.
    """
    fit = best.fit
    features = _features(log, best)
    shared = {"ridge": fit.ridge, "eta": fit.eta, "features": features}
    alone = KernelUCB(fit.kernel, **shared)  # type: ignore[arg-type]
    found = [Candidate("alone", alone, 0)]
    if network is not None and network.edges:
        # what else was offered is not part of an agent's history
        for name, likeness in (("estimated", Evidence(contexts=False)), ("all alike", Same())):
            for ttl in ttls:
                made = EagerKernelUCB(fit.kernel, similarity=likeness, ttl=ttl, **shared)  # type: ignore[arg-type]
                found.append(Candidate(f"{name}, γ = {ttl}", made, len(found)))
    return [
        replace(
            one,
            policy=replace(
                one.policy, name=one.name, scaling=best.scaling, intercept=constant_of(fit)
            ),
        )
        for one in found
    ]


def _features(log: Log, best: Suited) -> Basis:
    if best.fit.name == "linear":
        return Exact()
    units = log if best.scaling is None else log.scaled(best.scaling)
    X = np.unique(np.concatenate([one.contexts for one in units.decisions]), axis=0)
    if len(X) > _SAMPLE:
        X = X[np.linspace(0, len(X) - 1, _SAMPLE).round().astype(np.int64)]
    return reference(best.fit.kernel, X, most=_REFERENCE)
