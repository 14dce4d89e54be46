"""Reads the rows of parts of data files for Spark, inside its workers.

A part of a file has the row groups whose middle lies between two of its bytes, as in Spark: the
driver cuts files without having seen their footers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from puredelta.worker.expressions import Expression
from puredelta.worker.file_columns import ColumnRules, as_stored, has_field_id
from puredelta.worker.files import DataPath, label
from puredelta.worker.range_file import fetched_ahead
from puredelta.worker.read_rows import (
    OnlySparkError,
    OpenFile,
    opened,
    read_batches,
    require_read_alike,
)
from puredelta.worker.row_groups import GroupStatistics, has_hybrid_calendar
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanLayout:
    """Which columns are read from files, and which are added to them."""

    data: pa.Schema
    """Columns inside of the files; types as Spark has them, ids of fields as Parquet does."""
    constants: pa.Schema
    """Columns with one value in a whole file."""
    row_index: str | None
    """The name of a column for the place of a row in its file."""
    by_field_id: bool
    case_sensitive: bool
    skips_missing: bool
    """Whether a file that is not there has no rows, and is no error."""
    condition: Expression | None = None
    """Row groups without a row of which it is true may be left out."""
    limits: Limits = LIMITS


SCAN_LAYOUTS = codec_of(ScanLayout)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """The row groups of a file whose middle lies between two places."""

    path: DataPath
    start: int
    stop: int
    size: int
    """Of the whole file."""
    constants: tuple[Any, ...]


FILE_PARTS = codec_of(FilePart)


def read_parts(layout: Fields, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parts that come as rows of Arrow: one column of pickled lists."""
    wanted = SCAN_LAYOUTS.decode(layout)
    for batch in batches:
        for message in batch.column(0).to_pylist():
            parts = [FILE_PARTS.decode(fields) for fields in pickle.loads(message)]  # noqa: S301 - our own
            for part in fetched_ahead(parts, lambda part: part.path):
                yield from read_part(wanted, part)


class ScanError(Exception):
    """A data file cannot be read by a worker."""


_SET_STORAGE = (
    ". Spark has no file system for this storage, so its Python workers read it: give them "
    "credentials, region and endpoint as spark.puredelta.storage.* or in Hadoop's settings "
    "(docs/storage.md), or put Hadoop's client for it on the class path (spark.jars.packages)"
)


def read_part(layout: ScanLayout, part: FilePart) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part.

    Raises:
        ScanError: the file cannot be read.
    """
    try:
        file = opened(part.path, describes=True)
        yield from _rows(layout, part, file)
    except OnlySparkError as failure:
        if layout.skips_missing and isinstance(failure.__cause__, FileNotFoundError):
            return
        is_lost = isinstance(failure.__cause__, FileNotFoundError)
        next_step = "" if is_lost or isinstance(part.path, str) else _SET_STORAGE
        raise ScanError(
            f"The data file {label(part.path)} cannot be read by Arrow: {failure}{next_step}"
        ) from failure
    except MemoryError as failure:
        raise ScanError(
            f"The data file {label(part.path)} needs more memory than this worker has: {failure}"
        ) from failure


def _rows(layout: ScanLayout, part: FilePart, file: OpenFile) -> Iterator[pa.RecordBatch]:
    rules = ColumnRules(
        by_field_id=layout.by_field_id,
        case_sensitive=layout.case_sensitive,
        hybrid_calendar=has_hybrid_calendar(file, layout.limits.only_spark),
    )
    present = list(file.schema_arrow)
    if layout.by_field_id and layout.data and not any(map(has_field_id, present)):
        raise OnlySparkError("it has no field ids, by which this table finds its columns")
    places = [rules.find(field, present) for field in layout.data]
    names = [None if place is None else present[place].name for place in places]
    stored = {name for name in names if name is not None}
    require_read_alike(file, layout.limits.only_spark, stored)
    fields = [field.name for field in layout.data]
    is_read = _group_filter(layout, file, dict(zip(fields, names, strict=True)), rules)
    for group, first_row, num_rows in groups_of(file, part):
        if not is_read(group):
            continue
        for at, batch in _read(file, group, num_rows, stored, layout.limits):
            columns = [
                pa.nulls(batch.num_rows, field.type)
                if name is None
                else as_stored(batch.column(name), field.type, rules)
                for field, name in zip(layout.data, names, strict=True)
            ]
            yield _completed(layout, part, columns, first_row + at, batch.num_rows)


def _group_filter(
    layout: ScanLayout, file: OpenFile, names: Mapping[str, str | None], rules: ColumnRules
) -> Callable[[int], bool]:
    """Return what says whether a row group is read."""
    condition = layout.condition
    # Bounds of another calendar are those of other days.
    if condition is None or rules.hybrid_calendar:
        return lambda _: True
    groups = GroupStatistics.of(file, names)
    return lambda group: groups.may_hold(group, condition)


def _read(
    file: OpenFile, group: int, num_rows: int, names: set[str], limits: Limits
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield rows of a row group and where they begin; without columns nothing is read."""
    at = 0
    if not names:
        while at < num_rows:
            count = min(limits.read_rows, num_rows - at)
            yield at, pa.RecordBatch.from_arrays([pa.nulls(count)], ["nothing"])
            at += count
        return
    for batch in read_batches(file, [group], columns=list(names), batch_rows=limits.read_rows):
        yield at, batch
        at += batch.num_rows


def groups_of(file: OpenFile, part: FilePart) -> Iterator[tuple[int, int, int]]:
    """Yield the row groups of a part: their number, their first row, how many rows they have."""
    is_whole = part.start == 0 and part.stop >= part.size
    first_row = 0
    for group in range(file.num_row_groups):
        num_rows = file.metadata.row_group(group).num_rows
        if num_rows and (is_whole or part.start <= _middle(file, group) < part.stop):
            yield group, first_row, num_rows
        first_row += num_rows


def _middle(file: OpenFile, group: int) -> int:
    try:
        chunks = list(file.chunks(group, None))
    except pa.ArrowException as unsound:
        raise OnlySparkError(str(unsound)) from unsound
    return (min(start for start, _ in chunks) + max(end for _, end in chunks)) // 2


def _completed(
    layout: ScanLayout, part: FilePart, data: Sequence[pa.Array], first_row: int, num_rows: int
) -> pa.RecordBatch:
    columns, fields = list(data), list(layout.data)
    for field, value in zip(layout.constants, part.constants, strict=True):
        columns.append(pa.repeat(pa.scalar(value, field.type), num_rows))
        fields.append(field)
    if layout.row_index is not None:
        columns.append(pa.array(np.arange(first_row, first_row + num_rows, dtype=np.int64)))
        fields.append(pa.field(layout.row_index, pa.int64()))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
