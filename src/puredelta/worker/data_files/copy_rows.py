"""Copies chosen rows of several files to a new file, inside a Spark worker.

Rows keep their order and their values; only the names of columns change. What Arrow might read
otherwise than Spark is refused.
"""

from __future__ import annotations

import datetime as dt
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from puredelta.worker.data_files.write_file import (
    FILE_ANSWERS,
    OUT_OF_REACH,
    CopiedGroups,
    FileAnswer,
    MaskedBatch,
    coalesced,
    filter_options,
    known_options,
    new_encodings,
    refused,
    row_groups,
    write_file,
)
from puredelta.worker.file_columns import ColumnRules, as_stored
from puredelta.worker.files import DataPath, joined, make_directory
from puredelta.worker.read_rows import (
    Mask,
    OnlySparkError,
    OpenFile,
    arrow_threads,
    dropped_rows,
    opened,
    read_batches,
    require_one_calendar,
    require_read_alike,
    unfaithful,
)
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory that stands for NULL."""
_RULES = ColumnRules(case_sensitive=True, hybrid_calendar=True)
_SIMPLE = re.compile(r"[A-Za-z0-9_.-]([A-Za-z0-9_. -]*[A-Za-z0-9_.-])?", re.ASCII)
"""Names and texts that are spelled alike in a directory and in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """Row groups of one file that follow each other, and which of their rows are marked."""

    path: DataPath
    groups: tuple[int, ...]
    """No others are read."""
    first_row: int
    """The position of their first row in the file."""
    words: bytes
    """Little-endian int64: runs of 64 rows, as in `RewriteTask`."""
    bits: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrder:
    """Copy rows of some files to one new file in ``directory``."""

    ordinal: int
    sources: tuple[RowGroups, ...]
    include: bool
    """Whether marked rows are those that are copied, or those that are not."""
    columns: tuple[tuple[str, str, pa.DataType], ...]
    """Name inside the files, name and type in the new one."""
    directory: DataPath
    name_prefix: str
    codec: str
    num_partition_columns: int = 0
    """How many of ``columns``, the last ones, are not stored but make a file per value."""
    limits: Limits = LIMITS


COPY_ORDERS = codec_of(CopyOrder)


def copy(message: Fields) -> list[Fields]:
    """Carry out the fields of a `CopyOrder`; return those of its `FileAnswer`s."""
    order = COPY_ORDERS.decode(message)
    with arrow_threads(order.limits.decoding_threads):
        return [FILE_ANSWERS.encode(answer) for answer in copy_source_rows(order)]


def copy_source_rows(order: CopyOrder) -> list[FileAnswer]:
    """Write the rows of ``order``; memory is bounded by one row group's share.

    What Spark could still do, such as reading what Arrow cannot, is answered as a refusal, and
    nothing is left; a full disk is raised.
    """
    schema = pa.schema([(written, kind) for _, written, kind in order.columns])
    copied = CopiedGroups()
    batches = itertools.chain.from_iterable(
        _batches(source, order, schema, copied) for source in order.sources
    )
    if not order.num_partition_columns:
        rows = coalesced(map(MaskedBatch, batches), limits=order.limits)
        tables = row_groups(rows, limits=order.limits)
        return [_written(order, "", tables, schema, copied)]
    answers: list[FileAnswer] = []
    try:
        every = _at_once(batches, schema, bytes_max=order.limits.partitioned_bytes)
        for values, stored in by_partition(every, order.num_partition_columns):
            names = schema.names[-order.num_partition_columns :]
            directory = "/".join(map(_directory, names, values))
            answer = _written(order, directory, [stored], stored.schema)
            answers.append(replace(answer, partition=values))
    except (OnlySparkError, MemoryError) as failure:
        return [refused(order.ordinal, failure)]
    return answers


def _written(
    order: CopyOrder,
    directory: str,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    copied: CopiedGroups | None = None,
) -> FileAnswer:
    """Write one file, below the directory of the order."""
    at = replace(order, directory=joined(order.directory, directory))
    try:
        make_directory(at.directory)
    except OUT_OF_REACH as failure:
        return refused(order.ordinal, failure)
    answer = write_file(
        at,
        tables,
        schema=schema,
        codec=order.codec,
        options=partial(_writer_options, order.limits),
        copied=copied,
    )
    if answer.name is None:
        return answer
    return replace(answer, name=posixpath.join(directory, answer.name))


def _at_once(batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, bytes_max: int) -> pa.Table:
    """Return all rows, unless they are too many: `OnlySparkError`."""
    read: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        read.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > bytes_max:
            raise OnlySparkError("too many rows to distribute over partitions")
    return pa.Table.from_batches(read, schema)


def by_partition(
    rows: pa.Table, num_columns: int
) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
    """Yield the rows of every partition, without the last columns, whose values make it.

    Rows keep their order. Values come as the log spells them.
    """
    if not rows.num_rows:
        return
    names = rows.schema.names[-num_columns:]
    stored = rows.drop_columns(names)
    places = np.zeros(rows.num_rows, np.int64)
    for name in names:
        column = rows[name].combine_chunks().dictionary_encode("encode")
        places = places * len(column.dictionary) + column.indices.to_numpy()
        _, places = np.unique(places, return_inverse=True)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        chosen = order[start:stop]
        values = tuple(_hive_text(_value(rows[name][int(chosen[0])])) for name in names)
        yield values, stored.take(pa.array(chosen))


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        raise OnlySparkError("the partition of a text that is no UTF-8 is named by Spark") from None
    except OverflowError:
        raise OnlySparkError("the partition of a year beyond 9999 is named by Spark") from None


