"""What are agents called? By number, 0 … V−1, always; and by name, a text, where they have one.

A whole number is always a number, never a name: labels that are numbers, such as those of a file of
edges, become texts.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from coopbandits.arrays import IntArray, is_listing, is_whole, short
from coopbandits.errors import NetworkError

# Among more names nobody looks for one that is spelt nearly so.
_MOST_COMPARED = 10_000


def as_names(names: Any) -> tuple[str, ...]:
    """Check names: texts that are not empty, no two the same."""
    listed = names if is_listing(names) else [None]
    found = tuple(map(as_name, listed))
    if len(set(found)) < len(found):
        seen: set[str] = set()
        twice = next(name for name in found if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NetworkError(f"the name {twice!r} is given twice; expected a name for each agent")
    return found


def as_name(name: Any) -> str:
    """Check one name: a text, or a whole number, which becomes one."""
    if is_whole(name):
        return str(int(name))
    if not isinstance(name, str) or not name.strip():
        raise NetworkError(
            f"{short(name)} is no name of an agent; expected a text that is not empty, one for "
            "each agent"
        )
    return str(name)


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Sort the different labels of a graph: numbers by size, else by the text they become."""
    different = set(labels)
    if all(is_whole(label) for label in different):
        return sorted(different)
    return sorted(different, key=as_name)


def number_of(agent: Any, names: Sequence[str] | None, places: dict[str, int], count: int) -> int:
    """Return the number of an agent that is given by number or by name, or say what is wrong.

    Args:
        agent: What was given.
        names: Of the agents; None where they have numbers only.
        places: By name, the number.
        count: V.
    """
    if isinstance(agent, str) and agent in places:
        return places[agent]
    if is_whole(agent) and 0 <= agent < count:
        return int(agent)
    numbers = f"0 … {count - 1}"
    if names is None:
        if isinstance(agent, str) and agent.isdecimal() and int(agent) < count:
            return int(agent)
        raise NetworkError(f"agent {short(agent)} is not in this network; its agents are {numbers}")
    known = ", ".join(map(repr, names[:5])) + (", …" if count > 5 else "")
    near = (
        get_close_matches(agent, names, 1)
        if isinstance(agent, str) and count <= _MOST_COMPARED
        else []
    )
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if str(agent) in places:
        hint = f"; the agent named {str(agent)!r} is asked for by that text"
    raise NetworkError(
        f"agent {short(agent)} is not in this network; its agents are {known}, or by number "
        f"{numbers}{hint}"
    )


def numbered(pairs: Sequence[Any], places: dict[Any, int]) -> IntArray:
    """Put numbers in place of names in a list of pairs: (E, 2)."""
    return np.array([[places[i], places[j]] for i, j in pairs], dtype=np.int64).reshape(-1, 2)
