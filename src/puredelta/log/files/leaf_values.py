"""Leaf columns in footers of one kind, and their bounds as values of a table's column.

`plan_decode` looks at the types once per kind of file and returns a function that is applied to
every raw bound. For a bound that cannot be trusted or expressed there is no function, or the
function returns ``None``: a missing bound costs speed, a wrong one loses rows (X-72).

Columns are found by name, or by the only name that differs in case. A file may lack a column,
hold it in another shape, or have dots in its name. A leaf that is not found with certainty gets
no plan, and so no statistics (X-72).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.files.parquet_footer import ParquetWriter
from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from puredelta.protocol.table.stats import Bound, LeafPath
from puredelta.worker.footers.chunk_shapes import Raw

Decode: TypeAlias = Callable[[Raw, Raw], tuple[Bound | None, Bound | None]]
"""Turns minimum and maximum of a chunk, as the footer stores them, into values."""

_WRITES_NAN_INTO_BOUNDS = range(10, 18)
"""Minor versions of parquet-mr 1.x that leave bounds out, or write NaN, when a NaN is among the
values. Older versions skip NaN silently (PARQUET-1246); newer versions were not examined."""
_PARQUET_MR_SORTS_BYTES = (1, 10)
"""Before this version parquet-mr compared the bytes of text and decimals as signed numbers."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - also the origin of timestamps without zone
_UTC_EPOCH = _EPOCH.replace(tzinfo=dt.timezone.utc)
_GREGORIAN_DATES = dt.date(1582, 10, 15)
_GREGORIAN_TIMES = dt.datetime(1900, 1, 1)  # noqa: DTZ001
"""From these days on both calendars agree in Spark; time zones settled only about 1900."""
_MICROS_PER_UNIT = {"milliseconds": (1000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1000)}
_EXACT = Context(prec=76)


def plan_decode(
    physical: str, logical: str, table_type: DataType, writer: ParquetWriter
) -> Decode | None:
    """Return how to read the bounds of a file's column for a column of ``table_type``.

    ``physical`` and ``logical`` are Parquet's types, the logical one as pyarrow's JSON. The
    types may differ as far as Spark reads one as the other (type widening). ``None`` means that
    the bounds are useless: the types do not fit, the writer is not trusted, or Delta keeps no
    bounds of the type (X-62). Bounds also need `might_contain_nan` to be false.
    """
    annotation: dict[str, Any] = json.loads(logical)
    kind = annotation["Type"]
    match physical:
        case "FLOAT" | "DOUBLE" if table_type in {FLOAT, DOUBLE}:
            return _floats
        case "INT32" | "INT64" if kind == "Timestamp":
            return _timestamps(annotation, table_type, writer)
        case "INT32" if kind == "Date":
            return _dates(table_type, writer)
        case "INT32" | "INT64" if kind in {"None", "Int"}:
            signed = annotation.get("isSigned", True)
            return _integers(table_type, bits=0 if signed else int(physical[3:]))
        case "INT32" | "INT64" if kind == "Decimal":
            return _decimals(annotation, table_type)
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY" if kind == "Decimal" and _sorts_bytes(writer):
            return _decimals(annotation, table_type)
        case "BYTE_ARRAY" if kind in {"String", "None", "Enum", "JSON"} and _sorts_bytes(writer):
            return _text if table_type == STRING else None
        case _:
            return None


def is_whole_number(decode: Decode) -> bool:
    """Tell whether bounds are whole numbers, the same in the footer and in the table."""
    return decode is _whole


def is_text(decode: Decode) -> bool:
    """Tell whether bounds are texts in UTF-8."""
    return decode is _text


def might_contain_nan(physical: str, writer: ParquetWriter) -> bool:
    """Return whether the values might contain a NaN that the bounds do not show.

    Spark orders NaN above every number, so such bounds are useless (C-51b, X-67).
    """
    if physical not in {"FLOAT", "DOUBLE"}:
        return False
    major, minor = (*writer.version, 0, 0)[:2]
    return not (writer.name == "parquet-mr" and major == 1 and minor in _WRITES_NAN_INTO_BOUNDS)


def _sorts_bytes(writer: ParquetWriter) -> bool:
    """Return whether the writer compares bytes as unsigned; a writer without a name may not."""
    if writer.name == "parquet-mr":
        return writer.version >= _PARQUET_MR_SORTS_BYTES
    return writer.name != ""


