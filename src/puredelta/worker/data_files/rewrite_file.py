"""Rewrites data files without some of their rows, inside a Spark worker.

Rows that stay may get new values of some columns. What else is kept is copied column by column in
Arrow, so order, row groups, codecs, dictionaries, field ids and the key-value metadata of the old
file (Spark's schema, calendar marks) live on. INT96 timestamps carry no mark of being
instants: they get one.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.bounded_batches import open_bytes
from puredelta.worker.data_files.copied_groups import CopiedFile, GroupCopy, Kept, kept_of_groups
from puredelta.worker.data_files.updated_file import (
    FileUpdate,
    GroupRows,
    NewValues,
    Positions,
    replaced,
    require_known,
    whole_column,
)
from puredelta.worker.data_files.write_file import (
    FILE_ANSWERS,
    CopiedGroups,
    FileAnswer,
    MaskedBatch,
    coalesced,
    copied_encodings,
    filter_options,
    filter_rates,
    known_options,
    new_encodings,
    refused,
    row_groups,
    write_file,
    written_leaves,
)
from puredelta.worker.files import MEGABYTE, DataPath, label
from puredelta.worker.range_file import fetched_ahead
from puredelta.worker.read_rows import (
    Mask,
    OnlySparkError,
    OpenFile,
    dropped_rows,
    opened,
    read_batches,
    require_kept_rules,
    require_read_alike,
    unfaithful,
)
from puredelta.worker.small_files import FooterTemplate, MergedParquet
from puredelta.worker.wire import LIMITS, LIMITS_CODEC, Fields, Limits, codec_of

_CODECS = {"UNCOMPRESSED": "none"} | {
    name: name.lower() for name in ("SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4")
}

_OF_FRAMES = (b"org.apache.spark.sql.parquet.row.metadata", b"org.apache.spark.version")
_LARGE_GROUP_BYTES = 8 * MEGABYTE
"""A row group of so many stored bytes is read as fast as a larger one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTask:
    """Copy ``source`` without the rows of a bitmap to a new file in ``directory``."""

    ordinal: int
    source: DataPath
    directory: DataPath
    name_prefix: str
    words: bytes
    """Little-endian int64: which runs of 64 rows lose a row, ascending."""
    bits: bytes
    """Little-endian uint64 per word: a set bit is a row to drop."""
    row_id_column: str | None = None
    """Where rows keep their ids, if the table tracks rows: row ``n`` without one there has
    ``base_row_id + n``.
    """
    base_row_id: int | None = None
    version_column: str | None = None
    """Where rows keep the version that changed them, ``default_version`` if none is there."""
    default_version: int | None = None
    codec: str | None = None
    """Of the new file, by Arrow's name; ``None``: that of the old one."""
    group: int | None = None
    """Small files of one group, if they are alike, become one."""
    columns: tuple[str, ...] | None = None
    """If given, the files of the group have to become one, and to have no other columns."""


REWRITE_TASKS = codec_of(RewriteTask)


def rewrite(message: tuple[Fields, Sequence[Fields]]) -> list[Fields]:
    """Carry out the fields of `RewriteTask`s under those of `Limits`; return `FileAnswer`s' fields.

    Tasks of a group, if they follow each other, are carried out together.
    """
    limits = LIMITS_CODEC.decode(message[0])
    tasks = [REWRITE_TASKS.decode(fields) for fields in message[1]]
    are_alone = all(task.group is None for task in tasks)
    units = itertools.groupby(tasks, key=lambda t: -1 - t.ordinal if t.group is None else t.group)
    # A file is opened before the next one is asked for: what came ahead is forgotten at the end.
    with closing(fetched_ahead(tasks, lambda task: task.source, whole=are_alone)) as ahead:
        answers = [
            answer
            for _, unit in units
            for answer in rewrite_together([next(ahead) for _ in unit], limits)
        ]
    return [FILE_ANSWERS.encode(answer) for answer in answers]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileValues:
    """New values of rows that stay in a file."""

    source: OpenFile
    """The file."""
    schema: pa.Schema
    """The columns that change, in the types of the table."""
    values: NewValues
    touched: tuple[bytes, bytes]
    """Words and bits of the rows that get values, and of those that leave."""

    def of_group(self, source: OpenFile, group: int, first_row: int) -> GroupValues:
        """Return the positions and values of a row group."""
        end = first_row + source.metadata.row_group(group).num_rows
        at, rows = self.values(GroupRows(source=source, group=group, first_row=first_row, end=end))
        values = {f.name: whole_column(rows[f.name], f.type) for f in self.schema}
        for field in source.schema_arrow:
            if field.name in values and not field.nullable and values[field.name].null_count:
                raise OnlySparkError(f"a NULL in column {field.name}, where the file has none")
        return GroupValues(at, values)


