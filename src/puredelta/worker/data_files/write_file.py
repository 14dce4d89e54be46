"""Writes rows of Arrow to a new data file and describes it, inside a Spark worker.

A task may run twice, at once or after a failure: every attempt writes a file of its own
name, and only a name that was *returned* ever becomes part of a table.

Traps this module knows:

* Without ``use_dictionary`` limited to columns that are worth one
  (`puredelta.worker.data_files.dictionaries`), parquet-cpp tries one for every column: three
  times as slow, and files a quarter larger.
* parquet-cpp leaves NaN out of float bounds: the columns that hold one are reported, so
  that their bounds are not taken for true.
"""

from __future__ import annotations

import inspect
import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.worker.files import DataPath, NewFile, joined
from puredelta.worker.limits import LIMITS, Limits
from puredelta.worker.read_rows import Mask, OnlySparkError
from puredelta.worker.scan.spatial import parquet_schema, plain_schema
from puredelta.worker.wire import codec_of

OUT_OF_REACH = (FileNotFoundError, PermissionError, NotADirectoryError)
"""What storage raises that this worker cannot see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """What became of one order to write a file. ``name`` is ``None`` where there was no row."""

    ordinal: int
    name: str | None = None
    physical_rows: int = 0
    """Of the old files, where whole files are read."""
    kept_rows: int = 0
    size_bytes: int = 0
    modified_ms: int = 0
    footer: bytes = b""
    """The new file's footer, as a Parquet file of metadata only."""
    nan_columns: tuple[tuple[str, ...], ...] = ()
    """Float columns, as paths through structs, that hold a NaN: their bounds leave it out."""
    refusal: str | None = None
    """Why this worker cannot do it; nothing was written then."""
    partition: tuple[str | None, ...] = ()
    """The partition of a file that holds one, as the log spells values."""
    others: tuple[int, ...] = ()
    """The orders besides ``ordinal`` whose rows are in the same file."""


FILE_ANSWERS = codec_of(FileAnswer)


class FileOrder(Protocol):
    """An order to write one file."""

    @property
    def ordinal(self) -> int:
        """What the answer is known by."""
        ...

    @property
    def directory(self) -> DataPath:
        """The path of the directory that gets the file."""
        ...

    @property
    def name_prefix(self) -> str:
        """What the file's name begins with."""
        ...


def write_file(
    order: FileOrder,
    tables: Iterable[pa.Table],
    *,
    schema: pa.Schema,
    codec: str,
    options: Callable[[pa.Table], Mapping[str, Any]],
) -> FileAnswer:
    """Write a row group per table, no file if there is none.

    ``codec`` goes by Arrow's name, ``none`` for no compression; ``options`` are others of Arrow's
    writer for the first table, asked for once there is one: ``compression`` wins over ``codec``.
    Storage that this worker cannot see, and rows that it cannot read, are answered as a refusal; a
    full disk is raised. Nothing is left then.
    """
    extension = ".parquet" if codec == "none" else f".{codec}.parquet"
    name = f"{order.name_prefix}-{uuid.uuid4()}.c000{extension}"
    target = NewFile(joined(order.directory, name))
    try:
        answer = _written(
            order.ordinal,
            tables,
            schema,
            lambda rows: {"compression": codec, **options(rows)},
            target,
        )
    except (*OUT_OF_REACH, OnlySparkError) as failure:
        target.discard()
        return refused(order.ordinal, failure)
    except BaseException:
        target.discard()
        raise
    return replace(answer, name=name) if answer.kept_rows else answer


