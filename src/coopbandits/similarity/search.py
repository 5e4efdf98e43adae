r"""The search for groups: from a start to places, and to the ρ under which they predict best.

`groups.py` has the steps; here they follow one another, in blocks of views that fit into a
processor's cache. Groups of many agents are sought thoroughly: split where two explain more than
one, and refined by what each group says of an agent without that agent's data. Of a few
correlations ρ within groups the one that predicts best is taken.

Leading axes: B views; N agents; G groups.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray
from coopbandits.similarity.groups import CLOSE, CORRELATIONS, Groups

# What goes over all agents is done in blocks of about this many numbers.
_BLOCK = 200_000
# So often groups may be split, one after the other.
_SPLITS = 3


def best(
    groups: Groups, alone: Array, me: IntArray, thorough: BoolArray
) -> tuple[Array, Array, Array]:
    """Find the groups and the ρ that predict best: R (B, N, G), ρ (B,), and how well (B,).

    Groups under ρ = 1 are sought more thoroughly in some views (B,).
    """
    annealed = _swept(groups, Groups.anneal)
    fitted = _swept(annealed.merge(), Groups.polish)
    some = np.flatnonzero(thorough)
    if some.size:
        own = _swept(_divided(fitted.take(some)), Groups.refine)
        fitted.r[some], fitted.share[some] = own.r, own.share
    places, score = _judged(fitted, alone, me)
    taken = np.ones(len(me))
    # only a ρ under which these groups have more evidence is tried for groups of its own
    tried = _likeliest(fitted)
    for rho in CORRELATIONS[1:]:
        some = np.flatnonzero(tried == rho)
        if not some.size:
            continue
        own = _swept(annealed.take(some).under(rho).merge(), Groups.polish)
        found, predicted = _judged(own, alone[some], me[some])
        better = predicted > score[some] + CLOSE * np.abs(score[some])
        kept = some[better]
        places[kept], taken[kept], score[kept] = found[better], rho, predicted[better]
    return places, taken, score


def _divided(groups: Groups) -> Groups:
    """Split groups where two explain the data better, and unite them again where they do not."""
    r, share = groups.r.copy(), groups.share.copy()
    some = np.arange(len(r))
    for _ in range(_SPLITS):
        now = replace(groups.take(some), r=r[some], share=share[some])
        cut = _swept(now, Groups.split)
        more = np.flatnonzero((cut.r != now.r).any(axis=(1, 2)))
        if not more.size:
            break
        some = some[more]
        fitted = _swept(_swept(cut.take(more), Groups.polish).merge(), Groups.polish)
        r[some], share[some] = fitted.r, fitted.share
    return replace(groups, r=r, share=share)


def _blocks(groups: Groups) -> list[slice]:
    """Cut the views into blocks that fit into a processor's cache."""
    B, N, m = groups.shared.b.shape
    size = max(1, _BLOCK // (N * m * m))
    return [slice(start, start + size) for start in range(0, B, size)]


def _swept(groups: Groups, sweep: Callable[[Groups], Groups]) -> Groups:
    r, share = np.empty_like(groups.r), np.empty_like(groups.share)
    for block in _blocks(groups):
        done = sweep(groups.take(block))
        r[block], share[block] = done.r, done.share
    return replace(groups, r=r, share=share)


def _judged(groups: Groups, alone: Array, me: IntArray) -> tuple[Array, Array]:
    parts = [groups.take(block).judge(alone[block], me[block])[:2] for block in _blocks(groups)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _likeliest(groups: Groups) -> Array:
    """Return the ρ under which given groups have the most evidence, climbing down from 1: (B,)."""
    best, climbing = np.ones(len(groups.noise)), np.arange(len(groups.noise))
    last = np.concatenate([groups.take(block).evidence() for block in _blocks(groups)])
    for rho in CORRELATIONS[1:]:
        part = groups.take(climbing)
        now = np.concatenate([part.take(block).under(rho).evidence() for block in _blocks(part)])
        better = now > last + CLOSE * np.abs(last)
        climbing, last = climbing[better], now[better]
        best[climbing] = rho
        if not climbing.size:
            break
    return best