@dataclass(frozen=True, slots=True)
class GroupValues:
    """New values of rows of a row group."""

    at: Positions
    """Ascending positions in the file."""
    values: Mapping[str, pa.Array]

    def put_in(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        """Return a batch of the rows from ``first_row`` on with the values of its rows."""
        low, high = np.searchsorted(self.at, [first_row, first_row + batch.num_rows])
        if low == high:
            return batch
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        places = self.at[low:high] - first_row
        for name, values in self.values.items():
            columns[name] = replaced(columns[name], places, values.slice(low, high - low))
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def rewrite_with_values(
    update: FileUpdate,
    schema: pa.Schema,
    values: NewValues,
    limits: Limits = LIMITS,
    *,
    reads: pa.Schema | None = None,
) -> FileAnswer:
    """Write a file again without the rows that leave it, and with new values in others.

    The columns of ``schema`` change, ``reads`` are further ones that ``values`` reads. Other ways
    to store them than the table has now are refused.
    """
    words, bits = update.leaving
    task = RewriteTask(
        ordinal=update.ordinal,
        source=update.source,
        directory=update.directory,
        name_prefix=update.name_prefix,
        words=words,
        bits=bits,
    )
    try:
        source = opened(update.source, describes=True)
        for one in (schema,) if reads is None else (schema, reads):
            require_known(source, one, limits)
        _require_stored(source, schema)
        _require_rows(source, update)
        changes = FileValues(source=source, schema=schema, values=values, touched=update.touched)
        (answer,) = rewrite_together([task], limits, changes=changes)
    except (OnlySparkError, MemoryError) as failure:
        return refused(update.ordinal, f"{label(update.source)}: {failure}")
    return answer


def _require_stored(source: OpenFile, schema: pa.Schema) -> None:
    """Refuse a file that lacks a column, or stores it in another type."""
    stored = source.schema_arrow
    for field in schema:
        place = stored.get_field_index(field.name)
        if place < 0 or stored.field(place).type != field.type:
            raise OnlySparkError(f"column {field.name} is stored in another way than new values")


def _require_rows(source: OpenFile, update: FileUpdate) -> None:
    """Refuse a file that does not have all rows that change."""
    num_rows = int(source.metadata.num_rows)
    leaving, touched = (
        0 if flags is None else int(np.count_nonzero(flags))
        for flags in (
            dropped_rows(*update.leaving, 0, num_rows),
            dropped_rows(*update.touched, 0, num_rows),
        )
    )
    if touched - leaving != update.num_updates:
        raise OnlySparkError(f"{touched - leaving} new rows instead of {update.num_updates}")


def rewrite_together(
    tasks: Sequence[RewriteTask], limits: Limits = LIMITS, *, changes: FileValues | None = None
) -> list[FileAnswer]:
    """Copy the kept rows of several files, one after the other, into one new file; those of a
    single one with ``changes``.

    Where files differ in columns, codec or metadata another one begins. Memory is bounded by one
    row group's share. What another way of copying could still do (storage this worker cannot see,
    a file that Arrow cannot read, a type that does not survive it) is answered as a refusal; a full
    disk is raised.
    """
    if len(tasks) > 1 and (merged := merge_small(tasks, limits)) is not None:
        if merged[0].has_others:
            return [merged[0].refusal]
        return [_rewritten_at_once(tasks, *merged, limits)]
    files: list[_File] = []
    for task in tasks:
        try:
            source = opened(task.source, describes=True) if changes is None else changes.source
            require_read_alike(source, limits.only_spark)
            require_kept_rules(source, limits)
            _require_memory(source, limits)
        except OnlySparkError as failure:
            return [refused(task.ordinal, f"{label(task.source)}: {failure}")]
        if (reason := unfaithful(source)) is not None:
            return [refused(task.ordinal, f"{label(task.source)}: {reason}")]
        files.append(_File(task=task, source=source, changes=changes))
    by_form = itertools.groupby(files, key=_File.form if len(files) > 1 else id)
    alike = [list(some) for _, some in by_form]
    is_refused = len(alike) > 1 or files[0].has_others
    if is_refused and tasks[0].columns is not None:
        return [files[0].refusal]
    return [_rewritten(some, limits) for some in alike]


def _require_memory(source: OpenFile, limits: Limits) -> None:
    """Refuse a file with so many columns that their open pages are more than a copy may hold."""
    left = limits.copy_bytes - limits.row_bytes
    if (size := open_bytes(source.metadata, left)) > left:
        raise OnlySparkError(f"its {source.metadata.num_columns} columns take {size} bytes at once")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """An open file, and what becomes of it."""

    task: RewriteTask
    source: OpenFile
    changes: FileValues | None = None

    def form(self) -> tuple[bytes, list[str]]:
        """Return what files must share to become one."""
        codecs = column_codecs(self.source)
        if self.task.columns is None:
            return self.source.schema_arrow.serialize().to_pybytes(), codecs
        codecs = [] if self.task.codec is not None else sorted({*codecs})
        return self.schema.serialize().to_pybytes(), codecs

    @property
    def schema(self) -> pa.Schema:
        """The schema of the new file: the file's own, with the columns of row tracking.

        A file of several takes NULL everywhere: whether a frame had one is said of one write.
        """
        own = hidden_schema(target_schema(self.source), self.task)
        return own if self.task.columns is None else _with_null(own)

    @property
    def has_others(self) -> bool:
        """Whether the file has a column that it may not have."""
        wanted = self.task.columns
        return wanted is not None and not {*self.source.schema_arrow.names} <= {*wanted}

    @property
    def refusal(self) -> FileAnswer:
        """The answer where the file cannot become one with the others of its group."""
        return refused(self.task.ordinal, f"{label(self.task.source)}: other columns or codecs")

    @property
    def num_rows(self) -> int:
        return int(self.source.metadata.num_rows)

    def kept(self) -> list[Kept]:
        """Return what each row group keeps as it is."""
        kept = kept_of_groups(self.source, self.task.words, self.task.bits)
        if self.changes is None:
            return kept
        untouched = kept_of_groups(self.source, *self.changes.touched)
        return [
            Kept.SOME_ROWS if one is Kept.EVERY_ROW and other is not one else one
            for one, other in zip(kept, untouched, strict=True)
        ]


def _rewritten(files: Sequence[_File], limits: Limits) -> FileAnswer:
    # A file without row groups says nothing of how its rows were written.
    first = next((file for file in files if file.source.num_row_groups), files[0])
    tables: Iterable[pa.Table]
    if (len(files) == 1 or first.task.columns is not None) and (
        done := _copied_groups(files, limits)
    ) is not None:
        return replace(
            done,
            physical_rows=sum(one.num_rows for one in files),
            others=tuple(one.task.ordinal for one in files[1:]),
        )
    if len(files) == 1:
        groups = (map(MaskedBatch.kept, group) for group in _groups(first, limits))
        tables = itertools.chain.from_iterable(row_groups(group, limits=limits) for group in groups)
    else:
        every = itertools.chain.from_iterable(_groups(file, limits) for file in files)
        batches = coalesced(itertools.chain.from_iterable(every), limits=limits)
        tables = row_groups(batches, limits=limits)
    copied = CopiedGroups()
    for file in files:
        copied.add(file.source.metadata, range(file.source.num_row_groups))
    answer = _written(first, tables, copied, limits, files=len(files))
    return replace(
        answer,
        physical_rows=sum(file.num_rows for file in files),
        others=tuple(file.task.ordinal for file in files if file is not first),
    )


def _copied_groups(files: Sequence[_File], limits: Limits) -> FileAnswer | None:
    """Copy the row groups that keep every row as bytes; ``None``: there is none, or no way to.

    Row groups of several files are copied if all are large: many small ones are read slowly.
    """
    first = files[0]
    if any(one.task.row_id_column or one.task.version_column for one in files):
        return None
    kept = [one.kept() for one in files]
    if not any(Kept.EVERY_ROW in groups for groups in kept):
        return None
    codec = first.task.codec
    if codec is not None and any({*column_codecs(one.source)} != {codec} for one in files):
        return None
    if len(files) > 1 and not _are_large(files):
        return None
    named = codec or _codec(first.source)
    return GroupCopy(
        order=first.task,
        files=[
            CopiedFile(
                path=one.task.source,
                source=one.source,
                kept=groups,
                tables=functools.partial(_kept_tables, one, limits),
            )
            for one, groups in zip(files, kept, strict=True)
        ],
        schema=target_schema(first.source),
        codec=named,
        options=lambda rows: {
            "compression": named,
            **_writer_options(first.source, limits, rows, files=1, keeps_codecs=codec is None),
        },
    ).write()


def _kept_tables(file: _File, limits: Limits, number: int) -> Iterator[pa.Table]:
    counts = [file.source.metadata.row_group(n).num_rows for n in range(number)]
    rows = _group(file, number, sum(counts), limits)
    return row_groups(map(MaskedBatch.kept, rows), limits=limits)


def _are_large(files: Sequence[_File]) -> bool:
    """Tell whether files of one writer have large row groups alone.

    The footer of the new file names one writer, and readers trust bounds by it.
    """
    footers = [one.source.metadata for one in files]
    if len({footer.created_by for footer in footers}) > 1 or not footers[0].num_row_groups:
        return False
    groups = [footer.row_group(n) for footer in footers for n in range(footer.num_row_groups)]
    sizes = [
        sum(group.column(n).total_compressed_size for n in range(group.num_columns))
        for group in groups
    ]
    return min(sizes, default=0) >= _LARGE_GROUP_BYTES


def _written(
    first: _File, tables: Iterable[pa.Table], copied: CopiedGroups, limits: Limits, *, files: int
) -> FileAnswer:
    return write_file(
        first.task,
        tables,
        schema=first.schema,
        codec=first.task.codec or _codec(first.source),
        options=functools.partial(
            _writer_options,
            first.source,
            limits,
            files=files,
            keeps_codecs=first.task.codec is None,
        ),
        copied=copied,
    )


def merge_small(tasks: Sequence[RewriteTask], limits: Limits) -> tuple[_File, MergedParquet] | None:
    """Merge small files that can be decoded as one; ``None`` if one of them is unlike the first.

    Rows whose ids and versions are written down need to know their file: those are not merged.
    """
    task = tasks[0]
    if not limits.small_file_rows or task.row_id_column or task.version_column:
        return None
    try:
        template = FooterTemplate.of(task.source, None)
        if template is None or not template.has_one_codec:
            return None
        first = _File(task=task, source=OpenFile(task.source))
        first.source.require_sound()
        if unfaithful(first.source) is not None:
            return None
        require_read_alike(first.source, limits.only_spark)
        require_kept_rules(first.source, limits)
        merged = MergedParquet(template, rows_max=limits.small_file_rows)
        all_added = all(merged.add_path(one.source) for one in tasks)
    except (OSError, pa.ArrowException, OnlySparkError):
        return None  # opening them one by one says what is wrong
    return (first, merged) if all_added else None


def _rewritten_at_once(
    tasks: Sequence[RewriteTask], first: _File, merged: MergedParquet, limits: Limits
) -> FileAnswer:
    batches = coalesced(_masked(tasks, merged, limits), limits=limits)
    copied = CopiedGroups()
    copied.add(first.source.metadata, [0] * len(tasks))  # the first speaks for all
    tables = row_groups(batches, limits=limits)
    answer = _written(first, tables, copied, limits, files=len(tasks))
    others = tuple(task.ordinal for task in tasks[1:])
    return replace(answer, physical_rows=merged.num_rows, others=others)


def _masked(
    tasks: Sequence[RewriteTask], merged: MergedParquet, limits: Limits
) -> Iterator[MaskedBatch]:
    """Yield the rows of merged files, and which of them are kept."""
    kept: Mask = np.ones(merged.num_rows, np.bool_)
    first_row = 0
    for task, num_rows in zip(tasks, merged.rows_of_files, strict=True):
        dropped = dropped_rows(task.words, task.bits, 0, num_rows)
        if dropped is not None:
            kept[first_row : first_row + num_rows] = ~dropped
        first_row += num_rows
    first_row = 0
    for batch in read_batches(merged.opened(), None, batch_rows=limits.read_rows):
        yield MaskedBatch(batch, kept[first_row : first_row + batch.num_rows])
        first_row += batch.num_rows
    if first_row != merged.num_rows:
        raise OnlySparkError(f"{first_row} rows where footers say {merged.num_rows}")


def _groups(file: _File, limits: Limits) -> Iterator[Iterator[MaskedBatch]]:
    """Yield the rows of each row group in the schema of the new file, and which are kept."""
    first_row = 0
    cast = None if file.task.columns is None else functools.partial(_in_schema, file.schema)
    for group in range(file.source.num_row_groups):
        rows = _group(file, group, first_row, limits)
        yield rows if cast is None else map(cast, rows)
        first_row += file.source.metadata.row_group(group).num_rows


def _in_schema(schema: pa.Schema, rows: MaskedBatch) -> MaskedBatch:
    return MaskedBatch(rows.batch.cast(schema), rows.mask)


def _group(file: _File, group: int, first_row: int, limits: Limits) -> Iterator[MaskedBatch]:
    task = file.task
    changed = None
    if file.changes is not None:
        changed = file.changes.of_group(file.source, group, first_row)
    for batch in read_batches(file.source, [group], batch_rows=limits.read_rows):
        dropped = dropped_rows(task.words, task.bits, first_row, batch.num_rows)
        known = with_hidden_columns(batch, task, first_row)
        known = known if changed is None else changed.put_in(known, first_row)
        first_row += batch.num_rows
        yield MaskedBatch(known, None if dropped is None else ~dropped)


def hidden_schema(schema: pa.Schema, task: RewriteTask) -> pa.Schema:
    """Append the columns of row tracking, unless the file has them already."""
    for name in (task.row_id_column, task.version_column):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64()))
    return schema


