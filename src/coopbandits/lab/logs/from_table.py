"""From the rows of a table to decisions: one row for each decision, or for each offered action.

One row a decision says what was taken. What could have been taken instead is the *catalogue*: all
actions that the table has. A feature belongs to the action if it has one value for each action of
the table, such as a product's size; else to the decision, such as the hour, and is the same
whatever is chosen. A feature that is neither, such as a price that changes from day to day, needs
the other form.

One row an offered action says it all: `chosen` tells which of a decision's rows was taken, and the
column `decision`, or agent and time, tell which rows belong together.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coopbandits.arrays import Array, BoolArray, IntArray, check_size, short
from coopbandits.errors import InputError
from coopbandits.lab.logs.columns import Columns, Feature, feature_of
from coopbandits.lab.logs.frame import Column, Frame
from coopbandits.lab.logs.naming import Naming
from coopbandits.network.names import in_order
from coopbandits.records import Logged


def decisions_of(frame: Frame, naming: Naming) -> tuple[list[Logged], Columns, list[Any]]:
    """Make decisions of a table's rows; return columns and the labels of agents, in order, too."""
    groups, taken = _grouped(frame, naming)
    used = _complete(frame, naming, groups, taken)
    owners, agents = _numbered(frame[naming.agent], taken, used)
    order = _ordered(frame, naming, owners, taken, used)
    rewards = frame[naming.reward].numbers("rewards: numbers, or True and False")
    whole = _propensities(frame, naming, groups, used)
    if naming.chosen is None:
        columns, offered = _from_catalogue(frame, naming, used)
    else:
        columns, offered = _from_rows(frame, naming, groups, used)
    rounds = np.zeros(len(agents), dtype=np.int64)
    found = []
    for number in order:
        row, owner = int(taken[number]), int(owners[number])
        rounds[owner] += 1
        contexts, action = offered(number, row)
        found.append(
            Logged(
                round=int(rounds[owner]),
                agent=owner,
                contexts=contexts,
                action=action,
                reward=float(rewards[row]),
                **whole(number, row),
            )
        )
    return found, columns, agents


def _grouped(frame: Frame, naming: Naming) -> tuple[list[IntArray], IntArray]:
    """Return the rows of each decision, and which of them was taken: (N,)."""
    if naming.chosen is None:
        rows = np.arange(frame.rows)
        return [rows[i : i + 1] for i in rows], rows
    key = [naming.agent, naming.decision or str(naming.time)]
    _refuse_missing(frame, [*key, naming.chosen])
    labels = [frame[name].values.tolist() for name in key]
    members: dict[tuple[Any, ...], list[int]] = {}
    for row, label in enumerate(zip(*labels, strict=True)):
        members.setdefault(label, []).append(row)
    flags = frame[naming.chosen].numbers("True and False, or 1 and 0: what was taken")
    if not np.isin(flags, (0.0, 1.0)).all():
        raise InputError(
            f"column {naming.chosen!r} holds {flags[~np.isin(flags, (0.0, 1.0))][0]:g}; expected "
            "1 or True for the action that was taken, and 0 or False for the others"
        )
    for label, rows_ in members.items():
        count = int(flags[rows_].sum())
        said = ", ".join(
            f"{name} {short(part)}"
            for name, part in zip(key, label, strict=True)
            if frame[name].kind != "time"
        )
        if count != 1:
            raise InputError(
                f"the decision of {said} has {len(rows_)} rows, {count} of them chosen; expected "
                f"exactly one with {naming.chosen!r}"
            )
        when = naming.time
        if when is not None and len({frame[when].values[row] for row in rows_}) > 1:
            raise InputError(
                f"the decision of {said} has rows that differ in column {when!r}; expected one "
                "time for all rows of a decision"
            )
    groups = [np.array(rows_) for rows_ in members.values()]
    return groups, np.array([rows_[int(flags[rows_].argmax())] for rows_ in groups])


def _complete(frame: Frame, naming: Naming, groups: list[IntArray], taken: IntArray) -> BoolArray:
    """Tell which decisions are used: (N,). Missing values are refused, unless they may be left."""
    everywhere = [naming.agent, naming.action, naming.time]
    needed = [name for name in everywhere if name is not None]
    if naming.missing != "indicate":
        needed += naming.features
    holes = {name: frame[name].missing for name in dict.fromkeys(needed)}
    for name in (naming.reward, naming.propensity):
        if name is not None:  # only what was taken needs these
            holes[name] = frame[name].missing & np.isin(np.arange(frame.rows), taken)
    if naming.missing != "drop":
        fillable = any(holes[name].any() for name in naming.features if name in holes)
        _refuse(holes, frame.rows, features=fillable)
    broken = np.any([*holes.values()], axis=0)
    used = np.array([not broken[rows].any() for rows in groups])
    if not used.any():
        _refuse(holes, frame.rows)
    return used


