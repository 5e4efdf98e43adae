"""Synthetic impressions in the files' format, and the real ones against a literal formula."""

import csv
import gzip
import math

import numpy as np
import pytest

import coopbandits as cb
import real_data
from coopbandits.errors import InputError, ParameterError
from coopbandits.lab import evaluate_policy, importance_weights, open_bandit, replay_policy

REAL = real_data.data_set("open-bandit-small")
there = real_data.needs(REAL)

ITEMS = 4
ITEM_HEADER = ["", "item_id", *(f"item_feature_{k}" for k in range(4))]
HEADER = [
    *("", "timestamp", "item_id", "position", "click", "propensity_score"),
    *(f"user_feature_{k}" for k in range(4)),
    *(f"user-item_affinity_{item}" for item in range(ITEMS)),
]
GROUPS = ["b" * 32, "a" * 32, "a" * 8 + "c" * 24]


def item_rows():
    values = [0.5, -1.5, 3.0, 0.0]
    texts = [("x", "p", "m"), ("y", "p", "n"), ("x", "q", "m"), ("z", "p", "m")]
    rows = [[k, k, value, *text] for k, (value, text) in enumerate(zip(values, texts, strict=True))]
    return [rows[k] for k in (2, 0, 3, 1)]  # items need not be in order


def impressions(n):
    """Rows out of order of time, two at one time, each item with probability 1/4."""
    rng = np.random.default_rng(11)
    rows = []
    for i in range(n):
        seconds = 50 * (n - i) if i != 1 else 50 * n
        time = f"2019-11-24 {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}+00:00"
        clicked = int(rng.random() < 0.3)
        hashes = [GROUPS[i % 3], "h" * 32, "h" * 32, "h" * 32]
        item, position = rng.integers(ITEMS), rng.integers(1, 4)
        affinities = rng.choice([0.0, 1.0, 3.0], p=[0.7, 0.2, 0.1], size=ITEMS)
        rows.append([i, time, item, position, clicked, 0.25, *hashes, *affinities])
    return rows


def write_table(file, header, rows):
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([header, *rows])


def read_table(file):
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "random" / "shop"
    folder.mkdir(parents=True)
    write_table(folder / "item_context.csv", ITEM_HEADER, item_rows())
    write_table(folder / "shop.csv", HEADER, impressions(120))
    return folder


def test_a_log_has_every_row_as_a_decision_among_all_items(folder):
    log = open_bandit(folder)
    assert (len(log), log.agents, log.dim) == (120, 3, 2 + (3 + 2 + 2) + 1)
    assert log.names == ("position 1", "position 2", "position 3")
    assert set(log.sizes.tolist()) == {ITEMS}
    assert set(log.propensities.tolist()) == {0.25}


@pytest.mark.parametrize("agents", ["position", "user_feature_0"])
def test_each_agents_decisions_are_numbered_by_time_and_then_as_in_the_file(folder, agents):
    log = open_bandit(folder, agents=agents)
    rows = sorted(read_table(folder / "shop.csv"), key=lambda row: row["timestamp"])  # stable
    for v, label in enumerate(sorted({row[agents] for row in rows})):
        expected = [
            (t, int(row["item_id"]), float(row["click"]), float(row["propensity_score"]))
            for t, row in enumerate((row for row in rows if row[agents] == label), start=1)
        ]
        mine = [one for one in log.decisions if one.agent == v]
        assert [(o.round, o.action, o.reward, o.propensity) for o in mine] == expected


def test_a_context_is_the_docstrings_formula(folder):
    log = open_bandit(folder)
    rows = sorted(read_table(folder / "shop.csv"), key=lambda row: row["timestamp"])
    first = {row["position"]: row for row in reversed(rows)}
    # item_feature_0 has mean 0.5, and item 2 is the farthest from it, by 2.5
    z = [0.0, -0.8, 1.0, -0.2]
    codes = [  # x, y, z; p, q; m, n
        [1, 0, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0, 0, 1],
        [1, 0, 0, 0, 1, 1, 0],
        [0, 0, 1, 1, 0, 1, 0],
    ]
    for one in log.decisions[:3]:
        row = first[str(one.agent + 1)]
        for item in range(ITEMS):
            a = float(row[f"user-item_affinity_{item}"])
            expected = np.array([z[item], a / (1 + a), *codes[item], 1]) / math.sqrt(6)
            np.testing.assert_allclose(one.contexts[item], expected, atol=1e-15)
    lengths = [np.linalg.norm(one.contexts, axis=1).max() for one in log.decisions]
    assert max(lengths) <= 1
    assert any((one.contexts[:, 1] > 0).any() for one in log.decisions)


