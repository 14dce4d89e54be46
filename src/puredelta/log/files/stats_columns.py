"""Statistics and partition values of many files as typed Arrow columns.

Arrow parses the texts of many files in one pass, with a schema that names only the columns in
question; threads share the texts of a large table. One malformed text makes Arrow refuse; then
Python parses those of its thread's part one by one, and a text that cannot be read counts as
absent. What is not understood is null, which means unknown, and a file with an unknown bound is
never skipped (X-69, X-72).

Writers truncate timestamps to milliseconds, a maximum too; reading undoes that (X-65). delta-rs
writes decimals as doubles, or as 64-bit numbers at most: reading moves their bounds outward.

A statement needs the same columns of the same files several times: for every rule that skips
files, and to look up keys in the files that are left. Each of these steps passes on what it has
parsed.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_json import (
    BATCH_BYTES,
    FEW_TEXTS,
    Path,
    StatisticsColumn,
    StatsColumns,
    concatenated,
    read_with_arrow,
    read_with_python,
    text_batches,
)
from puredelta.log.files.value_order import FLOATING, LONG_MAX, LONG_MIN
from puredelta.protocol.schema.timestamps import parse_date, parse_timestamp
from puredelta.protocol.schema.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
)

ReadStatistics: TypeAlias = Callable[[pa.StringArray, Mapping[Path, DataType]], StatsColumns]

_TRUNCATED_MICROS = 1000
"""Writers truncate timestamps to milliseconds: the true maximum is up to one later (X-65)."""
_LOSSLESS_BITS = 49
"""Of the 53 of a double: four are for the error of a power of ten."""
_DOUBLE_DIGITS = 17
"""The most that are written of a double."""
_TIME = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_UNZONED = rf"^[12][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}{_TIME}$"
_ZONED = _UNZONED.removesuffix("$") + "Z$"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_MINUTE_MICROS = 60_000_000
_ZONES_HAVE_WHOLE_MINUTES = dt.datetime(1973, 1, 1, tzinfo=dt.timezone.utc)
"""Before this day the offsets of some zones had seconds, which an offset written as hours and
minutes does not show (Monrovia was the last, in 1972)."""


def read_stats_columns(
    stats: pa.Array | pa.ChunkedArray,
    leaves: Mapping[Path, DataType],
    *,
    batch_bytes: int = BATCH_BYTES,
    read_malformed: ReadStatistics = read_with_python,
) -> StatsColumns:
    """Parse the statistics texts of files for these leaf columns.

    ``leaves`` maps physical paths to the columns' *current* types: a bound that was written
    while the column had a narrower type is read as one of the wider type. ``read_malformed``
    reads the texts of a batch that Arrow refuses.
    """
    raw = read_raw_statistics(stats, leaves, batch_bytes=batch_bytes, read_malformed=read_malformed)
    return typed_statistics(raw, leaves)


def read_raw_statistics(
    stats: pa.Array | pa.ChunkedArray,
    leaves: Mapping[Path, DataType],
    *,
    batch_bytes: int = BATCH_BYTES,
    read_malformed: ReadStatistics = read_with_python,
) -> StatsColumns:
    """Parse the texts as `read_stats_columns` does, and leave the bounds in the types of JSON."""
    texts = pa.chunked_array([stats]) if isinstance(stats, pa.Array) else stats

    def read(batch: pa.StringArray) -> StatsColumns:
        parsed = None if len(batch) <= FEW_TEXTS else read_with_arrow(batch, leaves)
        return read_malformed(batch, leaves) if parsed is None else parsed

    batches = list(text_batches(texts, batch_bytes)) or [pa.array([], pa.string())]
    if len(batches) == 1:
        return read(batches[0])
    with ThreadPoolExecutor(min(len(batches), pa.cpu_count())) as threads:
        return concatenated(list(threads.map(read, batches)))


def typed_statistics(raw: StatsColumns, leaves: Mapping[Path, DataType]) -> StatsColumns:
    """Return bounds that hold for the values of the columns, from those that JSON had."""
    return StatsColumns(
        raw.num_records,
        {path: _typed(raw.leaves[path], data_type) for path, data_type in leaves.items()},
    )


def _typed(raw: StatisticsColumn, data_type: DataType) -> StatisticsColumn:
    low, high = raw.low, raw.high
    if low is None or high is None:
        return raw
    match data_type:
        case DecimalType():
            low = _beyond_doubles(low, data_type.scale, decimal.ROUND_FLOOR)
            high = _beyond_doubles(high, data_type.scale, decimal.ROUND_CEILING)
        case PrimitiveType() if data_type in FLOATING:
            low, high = _rounded_outward(low, np.fmin), _rounded_outward(high, np.fmax)
        case PrimitiveType() if data_type == DATE:
            low, high = _dates(low), _dates(high)
        case PrimitiveType() if data_type in {TIMESTAMP, TIMESTAMP_NTZ}:
            low, high = _untruncated_timestamps(low, high, zoned=data_type == TIMESTAMP)
        case _:
            pass
    return StatisticsColumn(low, high, raw.null_count)


def _rounded_outward(bound: pa.Array, pick: Callable[[Any, Any], Any]) -> pa.Array:
    """Move a bound outward to the nearest 32-bit float, if there is one so great.

    A float is written with as few digits as possible: 0.1 means 0.100000001..., which lies
    beyond 0.1 once the column is a double.
    """
    values = bound.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    outward = pick(values, np.where(np.isinf(single), values, single))
    return pa.array(outward, pa.float64(), from_pandas=True)


def _beyond_doubles(bound: pa.Array, scale: int, rounding: str) -> pa.Array:
    """Move long decimals outward by what a double, and its division by a power of ten, may lose.

    Shorter ones lose less than a unit, which the reading of JSON has rounded outward. What has more
    digits than are written of a double, and is none, was written as a decimal.
    """
    longest = decimal.Decimal(1 << _LOSSLESS_BITS).scaleb(-scale)
    is_long = pc.greater_equal(pc.abs(bound), pa.scalar(longest, bound.type))
    is_long = pc.fill_null(is_long, False)  # noqa: FBT003
    if not pc.any(is_long, min_count=0).as_py():
        return bound
    unit = decimal.Decimal(1).scaleb(-scale)
    exact = decimal.Context(prec=80)
    fitting = decimal.Context(prec=38, rounding=rounding, traps=[decimal.InvalidOperation])

    def moved(value: decimal.Decimal) -> decimal.Decimal | None:
        if value in (LONG_MIN, LONG_MAX):  # delta-rs writes them for all that is beyond
            return None
        digits = exact.normalize(value).as_tuple().digits
        if len(digits) > _DOUBLE_DIGITS and decimal.Decimal(float(value)) != value:
            return value
        lost = exact.divide(exact.abs(value), decimal.Decimal(1 << _LOSSLESS_BITS))
        sign = -1 if rounding == decimal.ROUND_FLOOR else 1
        try:
            return exact.fma(lost, sign, value).quantize(unit, context=fitting)
        except decimal.InvalidOperation:
            return None

    values = pa.array(map(moved, bound.filter(is_long).to_pylist()), bound.type)
    return pc.replace_with_mask(bound, is_long, values)


def _dates(texts: pa.Array) -> pa.Array:
    """Read dates; many files share few days."""
    encoded = pc.dictionary_encode(texts)
    days = pa.array([find_date(text) for text in encoded.dictionary.to_pylist()], pa.date32())
    return days.take(encoded.indices)


def _untruncated_timestamps(
    low: pa.Array, high: pa.Array, *, zoned: bool
) -> tuple[pa.Array, pa.Array]:
    """Return bounds in microseconds that hold for the values before they were truncated."""
    (lows, _), (_, highs) = _spans(low, zoned=zoned), _spans(high, zoned=zoned)
    return lows, pc.add(highs, _TRUNCATED_MICROS)


def _spans(texts: pa.Array, *, zoned: bool) -> tuple[pa.Array, pa.Array]:
    """Return the first and the last microsecond that each text may mean.

    Arrow reads what writers write: all fields, and ``Z`` where there is a zone.
    """
    plain = pc.fill_null(pc.match_substring_regex(texts, _ZONED if zoned else _UNZONED), False)  # noqa: FBT003
    kind = pa.timestamp("us", "UTC" if zoned else None)
    try:
        micros = pc.cast(pc.cast(pc.if_else(plain, texts, None), kind), pa.int64())
    except pa.ArrowInvalid:  # no day of the calendar
        micros, plain = pa.nulls(len(texts), pa.int64()), pa.array(np.zeros(len(texts), np.bool_))
    rest = pc.invert(plain)
    spans = [find_timestamp_span(text, zoned=zoned) for text in texts.filter(rest).to_pylist()]
    firsts, lasts = (
        pa.array([None if span is None else span[side] for span in spans], pa.int64())
        for side in (0, 1)
    )
    return pc.replace_with_mask(micros, rest, firsts), pc.replace_with_mask(micros, rest, lasts)


def find_date(text: str | None) -> dt.date | None:
    """Read a date, ``None`` if the text is none."""
    if text is None:
        return None
    try:
        return parse_date(text)
    except ValueError:
        return None


def find_timestamp_span(text: str | None, *, zoned: bool) -> tuple[int, int] | None:
    """Return the first and the last microsecond since 1970 that a timestamp text may mean.

    ``zoned`` timestamps need ``Z`` or an offset; the others must have neither. A date alone
    means its midnight: the bounds of a column that was widened from date to timestamp_ntz
    are such texts.

    >>> find_timestamp_span("1970-01-01T00:00:01.5Z", zoned=True)
    (1500000, 1500000)
    """
    if text is None:
        return None
    try:
        value = parse_timestamp(text, None)
    except ValueError:
        return None
    if (value.tzinfo is not None) is not zoned:
        return None
    instant = value if zoned else value.replace(tzinfo=dt.timezone.utc)
    micros = (instant - _EPOCH) // _MICROSECOND
    is_offset_exact = not zoned or text.endswith("Z") or instant >= _ZONES_HAVE_WHOLE_MINUTES
    slack = 0 if is_offset_exact else _MINUTE_MICROS
    return micros - slack, micros + slack


@dataclass(frozen=True, slots=True, eq=False)
class FileStatistics:
    """Statistics of the files of one `FileTable`: every column has one element per file.

    Bounded by the columns that predicates refer to, three values a file each.
    """

    num_records: pa.Array | None = None
    """Physical rows; ``None`` before anything is parsed."""
    columns: Mapping[tuple[Path, DataType], StatisticsColumn] = field(default_factory=dict)

    def parsed(
        self,
        files: FileTable,
        leaves: Mapping[Path, DataType],
        *,
        parse: ReadStatistics = read_stats_columns,
    ) -> FileStatistics:
        """Return these statistics with the ones of ``leaves``; only missing ones are parsed.

        ``files`` are those that the statistics are of. ``leaves`` maps physical paths to the
        columns' current types.
        """
        missing = {path: kind for path, kind in leaves.items() if (path, kind) not in self.columns}
        if self.num_records is not None and not missing:
            return self
        new = parse(files.rows["stats"], missing)
        found = {(path, kind): new.leaves[path] for path, kind in missing.items()}
        return FileStatistics(new.num_records, {**self.columns, **found})

    def of(self, leaves: Mapping[Path, DataType]) -> StatsColumns:
        """Return the statistics of ``leaves``; all of them must be parsed."""
        found = {path: self.columns[path, kind] for path, kind in leaves.items()}
        return StatsColumns(self.num_records, found)

    def select(self, mask: pa.Array) -> FileStatistics:
        """Return the statistics of the files where ``mask`` is true."""
        if self.num_records is None:
            return self
        return FileStatistics(
            self.num_records.filter(mask),
            {
                key: StatisticsColumn(
                    low=None if column.low is None else column.low.filter(mask),
                    high=None if column.high is None else column.high.filter(mask),
                    null_count=column.null_count.filter(mask),
                )
                for key, column in self.columns.items()
            },
        )


NOTHING_PARSED = FileStatistics()