def with_hidden_columns(batch: pa.RecordBatch, task: RewriteTask, first_row: int) -> pa.RecordBatch:
    """Write down what the log says of rows that do not say it themselves.

    In another file the log would say something else of them.
    """
    if task.row_id_column is not None:
        ids = None
        if task.base_row_id is not None:
            start = task.base_row_id + first_row
            ids = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64))
        batch = _filled(batch, task.row_id_column, ids)
    if task.version_column is not None:
        version = pa.scalar(task.default_version, pa.int64())
        batch = _filled(batch, task.version_column, pa.repeat(version, batch.num_rows))
    return batch


def _filled(batch: pa.RecordBatch, name: str, values: pa.Array | None) -> pa.RecordBatch:
    """Put values where a column has none; without the column there is none anywhere."""
    if values is None:
        values = pa.nulls(batch.num_rows, pa.int64())
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if name in columns:
        columns[name] = pc.coalesce(columns[name], values)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)
    schema = batch.schema.append(pa.field(name, pa.int64()))
    return pa.RecordBatch.from_arrays([*columns.values(), values], schema=schema)


def _with_null(schema: pa.Schema) -> pa.Schema:
    """Return a schema with NULL everywhere, without what Spark says of the frame."""
    metadata = {k: v for k, v in (schema.metadata or {}).items() if k not in _OF_FRAMES}
    fields = [
        field.with_type(_taking_null(field.type)).with_nullable(nullable=True) for field in schema
    ]
    return pa.schema(fields, metadata or None)


