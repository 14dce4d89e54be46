"""Days that the old calendar lacks, and the columns that may hold values near them.

The day after 1582-10-04 is 1582-10-15 in the calendar of Java's old classes, in which Spark hands
constants of a condition to its reader of Parquet files. Each of the ten days between becomes
1582-10-15 there, so the reader would skip row groups with rows of which the condition is true. No
other day is concerned: a column whose values are all before or after can be tested by the reader.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.file_bounds import Bounds, FileBounds, Mask
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import DATE, TIMESTAMP, DataType, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig

Path: TypeAlias = tuple[str, ...]

_EPOCH = dt.date(1970, 1, 1)
_DAY_MICROS = 86_400_000_000
_FIRST, _LAST = dt.date(1582, 10, 5), dt.date(1582, 10, 15)
"""The last is the day that the others become: ``d > DATE'1582-10-10'`` would lose it."""
_RANGES: Mapping[DataType, tuple[Any, Any]] = {
    DATE: (_FIRST, _LAST),
    # The days of a session's zone begin and end up to 18 hours before and after those of UTC.
    TIMESTAMP: (
        ((_FIRST - _EPOCH).days - 1) * _DAY_MICROS,
        ((_LAST - _EPOCH).days + 2) * _DAY_MICROS,
    ),
}
_LATER_YEAR = r"(?:1(?:58[3-9]|59[0-9]|[6-9][0-9]{2})|[2-9][0-9]{3})-"
_SEARCHED_MAX = 3
"""To search the texts once takes a fifth of the time that parsing them takes."""


def gap_columns(
    files: FileTable, config: TableConfig, fields: Sequence[StructField]
) -> frozenset[Path]:
    """Return the dates and timestamps among ``fields`` that may hold values near the lacking days.

    Paths of logical names, through structs only. A column that the log does not know in one of
    the files may hold any. Partition columns are never among them.
    """
    leaves = [
        (path, field.type)
        for path, field in struct_fields(StructType(tuple(fields)))
        if field.type in _RANGES and path[0] not in config.partition_columns
    ]
    if not leaves or not len(files):
        return frozenset()
    found = []
    for path, kind in leaves:
        in_doubt = files
        if len(path) == 1 and len(leaves) <= _SEARCHED_MAX:
            in_doubt = files.select(pc.invert(_is_later(files, config.physical_path(path)[0])))
        if len(in_doubt):
            found.append((path, kind, in_doubt))
    return frozenset(path for path, kind, some in found if _may_meet(some, config, path, kind))


def _is_later(files: FileTable, name: str) -> pa.ChunkedArray:
    """Return for each file whether its text has a smallest value of a later year."""
    key = re.escape(json.dumps(name, ensure_ascii=False))
    pattern = rf'"minValues"\s*:\s*\{{[^{{}}]*{key}\s*:\s*"{_LATER_YEAR}'
    return pc.fill_null(pc.match_substring_regex(files.rows["stats"], pattern), False)  # noqa: FBT003


def _may_meet(files: FileTable, config: TableConfig, path: Path, kind: DataType) -> bool:
    ref = Ref(Side.TARGET, path, kind)
    bounds = FileBounds(files, config, [ref]).find(ref)
    return bounds is None or bool(np.any(_meets(bounds, *_RANGES[kind])))


def _meets(bounds: Bounds, first: Any, last: Any) -> Mask:
    """Return for each file whether its values may be in a range, its ends included."""
    if bounds.low is None or bounds.high is None:
        return bounds.might_have_value
    apart = pc.or_(
        pc.fill_null(pc.greater(bounds.low, pa.scalar(last, bounds.low.type)), False),  # noqa: FBT003
        pc.fill_null(pc.less(bounds.high, pa.scalar(first, bounds.high.type)), False),  # noqa: FBT003
    )
    meets: Mask = bounds.might_have_value & ~apart.to_numpy(zero_copy_only=False)
    return meets
