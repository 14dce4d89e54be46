"""Rows get their place on a curve through some columns, and the section of it that is a file.

The bounds of the curve's ranges come from a sample that is small enough for the driver. The place
of each row is computed by Spark SQL alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)
from puredelta.spark.session.helper_columns import BIN, CURVE_PLACE, FILE_ORDINAL, PREFIX, ROW_INDEX
from puredelta.spark.session.types import quoted
from puredelta.spark.write.curves import (
    NOISE_BITS,
    Curve,
    cuts,
    range_number,
    with_noise,
)

SECTION = f"{PREFIX}section"
SAMPLE_ROWS_MAX = 200_000
"""About so many rows come to the driver."""
RANGES_MAX = 1024
"""Of each column. A power of two, so that cells of one size hold equally many rows."""
BOUNDS_MAX = 2_000_000
"""So many bounds, of all bins and columns, go to the executors at most."""

_SEED = 20
_TEXT_LENGTH = 64
"""Of the bounds of text."""
_BOUNDS = f"{PREFIX}bounds_"
_NUMBER = f"{PREFIX}range_"
_CUTS = f"{PREFIX}cuts"
_NOISE = f"pmod(hash({FILE_ORDINAL}, {ROW_INDEX}), {1 << NOISE_BITS})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveOrder:
    """By which columns rows are ordered."""

    columns: tuple[tuple[tuple[str, ...], DataType], ...]
    """Logical paths, with types."""
    curve: type[Curve]
    sampled_share: float
    """Which part of all rows is about `SAMPLE_ROWS_MAX`."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The top-level columns that are read."""
        return tuple(dict.fromkeys(path[0] for path, _ in self.columns))

    @property
    def keys(self) -> list[str]:
        """SQL of numbers or text that are ordered as the columns are."""
        return [_sort_key(".".join(map(quoted, path)), kind) for path, kind in self.columns]


def placed_rows(
    spark: SparkSession,
    rows: DataFrame,
    order: CurveOrder,
    positions: DataFrame,
    num_ranges: Sequence[int],
) -> DataFrame:
    """Add `CURVE_PLACE` and `SECTION` to rows that have their position and `BIN`.

    ``positions`` are the same rows with fewer columns; one Spark job reads a sample of them.
    ``num_ranges`` of each bin are about equally large.
    """
    allowed = BOUNDS_MAX // (len(num_ranges) * len(order.columns))
    curve = order.curve(num_columns=len(order.columns), ranges_max=max(2, min(RANGES_MAX, allowed)))
    names = [f"k{n}" for n in range(curve.num_columns)]
    keys = [f"{key} AS {name}" for key, name in zip(order.keys, names, strict=True)]
    chosen = positions.where(F.rand(_SEED) < order.sampled_share)
    sample = chosen.selectExpr(BIN, f"cast({_NOISE} AS BIGINT) AS noise", *keys).toArrow()
    ranges = F.broadcast(spark.createDataFrame(curve_table(curve, sample, names, num_ranges)))
    joined = rows.join(ranges, on=BIN, how="left")
    return _placed(joined, curve, order.keys, max(num_ranges))


def curve_table(
    curve: Curve, sample: pa.Table, names: Sequence[str], num_ranges: Sequence[int]
) -> pa.Table:
    """Return one row per bin: the bounds of each column's ranges, and where sections are cut."""
    bounds: list[list[list[object]]] = [[] for _ in names]
    sections: list[list[int]] = []
    for number, count in enumerate(num_ranges):
        rows = sample.filter(pc.equal(sample[BIN], number)).combine_chunks()
        columns = [_readable(_array(rows[name])) for name in names]
        between = [curve.bounds(column) for column in columns]
        for known, found in zip(bounds, between, strict=True):
            known.append(found.to_pylist())
        noise = _array(rows["noise"]).to_numpy(zero_copy_only=False)
        sections.append(cuts(curve.places(columns, between, noise), count).tolist())
    return pa.table(
        {
            BIN: pa.array(range(len(num_ranges)), pa.int32()),
            **{
                f"{_BOUNDS}{n}": pa.array(found, pa.list_(sample.schema.field(name).type))
                for n, (name, found) in enumerate(zip(names, bounds, strict=True))
            },
            _CUTS: pa.array(sections, pa.list_(pa.int64())),
        }
    )


def _readable(values: pa.Array) -> pa.Array:
    """Return texts that Python can hold: Spark's may be any bytes. Bounds need not be exact."""
    if not pa.types.is_string(values.type):
        return values
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = (value.as_py() for value in values.view(pa.binary()))
        return pa.array([t if t is None else t.decode(errors="replace") for t in texts], "string")
    return values


def _placed(rows: DataFrame, curve: Curve, keys: Sequence[str], sections_max: int) -> DataFrame:
    kept = [quoted(name) for name in rows.columns if not name.startswith((_BOUNDS, _CUTS))]
    numbers = [f"{_NUMBER}{n}" for n in range(len(keys))]
    numbered = rows.selectExpr(
        *kept,
        _CUTS,
        *(
            f"{range_number(key, f'{_BOUNDS}{n}', curve.num_ranges - 1)} AS {name}"
            for n, (key, name) in enumerate(zip(keys, numbers, strict=True))
        ),
    )
    on_curve = numbered.selectExpr(*kept, _CUTS, f"{curve.combined_sql(numbers)} AS {CURVE_PLACE}")
    section = range_number(with_noise(CURVE_PLACE, _NOISE), _CUTS, sections_max - 1)
    return on_curve.selectExpr(*kept, CURVE_PLACE, f"{section} AS {SECTION}")


def _array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _sort_key(column: str, kind: DataType) -> str:
    """Return SQL of a bigint, double or string that is ordered as the column, more or less."""
    if kind in INTEGRAL:
        return f"cast({column} AS BIGINT)"
    if kind in (FLOAT, DOUBLE) or isinstance(kind, DecimalType):
        return f"cast({column} AS DOUBLE)"
    if kind == DATE:
        return f"cast(unix_date({column}) AS BIGINT)"
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return f"unix_micros(cast({column} AS TIMESTAMP))"
    if kind == STRING:
        return f"substring({column}, 1, {_TEXT_LENGTH})"
    return f"substring(cast({column} AS STRING), 1, {_TEXT_LENGTH})"