def _refuse_missing(frame: Frame, names: Sequence[str]) -> None:
    _refuse({name: frame[name].missing for name in names}, frame.rows)


def _refuse(holes: dict[str, BoolArray], rows: int, *, features: bool = True) -> None:
    """Name the columns without values, and how many rows have none; only features can be filled."""
    found = {name: gone for name, gone in holes.items() if gone.any()}
    if not found:
        return
    said = [
        f"column {name!r} has no value in {int(gone.sum()):,} of {rows:,} rows (the first is row "
        f"{int(gone.argmax()) + 1})"
        for name, gone in found.items()
    ]
    filled = (
        "; missing='indicate' puts a feature's median there and adds a number that is 1 where it "
        "was missing"
    )
    raise InputError(
        f"{'; '.join(said)}. Repair them, {'leave the column out, ' if features else ''}or pass "
        "missing='drop' (--missing drop) for a log without these decisions"
        f"{filled if features else ', which nothing can be put in place of'}"
    )


def _numbered(column: Column, taken: IntArray, used: BoolArray) -> tuple[IntArray, list[Any]]:
    """Number agents in the order of their labels: whose each decision is, and the labels."""
    labels = column.labels
    agents = in_order(labels[row] for row in taken[used])
    places = {label: place for place, label in enumerate(agents)}
    return np.array([places.get(labels[row], -1) for row in taken]), agents


def _ordered(
    frame: Frame, naming: Naming, owners: IntArray, taken: IntArray, used: BoolArray
) -> list[int]:
    """Return the used decisions, by agent and then by time, or by row."""
    kept = np.flatnonzero(used)
    when = taken[kept] if naming.time is None else _when(frame[naming.time])[taken[kept]]
    return kept[np.lexsort((taken[kept], when, owners[kept]))].tolist()


def _when(column: Column) -> Any:
    """Return what puts rows in their order."""
    if column.kind != "text":
        if column.kind not in ("time", "number"):
            column.numbers("times, or numbers that grow with time")
        return column.values
    try:
        return np.array([text or "NaT" for text in column.values], dtype="datetime64[us]")
    except ValueError as error:
        first = next(text for text in column.values if text)
        raise InputError(
            f"column {column.name!r} holds texts, such as {short(first)}, that are no times "
            "everywhere; expected times, numbers, or texts such as '2026-01-31 10:22'"
        ) from error


def _propensities(frame: Frame, naming: Naming, groups: list[IntArray], used: BoolArray) -> Any:
    """Return a function: (decision, row taken) -> what is known of its propensities."""
    if naming.propensity is None:
        return lambda number, row: {}
    p = frame[naming.propensity].numbers("probabilities: numbers above 0, at most 1")
    kept = np.concatenate([rows for rows, is_used in zip(groups, used, strict=True) if is_used])
    if naming.chosen is None or np.isnan(p[kept]).any():
        return lambda number, row: {"propensity": _probability(float(p[row]), naming, row)}
    return lambda number, row: {"propensities": _distribution(p[groups[number]], naming, row)}


def _probability(p: float, naming: Naming, row: int) -> float:
    if not 0 < p <= 1:
        raise InputError(
            f"column {naming.propensity!r} has {p:g} in row {row + 1}; expected the probability "
            "with which that action was taken, above 0 and at most 1"
        )
    return p


def _distribution(p: Array, naming: Naming, row: int) -> Array:
    if (p < 0).any() or abs(p.sum() - 1) > 1e-4:
        raise InputError(
            f"column {naming.propensity!r} sums to {p.sum():g} over the {len(p)} rows of the "
            f"decision of row {row + 1}; expected the probabilities of all that was offered, which "
            "sum to 1, or values in the rows that were taken only"
        )
    return p


def _from_rows(
    frame: Frame, naming: Naming, groups: list[IntArray], used: BoolArray
) -> tuple[Columns, Any]:
    """Offer what a decision's rows say."""
    among = np.zeros(frame.rows, dtype=np.bool_)
    for rows, is_used in zip(groups, used, strict=True):
        among[rows] = is_used
    features = [_feature(frame, naming, name, "row", among) for name in naming.features]
    columns = _with_action(frame, naming, features, among)
    coded = np.zeros((frame.rows, len(columns.names)))
    coded[among] = columns.of(_part(frame, among))

    def offered(number: int, row: int) -> tuple[Array, int]:
        rows = groups[number]
        return coded[rows], int(np.flatnonzero(rows == row)[0])

    return columns, offered