def _hive_text(value: Any) -> str | None:
    """Spell a whole number, a flag, a date or simple text; an empty text is NULL, too."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or type(value) is dt.date:
        return str(value)
    if isinstance(value, str) and _SIMPLE.fullmatch(value) and not value.startswith(HIVE_NULL):
        return value
    raise OnlySparkError(f"the partition of {value!r} is named by Spark")


def _directory(column: str, value: str | None) -> str:
    if not _SIMPLE.fullmatch(column):
        raise OnlySparkError(f"the directories of column {column} are named by Spark")
    return f"{column}={HIVE_NULL if value is None else value}"


def _batches(
    source: RowGroups, order: CopyOrder, schema: pa.Schema, copied: CopiedGroups
) -> Iterator[pa.RecordBatch]:
    stored = list(dict.fromkeys(name for name, _, _ in order.columns))
    first_row = source.first_row
    threads = order.limits.decoding_threads
    file = opened(source.path, describes=True, has_threads=threads > 1)
    columns = [(name, kind) for name, _, kind in order.columns]
    require_stored_as(file, columns, order.limits)
    copied.add(file.metadata, source.groups)
    batches = read_batches(file, source.groups, columns=stored, batch_rows=order.limits.read_rows)
    for batch in batches:
        marked = dropped_rows(source.words, source.bits, first_row, batch.num_rows)
        first_row += batch.num_rows
        chosen = _chosen(batch, marked, include=order.include)
        if chosen.num_rows:
            columns = [in_type(kind, chosen[name]) for name, _, kind in order.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _chosen(batch: pa.RecordBatch, marked: Mask | None, *, include: bool) -> pa.RecordBatch:
    if marked is None:
        return batch.slice(0, 0) if include else batch
    return batch.filter(pa.array(marked if include else ~marked))


def in_type(kind: pa.DataType, column: pa.Array) -> pa.Array:
    """Return a column of which `require_stored_as` said that it holds values of a type.

    Raises:
        OnlySparkError: a date or timestamp is of a time in which calendars differ.
    """
    if pa.types.is_nested(kind):
        return as_stored(column, kind, _RULES)
    values = column if column.type == kind else column.cast(kind)
    require_one_calendar(values)
    return values


def require_stored_as(
    file: OpenFile, columns: Sequence[tuple[str, pa.DataType]], limits: Limits
) -> None:
    """Check that a file has columns of these types, and that Spark reads the same values.

    Raises:
        OnlySparkError: a column is missing, or Spark might read others.
    """
    names = [name for name, _ in columns]
    require_read_alike(file, limits.only_spark, names)
    if (reason := unfaithful(file, names)) is not None:
        raise OnlySparkError(reason)
    schema = file.schema_arrow
    for name, kind in columns:
        if schema.names.count(name) != 1:
            raise OnlySparkError(f"there is no column {name}, or more than one")
        stored = schema.field(name).type
        inside = list(_leaves(stored, name)), list(_leaves(kind, name))
        if not _are_stored(*inside) or (pa.types.is_nested(kind) and not _is_laid(file, inside[1])):
            raise OnlySparkError(f"column {name} is stored as {stored}, not {kind}")


def _are_stored(stored: Sequence[_Leaf], wanted: Sequence[_Leaf]) -> bool:
    return len(stored) == len(wanted) and all(map(_is_stored, stored, wanted))


def _is_stored(one: _Leaf, wanted: _Leaf) -> bool:
    (path, stored), (name, kind) = one, wanted
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    int96 = pa.types.is_timestamp(kind) and stored == pa.timestamp("us")
    return path == name and (stored == kind or int96)


def _is_laid(file: OpenFile, wanted: Sequence[_Leaf]) -> bool:
    """Tell whether a nested column has the levels that Parquet asks for.

    Older writers left some out, and readers differ in what they take such columns for.
    """
    name = wanted[0][0].split(".", 1)[0] if wanted else ""
    paths = [str(leaf.path) for leaf in file.leaves()]
    found = [path for path in paths if path.split(".", 1)[0] == name]
    return bool(wanted) and found == [path for path, _ in wanted]


_Leaf: TypeAlias = tuple[str, pa.DataType]
"""The path of a leaf in files, and its type."""


def _leaves(kind: pa.DataType, path: str) -> Iterator[_Leaf]:
    """Yield the leaves of a column, with the paths that Parquet asks for."""
    if pa.types.is_struct(kind):
        inner = [(f"{path}.{field.name}", field.type) for field in kind]
    elif pa.types.is_map(kind):
        entries = f"{path}.key_value"
        inner = [(f"{entries}.key", kind.key_type), (f"{entries}.value", kind.item_type)]
    elif pa.types.is_list(kind):
        inner = [(f"{path}.list.element", kind.value_type)]
    else:
        yield path, kind
        return
    for name, of in inner:
        yield from _leaves(of, name)


def _writer_options(limits: Limits, rows: pa.Table) -> dict[str, Any]:
    return {
        **new_encodings(rows),
        **filter_options(limits.filters, rows.num_rows),
        "store_schema": False,
        **known_options(store_decimal_as_integer=True, write_page_index=True),
    }