def _taking_null(kind: pa.DataType) -> pa.DataType:
    def free(field: pa.Field) -> pa.Field:
        return field.with_type(_taking_null(field.type)).with_nullable(nullable=True)

    if pa.types.is_struct(kind):
        return pa.struct([free(field) for field in kind])
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_taking_null(kind.key_field.type))
        return pa.map_(key, free(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(free(kind.value_field))
    return kind


def target_schema(source: OpenFile) -> pa.Schema:
    """Return the Arrow schema to write: the file's own, with INT96 marked as instants."""
    schema: pa.Schema = source.schema_arrow
    leaves = source.leaves()
    instants = {leaf.path.split(".", 1)[0] for leaf in leaves if leaf.physical_type == "INT96"}
    for index, field in enumerate(schema):
        if field.name in instants:
            schema = schema.set(index, field.with_type(_as_instant(field.type)))
    return schema


def _as_instant(kind: pa.DataType) -> pa.DataType:
    """Give the zone UTC to every zone-less timestamp within ``kind``."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC") if kind.tz is None else kind
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_as_instant(f.type)) for f in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_as_instant(key.type)), item.with_type(_as_instant(item.type)))
    if pa.types.is_list(kind):
        value = kind.value_field
        return pa.list_(value.with_type(_as_instant(value.type)))
    return kind


def _writer_options(
    source: OpenFile, limits: Limits, rows: pa.Table, *, files: int, keeps_codecs: bool
) -> dict[str, Any]:
    """Choose what the old file chose: encodings that were worth it, page index, decimals, Bloom
    filters beside those that the table wants.

    ``files``: the number of files whose rows the new one has; ``keeps_codecs``: of every column.
    """
    if files > 1:
        encodings = new_encodings(rows, like=source.metadata, files=files)
    else:
        encodings = copied_encodings(source.metadata, rows)
    codecs = column_codecs(source)
    if keeps_codecs and len(set(codecs)) > 1:
        paths = (path for path, _ in written_leaves(rows))
        encodings["compression"] = dict(zip(paths, codecs, strict=False))
    rates = {**dict(filter_rates(source.metadata)), **dict(limits.filters)}
    return {
        **encodings,
        **filter_options(rates.items(), rows.num_rows),
        "store_schema": b"ARROW:schema" in (source.metadata.metadata or {}),
        **known_options(
            store_decimal_as_integer=True,
            write_page_index=source.metadata.row_group(0).column(0).has_column_index,
        ),
    }


def column_codecs(source: OpenFile) -> list[str]:
    """Return the codec of each leaf column, by Arrow's name; nothing of a file without rows."""
    if source.num_row_groups == 0:
        return []
    group = source.metadata.row_group(0)
    chunks = (group.column(n) for n in range(group.num_columns))
    return [_CODECS.get(chunk.compression, "snappy") for chunk in chunks]


def _codec(source: OpenFile) -> str:
    """Return the codec that names a file: of most of its columns."""
    counted = Counter(column_codecs(source))
    return counted.most_common(1)[0][0] if counted else "none"
