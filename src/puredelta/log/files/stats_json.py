"""The JSON of statistics as Arrow columns: parsed by Arrow for many files, or by Python one by one.

Numbers get the order type of their column (`puredelta.log.files.value_order`), dates and timestamps
stay text. Null means unknown.
"""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from puredelta.log.files.value_order import FLOATING, LONG_MAX, LONG_MIN, order_type
from puredelta.protocol.schema.types import (
    DATE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    PrimitiveType,
)

Path: TypeAlias = tuple[str, ...]
"""Physical names from the column down to the leaf."""

BATCH_BYTES = 2 << 20
"""How much text a thread parses at once."""
FEW_TEXTS = 16
"""Python parses so many in 0.1 to 0.6 of Arrow's time, whatever the number of columns."""
_NOT_A_NUMBER = r':\s*"(?:NaN|-?Infinity)"'
_LINE_BREAK = r"[\r\n]"
_LONG_DIGITS = 19


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """The statistics of one column; null where a file has none that are usable."""

    low: pa.Array | None
    """A value at most as great as every value that is not null nor NaN; in the column's order
    type (`puredelta.log.files.value_order`). ``None`` for types without an order."""
    high: pa.Array | None
    """A value at least as great as every value that is not null nor NaN."""
    null_count: pa.Array
    """int64."""


@dataclass(frozen=True, slots=True)
class StatsColumns:
    """The statistics of some files, one array element per file."""

    num_records: pa.Array
    """Physical rows (int64)."""
    leaves: Mapping[Path, StatisticsColumn]


def _wire_type(data_type: DataType) -> pa.DataType | None:
    """Return the Arrow type a bound is parsed as; ``None`` if the type has no bounds (X-62)."""
    match data_type:
        case DecimalType():
            return order_type(data_type)
        case PrimitiveType() if data_type in INTEGRAL | FLOATING:
            return order_type(data_type)
        case PrimitiveType() if data_type in {STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ}:
            return pa.string()
        case _:
            return None


# --- Arrow ----------------------------------------------------------------------------------


def read_with_arrow(texts: pa.StringArray, leaves: Mapping[Path, DataType]) -> StatsColumns | None:
    """Parse all texts at once; ``None`` if any of them does not fit the schema.

    A file without statistics is read as ``{}``. NaN and infinities, which are written as text,
    become null.
    """
    objects = pc.fill_null(texts, "{}")
    if any(t in FLOATING for t in _primitives(leaves)):
        objects = pc.replace_substring_regex(objects, _NOT_A_NUMBER, ":null")
    if not _are_objects(objects):
        return None
    bounds = {path: wire for path, t in leaves.items() if (wire := _wire_type(t)) is not None}
    counts = dict.fromkeys(leaves, pa.int64())
    fields = [
        ("numRecords", pa.int64()),
        *((name, _struct(paths)) for name, paths in _sections(bounds, counts) if paths),
    ]
    table = _rows(objects, pa.schema(fields))
    if table is None and pc.any(pc.match_substring_regex(objects, _LINE_BREAK)).as_py():
        # Line breaks between values are white space; inside values they are escaped.
        objects = pc.replace_substring_regex(objects, _LINE_BREAK, " ")
        table = _rows(objects, pa.schema(fields))
    if table is None:
        return None
    return StatsColumns(
        _one_array(table["numRecords"]),
        {
            path: StatisticsColumn(
                _field(table, "minValues", path) if path in bounds else None,
                _field(table, "maxValues", path) if path in bounds else None,
                _field(table, "nullCount", path),
            )
            for path in leaves
        },
    )


def _primitives(leaves: Mapping[Path, DataType]) -> list[PrimitiveType]:
    return [t for t in leaves.values() if isinstance(t, PrimitiveType)]


def _sections(
    bounds: Mapping[Path, pa.DataType], counts: Mapping[Path, pa.DataType]
) -> tuple[tuple[str, Mapping[Path, pa.DataType]], ...]:
    return ("minValues", bounds), ("maxValues", bounds), ("nullCount", counts)


def _rows(objects: pa.StringArray, schema: pa.Schema) -> pa.Table | None:
    """Parse one object a row; ``None`` if a text breaks the schema or is more than one object."""
    if not len(objects):
        return schema.empty_table()
    try:
        table = _parsed(objects, schema)
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(objects) else None


