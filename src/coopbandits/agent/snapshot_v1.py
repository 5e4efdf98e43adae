"""Stored agents of version 1, laid out as this version does.

There what is attached stands behind each context, and observations have no rounds.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from coopbandits.agent.beliefs import Arrays
from coopbandits.arrays import as_count
from coopbandits.protocol.messages import Observation

if TYPE_CHECKING:
    from coopbandits.agent.agent import Agent


def upgraded(
    agent: "Agent", header: dict[str, Any], old: Arrays
) -> tuple[dict[str, Any], Arrays, dict[str, list[Observation]]]:
    """Return header and arrays as this version has them, and its lists of observations by name."""
    dim, blocks = header["dim"], old["blocks"].tolist()
    ends = np.cumsum(old["sizes"])
    if ends[-1:].sum() != len(old["contexts"]) or (old["sizes"] < 0).any():
        raise ValueError("its arrays do not fit each other")
    rows = np.split(old["contexts"], ends)[:-1]
    seen = [
        Observation(int(o), 0, x, float(y))
        for o, x, y in zip(old["origins"], rows, old["rewards"], strict=True)
    ]
    arm = []
    if header["arm_round"] is not None:
        arm = [Observation(agent._leader, int(header["arm_round"]), old["arm"], 0.0)]
    opened = zip(old["open"].tolist(), old["open_contexts"], strict=True)
    held = zip(
        old.get("held_ids", np.empty(0)).tolist(),
        old.get("held_contexts", np.empty((0, 0))),
        old.get("held_rewards", np.empty(0)),
        strict=True,
    )
    learnt = sum(as_count(size, "a batch") for size in blocks)
    if learnt > len(seen):
        raise ValueError("its arrays do not fit each other")
    lists = {
        "known": seen[:learnt],
        "waiting": seen[learnt:],
        "arm": arm,
        "held": [Observation(agent.agent, i, x, float(y)) for i, x, y in held],
        "open": [Observation(agent.agent, i, x, 0.0) for i, x in opened],
    }
    new = {
        "hops": old["hops"],
        "settled": old.get("settled", np.empty((0, 2), dtype=np.int64)),
        "sample": old.get("sample", np.empty(0)),
        "variance_ratio_ids": old.get("surprise_ids", np.empty(0, dtype=np.int64)),
        "variance_ratio": old.get("surprise", np.empty(0)),
        "untold": old.get("waiting", np.empty(0)),
        "weight": old.get("weight", np.ones(1)),
    }
    kept = (
        "sums", "summaries", "U", "delta", "told_sums", "told_summaries", "newest", "digests",
        "digest_numbers",
    )  # fmt: skip
    new |= {name: old[name] for name in kept if name in old}
    if blocks:
        new["blocks"] = old["blocks"]
    same = {"dim": dim, "arm_came": header.get("arm_came", 0), "before": header.get("before", 0)}
    return {**header, **same, "fitted_at": header.get("estimated", 0)}, new, lists
