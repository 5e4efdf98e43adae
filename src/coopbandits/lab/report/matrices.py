"""How are K_z, learnt and true, kept small? Two decimals, like agents together, compressed.

A byte holds 100·K_z + 100, so −1 is 0 and 1 is 200; 255 stands for pairs that do not hear each
other. Where a page would be too large, neighbouring agents are averaged.
"""

from base64 import b64encode
from typing import Any
from zlib import compress

import numpy as np

from coopbandits.arrays import Array, IntArray
from coopbandits.lab.experiments.summary import Summary
from coopbandits.lab.report.layout import called
from coopbandits.lab.similarity import like_together

NOT_HEARD = 255


def similarity_maps(
    here: list[tuple[int, Summary]], most: int, facts: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the true K_z of a problem on a network, and what policies learnt of it.

    Args:
        here: Places and summaries of the policies that played.
        most: Rows that a map may have; 0 for no maps at all.
        facts: Of the network, as the run keeps them; none if it was stopped.
    """
    learners = [
        (place, record)
        for place, summary in here
        for record in summary.records[:1]
        if len(record.learnt)
    ]
    if not learners or not most:
        return None
    truth = learners[0][1].truth
    order = like_together(truth)
    return {
        "agents": len(truth),
        "rows": min(most, len(truth)),
        "order": [called(facts, int(agent)) for agent in order],
        "truth": packed(truth, order, most),
        "learnt": [
            {"policy": place, "map": packed(record.learnt, order, most)}
            for place, record in learners
        ],
    }


def packed(matrix: Array, order: IntArray, most: int) -> str:
    """Return a matrix as text: quantised, compressed, in base64."""
    small = averaged(matrix[np.ix_(order, order)], most)
    heard = np.isfinite(small)
    scaled = np.round(100 * np.clip(np.where(heard, small, 0.0), -1.0, 1.0)) + 100
    levels = np.where(heard, scaled, NOT_HEARD).astype(np.uint8)
    return b64encode(compress(levels.tobytes(), 9)).decode()


def averaged(matrix: Array, most: int) -> Array:
    """Average blocks of neighbouring rows and columns until there are at most so many."""
    count = len(matrix)
    if count <= most:
        return matrix
    block = np.arange(count) * most // count
    sums, heard = np.zeros((most, most)), np.zeros((most, most))
    places = np.ix_(block, block)
    np.add.at(sums, places, np.where(np.isfinite(matrix), matrix, 0.0))
    np.add.at(heard, places, np.isfinite(matrix).astype(np.float64))
    return np.where(heard > 0, sums / np.maximum(heard, 1.0), np.nan)