def test_contexts_do_not_depend_on_what_else_is_logged(folder):
    before = open_bandit(folder)
    rows = impressions(120)
    rows[-1][-1] = 1000.0  # of the first decision of its agent: nothing else changes
    write_table(folder / "shop.csv", HEADER, rows)
    after = open_bandit(folder)
    changed = [
        not np.array_equal(old.contexts, new.contexts)
        for old, new in zip(before.decisions, after.decisions, strict=True)
    ]
    assert sum(changed) == 1


def test_groups_of_visitors_are_called_by_the_start_of_their_hash(folder):
    log = open_bandit(folder, agents="user_feature_0")
    called = [f"user_feature_0: {text}" for text in ("aaaaaaaaa", "aaaaaaaac", "bbbbbbbbb")]
    assert list(log.names) == called, "as long as it takes to tell them apart"
    assert open_bandit(folder, agents="user_feature_1").names == ("user_feature_1: hhhhhhhh",)


def test_the_same_folder_compressed_or_as_a_text_gives_the_same_log(folder, monkeypatch):
    plain = open_bandit(folder)
    (folder / "shop.csv.gz").write_bytes(gzip.compress((folder / "shop.csv").read_bytes()))
    (folder / "shop.csv").unlink()
    monkeypatch.chdir(folder)
    for again in (open_bandit(str(folder)), open_bandit(".")):
        for one, other in zip(plain.decisions, again.decisions, strict=True):
            np.testing.assert_array_equal(one.contexts, other.contexts)
            assert (one.action, one.reward) == (other.action, other.reward)


def test_such_logs_can_be_evaluated_and_replayed(folder):
    log = open_bandit(folder)
    value = evaluate_policy(log, lambda contexts, agent: np.full(ITEMS, 0.25), estimator="ips")
    assert value.mean == pytest.approx(log.rewards.mean(), rel=1e-12), "this logged it"
    network = cb.Network.from_edges([(0, 1), (1, 2)], agents=3, names=log.names)
    write_table(folder / "shop.csv", HEADER, impressions(900))
    replay = replay_policy(open_bandit(folder), cb.LinUCB(), network=network)
    assert replay.rewards.shape[1] == 3


def test_an_unknown_kind_of_agents_is_refused(folder):
    with pytest.raises(
        ParameterError, match=r"agents='age' is not known; expected 'position', 'us"
    ):
        open_bandit(folder, agents="age")


@pytest.mark.parametrize("name", ["item_context.csv", "shop.csv"])
def test_a_missing_file_says_what_is_expected(folder, name):
    (folder / name).unlink()
    with pytest.raises(
        InputError, match=rf"no {name} or {name}\.gz in .*; expected a campaign's f"
    ):
        open_bandit(folder)


@pytest.mark.parametrize("path", [None, 3, "no such folder"], ids=str)
def test_what_is_no_folder_is_an_input_error(path):
    with pytest.raises(InputError, match=r"no item_context\.csv .*; expected a campaign's folder"):
        open_bandit(path)


def test_a_damaged_file_is_one_clear_error(folder):
    packed = gzip.compress((folder / "shop.csv").read_bytes())
    (folder / "shop.csv").unlink()
    (folder / "shop.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"shop\.csv\.gz is damaged, or no table .*fetch it anew"):
        open_bandit(folder)


@pytest.mark.parametrize("column", [name for name in HEADER[1:6] if name] + HEADER[-1:])
def test_a_missing_column_is_named(folder, column):
    header = [name if name != column else "other" for name in HEADER]
    write_table(folder / "shop.csv", header, impressions(5))
    with pytest.raises(InputError, match=rf"shop\.csv has no column '{column}'"):
        open_bandit(folder)


def test_files_without_rows_are_refused(folder):
    write_table(folder / "shop.csv", HEADER, [])
    with pytest.raises(InputError, match=r"shop\.csv has no rows"):
        open_bandit(folder)
    write_table(folder / "item_context.csv", ITEM_HEADER, [])
    with pytest.raises(InputError, match=r"item_context\.csv has no rows"):
        open_bandit(folder)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("timestamp", "yesterday", "'timestamp' is 'yesterday'; expected a time such as '2019"),
        ("item_id", 4, r"'item_id' is 4; expected an item of item_context\.csv, 0 … 3"),
        ("item_id", -1, "'item_id' is -1; expected an item"),
        ("item_id", "hat", "'item_id' is 'hat'; expected a whole number"),
        ("click", 2, "'click' is 2; expected 0 or 1"),
        ("propensity_score", 0.0, "'propensity_score' is 0; expected a probability above 0"),
        ("propensity_score", 1.5, r"'propensity_score' is 1\.5; expected a probability"),
        ("propensity_score", "", "'propensity_score' is ''; expected a number"),
        ("position", "top", "'position' is 'top'; expected a whole number"),
        ("position", "", "'position' is empty"),
        ("user-item_affinity_2", -0.5, r"'user-item_affinity_2' is -0\.5; .* not below 0"),
        ("user-item_affinity_2", "nan", "'user-item_affinity_2' is 'nan'; expected a number"),
    ],
)
def test_a_value_that_cannot_be_is_said_with_its_row(folder, column, value, message):
    rows = impressions(6)
    rows[3][HEADER.index(column)] = value
    write_table(folder / "shop.csv", HEADER, rows)
    with pytest.raises(InputError, match=rf"shop\.csv, row 4: {message}"):
        open_bandit(folder)