def _floats(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
    """Drop both bounds if one is NaN; give a zero the sign that covers both zeros."""
    minimum, maximum = float(low), float(high)
    if math.isnan(minimum) or math.isnan(maximum):
        return None, None
    return (-0.0 if minimum == 0 else minimum), (0.0 if maximum == 0 else maximum)


def _text(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
    """Drop a bound that the writer cut inside a character: it is no text."""
    return _utf8(low), _utf8(high)


def _utf8(raw: Raw) -> str | None:
    try:
        return bytes(raw).decode() if isinstance(raw, bytes) else None
    except UnicodeDecodeError:
        return None


def _integers(table_type: DataType, *, bits: int) -> Decode | None:
    """Decode whole numbers; ``bits`` is the size of an unsigned type, 0 for a signed one.

    pyarrow may return the raw values of unsigned types as negative numbers.
    """
    convert: Callable[[int], Bound | None]
    if table_type in INTEGRAL:
        if not bits:
            return _whole
        convert = int
    elif table_type == DOUBLE:
        convert = float
    elif isinstance(table_type, DecimalType):
        convert = _rescaled(0, table_type)
    else:
        return None

    def decode(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
        return convert(_unsigned(low, bits)), convert(_unsigned(high, bits))

    return decode


def _whole(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
    return int(low), int(high)


def _unsigned(raw: Raw, bits: int) -> int:
    value = int(raw)
    return value + (1 << bits) if bits and value < 0 else value


def _decimals(annotation: dict[str, Any], table_type: DataType) -> Decode | None:
    if not isinstance(table_type, DecimalType):
        return None
    convert = _rescaled(annotation["scale"], table_type)

    def decode(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
        return convert(_unscaled(low)), convert(_unscaled(high))

    return decode


def _unscaled(raw: Raw) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def _rescaled(file_scale: int, table_type: DecimalType) -> Callable[[int], Decimal | None]:
    """Convert to the table's scale; a scale smaller than the file's would lose digits."""
    quantum = Decimal(1).scaleb(-table_type.scale)

    def convert(unscaled: int) -> Decimal | None:
        if file_scale > table_type.scale:
            return None
        value = Decimal(unscaled).scaleb(-file_scale, context=_EXACT)
        return value.quantize(quantum, context=_EXACT)

    return convert


def _dates(table_type: DataType, writer: ParquetWriter) -> Decode | None:
    if table_type not in {DATE, TIMESTAMP_NTZ}:
        return None

    def decode(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
        dates = _date(low), _date(high)
        if writer.hybrid_calendar and not _all_from(dates, _GREGORIAN_DATES):
            return None, None
        if table_type == DATE:
            return dates
        midnight = dt.time()
        low_date, high_date = dates
        return (
            None if low_date is None else dt.datetime.combine(low_date, midnight),
            None if high_date is None else dt.datetime.combine(high_date, midnight),
        )

    return decode


def _date(raw: Raw) -> dt.date | None:
    """Return the date; ``None`` outside the years 1 to 9999, which Spark has and Python lacks."""
    try:
        return _EPOCH.date() + dt.timedelta(days=int(raw))
    except OverflowError:
        return None


def _timestamps(
    annotation: dict[str, Any], table_type: DataType, writer: ParquetWriter
) -> Decode | None:
    adjusted = annotation["isAdjustedToUTC"]
    units = _MICROS_PER_UNIT.get(annotation["timeUnit"])
    if units is None or table_type != (TIMESTAMP if adjusted else TIMESTAMP_NTZ):
        return None
    factor, divisor = units
    origin = _UTC_EPOCH if adjusted else _EPOCH

    def decode(low: Raw, high: Raw) -> tuple[Bound | None, Bound | None]:
        # Nanoseconds are rounded outward: down for the minimum, up for the maximum.
        minimum = _plus_micros(origin, int(low) * factor // divisor)
        maximum = _plus_micros(origin, -(-int(high) * factor // divisor))
        if writer.hybrid_calendar and not _all_from(
            (minimum, maximum), _GREGORIAN_TIMES.replace(tzinfo=origin.tzinfo)
        ):
            return None, None
        return minimum, maximum

    return decode


def _plus_micros(origin: dt.datetime, micros: int) -> dt.datetime | None:
    try:
        return origin + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None


def _all_from(values: tuple[Any, ...], start: dt.date) -> bool:
    return all(value is not None and value >= start for value in values)


_COUNTS_NULLS_OF_LISTS = frozenset({"parquet-mr", "parquet-cpp", "parquet-cpp-arrow"})
"""Writers that count a NULL array or map among the NULLs of the values inside it."""
_ARROW = frozenset({"parquet-cpp", "parquet-cpp-arrow"})
_ARROW_COUNTS_INSIDE_STRUCTS = (26,)
"""Arrow 17, for one, does not count a NULL array where what it holds are structs."""


def plan_leaves(
    schema: StructType,
    file_schema: pq.ParquetSchema,
    writer: ParquetWriter,
    *,
    case_sensitive: bool = False,
) -> Iterator[LeafPlan]:
    """Yield a plan for each leaf of ``schema`` that such a file has statistics of, in order.

    With ``case_sensitive`` a column that differs in case has none: it is NULL to a session that
    heeds the case, and has values to others.
    """
    rules = _Rules(writer, case_sensitive)
    yield from _plan_struct(schema, _file_columns(file_schema), rules, ())


@dataclass(frozen=True, slots=True)
class _Rules:
    """What decides which statistics of a file are those of a column."""

    writer: ParquetWriter
    case_sensitive: bool


@dataclass(frozen=True, slots=True)
class _FileColumn:
    """A field of a file: either a leaf, a struct of fields, or something with leaves inside."""

    leaf: Any | None = None
    """pyarrow's column descriptor."""
    fields: Mapping[str, _FileColumn] | None = None
    leaves: range = range(0)
    """Positions of its leaves among those of the file."""

    def find(self, name: str, *, case_sensitive: bool) -> _FileColumn | None:
        """Return the field of this name, or the only one that differs in case if that may be."""
        fields = self.fields or {}
        if name in fields:
            return fields[name]
        lowered = name.lower()
        same = [column for other, column in fields.items() if other.lower() == lowered]
        if not same:
            return None
        return same[0] if len(same) == 1 and not case_sensitive else _AMBIGUOUS


_AMBIGUOUS = _FileColumn()
"""A column of which nothing is known, as several may be it."""


def _file_columns(schema: pq.ParquetSchema) -> _FileColumn:
    """Return the tree of a file's fields.

    Names may have dots, so the tree cannot be read off pyarrow's dotted paths. The Arrow
    schema shows the tree, with the leaves in the same order.
    """
    try:
        arrow = schema.to_arrow_schema()
    except pa.ArrowException:
        return _AMBIGUOUS  # types that pyarrow does not know prove nothing
    position = 0

    def build(data_type: pa.DataType) -> _FileColumn:
        nonlocal position
        start = position
        storage = (
            data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type
        )
        if pa.types.is_nested(storage):
            inner = [storage.field(i) for i in range(storage.num_fields)]
            built = [(f.name, build(f.type)) for f in inner]
            is_struct = pa.types.is_struct(storage) and len({name for name, _ in built}) == len(
                built
            )
            return _FileColumn(
                fields=dict(built) if is_struct else None, leaves=range(start, position)
            )
        position += 1
        return _FileColumn(leaf=schema.column(start), leaves=range(start, position))

    columns = {f.name: build(f.type) for f in arrow}
    complete = position == len(schema) and len(columns) == len(arrow)
    return _FileColumn(fields=columns, leaves=range(position)) if complete else _AMBIGUOUS


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """How one leaf of the table is read from files of one kind."""

    path: LeafPath
    leaves: range
    """The leaves of the file that belong to it: one, or several inside an array or map."""
    decode: Decode | None = None
    absent: bool = False
    nested: bool = False
    might_contain_nan: bool = False


def _plan_struct(
    schema: StructType, columns: _FileColumn, rules: _Rules, prefix: LeafPath
) -> Iterator[LeafPlan]:
    """Yield a plan per leaf of the table, in schema order."""
    if columns.fields is None:
        return
    for part in schema.fields:
        column = columns.find(part.name, case_sensitive=rules.case_sensitive)
        yield from _plan_field(
            part.type, _ABSENT if column is None else column, rules, (*prefix, part.name)
        )


def _plan_field(
    data_type: DataType, column: _FileColumn, rules: _Rules, path: LeafPath
) -> Iterator[LeafPlan]:
    match data_type:
        case StructType():
            yield from _plan_struct(data_type, column, rules, path)
        case _ if column is _ABSENT:
            yield LeafPlan(path, range(0), absent=True)
        case ArrayType() | MapType():
            if column.leaf is None and _counts_nulls(data_type, rules.writer):
                yield LeafPlan(path, column.leaves, nested=True)
        case _ if column.leaf is not None and column.leaf.max_repetition_level == 0:
            leaf, writer = column.leaf, rules.writer
            decode = plan_decode(leaf.physical_type, leaf.logical_type.to_json(), data_type, writer)
            nan = might_contain_nan(leaf.physical_type, writer)
            yield LeafPlan(path, column.leaves, decode=decode, might_contain_nan=nan)
        case _:
            return


_ABSENT = _FileColumn(fields={})
"""A column that the file lacks: it is NULL in every row, and so are its fields."""


def _counts_nulls(data_type: ArrayType | MapType, writer: ParquetWriter) -> bool:
    if writer.name in _ARROW and writer.version < _ARROW_COUNTS_INSIDE_STRUCTS:
        return not _holds_struct(data_type)
    return writer.name in _COUNTS_NULLS_OF_LISTS


def _holds_struct(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element=element):
            return _holds_struct(element)
        case MapType(key=key, value=value):
            return _holds_struct(key) or _holds_struct(value)
        case _:
            return isinstance(data_type, StructType)
