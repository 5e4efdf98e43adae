"""Which colour has each group of agents? One that the groups it touches do not have."""

from collections.abc import Iterable

import numpy as np

from coopbandits.arrays import IntArray
from coopbandits.palette import GROUPS


def group_colours(labels: IntArray, pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the place in `palette.GROUPS` of each group's colour, as far as there are enough.

    Args:
        labels: (V,) the group of each agent.
        pairs: Agents that are joined.
    """
    names, groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    touching: dict[int, set[int]] = {}
    ends = np.array([*pairs], dtype=np.int64).reshape(-1, 2)
    for i, j in np.unique(groups[ends], axis=0).tolist():
        if i != j:
            touching.setdefault(i, set()).add(j)
            touching.setdefault(j, set()).add(i)
    worn: dict[int, int] = {}
    used = np.zeros(len(GROUPS))
    for group in np.argsort(-sizes, kind="stable").tolist():
        clashes = np.zeros(len(GROUPS))
        for other in touching.get(group, ()):
            if other in worn and sizes[other] > 1:
                clashes[worn[other]] += 1
        # of the colours that clash least the one least used
        worn[group] = int(np.lexsort((used, clashes))[0])
        used[worn[group]] += sizes[group] > 1
    return {int(names[group]): colour for group, colour in worn.items()}
