"""A table in, a log out: whatever library holds the table, and whatever is wrong with it."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import coopbandits as cb
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab import Columns, fit_scaling, read_table

N = 120
CENTS = {"cocoa": 410, "coffee": 320, "tea": 250}
ROLES = {
    "agent": "shop",
    "action": "product",
    "features": ["cents", "age", "member"],
    "reward": "sold",
    "propensity": "p",
    "time": "when",
}


@pytest.fixture(scope="module")
def sales():
    """A row for each decision, as a dict of lists; every tenth age is missing."""
    rng = np.random.default_rng(0)
    products = [sorted(CENTS)[i] for i in rng.integers(3, size=N)]
    start = datetime.datetime(2026, 1, 1)
    return {
        "shop": [("Oslo", "Bern", "Kyiv")[i] for i in rng.integers(3, size=N)],
        "product": products,
        "cents": [CENTS[product] for product in products],
        "age": [None if i % 10 == 0 else int(a) for i, a in enumerate(rng.integers(18, 80, N))],
        "member": (rng.random(N) < 0.5).tolist(),
        "when": [start + datetime.timedelta(hours=int(h)) for h in rng.permutation(N)],
        "sold": (rng.random(N) < 0.3).tolist(),
        "p": [1 / 3] * N,
    }


@pytest.fixture(scope="module")
def offers():
    """A row for each offered action, in any order; the reward is known where it was taken."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(40):
        taken = rng.integers(3)
        for k, product in enumerate(sorted(CENTS)):
            rows.append(
                {
                    "visit": f"visit {i}",
                    "shop": ("Oslo", "Bern")[i % 2],
                    "product": product,
                    "cents": CENTS[product] + i,
                    "taken": int(k == taken),
                    "sold": float(rng.random() < 0.5) if k == taken else None,
                    "p": (0.2, 0.3, 0.5)[k],
                }
            )
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


OFFERED = {
    "agent": "shop",
    "action": "product",
    "chosen": "taken",
    "decision": "visit",
    "features": ["cents"],
    "reward": "sold",
    "propensity": "p",
}


def same(one, other):
    assert (one.names, one.agents, one.columns) == (other.names, other.agents, other.columns)
    for a, b in zip(one.decisions, other.decisions, strict=True):
        assert a.to_dict() == b.to_dict()