def test_items_that_are_not_numbered_from_0_are_refused(folder):
    rows = item_rows()
    rows[0][1] = 7
    write_table(folder / "item_context.csv", ITEM_HEADER, rows)
    with pytest.raises(InputError, match=r"item_context\.csv has 4 rows, but not the items 0 … 3"):
        open_bandit(folder)


def test_a_log_too_large_for_memory_is_refused_before_it_is_made(folder, monkeypatch):
    monkeypatch.setattr("coopbandits.arrays.LARGEST_ARRAY", 30_000.0)
    with pytest.raises(ParameterError, match=r"shop\.csv would take .* 120 × 4 × 10 .*keep fewer"):
        open_bandit(folder)


def test_times_without_a_zone_are_utc(folder):
    rows = impressions(3)
    for row, time in zip(rows, ("03:00:00", "01:30:00+00:00", "03:00:00+02:00"), strict=True):
        row[1], row[3] = f"2019-11-24 {time}", 1
        row[2] = row[0]
    write_table(folder / "shop.csv", HEADER, rows)
    assert [one.action for one in open_bandit(folder).decisions] == [2, 1, 0]


@there
@pytest.mark.parametrize("policy", ["random", "bts"])
@pytest.mark.parametrize(("campaign", "items"), [("all", 80), ("men", 34), ("women", 46)])
def test_the_real_files_have_the_published_counts(policy, campaign, items):
    folder = REAL / policy / campaign
    rows = read_table(folder / f"{campaign}.csv.gz")
    assert (len(rows), len(read_table(folder / "item_context.csv"))) == (10_000, items)
    assert 38 <= sum(row["click"] == "1" for row in rows) <= 69
    assert {row["position"] for row in rows} == {"1", "2", "3"}


@there
@pytest.mark.parametrize("policy", ["random", "bts"])
def test_values_on_real_clicks_are_those_of_the_formula_of_inverse_propensities(policy, rng):
    """As obp.ope has them: IPW is mean(r·π_e(a|x)/pscore), SNIPW divides by the mean weight."""
    folder = REAL / policy / "men"
    log = open_bandit(folder)
    rows = read_table(folder / "men.csv.gz")
    assert (len(log), log.agents, log.dim) == (10_000, 3, 30)
    assert log.rewards.sum() == sum(float(row["click"]) for row in rows)
    pi = rng.dirichlet(np.ones(34), size=3)  # of the items at each position
    gains, weights = [], []
    for row in rows:
        w = pi[int(row["position"]) - 1, int(row["item_id"])] / float(row["propensity_score"])
        gains.append(float(row["click"]) * w)
        weights.append(w)
    assert importance_weights(log, lambda contexts, agent: pi[agent]).sum() == pytest.approx(
        math.fsum(weights), rel=1e-12
    )
    ips = evaluate_policy(log, lambda contexts, agent: pi[agent], estimator="ips")
    snips = evaluate_policy(log, lambda contexts, agent: pi[agent], estimator="snips")
    assert ips.mean == pytest.approx(math.fsum(gains) / len(rows), rel=1e-12)
    assert snips.mean == pytest.approx(math.fsum(gains) / math.fsum(weights), rel=1e-12)


@there
def test_a_real_log_that_hardly_ever_shows_some_items_tells_nothing_of_all_of_them():
    log = open_bandit(REAL / "bts" / "women")
    with pytest.raises(
        InputError, match=r"its 10000 decisions are worth 2\.\d of the target's own"
    ):
        evaluate_policy(log, lambda contexts, agent: np.full(46, 1 / 46))
