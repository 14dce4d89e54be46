"""Statistics of data files: their columns, truncated bounds, and JSON.

A wrong bound loses rows silently, for every reader, so a value without a safe text is left out
(X-72). Truncating widens a bound and never narrows it: text is cut to a prefix, timestamps to
milliseconds (X-60 to X-68).

If ``tightBounds`` is false, no row need reach the bounds, and a ``nullCount`` is exact only if it
is zero or the number of *physical* rows. The rest of the text is kept digit for digit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from puredelta.protocol.features.properties import (
    ALL_COLUMNS_INDEXED,
    PROPERTY_KEYS,
    TableProperties,
)
from puredelta.protocol.schema.schema_json import parse_json
from puredelta.protocol.schema.timestamps import shift
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig

LeafPath: TypeAlias = tuple[str, ...]
"""A column without fields of its own, through structs; an array or map is one leaf (X-61)."""
Bound: TypeAlias = int | float | str | Decimal | date | datetime
"""Datetimes are aware for ``timestamp`` and naive for ``timestamp_ntz``."""

STRING_PREFIX_LENGTH = 32

_ASCII_MAX, _CODE_POINT_MAX = "\x7f", "\U0010ffff"
_ONE_UNIT_MAX = 0xFFFF
_MILLISECOND = timedelta(milliseconds=1)


class LeafStatistics(NamedTuple):
    """The statistics of one leaf of a file; ``None`` means that a value is unknown.

    Bounds are never narrower than the values; bounds of long text may be wider. A leaf that is
    all NULL has no bounds, and its ``null_count`` is the number of rows.
    """

    minimum: Bound | None = None
    maximum: Bound | None = None
    null_count: int | None = None


# --- which columns --------------------------------------------------------------------------


def indexed_columns(schema: StructType, properties: TableProperties) -> tuple[LeafPath, ...]:
    """Return the leaves of a data schema that get statistics, in schema order (X-61).

    ``schema`` is without partition columns. It has logical names, as the property
    ``delta.dataSkippingStatsColumns``.
    """
    fields = struct_fields(schema)
    leaves = tuple(path for path, field in fields if not isinstance(field.type, StructType))
    wanted = properties.data_skipping_stats_columns
    if wanted is not None:
        named = [tuple(part.lower() for part in path) for path in wanted]
        return tuple(
            leaf
            for leaf in leaves
            if any(tuple(p.lower() for p in leaf[: len(path)]) == path for path in named)
        )
    count = properties.data_skipping_indexed_cols
    return leaves if count == ALL_COLUMNS_INDEXED else leaves[:count]


def indexed_leaves(config: TableConfig) -> tuple[LeafPath, ...]:
    """Return the leaves of data files that get statistics, by physical names."""
    return tuple(
        config.physical_path(leaf)
        for leaf in indexed_columns(config.data_schema, config.properties)
    )


def without_statistics(config: TableConfig) -> TableConfig:
    """Return the configuration for a writer whose only statistics are row counts."""
    named = PROPERTY_KEYS["data_skipping_stats_columns"]
    counted = PROPERTY_KEYS["data_skipping_indexed_cols"]
    kept = {k: v for k, v in config.properties.configuration.items() if k != named}
    return replace(config, properties=TableProperties.of({**kept, counted: "0"}))


# --- truncating -------------------------------------------------------------------------------


def truncate_text_minimum(text: str, length: int = STRING_PREFIX_LENGTH) -> str:
    """Return a text of at most ``length`` code points that is not above ``text`` (X-63)."""
    return text[:length]


def truncate_text_maximum(text: str, length: int = STRING_PREFIX_LENGTH) -> str | None:
    r"""Return a short text that is not below ``text``, ``None`` where there is none (X-63).

    Cuts after ``length`` UTF-16 units, never inside a surrogate pair, and appends a character
    above the part that was cut off: U+007F if that part starts with ASCII, else U+10FFFF. If it
    starts with U+10FFFF nothing is above it, so the prefix grows past such characters, up to
    twice ``length``. These are exactly the rules of delta-spark.

    >>> truncate_text_maximum("ab", 1)
    'a\x7f'
    """
    kept = units = 0
    if text[:length].isascii():
        kept = units = min(len(text), length)
    while kept < len(text) and units < length:
        units += 2 if ord(text[kept]) > _ONE_UNIT_MAX else 1
        kept += 1
    while kept < len(text) and text[kept] == _CODE_POINT_MAX:
        if units + 2 > 2 * length:
            return None
        units += 2
        kept += 1
    if kept == len(text):
        return text
    return text[:kept] + (_ASCII_MAX if text[kept] < _ASCII_MAX else _CODE_POINT_MAX)


def truncate_timestamp_minimum(value: datetime) -> datetime:
    """Return the last millisecond that is not after ``value`` (X-65)."""
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def truncate_timestamp_maximum(value: datetime) -> datetime:
    """Return the first millisecond that is not before ``value`` (X-65)."""
    floor = truncate_timestamp_minimum(value)
    return floor if floor == value else shift(floor, _MILLISECOND)


# --- writing --------------------------------------------------------------------------------


def encode_statistics(
    leaves: Mapping[LeafPath, LeafStatistics],
    *,
    num_records: int,
    tight_bounds: bool | None = None,
    string_prefix_length: int = STRING_PREFIX_LENGTH,
) -> str:
    """Write the JSON text of ``add.stats``; ``leaves`` have physical names.

    ``num_records`` counts physical rows, including deleted ones (X-71). ``tight_bounds`` says
    whether the bounds are those of the visible rows; it is None unless the table supports
    deletion vectors (X-60).

    Decimals are numbers with all their digits. Timestamps have milliseconds, in UTC with a
    ``Z``. A minimum is rounded down and a maximum **up**: delta-spark truncates both and expects
    readers to add a millisecond, which not every reader does (X-65). Bounds without a text (NaN,
    binary, booleans) are left out. So are infinite bounds: JSON has no number for them, and not
    every reader accepts the text that delta-spark writes instead (X-67).

    >>> encode_statistics({("s", "x"): LeafStatistics(Decimal("0.10"))}, num_records=2)
    '{"numRecords":2,"minValues":{"s":{"x":0.10}},"maxValues":{},"nullCount":{}}'
    """
    minimum: dict[LeafPath, str] = {}
    maximum: dict[LeafPath, str] = {}
    null_count: dict[LeafPath, str] = {}
    for path, (low, high, nulls) in leaves.items():
        if (text := encode_minimum(low, string_prefix_length)) is not None:
            minimum[path] = text
        if (text := encode_maximum(high, string_prefix_length)) is not None:
            maximum[path] = text
        if nulls is not None:
            null_count[path] = str(nulls)
    return statistics_object(
        num_records,
        minimum=_members(minimum),
        maximum=_members(maximum),
        null_count=_members(null_count),
        tight_bounds=tight_bounds,
    )


def statistics_object(
    num_records: int | str,
    *,
    minimum: str,
    maximum: str,
    null_count: str,
    tight_bounds: bool | None,
) -> str:
    """Return the JSON text of ``add.stats`` from the members of its three objects."""
    tight = "" if tight_bounds is None else f',"tightBounds":{json.dumps(tight_bounds)}'
    return (
        f'{{"numRecords":{num_records},"minValues":{{{minimum}}},'
        f'"maxValues":{{{maximum}}},"nullCount":{{{null_count}}}{tight}}}'
    )


def encode_minimum(value: Bound | None, length: int) -> str | None:
    """Return the JSON of a minimum, text truncated to ``length``; ``None`` if it has none."""
    if value is None:
        return None
    if isinstance(value, str):
        return _quoted(truncate_text_minimum(value, length))
    if isinstance(value, datetime):
        return _encode_timestamp(truncate_timestamp_minimum(value))
    return _encode_exact(value)


def encode_maximum(value: Bound | None, length: int) -> str | None:
    """Return the JSON of a maximum, text truncated to ``length``; ``None`` if it has none."""
    if value is None:
        return None
    if isinstance(value, str):
        short = truncate_text_maximum(value, length)
        return None if short is None else _quoted(short)
    if isinstance(value, datetime):
        try:
            return _encode_timestamp(truncate_timestamp_maximum(value))
        except ValueError:
            return None
    return _encode_exact(value)


def _encode_exact(value: object) -> str | None:
    """Return a bound as JSON that is not truncated."""
    match value:
        case bool():
            return None
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else None
        case Decimal():
            return f"{value:f}" if value.is_finite() else None
        case date():
            return f'"{value.isoformat()}"'
        case _:
            return None


def _encode_timestamp(value: datetime) -> str | None:
    if value.tzinfo is None:
        return f'"{value.isoformat(timespec="milliseconds")}"'
    try:
        utc = value.astimezone(timezone.utc).replace(tzinfo=None)
    except OverflowError:
        return None
    return f'"{utc.isoformat(timespec="milliseconds")}Z"'


# Made once: json.dumps with an option makes an encoder for every call.
_quoted = json.JSONEncoder(ensure_ascii=False).encode

quoted_name = lru_cache(maxsize=4096)(_quoted)
"""Returns a column's name as JSON; names repeat from file to file."""


