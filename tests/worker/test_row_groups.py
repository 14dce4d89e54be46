"""Row groups that a query leaves out: never one with a row of which the condition is true."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker.read_rows import OpenFile
from puredelta.worker.row_groups import GroupStatistics
from tests.worker.expressions import group_condition

Groups: TypeAlias = Callable[[tuple[Any, ...]], list[int]]
"""The row groups that a condition leaves, which `group_condition` reads."""
UTC = dt.timezone.utc
DAY = dt.date(2024, 1, 1)
TIME = dt.datetime.combine(DAY, dt.time(12))


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    """Three groups of ten rows; numbers grow, the last group has no value but in ``n``."""

    def column(make: Callable[[int], Any], kind: pa.DataType) -> pa.Array:
        return pa.array([make(n) if n < 20 else None for n in range(30)], kind)

    table = pa.table(
        {
            "n": pa.array(range(30), pa.int32()),
            "f": column(lambda n: math.nan if n == 3 else n / 2, pa.float64()),
            "s": column(lambda n: f"t{n:02}", pa.string()),
            "d": column(lambda n: DAY + dt.timedelta(n), pa.date32()),
            "t": column(
                lambda n: TIME.replace(tzinfo=UTC) + dt.timedelta(n), pa.timestamp("us", "UTC")
            ),
            "z": column(lambda n: TIME + dt.timedelta(n), pa.timestamp("us")),
            "ns": column(lambda n: n * 1000 + 1, pa.timestamp("ns")),
            "x": column(lambda n: Decimal(n) / 10, pa.decimal128(9, 1)),
            "b": column(lambda n: n >= 10, pa.bool_()),
            "r": column(lambda n: {"n": n}, pa.struct([("n", pa.int64())])),
            "l": column(lambda n: [n], pa.list_(pa.int64())),
        }
    )
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, row_group_size=10, store_schema=False)
    file = OpenFile(str(path))
    names: dict[str, str | None] = {name: name for name in table.column_names}
    found = GroupStatistics.of(file, {**names, "new": None})
    return lambda condition: [n for n in range(3) if found.may_hold(n, group_condition(condition))]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (("equal", "n", 12), [1]),
        (("equal", "n", 9.5), []),
        (("less", "n", 10), [0]),
        (("less_equal", "n", 10), [0, 1]),
        (("greater", "n", 19), [2]),
        (("greater_equal", "n", Decimal("19.5")), [2]),
        (("is_in", "n", 3, 25), [0, 2]),
        (("is_null", "n"), []),
        (("is_valid", "n"), [0, 1, 2]),
        (("is_null", "s"), [2]),
        (("is_valid", "s"), [0, 1]),
        (("equal", "s", "t05"), [0]),
        (("starts_with", "s", "t1"), [1]),
        (("starts_with", "s", "t"), [0, 1]),
        (("starts_with", "s", "t09x"), []),
        (("less", "s", "t"), []),
        (("equal", "d", DAY), [0]),
        (("equal", "t", TIME.replace(tzinfo=UTC) + dt.timedelta(15)), [1]),
        (("equal", "z", TIME), [0]),
        (("equal", "x", Decimal("0.55")), [0]),
        (("equal", "x", Decimal("0.95")), []),
        (("equal", "b", True), [1]),
        (("equal", "new", 1), []),
        (("is_null", "new"), [0, 1, 2]),
        (("is_valid", "new"), []),
        (("and_kleene", (("less", "n", 15), ("greater", "n", 12))), [1]),
        (("or_kleene", (("less", "n", 5), ("greater", "n", 25))), [0, 2]),
    ],
)
def test_groups_that_are_left(condition: tuple[Any, ...], left: list[int], groups: Groups) -> None:
    assert groups(condition) == left


@pytest.mark.parametrize(
    "condition",
    [
        ("equal", "t", TIME),
        ("equal", "z", TIME.replace(tzinfo=UTC)),
        ("equal", "d", TIME),
        ("equal", "n", "12"),
        ("equal", "s", 12),
        ("equal", "f", math.nan),
        ("equal", "elsewhere", 1),
        ("equal", "r", 1),
        ("equal", "l", 1),
    ],
)
def test_what_cannot_be_compared_leaves_out_nothing(
    condition: tuple[Any, ...], groups: Groups
) -> None:
    assert groups(condition)[:2] == [0, 1]


def test_nan_is_greater_than_anything(groups: Groups) -> None:
    assert groups(("greater", "f", 100.0)) == [0, 1]
    assert groups(("less", "f", 1.0)) == [0]
    assert groups(("equal", "f", 7.0)) == [1]


def test_nanoseconds_are_cut_when_read(groups: Groups) -> None:
    epoch = dt.datetime.fromtimestamp(0, UTC).replace(tzinfo=None)
    assert groups(("equal", "ns", epoch)) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(40))
def test_no_row_is_lost(seed: int, tmp_path: Path) -> None:
    """Random strings, numbers and bounds, against the rows themselves."""
    draw = random.Random(seed)
    texts = ["", "a", "ab", "b\u00e9", "\U0001f600", "\uffff", "z" * 100]
    pools: dict[str, list[Any]] = {
        "n": [None, -(2**63), -1, 0, 1, 2**63 - 1],
        "f": [None, -math.inf, -0.0, 0.0, 1.5, math.inf],
        "s": [None, *texts],
        "y": [None, *[text.encode() for text in texts], b"\xff\xfe"],
    }
    kinds = {"n": pa.int64(), "f": pa.float64(), "s": pa.string(), "y": pa.binary()}
    rows = {k: [draw.choice(pool) for _ in range(60)] for k, pool in pools.items()}
    table = pa.table({k: pa.array(v, kinds[k]) for k, v in rows.items()})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=6)
    found = GroupStatistics.of(OpenFile(str(tmp_path / "f.parquet")), {k: k for k in rows})
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "equal": lambda x, v: bool(x == v),
        "less": lambda x, v: bool(x < v),
        "less_equal": lambda x, v: bool(x <= v),
        "greater": lambda x, v: bool(x > v),
        "greater_equal": lambda x, v: bool(x >= v),
    }
    skipped = 0
    for name, pool in pools.items():
        for value in pool[1:]:
            for op, test in tests.items():
                for group in range(10):
                    if not found.may_hold(group, group_condition((op, name, value))):
                        skipped += 1
                        some = rows[name][group * 6 : group * 6 + 6]
                        key = (lambda x: x.encode()) if name == "s" else (lambda x: x)
                        assert not any(test(key(x), key(value)) for x in some if x is not None), (
                            name,
                            op,
                            value,
                        )
    assert skipped
