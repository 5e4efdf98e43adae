"""Clicks of a fashion shop's visitors (Open Bandit Dataset): a log for off-policy evaluation.

A row is an item that was shown at one of three positions of a page, whether it was clicked, and the
probability with which the logging policy showed it there. Agents are positions, or groups of
visitors. `evaluate_policy` and `replay_policy` take such logs; they hold a click in about 200 rows.

Saito, Aihara, Matsutani & Narita (2020); check the data set's licence before passing it on.
"""

from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from coopbandits.arrays import Array, IntArray, as_choice, check_size
from coopbandits.errors import InputError
from coopbandits.lab.datasets import columns
from coopbandits.lab.logs.log import Log, Logged

_CATEGORIES = ["item_feature_1", "item_feature_2", "item_feature_3"]
_TAKEN = ["item_id", "click", "propensity_score"]
_FOLDER = "a campaign's folder, such as random/all"
_AGENTS = ("position", *(f"user_feature_{k}" for k in range(4)))


def open_bandit(path: str | Path, *, agents: str = "position") -> Log:
    r"""Read one campaign of the Open Bandit Dataset as a log.

    Every decision offers all K items, by number. The context of an item with item_feature_0 z,
    centred over items and divided by its largest distance from their mean, user-item affinity
    a ≥ 0 in that row, and item_feature_1 to 3 as one-hot codes e₁, e₂, e₃ (categories in the order
    of their names) is

    $$x = (z, a/(1 + a), e_1, e_2, e_3, 1)/\sqrt 6,$$

    with |z| ≤ 1 and a/(1 + a) < 1, so ‖x‖ ≤ 1. It depends on the row and on the items alone, so
    logs of one campaign by several logging policies have the same contexts. An agent's decisions
    are numbered in the order of their timestamps, those of one time as in the file.

    A log takes 8·N·K·d bytes for N rows and contexts of d numbers; above 2 GB it is refused.

    Args:
        path: A campaign's folder, such as random/all, with all.csv and item_context.csv; either may
            be compressed (`.gz`).
        agents: What an agent is: "position", or one of "user_feature_0" … "user_feature_3".
    """
    agents = as_choice(agents, "agents", _AGENTS)
    folder = Path(str(path)).expanduser().absolute()
    items = _items(columns.find(folder, "item_context.csv", expected=_FOLDER))
    file = columns.find(folder, f"{folder.name}.csv", expected=_FOLDER)
    times, labels, *texts = columns.read(file, ["timestamp", agents, *_TAKEN], delimiter=",")
    N, (K, d) = len(times), items.shape
    check_size(N, K, d, what=file.name, advice="keep fewer of its rows")
    owner, names = _owners(file, labels, agents)
    action, reward, propensity = _taken(file, texts, K)
    affinity = _affinities(file, K)
    order = sorted(range(N), key=_instants(file, times).__getitem__)
    rounds = [0] * len(names)
    decisions = []
    for i in order:
        agent = int(owner[i])
        rounds[agent] += 1
        items[:, 1] = affinity[i]
        decisions.append(
            Logged(
                round=rounds[agent],
                agent=agent,
                contexts=items,  # of which a record keeps a copy
                action=int(action[i]),
                reward=float(reward[i]),
                propensity=float(propensity[i]),
            )
        )
    return Log.of(decisions, names=names)


def _items(file: Path) -> Array:
    """Return the contexts of all items by number, their affinities 0: (K, d)."""
    (number,) = columns.whole_numbers(file, ["item_id"], delimiter=",")
    K = len(number)
    order = np.argsort(number)
    if not np.array_equal(number[order], np.arange(K)):
        raise InputError(
            f"{file.name} has {K} rows, but not the items 0 … {K - 1} once each in 'item_id'"
        )
    (value,) = columns.numbers(file, ["item_feature_0"], delimiter=",")
    z = value - value.mean()
    z /= np.abs(z).max() or 1.0
    blocks = [z[:, None], np.zeros((K, 1))]
    for texts in columns.read(file, _CATEGORIES, delimiter=","):
        names, category = np.unique(np.array(texts), return_inverse=True)
        blocks.append(np.eye(len(names))[category])
    return np.hstack([*blocks, np.ones((K, 1))])[order] / np.sqrt(6.0)


def _taken(file: Path, texts: list[list[str]], items: int) -> tuple[IntArray, IntArray, Array]:
    """Return which item was shown, whether it was clicked, and how likely it was shown: (N,)."""
    action, click = map(partial(columns.as_whole_numbers, file), _TAKEN[:2], texts[:2])
    propensity = columns.as_numbers(file, _TAKEN[2], texts[2])
    checks = [
        (action, (action >= 0) & (action < items), f"an item of item_context.csv, 0 … {items - 1}"),
        (click, (click == 0) | (click == 1), "0 or 1"),
        (propensity, (propensity > 0) & (propensity <= 1), "a probability above 0, at most 1"),
    ]
    for name, (values, good, expected) in zip(_TAKEN, checks, strict=True):
        if not good.all():
            row = int(np.argmin(good))
            raise InputError(
                f"{file.name}, row {row + 1}: {name!r} is {values[row]:g}; expected {expected}"
            )
    return action, click, propensity


def _affinities(file: Path, items: int) -> Array:
    """Return a/(1 + a)/√6 for the affinities a of each row to each item: (N, K)."""
    names = [f"user-item_affinity_{item}" for item in range(items)]
    affinity = np.stack(columns.numbers(file, names, delimiter=","), axis=1)
    if affinity.min() < 0:
        row, item = np.argwhere(affinity < 0)[0]
        raise InputError(
            f"{file.name}, row {row + 1}: {names[item]!r} is {affinity[row, item]:g}; expected a "
            "number that is not below 0"
        )
    return np.asarray(affinity / (1 + affinity) / np.sqrt(6.0))


def _instants(file: Path, times: list[str]) -> list[datetime]:
    """Read timestamps; those without a zone are UTC."""
    found = []
    for row, text in enumerate(times, start=1):
        try:
            time = datetime.fromisoformat(text)
        except ValueError as error:
            raise InputError(
                f"{file.name}, row {row}: 'timestamp' is {text!r}; expected a time such as "
                "'2019-11-24 00:00:13+00:00'"
            ) from error
        found.append(time if time.tzinfo is not None else time.replace(tzinfo=UTC))
    return found


def _owners(file: Path, labels: list[str], agents: str) -> tuple[IntArray, list[str]]:
    """Number the agents in the order of their labels: whose each row is, (N,), and their names."""
    if not all(labels):
        raise InputError(f"{file.name}, row {labels.index('') + 1}: {agents!r} is empty")
    if agents == "position":
        position = columns.as_whole_numbers(file, agents, labels)
        found, owner = np.unique(position, return_inverse=True)
        return owner, [f"position {number}" for number in found]
    hashes, owner = np.unique(np.array(labels), return_inverse=True)
    # eight characters tell hashes apart, as a rule
    length = next(n for n in count(8) if len({one[:n] for one in hashes}) == len(hashes))
    return owner, [f"{agents}: {one[:length]}" for one in hashes]