_Tree: TypeAlias = "dict[str, str | _Tree]"


def _members(values: Mapping[LeafPath, str]) -> str:
    """Write values by path as the members of an object of objects."""
    tree: _Tree = {}
    for path, text in values.items():
        level = tree
        for name in path[:-1]:
            inner = level.setdefault(name, {})
            if isinstance(inner, str):
                raise ValueError(f"{path} runs through a leaf")  # noqa: TRY004 - not about types
            level = inner
        level[path[-1]] = text
    return _tree_members(tree)


def _tree_members(tree: _Tree) -> str:
    return ",".join(f"{quoted_name(name)}:{_tree_value(value)}" for name, value in tree.items())


def _tree_value(value: str | _Tree) -> str:
    return value if isinstance(value, str) else f"{{{_tree_members(value)}}}"


class _Verbatim(str):
    """A number as its writer spelled it."""

    __slots__ = ()


def loosen_bounds(text: str, *, rows: int, num_deleted: int) -> str:
    """Return the statistics for a file that is about to get a deletion vector.

    ``rows`` is the number of rows in the file, which is all that is kept of broken statistics;
    ``num_deleted`` is the number of rows that the present vector deletes. A column that is NULL
    in all other rows gets the number of physical rows as its null count: with loose bounds,
    that means "only NULLs".

    >>> loosen_bounds('{"numRecords":3,"maxValues":{"a":0.10}}', rows=3, num_deleted=0)
    '{"numRecords":3,"maxValues":{"a":0.10},"tightBounds":false}'
    """
    try:
        parse_json(text)
    except ValueError:
        text = "{}"
    content = json.loads(text, parse_float=_Verbatim, parse_constant=_Verbatim)
    if num_deleted and content.get("tightBounds", True) and "nullCount" in content:
        content["nullCount"] = _null_counts(content["nullCount"], rows - num_deleted, rows)
    return _dumped({**content, "numRecords": rows, "tightBounds": False})


def _null_counts(counts: Any, visible: int, physical: int) -> Any:
    if isinstance(counts, dict):
        return {name: _null_counts(count, visible, physical) for name, count in counts.items()}
    return physical if counts == visible else counts


def _dumped(value: Any) -> str:
    match value:
        case _Verbatim():
            return str(value)
        case dict():
            members = (f"{_dumped(name)}:{_dumped(item)}" for name, item in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(_dumped, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
