"""Bounds of dates, timestamps and floats are read for many files as they are for one."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from puredelta.log.files.stats_columns import (
    find_date,
    find_timestamp_span,
    read_stats_columns,
)
from puredelta.log.files.stats_json import StatisticsColumn
from puredelta.log.files.value_order import single_precision
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    PrimitiveType,
)

_DAYS = ["2020-01-31", "1969-12-31", "2020-02-30", "0001-01-01", "9999-12-31", "2020-1-5", "no"]
_TIMES = [
    *("", "T00:00:00", "T23:59:59.999", " 10:11:12.5", "T10:11:12.123456", "T24:00:00", "T1:2"),
    *("T10:11:12.1234567", "T10:11:60", "T10:11"),
]
_ZONES = ["Z", "", "+00:00", "-05:00", " UTC"]


def _read(values: list[object], kind: PrimitiveType) -> StatisticsColumn:
    texts = pa.array(
        json.dumps({"numRecords": 1, "minValues": {"a": v}, "maxValues": {"a": v}}) for v in values
    )
    return read_stats_columns(texts, {("a",): kind}).leaves[("a",)]


@pytest.mark.parametrize("zoned", [True, False])
@pytest.mark.parametrize("days", [_DAYS, _DAYS[:2]])
def test_timestamps(days: list[str], zoned: bool) -> None:
    texts = [f"{day}{time}{zone}" for day in days for time in _TIMES for zone in _ZONES]
    Random(1).shuffle(texts)
    found = _read([*texts, None], TIMESTAMP if zoned else TIMESTAMP_NTZ)
    spans = [find_timestamp_span(text, zoned=zoned) for text in [*texts, None]]
    assert found.low is not None
    assert found.high is not None
    assert found.low.to_pylist() == [None if s is None else s[0] for s in spans]
    assert found.high.to_pylist() == [None if s is None else s[1] + 1000 for s in spans]
    assert found.low.null_count < len(texts) - 10


def test_timestamps_as_writers_write_them() -> None:
    random = Random(2)
    texts = [
        f"{random.randint(1000, 2999)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
        f"T{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
        f".{random.randint(0, 999):03}Z"
        for _ in range(2000)
    ]
    found = _read([*texts], TIMESTAMP)
    spans = [find_timestamp_span(text, zoned=True) for text in texts]
    assert found.low is not None
    assert found.low.to_pylist() == [None if s is None else s[0] for s in spans]


def test_dates() -> None:
    found = _read([*_DAYS, None, *_DAYS], DATE)
    assert found.low is not None
    assert found.low.to_pylist() == [find_date(text) for text in [*_DAYS, None, *_DAYS]]


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE])
def test_floats_are_moved_outward(kind: PrimitiveType) -> None:
    random = Random(3)
    values = [0.1, -0.1, 0.0, 1e39, -1e39, 3.4028235677973366e38, 1e-50, 5e-324, 16777217.0]
    values += [random.uniform(-1, 1) * 10 ** random.randint(-60, 60) for _ in range(2000)]
    found = _read([*values, None], kind)
    assert found.low is not None
    assert found.high is not None
    assert found.low.to_pylist() == [*(min(v, single_precision(v)) for v in values), None]
    assert found.high.to_pylist() == [*(max(v, single_precision(v)) for v in values), None]
    assert all(math.isfinite(v) for v in found.high.to_pylist()[:-1])


_LONG_MAX = (1 << 63) - 1


def _decimals(seed: int, kind: DecimalType) -> list[Decimal]:
    """Return values of all lengths, those beside powers of ten and of two among them."""
    random = Random(seed)
    unscaled = [random.randrange(-(10**n), 10**n) for n in range(1, kind.precision + 1)]
    unscaled += [n + off for n in (1 << 49, 1 << 53, 10**17, _LONG_MAX) for off in (-1, 0, 1)]
    unscaled += [10**kind.precision - 1, 1 - 10**kind.precision]
    with localcontext() as exact:
        exact.prec = 50
        return [Decimal(n).scaleb(-kind.scale) for n in unscaled if abs(n) < 10**kind.precision]


@pytest.mark.parametrize(
    "kind", [DecimalType(*one) for one in [(20, 2), (38, 0), (38, 37)]], ids=str
)
def test_decimals_that_delta_rs_wrote_as_doubles(tmp_path: Path, kind: DecimalType) -> None:
    """A decimal with a scale is a double in its statistics, one without a 64-bit number."""
    deltalake = pytest.importorskip("deltalake", reason="an independent writer")
    values = _decimals(3, kind)
    stored = pa.decimal128(kind.precision, kind.scale)
    numbers = range(len(values))
    rows = pa.table({"p": pa.array(numbers, pa.int32()), "a": pa.array(values, stored)})
    deltalake.write_deltalake(str(tmp_path), rows, partition_by="p")
    files = TableLog.open(str(tmp_path)).snapshot().files
    found = read_stats_columns(files.rows["stats"], {("a",): kind}).leaves["a",]
    assert found.low is not None
    assert found.high is not None
    places = [int(text) for text in files.partition_texts("p").to_pylist()]
    assert sorted(places) == list(numbers)
    bounds = zip(found.low.to_pylist(), found.high.to_pylist(), strict=True)
    for place, (low, high) in zip(places, bounds, strict=True):
        assert low is None or low <= values[place], values[place]
        assert high is None or high >= values[place], values[place]


def test_decimals_that_a_double_holds_keep_their_bounds() -> None:
    for kind, value in ((DecimalType(20, 2), 1234567890.12), (DecimalType(38, 0), 123456789012)):
        found = _read([value, None], kind)
        wanted = pa.array([Decimal(str(value)), None], pa.decimal128(38, kind.scale))
        assert found.low == found.high == wanted
