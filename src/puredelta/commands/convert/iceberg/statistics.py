"""Statistics of data files from Iceberg's manifests, whose bounds hold what lies in a file.

What a manifest does not prove is left out: bounds of a column with a NaN, or whose NaNs nobody
counted, and counts of NULLs inside of structs, which writers count differently.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any

from pyiceberg import types as I
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile

from puredelta.commands.convert.iceberg.schema import Leaf
from puredelta.protocol.table.stats import LeafPath, LeafStatistics

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_FLOATS = (I.FloatType, I.DoubleType)
_WITHOUT_BOUNDS = (I.BooleanType, I.BinaryType, I.FixedType)


def file_statistics(
    leaves: Iterable[Leaf], file: DataFile, ids: Collection[int]
) -> Mapping[LeafPath, LeafStatistics]:
    """Return what is known of the leaves of a file; ``ids`` are those of its fields."""
    return {leaf.path: _leaf(leaf, file, ids) for leaf in leaves}


def _leaf(leaf: Leaf, file: DataFile, ids: Collection[int]) -> LeafStatistics:
    if leaf.field_id not in ids:
        return LeafStatistics(None, None, file.record_count)
    nulls = (file.null_value_counts or {}).get(leaf.field_id) if len(leaf.path) == 1 else None
    if nulls == file.record_count or isinstance(leaf.type, _WITHOUT_BOUNDS):
        return LeafStatistics(None, None, nulls)
    if isinstance(leaf.type, _FLOATS) and (file.nan_value_counts or {}).get(leaf.field_id) != 0:
        return LeafStatistics(None, None, nulls)
    minimum = _bound(leaf.type, (file.lower_bounds or {}).get(leaf.field_id))
    maximum = _bound(leaf.type, (file.upper_bounds or {}).get(leaf.field_id))
    if isinstance(leaf.type, _FLOATS):  # both zeros are equal
        minimum = -0.0 if minimum == 0 else minimum
        maximum = 0.0 if maximum == 0 else maximum
    return LeafStatistics(minimum, maximum, nulls)


def _bound(kind: I.PrimitiveType, content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        value = python_value(kind, from_bytes(kind, content))
    except (struct.error, UnicodeDecodeError, OverflowError):
        return None  # of a type that the column had once
    return None if isinstance(value, float) and math.isnan(value) else value


def python_value(kind: I.PrimitiveType, value: Any) -> Any:
    """Return a value as Python has it: Iceberg counts days and microseconds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    match kind:
        case I.DateType():
            return date.fromordinal(_EPOCH.toordinal() + value)
        case I.TimestampType():
            return _EPOCH + timedelta(microseconds=value)
        case I.TimestamptzType():
            return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=timezone.utc)
        case _:
            return value