def _written(
    ordinal: int,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    options: Callable[[pa.Table], Mapping[str, Any]],
    target: NewFile,
) -> FileAnswer:
    footers: list[pq.FileMetaData] = []
    nan_columns: set[tuple[str, ...]] = set()
    num_rows = 0
    plain, stored = plain_schema(schema), parquet_schema(schema)
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            rows = table.cast(plain) if table.schema != plain else table
            if writer is None:
                chosen = options(rows)
                writer = pq.ParquetWriter(
                    target.sink(), stored, metadata_collector=footers, **chosen
                )
            nan_columns.update(_columns_with_nan(rows))
            written = rows if stored is plain else rows.cast(stored)
            writer.write_table(written, row_group_size=rows.num_rows)
            num_rows += rows.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return FileAnswer(ordinal=ordinal)
    size_bytes, modified_ms = target.finish()
    return FileAnswer(
        ordinal=ordinal,
        kept_rows=num_rows,
        size_bytes=size_bytes,
        modified_ms=modified_ms,
        footer=_serialized(footers[0]),
        nan_columns=tuple(sorted(nan_columns)),
    )


def refused(ordinal: int, failure: Exception | str) -> FileAnswer:
    """Answer an order that only Spark can carry out."""
    named = isinstance(failure, OnlySparkError | str)
    reason = str(failure) if named else f"{type(failure).__name__}: {failure}"
    return FileAnswer(ordinal=ordinal, refusal=reason)


def row_groups(batches: Iterable[pa.RecordBatch], *, limits: Limits = LIMITS) -> Iterator[pa.Table]:
    """Bring batches together, each table as large as a row group may be."""
    parts: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        parts.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= limits.row_group_bytes:
            yield pa.Table.from_batches(parts)
            parts, size_bytes = [], 0
    if parts:
        yield pa.Table.from_batches(parts)


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Rows that were read, and which of them are kept."""

    batch: pa.RecordBatch
    mask: Mask | None = None
    """Whether each row is kept; ``None``: all are."""

    def kept(self) -> pa.RecordBatch:
        """Return the rows that are kept."""
        return self.batch if self.mask is None else self.batch.filter(pa.array(self.mask))

    def flags(self) -> Mask:
        """Return of each row whether it is kept."""
        return np.ones(self.batch.num_rows, np.bool_) if self.mask is None else self.mask


def coalesced(
    batches: Iterable[MaskedBatch], *, limits: Limits = LIMITS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are kept, small batches that follow each other as one.

    Filtering and writing take longer the more batches there are.
    """
    together: list[MaskedBatch] = []
    num_rows = size_bytes = 0
    for one in batches:
        together.append(one)
        num_rows += one.batch.num_rows
        size_bytes += one.batch.get_total_buffer_size()
        if num_rows >= limits.coalesced_rows or size_bytes >= limits.coalesced_bytes:
            yield from _as_one(together)
            together, num_rows, size_bytes = [], 0, 0
    yield from _as_one(together)


def _as_one(masked: Sequence[MaskedBatch]) -> Iterable[pa.RecordBatch]:
    if len(masked) < 2:  # noqa: PLR2004 - one is one already
        return [one.kept() for one in masked]
    rows = pa.Table.from_batches([one.batch for one in masked]).combine_chunks()
    if any(one.mask is not None for one in masked):
        rows = rows.filter(pa.array(np.concatenate([one.flags() for one in masked])))
    batches: Sequence[pa.RecordBatch] = rows.to_batches()
    return batches


def known_options(**options: Any) -> dict[str, Any]:
    """Return those options of Arrow's writer that this version of it has."""
    known = inspect.signature(pq.write_table).parameters
    return {name: value for name, value in options.items() if name in known}


def _columns_with_nan(rows: pa.Table) -> Iterator[tuple[str, ...]]:
    """Yield the float columns, struct fields included, that hold a NaN."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        yield from _leaves_with_nan((name,), column)


def _leaves_with_nan(path: tuple[str, ...], column: pa.ChunkedArray) -> Iterator[tuple[str, ...]]:
    if pa.types.is_floating(column.type):
        if pc.any(pc.is_nan(column)).as_py():
            yield path
    elif pa.types.is_struct(column.type):
        for index, field in enumerate(column.type):
            yield from _leaves_with_nan((*path, field.name), pc.struct_field(column, [index]))


def _serialized(footer: pq.FileMetaData) -> bytes:
    """Return a footer as a Parquet file of metadata only."""
    out = io.BytesIO()
    footer.write_metadata_file(out)
    return out.getvalue()