def _from_catalogue(frame: Frame, naming: Naming, used: BoolArray) -> tuple[Columns, Any]:
    """Offer, in each decision, every action of the catalogue with its features."""
    belongs = _whose(frame, naming, used)
    features = [_feature(frame, naming, name, belongs[name], used) for name in naming.features]
    columns = _with_action(frame, naming, features, used)
    coded = np.zeros((frame.rows, len(columns.names)))
    coded[used] = columns.of(_part(frame, used))
    if naming.action is None:  # nothing is known of what else there was
        return columns, lambda number, row: (coded[row : row + 1], 0)
    labels = frame[naming.action].labels
    catalogue = in_order(labels[row] for row in np.flatnonzero(used))
    first = {label: row for row, label in reversed([*enumerate(labels)]) if used[row]}
    rows = np.array([first[label] for label in catalogue])
    own = np.concatenate([[one.belongs == "action"] * len(one.names) for one in columns.features])
    if len({coded[row, own].tobytes() for row in rows}) < len(rows):
        raise InputError(
            "some actions have the same numbers, so that contexts cannot tell them apart; keep "
            "code_action=True, or name features that differ between actions"
        )
    offers = _offers(frame, naming, used, [labels[row] for row in rows])
    check_size(
        float(sum(map(len, offers.values())) / len(offers) * used.sum()),
        coded.shape[1],
        what="a log that offers the whole catalogue in each decision",
        advice="take fewer rows, or put actions into groups",
    )
    places = {label: place for place, label in enumerate(catalogue)}
    agents = frame[naming.agent].labels

    def offered(number: int, row: int) -> tuple[Array, int]:
        among = offers[agents[row]]
        contexts = np.where(own, coded[rows[among]], coded[row])
        return contexts, int(np.searchsorted(among, places[labels[row]]))

    return columns, offered


def _offers(
    frame: Frame, naming: Naming, used: BoolArray, catalogue: list[Any]
) -> dict[Any, IntArray]:
    """Return which places of the catalogue each agent is offered, in order."""
    agents, everything = frame[naming.agent].labels, np.arange(len(catalogue))
    rows = np.flatnonzero(used).tolist()
    if naming.catalogue == "all":
        return {agents[row]: everything for row in rows}
    labels = frame[str(naming.action)].labels
    places = {label: place for place, label in enumerate(catalogue)}
    seen: dict[Any, set[int]] = {}
    for row in rows:
        seen.setdefault(agents[row], set()).add(places[labels[row]])
    return {agent: np.array(sorted(held)) for agent, held in seen.items()}


def _whose(frame: Frame, naming: Naming, used: BoolArray) -> dict[str, str]:
    """Tell for each feature whether it belongs to the action or to the decision."""
    if naming.action is None:
        return dict.fromkeys(naming.features, "decision")
    labels = frame[naming.action].labels
    found = {}
    for name in naming.features:
        held: dict[Any, set[Any]] = {}
        column = frame[name]
        for row in np.flatnonzero(used).tolist():
            value = None if column.missing[row] else column.values.item(row)
            held.setdefault(labels[row], set()).add(value)
        several = next((label for label, values in held.items() if len(values) > 1), None)
        varies = len(set().union(*held.values())) > 1
        found[name] = "action" if several is None and varies else "decision"
        if naming.action_features is not None:
            found[name] = "action" if name in naming.action_features else "decision"
        if found[name] == "action" and several is not None:
            values = [value for value in column.values.tolist() if value in held[several]]
            values = list(dict.fromkeys(values))
            raise InputError(
                f"column {name!r} is named among action_features, but action {short(several)} has "
                f"{len(values)} values of it, such as {short(values[0])} and {short(values[1])}; "
                "what differs from decision to decision for one action needs a row for each "
                "offered action, with chosen="
            )
    return found


def _feature(frame: Frame, naming: Naming, name: str, belongs: str, among: BoolArray) -> Feature:
    categorical = name in naming.categorical
    return feature_of(frame[name], belongs, categorical=categorical, among=among)


def _with_action(
    frame: Frame, naming: Naming, features: list[Feature], among: BoolArray
) -> Columns:
    """Add the action itself, one-hot, unless it is to be known by its features alone."""
    if naming.action is None:
        return Columns(tuple(features))
    column = frame[naming.action]
    labels = tuple(str(label) for label in column.distinct(among))
    if naming.code_action and naming.action not in naming.features:
        belongs = "action" if naming.chosen is None else "row"
        instead = "Pass code_action=False (--no-action-labels) and features that tell actions apart"
        coded = feature_of(column, belongs, categorical=True, among=among, instead=instead)
        features = [*features, coded]
    return Columns(tuple(features), naming.action, labels)


def _part(frame: Frame, among: BoolArray) -> Frame:
    """Keep some rows."""
    kept = {
        name: Column(name, one.kind, one.values[among], one.missing[among])
        for name, one in frame.columns.items()
    }
    return Frame(kept, int(among.sum()))
