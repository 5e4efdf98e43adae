import gzip

import numpy as np
import pytest

from coopbandits.errors import InputError
from coopbandits.lab.datasets import columns

TABLE = "day,name,weight\n3,north,0.5\n\n4,south,-2e3\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path / "table.csv"


def test_columns_are_read_by_name_in_the_order_asked_for(file):
    assert columns.read(file, ["name", "day"], delimiter=",") == [["north", "south"], ["3", "4"]]
    (day,) = columns.whole_numbers(file, ["day"], delimiter=",")
    weight, again = columns.numbers(file, ["weight", "day"], delimiter=",")
    assert (day.dtype, day.tolist()) == (np.int64, [3, 4])
    assert (weight.dtype, weight.tolist(), again.tolist()) == (np.float64, [0.5, -2e3], [3.0, 4.0])


def test_a_compressed_file_is_found_and_read_as_the_plain_one(tmp_path):
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    found = columns.find(tmp_path, "table.csv")
    assert found.name == "table.csv.gz"
    assert columns.read(found, ["name"], delimiter=",") == [["north", "south"]]
    (tmp_path / "table.csv").write_text("name\nwest\n")
    assert columns.find(str(tmp_path), "table.csv").name == "table.csv", "the plain one is first"


def test_quotes_have_a_meaning_between_commas_and_none_between_tabs(tmp_path):
    (tmp_path / "a.csv").write_text('text,n\n"one, and\ntwo",1\n')
    assert columns.read(tmp_path / "a.csv", ["text"], delimiter=",") == [["one, and\ntwo"]]
    (tmp_path / "a.dat").write_text('text\tn\n"one\t1\n')
    assert columns.read(tmp_path / "a.dat", ["text", "n"], delimiter="\t") == [['"one'], ["1"]]


def test_a_missing_file_says_what_was_looked_for_and_where(tmp_path):
    with pytest.raises(InputError, match=r"no a\.csv or a\.csv\.gz in '.*'; expected the data set"):
        columns.find(tmp_path, "a.csv")
    with pytest.raises(InputError, match="expected a campaign's folder"):
        columns.find(tmp_path / "none", "a.csv", expected="a campaign's folder")


def test_a_missing_column_is_named_beside_those_that_are_there(file):
    with pytest.raises(InputError, match=r"table\.csv has no column 'age'.* day, name, weight"):
        columns.read(file, ["day", "age"], delimiter=",")
    file.write_text("")
    with pytest.raises(InputError, match="has no column 'day'; its first line names nothing"):
        columns.read(file, ["day"], delimiter=",")


def test_a_file_without_rows_is_refused(file):
    file.write_text("day,name\n\n")
    with pytest.raises(InputError, match=r"table\.csv has no rows; expected some below"):
        columns.read(file, ["day"], delimiter=",")


def test_a_row_that_is_too_short_is_named(file):
    file.write_text(TABLE + "5\n")
    with pytest.raises(InputError, match=r"table\.csv, line 5: 1 columns; expected 3"):
        columns.read(file, ["weight"], delimiter=",")


PACKED = gzip.compress(TABLE.encode() * 50)


@pytest.mark.parametrize(
    "damaged",
    [PACKED[:40], PACKED[:20] + b"\xff" * 8 + PACKED[28:], b"no gzip", gzip.compress(b"\xff\xfe")],
    ids=["cut", "changed", "not compressed", "not UTF-8"],
)
def test_a_damaged_file_is_one_clear_error(tmp_path, damaged):
    (tmp_path / "table.csv.gz").write_bytes(damaged)
    with pytest.raises(InputError, match=r"table\.csv\.gz is damaged, or .*; fetch it anew"):
        columns.read(tmp_path / "table.csv.gz", ["day"], delimiter=",")


@pytest.mark.parametrize("text", ["north", "1.5", "", "9" * 20, "nan"])
def test_what_is_no_whole_number_is_said_with_its_row(file, text):
    with pytest.raises(InputError, match=rf"table\.csv, row 2: 'day' is '{text}'; expected a whol"):
        columns.as_whole_numbers(file, "day", ["1", text, "x"])


@pytest.mark.parametrize("text", ["north", "", "nan", "-inf", "1e60"])
def test_what_is_no_number_is_said_with_its_row(file, text):
    with pytest.raises(InputError, match=rf"row 2: 'weight' is '{text}'; expected a number within"):
        columns.as_numbers(file, "weight", ["1", text, "x"])