class Interchange:
    """A table of another library: it knows the dataframe interchange and nothing else."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, *args, **kwargs):
        return self.table.__dataframe__(*args, **kwargs)


class Stream:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, schema=None):
        return self.table.__arrow_c_stream__(schema)


@pytest.mark.parametrize(
    "library",
    [pd.DataFrame, pl.DataFrame, pa.table, lambda t: Stream(pa.table(t)),
     lambda t: Interchange(pa.table(t))],
    ids=["pandas", "polars", "Arrow", "Arrow stream", "interchange"],
)  # fmt: skip
def test_every_kind_of_table_gives_the_same_log(sales, library):
    same(
        cb.Log.from_frame(library(sales), missing="indicate", **ROLES),
        cb.Log.from_frame(sales, missing="indicate", **ROLES),
    )


@pytest.mark.parametrize("name", ["sales.csv", "sales.tsv", "sales.parquet", "sales.csv.gz"])
def test_files_give_the_same_log(sales, tmp_path, name):
    table, path = pd.DataFrame(sales), tmp_path / name
    if name.endswith("parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if "tsv" in name else ";")
    found = read_table(path, missing="drop", **ROLES)
    same(found, cb.Log.from_frame(sales, missing="drop", **ROLES))


@pytest.mark.parametrize(("mark", "point"), [(";", ","), (";", "."), ("\t", ","), (",", ".")])
def test_numbers_may_have_a_decimal_comma(sales, tmp_path, mark, point):
    table, path = pd.DataFrame(sales), tmp_path / "sales.csv"
    table["cents"] /= 100
    table.to_csv(path, index=False, sep=mark, decimal=point, encoding="utf-8-sig")
    found = read_table(path, missing="drop", **ROLES)
    same(found, cb.Log.from_frame(table, missing="drop", **ROLES))


def test_each_row_is_a_decision_among_the_whole_catalogue(sales):
    log = cb.Log.from_frame(sales, missing="drop", **ROLES)
    kept = [i for i in range(N) if sales["age"][i] is not None]
    assert len(log) == len(kept)
    assert log.names == ("Bern", "Kyiv", "Oslo")
    assert log.columns.names == (
        "cents", "age", "member", "product=cocoa", "product=coffee", "product=tea"
    )  # fmt: skip
    for agent, shop in enumerate(log.names):
        mine = [i for i in kept if sales["shop"][i] == shop]
        mine.sort(key=lambda i: sales["when"][i])
        decisions = [one for one in log.decisions if one.agent == agent]
        assert [one.round for one in decisions] == list(range(1, len(mine) + 1))
        for i, one in zip(mine, decisions, strict=True):
            assert one.reward == sales["sold"][i]
            assert one.propensity == sales["p"][i]
            assert sorted(CENTS)[one.action] == sales["product"][i]
            expected = [
                [CENTS[p], sales["age"][i], sales["member"][i], *(p == q for q in sorted(CENTS))]
                for p in sorted(CENTS)
            ]
            assert one.contexts.tolist() == expected


def test_features_belong_to_the_action_or_to_the_decision(sales):
    log = cb.Log.from_frame(sales, missing="drop", **ROLES)
    whose = {one.name: one.belongs for one in log.columns.features}
    assert whose == {
        "cents": "action", "age": "decision", "member": "decision", "product": "action"
    }  # fmt: skip
    none = cb.Log.from_frame(sales, missing="drop", action_features=[], **ROLES)
    first = none.decisions[0]
    assert (first.contexts[:, 0] == first.contexts[first.action, 0]).all()
    assert np.array_equal(none.taken, log.taken)
    with pytest.raises(InputError, match=r"'age' is named among action_features, but action '\w+'"):
        cb.Log.from_frame(sales, missing="drop", action_features=["age"], **ROLES)


def test_each_row_is_an_offered_action(offers):
    log = cb.Log.from_frame(offers, **OFFERED)
    assert (len(log), log.names, set(log.sizes)) == (40, ("Bern", "Oslo"), {3})
    for one in log.decisions:
        products = one.contexts[:, 1:]
        assert one.propensities @ products == pytest.approx([0.2, 0.3, 0.5])
        i = one.contexts[:, 0] - products @ [CENTS[p] for p in sorted(CENTS)]
        assert len(set(i)) == 1  # all rows of one visit
        [row] = offers[(offers["visit"] == f"visit {i[0]:g}") & (offers["taken"] == 1)].index
        assert one.reward == offers.loc[row, "sold"]
        assert one.contexts[one.action, 0] == offers.loc[row, "cents"]


def test_agent_and_time_tell_which_rows_are_one_decision(offers):
    timed = offers.assign(at=offers["visit"].str.split().str[1].astype(int))
    roles = {**OFFERED, "decision": None, "time": "at"}
    by_time = cb.Log.from_frame(timed, **roles)
    by_name = cb.Log.from_frame(timed, **{**roles, "decision": "visit"})
    same(by_time, by_name)


def test_propensities_of_what_was_taken_only_will_do(offers):
    known = offers.assign(p=offers["p"].where(offers["taken"] == 1))
    log, whole = cb.Log.from_frame(known, **OFFERED), cb.Log.from_frame(offers, **OFFERED)
    assert log.decisions[0].propensities is None
    assert np.array_equal(log.propensities, whole.propensities)


def test_a_shop_may_offer_only_what_it_ever_sold(sales):
    table = pd.DataFrame(sales)
    table = table[(table["shop"] != "Bern") | (table["product"] != "tea")]
    log = cb.Log.from_frame(table, missing="drop", catalogue="agent", **ROLES)
    assert set(log.sizes[log.owners == 0]) == {2}
    assert set(log.sizes[log.owners == 1]) == {3}
    whole = cb.Log.from_frame(table, missing="drop", **ROLES)
    assert np.array_equal(log.taken, whole.taken)


def test_missing_values_are_refused_with_column_rows_and_a_way_out(sales):
    said = r"column 'age' has no value in 12 of 120 rows \(the first is row 1\)\. .*missing='drop'"
    with pytest.raises(InputError, match=said):
        cb.Log.from_frame(sales, **ROLES)
    holes = {**sales, "sold": [None, *sales["sold"][1:]]}
    with pytest.raises(InputError, match=r"'age' .*; column 'sold' has no value in 1 of 120"):
        cb.Log.from_frame(holes, **ROLES)
    with pytest.raises(InputError, match="column 'sold' has no value in 1 of 120"):
        cb.Log.from_frame(holes, missing="indicate", **ROLES)
    assert len(cb.Log.from_frame(holes, missing="drop", **ROLES)) == N - 12


def test_a_missing_number_is_the_median_and_said_to_be_missing(sales):
    log = cb.Log.from_frame(sales, missing="indicate", **ROLES)
    age, gone = (log.columns.names.index(name) for name in ("age", "age=missing"))
    known = [a for a in sales["age"] if a is not None]
    assert log.taken[:, gone].sum() == 12
    assert set(log.taken[log.taken[:, gone] == 1, age]) == {np.median(known)}
    texts = {**sales, "age": [None if a is None else "old" for a in sales["age"]]}
    words = cb.Log.from_frame(texts, missing="indicate", **ROLES)
    assert words.columns.names[1:3] == ("age=old", "age=(missing)")
    assert words.taken[:, 2].sum() == 12


def test_tomorrows_contexts_are_coded_as_those_of_the_log(sales):
    log = cb.Log.from_frame(sales, missing="indicate", **ROLES)
    columns = Columns.from_dict(log.columns.to_dict())
    assert repr(columns).startswith("Columns(cents: 250 … 410; age: ")
    assert repr(columns).endswith("; member: no, yes; product: cocoa, coffee, tea)")
    assert columns == log.columns
    again = columns.contexts({name: sales[name] for name in [*ROLES["features"], "product"]})
    assert sorted(again.tolist()) == sorted(log.taken.tolist())
    row = {"cents": [300], "age": [None], "member": [True], "product": ["wine"]}
    with pytest.raises(InputError, match="column 'product' has 'wine', but the log had"):
        columns.contexts(row)
    log = cb.Log.from_frame(sales, missing="drop", **ROLES)
    with pytest.raises(InputError, match="column 'age' has no value, but the log had one"):
        log.columns.contexts({**row, "product": ["tea"]})


def test_numbers_that_are_labels_become_categories(sales):
    log = cb.Log.from_frame(sales, missing="drop", categorical=["cents"], **ROLES)
    assert log.columns.names[:3] == ("cents=250", "cents=320", "cents=410")


def test_agents_that_are_numbered_from_0_have_no_names(sales):
    places = {**sales, "shop": [("Bern", "Kyiv", "Oslo").index(s) for s in sales["shop"]]}
    assert cb.Log.from_frame(places, missing="drop", **ROLES).names is None
    codes = {**sales, "shop": [100 + s for s in places["shop"]]}
    assert cb.Log.from_frame(codes, missing="drop", **ROLES).names == ("100", "101", "102")


@pytest.mark.parametrize(
    ("roles", "error", "said"),
    [
        ({"features": ["centz"]}, InputError, "no column 'centz'; did you mean 'cents'"),
        ({"features": ["when"]}, InputError, "holds times, which are no features; .* the hour"),
        ({"features": "cents"}, ParameterError, "features must be a list of columns' names"),
        ({"features": ["sold"]}, ParameterError, "'sold' is the reward and a feature too"),
        ({"features": [], "action": None}, ParameterError, "a context would be empty"),
        ({"agent": "when"}, InputError, "column 'when' holds times; expected texts or whole"),
        ({"reward": "shop"}, InputError, "'shop' holds texts, such as '.*'; expected rewards"),
        ({"propensity": "age"}, ParameterError, "'age' is the propensity and a feature too"),
        ({"propensity": "cents", "features": ["age"]}, InputError, "'cents' has .* in row .*;"),
        ({"time": "shop"}, InputError, "'shop' holds texts, .* that are no times"),
        ({"decision": "when"}, ParameterError, "name the column .* as chosen= too"),
        ({"chosen": "sold", "time": None}, ParameterError, "says which rows are one decision"),
        ({"missing": "ignore"}, ParameterError, "missing='ignore' is not known"),
        ({"catalogue": "some"}, ParameterError, "catalogue='some' is not known"),
        ({"categorical": ["shop"]}, ParameterError, "'shop', which is not among the features"),
        ({"code_action": False, "features": ["age"]}, InputError, "cannot tell them apart"),
        ({"agent": 7}, ParameterError, "7 is no column's name"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(sales, roles, error, said):
    with pytest.raises(error, match=said):
        cb.Log.from_frame(sales, **{**ROLES, "missing": "drop", **roles})


def test_what_is_no_table_is_refused(sales, tmp_path):
    roles = {**ROLES, "missing": "drop"}
    with pytest.raises(ParameterError, match="expected a table of pandas, polars or Arrow"):
        cb.Log.from_frame(3, **roles)
    with pytest.raises(ParameterError, match=r"not in memory yet, LazyFrame.*collect"):
        cb.Log.from_frame(pl.DataFrame(sales).lazy(), **roles)
    with pytest.raises(InputError, match="no rows"):
        cb.Log.from_frame(pa.table(sales).slice(0, 0), **roles)
    mixed = pd.DataFrame(sales).assign(age=[object() for _ in range(N)])
    with pytest.raises(InputError, match=r"cannot be read .* column age"):
        cb.Log.from_frame(mixed, **roles)
    with pytest.raises(InputError, match="is no table by its name"):
        read_table(tmp_path / "log.jsonl", **roles)
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(InputError, match="cannot be read as a table"):
            read_table(tmp_path / name, **roles)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(InputError, match=r"empty\.csv names no columns"):
        read_table(tmp_path / "empty.csv", **roles)
    (tmp_path / "torn.csv").write_text(",".join(sales) + "\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot be read as a table .*Expected 8 columns, got 2"):
        read_table(tmp_path / "torn.csv", **roles)


def test_a_few_texts_in_a_column_of_numbers_are_found(sales):
    ages = ["unknown" if a is None else str(a) for a in sales["age"]]
    said = "'age' holds numbers and, in 12 rows, texts such as 'unknown'"
    with pytest.raises(InputError, match=said):
        cb.Log.from_frame({**sales, "age": ages}, **ROLES)
    commas = [f"{i},5" for i in range(N)]
    with pytest.raises(InputError, match="numbers written as texts, such as '0,5'"):
        cb.Log.from_frame({**sales, "age": commas}, **ROLES)
    names = [f"customer {i % 201}" for i in range(2 * N)]
    double = {name: column * 2 for name, column in sales.items()}
    with pytest.raises(InputError, match=r"'age' has 201 different values, .* at most 200"):
        cb.Log.from_frame({**double, "age": names}, **ROLES)


def test_many_actions_are_told_apart_by_their_features_alone():
    n = 500
    table = {
        "shop": ["Bern", "Oslo"] * (n // 2),
        "product": [f"book {i % 250}" for i in range(n)],
        "pages": [100 + i % 250 for i in range(n)],
        "sold": [i % 7 == 0 for i in range(n)],
    }
    roles = {"agent": "shop", "action": "product", "features": ["pages"], "reward": "sold"}
    with pytest.raises(InputError, match=r"'product' has 250 .* Pass code_action=False"):
        cb.Log.from_frame(table, **roles)
    log = cb.Log.from_frame(table, code_action=False, **roles)
    assert (log.dim, set(log.sizes)) == (1, {250})
    assert log.columns.actions[0] == "book 0"


def test_decisions_that_do_not_hold_together_are_named(offers):
    with pytest.raises(InputError, match=r"visit 'visit \d+' has 3 rows, 0 of them chosen"):
        cb.Log.from_frame(offers.assign(taken=0), **OFFERED)
    with pytest.raises(InputError, match="expected 1 or True for the action that was taken"):
        cb.Log.from_frame(offers.assign(taken=2), **OFFERED)
    with pytest.raises(InputError, match=r"'p' sums to 1\.5 over the 3 rows of the decision"):
        cb.Log.from_frame(offers.assign(p=0.5), **OFFERED)
    times = offers.assign(at=range(len(offers)))
    with pytest.raises(InputError, match="rows that differ in column 'at'; expected one time"):
        cb.Log.from_frame(times, time="at", **OFFERED)


def test_each_agent_may_count_its_decisions_for_itself(offers):
    counted = offers.assign(visit=offers["visit"].str.split().str[1].astype(int) // 2)
    log = cb.Log.from_frame(counted, **OFFERED)
    assert (len(log), set(log.sizes)) == (40, {3})


def test_what_pandas_calls_its_types_makes_no_difference(sales):
    table = pd.DataFrame(sales)
    typed = table.astype({"product": "category", "age": "Int64", "member": "boolean"})
    typed["when"] = typed["when"].dt.tz_localize("Europe/Zurich")
    typed["shop"] = typed["shop"].astype("string")
    same(
        cb.Log.from_frame(typed, missing="drop", **ROLES),
        cb.Log.from_frame(sales, missing="drop", **ROLES),
    )


def test_a_log_in_other_units_is_the_same_log(offers):
    log = cb.Log.from_frame(offers, **OFFERED)
    scaling = fit_scaling(log)
    units = log.scaled(scaling)
    X = np.concatenate([one.contexts for one in units.decisions])
    assert X[:, 0].mean() == pytest.approx(0, abs=1e-9)
    assert X[:, 0].std() == pytest.approx(1)
    assert set(X[:, 1:].flat) == {0.0, 1.0}  # one-hot numbers stay
    for one, other in zip(units.decisions, log.decisions, strict=True):
        assert np.array_equal(one.propensities, other.propensities)
        assert scaling.raw(one.contexts) == pytest.approx(other.contexts)


def test_a_log_without_actions_offers_what_was_taken_only(sales):
    log = cb.Log.from_frame(sales, missing="drop", **{**ROLES, "action": None})
    assert set(log.sizes) == {1}


def test_a_table_that_is_not_in_utf8_is_refused_by_its_column(tmp_path):
    file = tmp_path / "shops.csv"
    file.write_bytes("shop,sold\nZürich,1\nGenève,0\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"column 'shop' of .*shops\.csv is not in UTF-8"):
        read_table(file, agent="shop", action="shop", features=[], reward="sold")
