"""What the log says of rows without doubt, and what it must not be asked (X-73)."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.exact import decided, exact_column, fewest_files, rows_per_file
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.protocol.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from tests.log.skipping.test_pruning import config, file


def stats(rows: int, low: Any = None, high: Any = None, nulls: int | None = 0, **more: Any) -> Any:
    """Statistics of one file with a column ``x``."""
    text: dict[str, Any] = {"numRecords": rows}
    if low is not None:
        text |= {"minValues": {"x": low}, "maxValues": {"x": high}}
    if nulls is not None:
        text["nullCount"] = {"x": nulls}
    return {**text, **more}


def column(data_type: DataType, *files: Any, **metadata: Any) -> Any:
    adds = [one if isinstance(one, Add) else file(one) for one in files]
    about = {"x": metadata} if metadata else None
    return exact_column(FileTable.of(adds), config({"x": data_type}, metadata=about), "x")


@pytest.mark.parametrize(
    ("data_type", "low", "high", "want"),
    [
        (INTEGER, -3, 5, (-3, 5)),
        (LONG, -(1 << 63), (1 << 63) - 1, (-(1 << 63), (1 << 63) - 1)),
        (DATE, "2020-02-29", "2021-01-01", (dt.date(2020, 2, 29), dt.date(2021, 1, 1))),
        (DOUBLE, 0.1, 0.2, (0.1, None)),
        (FLOAT, 0.1, 0.2, (0.10000000149011612, None)),
        (DOUBLE, -1.5, "NaN", (-1.5, None)),
    ],
)
def test_x_73_bounds_of_numbers_and_dates_are_values(
    data_type: DataType, low: Any, high: Any, want: Any
) -> None:
    known = column(data_type, stats(4, low, high, 1), stats(2, None, None, 2), stats(0, None, None))
    assert (known.low, known.num_values) == (want[0], 3)
    assert known.has_low
    assert known.has_high is (want[1] is not None)  # NaN is above every number
    assert want[1] is None or known.high == want[1]


@pytest.mark.parametrize(
    ("data_type", "low", "high"),
    [
        (STRING, "a", "b"),  # who knows where it was cut off
        (TIMESTAMP, "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"),
        (DecimalType(10, 2), 1.5, 2.5),  # some write them as doubles
        (DOUBLE, 0.0, 2.5),  # or -0.0
        (DOUBLE, "NaN", 2.5),
        (DOUBLE, "-Infinity", 2.5),
        (INTEGER, 1.5, 2.5),
        (INTEGER, 5, 2),
        (DATE, "2020-01-01T00:00:00", "2020-01-01T00:00:00"),
        (BOOLEAN, False, True),
    ],
)
def test_x_73_other_bounds_are_not(data_type: DataType, low: Any, high: Any) -> None:
    known = column(data_type, stats(4, low, high, 1))
    assert not known.has_low
    assert known.num_values == 3


@pytest.mark.parametrize(
    "one",
    [
        stats(4, 1, 2, nulls=None),
        stats(4, 1, 2, nulls=5),
        stats(4, 1, 2, tightBounds=False),
        {"minValues": {"x": 1}, "maxValues": {"x": 2}, "nullCount": {"x": 0}},
        None,
        "no JSON",
        file(stats(4, 1, 2), vector=True),
    ],
)
def test_x_73_one_file_in_doubt_is_enough(one: Any) -> None:
    assert column(INTEGER, stats(4, 1, 2), stats(4, 0, 9)).high == 9
    assert column(INTEGER, stats(4, 1, 2), one) is None


def test_a_file_without_bounds_leaves_the_count() -> None:
    known = column(INTEGER, stats(4, 1, 2), stats(4, None, None, 1))
    assert (known.has_low, known.has_high, known.num_values) == (False, False, 7)


def test_no_rows_and_nothing_but_null_give_null() -> None:
    for known in (column(INTEGER), column(INTEGER, stats(3, None, None, 3)), column(DOUBLE)):
        assert (known.low, known.high, known.has_low, known.has_high) == (None, None, True, True)


def test_a_float_that_became_a_double_has_no_bounds() -> None:
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    assert not column(DOUBLE, stats(4, 0.1, 0.2), **changes).has_low


@pytest.mark.parametrize(
    ("data_type", "texts", "want"),
    [
        (INTEGER, ("10", "9", None), (9, 10)),
        (STRING, ("b", "\N{GRINNING FACE}", "\ufffd"), ("b", "\N{GRINNING FACE}")),
        (STRING, ("", None), (None, None)),
        (DATE, ("2020-01-01", "1999-12-31"), (dt.date(1999, 12, 31), dt.date(2020, 1, 1))),
    ],
)
def test_partition_values_are_exact(data_type: DataType, texts: Any, want: Any) -> None:
    files = FileTable.of([file({"numRecords": 2}, x=text) for text in texts])
    known = exact_column(files, config({"x": data_type}, partition_columns=["x"]), "x")
    assert known is not None
    assert (known.low, known.high) == want
    assert known.num_values == 2 * sum(bool(text) for text in texts)
    assert known.has_low
    assert known.has_high


@pytest.mark.parametrize("text", ["x", "1.5"])
def test_a_partition_value_that_is_none_has_no_answer(text: str) -> None:
    files = FileTable.of([file({"numRecords": 2}, x=text)])
    assert exact_column(files, config({"x": INTEGER}, partition_columns=["x"]), "x") is None


def test_rows_of_files_are_those_without_deleted_ones() -> None:
    vector = file({"numRecords": 7}, vector=True)
    assert vector.deletion_vector is not None
    left = 7 - vector.deletion_vector.cardinality
    found = rows_per_file(FileTable.of([vector, file({"numRecords": 0})]))
    assert found is not None
    assert found.to_pylist() == [left, 0]
    assert rows_per_file(FileTable.of([file({"numRecords": 0}, vector=True)])) is None
    assert rows_per_file(FileTable.of([file(None), vector])) is None


P = Ref(Side.TARGET, ("p",), INTEGER)
X = Ref(Side.TARGET, ("x",), INTEGER)
IS_ONE = Compare(CompareOp.EQUAL, P, Const(1))
UNKNOWN = Opaque(frozenset({P}))


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        (IS_ONE, [True, False, False]),
        (Not(IS_ONE), [False, True, False]),
        (IsNull(P), [False, False, True]),
        (Or((IS_ONE, IsNull(P))), [True, False, True]),
        (And((IS_ONE, UNKNOWN)), None),
        (Or((IS_ONE, UNKNOWN)), None),  # NULL OR ? must not be taken for TRUE
        (Compare(CompareOp.EQUAL, X, Const(1)), None),
        (Opaque(frozenset()), None),
    ],
)
def test_conditions_choose_whole_files(condition: Predicate, want: Any) -> None:
    files = FileTable.of([file(None, p=text) for text in ("1", "2", None)])
    table = config({"x": INTEGER, "p": INTEGER}, partition_columns=["p"])
    mask = decided(files, table, [condition])
    assert (mask if mask is None else mask.to_pylist()) == want


def test_the_first_files_that_have_enough_rows() -> None:
    rows, chosen = pa.array([0, 5, 9, 3, 3]), pa.array([True, True, False, True, True])
    assert fewest_files(rows, chosen, 5) == [1]
    assert fewest_files(rows, chosen, 6) == [1, 3]
    assert fewest_files(rows, chosen, 9) is None
    assert json.dumps(fewest_files(rows, chosen, 1)) == "[1]"