def text_batches(texts: pa.ChunkedArray, batch_bytes: int) -> Iterator[pa.StringArray]:
    """Split texts into arrays of about ``batch_bytes``, which are parsed on their own."""
    if texts.num_chunks > 1 and texts.nbytes <= batch_bytes:
        texts = pa.chunked_array([texts.combine_chunks()])
    for chunk in texts.chunks:
        num_texts = -(-len(chunk) // max(1, -(-chunk.nbytes // batch_bytes)))
        for start in range(0, len(chunk), num_texts or 1):
            yield chunk.slice(start, num_texts)


def _parsed(texts: pa.StringArray, schema: pa.Schema) -> pa.Table:
    """Parse the buffer of an array of texts without copying it.

    The texts follow each other without any separator, which JSON objects do not need. They are
    one block, because Arrow splits blocks at line breaks and there are none.
    """
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1]
    begin, length = int(ends[0]), int(ends[-1] - ends[0])
    return pj.read_json(
        pa.BufferReader(content.slice(begin, length)),
        read_options=pj.ReadOptions(use_threads=False, block_size=length + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )


def _are_objects(texts: pa.StringArray) -> bool:
    """Return whether all texts are in braces, perhaps with white space around them."""
    tight = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    rest = texts.filter(pc.invert(tight))
    braced = pc.match_substring_regex(rest, r"(?s)^\s*\{.*\}\s*$")
    return bool(pc.all(braced, min_count=0).as_py())


def _struct(leaves: Mapping[Path, pa.DataType]) -> pa.DataType:
    """Nest leaf types as the statistics nest their values."""
    nested: dict[str, dict[Path, pa.DataType]] = {}
    for path, data_type in leaves.items():
        nested.setdefault(path[0], {})[path[1:]] = data_type
    return pa.struct(
        [(name, inner[()] if () in inner else _struct(inner)) for name, inner in nested.items()]
    )


def _field(table: pa.Table, section: str, path: Path) -> pa.Array:
    column: Any = table[section]
    for name in path:
        column = pc.struct_field(column, name)
    return _one_array(column)


def _one_array(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def concatenated(parts: Sequence[StatsColumns]) -> StatsColumns:
    """Put statistics of several files after those of others; all have the same leaves."""
    first, *others = parts
    if not others:
        return first

    def joined(arrays: Sequence[pa.Array | None]) -> pa.Array | None:
        known = [array for array in arrays if array is not None]
        return pa.concat_arrays(known) if len(known) == len(arrays) else None

    return StatsColumns(
        pa.concat_arrays([part.num_records for part in parts]),
        {
            path: StatisticsColumn(
                joined([part.leaves[path].low for part in parts]),
                joined([part.leaves[path].high for part in parts]),
                pa.concat_arrays([part.leaves[path].null_count for part in parts]),
            )
            for path in first.leaves
        },
    )


# --- Python ---------------------------------------------------------------------------------


def read_with_python(
    texts: pa.StringArray | pa.ChunkedArray, leaves: Mapping[Path, DataType]
) -> StatsColumns:
    """Parse text by text; what cannot be read of one file is null for that file alone."""
    objects = [_parse(text) for text in texts.to_pylist()]
    return StatsColumns(
        pa.array([_whole(o.get("numRecords")) for o in objects], pa.int64()),
        {
            path: StatisticsColumn(
                _bounds(objects, "minValues", path, data_type, decimal.ROUND_FLOOR),
                _bounds(objects, "maxValues", path, data_type, decimal.ROUND_CEILING),
                pa.array([_whole(_walk(o, ("nullCount", *path))) for o in objects], pa.int64()),
            )
            for path, data_type in leaves.items()
        },
    )


def _parse(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        parsed = json.loads(text, parse_float=decimal.Decimal, parse_constant=_unknown)
    except (ValueError, RecursionError, decimal.InvalidOperation):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _unknown(_: str) -> None:
    """Read a bare NaN or Infinity as nothing."""


def _walk(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _bounds(
    objects: Sequence[Mapping[str, Any]],
    section: str,
    path: Path,
    data_type: DataType,
    rounding: str,
) -> pa.Array | None:
    wire = _wire_type(data_type)
    if wire is None:
        return None
    read = _reader(data_type, rounding)
    return pa.array([read(_walk(o, (section, *path))) for o in objects], wire)


def _reader(data_type: DataType, rounding: str) -> Callable[[Any], Any]:
    match data_type:
        case DecimalType():
            step = decimal.Decimal(1).scaleb(-data_type.scale)
            return lambda value: _in_scale(value, step, rounding)
        case PrimitiveType() if data_type in INTEGRAL:
            return _whole
        case PrimitiveType() if data_type in FLOATING:
            return _number
        case _:
            return _text


def _whole(value: Any) -> int | None:
    if isinstance(value, decimal.Decimal) and 0 <= value.adjusted() <= _LONG_DIGITS:
        value = int(value) if value == int(value) else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if LONG_MIN <= value <= LONG_MAX else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _in_scale(value: Any, step: decimal.Decimal, rounding: str) -> decimal.Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        return None
    try:
        fitting = decimal.Context(prec=38, traps=[decimal.InvalidOperation])
        return decimal.Decimal(value).quantize(step, rounding=rounding, context=fitting)
    except decimal.InvalidOperation:
        return None


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        return None
    return value
