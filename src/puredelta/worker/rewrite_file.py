"""The code that copies one data file without some of its rows, inside a Spark worker.

It is shipped by value and knows the standard library, numpy, pyarrow and modules like it only:
executors need no puredelta. No expression is evaluated; what stays is copied column by column in
Arrow, so order, row groups, codecs, dictionaries, field ids and the key-value metadata of
the old file (Spark's schema, calendar marks) live on. INT96 timestamps carry no mark of being
instants: they get one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.dictionaries import (
    kept_dictionaries,
    saving_dictionaries,
    worthwhile_dictionaries,
)
from puredelta.worker.merged_parquet import FooterTemplate, MergedParquet
from puredelta.worker.read_rows import (
    Mask,
    OnlySparkError,
    OpenFile,
    dropped_rows,
    opened,
    read_batches,
    unfaithful,
)
from puredelta.worker.write_file import (
    ANSWER_SCHEMA,
    FileAnswer,
    Part,
    as_tuples,
    grouped,
    known_options,
    merged,
    refused,
    write_file,
)

_CODECS = frozenset({"SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"})
ORDER_SCHEMA = pa.schema(
    [
        ("ordinal", pa.int32()),
        ("source", pa.string()),
        ("directory", pa.string()),
        ("name_prefix", pa.string()),
        ("words", pa.binary()),
        ("bits", pa.binary()),
        ("row_id_column", pa.string()),
        ("base_row_id", pa.int64()),
        ("version_column", pa.string()),
        ("default_version", pa.int64()),
        ("group", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTask:
    """Copy ``source`` without the rows of a bitmap to a new file in ``directory``."""

    ordinal: int
    source: str
    directory: str
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
    group: int | None = None
    """Small files of one group, if they are alike, become one."""


def split_file(order: RewriteTask) -> FileAnswer:
    """Copy the rows of ``order.source`` that stay; memory is bounded by one row group's share.

    What another way of copying could still do (storage this worker cannot see, a file that
    Arrow cannot read, a type that does not survive it) is answered as a refusal; a full disk
    is raised.
    """
    (answer,) = split_together([order])
    return answer


def split_together(orders: Sequence[RewriteTask]) -> list[FileAnswer]:
    """Copy what stays of several files, one after the other, into one new file.

    Where files differ in columns, codec or metadata another one begins. Memory and refusals are
    those of `split_file`.
    """
    if len(orders) > 1 and (joined := _joined(orders)) is not None:
        return [_copied_at_once(orders, *joined)]
    files: list[_File] = []
    for order in orders:
        try:
            source = opened(order.source)
        except OnlySparkError as failure:
            return [refused(order.ordinal, failure)]
        if (reason := unfaithful(source)) is not None:
            return [refused(order.ordinal, f"{order.source}: {reason}")]
        files.append(_File(order=order, source=source))
    alike = itertools.groupby(files, key=_File.form if len(files) > 1 else id)
    return [_copied(list(some)) for _, some in alike]


@dataclass(frozen=True, slots=True)
class _File:
    """An open file, and what becomes of it."""

    order: RewriteTask
    source: OpenFile

    def form(self) -> tuple[bytes, str]:
        """Return what files must share to become one."""
        return self.source.schema_arrow.serialize().to_pybytes(), _codec(self.source)

    @property
    def num_rows(self) -> int:
        return int(self.source.metadata.num_rows)


def _copied(files: Sequence[_File]) -> FileAnswer:
    # A file without row groups says nothing of how its rows were written.
    first = next((file for file in files if file.source.num_row_groups), files[0])
    tables: Iterable[pa.Table]
    if len(files) == 1:
        groups = (map(Part.kept, group) for group in _groups(first))
        tables = itertools.chain.from_iterable(map(grouped, groups))
    else:
        every = itertools.chain.from_iterable(map(_groups, files))
        tables = grouped(merged(itertools.chain.from_iterable(every)))
    answer = _written(first, tables, grows=len(files) > 1)
    return replace(
        answer,
        physical_rows=sum(file.num_rows for file in files),
        others=tuple(file.order.ordinal for file in files if file is not first),
    )


def _written(first: _File, tables: Iterable[pa.Table], *, grows: bool) -> FileAnswer:
    return write_file(
        first.order,
        tables,
        schema=hidden_schema(target_schema(first.source), first.order),
        codec=_codec(first.source),
        options=functools.partial(_writer_options, first.source, grows=grows),
    )


def _joined(orders: Sequence[RewriteTask]) -> tuple[_File, MergedParquet] | None:
    """Take small files that can be decoded as one; ``None`` if one of them is unlike the first.

    Rows that are told their ids and versions need to know their file: those are not joined.
    """
    order = orders[0]
    if order.row_id_column is not None or order.version_column is not None:
        return None
    try:
        likeness = FooterTemplate.of(order.source, None)
        if likeness is None or not likeness.has_one_codec:
            return None
        first = _File(order=order, source=OpenFile(order.source))
        if unfaithful(first.source) is not None:
            return None
        files = MergedParquet(likeness)
        taken = all(files.add_path(one.source) for one in orders)
    except (OSError, pa.ArrowException):
        return None  # whoever opens them one by one says what is wrong
    return (first, files) if taken else None


def _copied_at_once(
    orders: Sequence[RewriteTask], first: _File, files: MergedParquet
) -> FileAnswer:
    answer = _written(first, grouped(merged(_parts(orders, files))), grows=True)
    others = tuple(order.ordinal for order in orders[1:])
    return replace(answer, physical_rows=files.num_rows, others=others)


def _parts(orders: Sequence[RewriteTask], files: MergedParquet) -> Iterator[Part]:
    """Yield the rows of joined files, and which of them stay."""
    stays: Mask = np.ones(files.num_rows, np.bool_)
    first_row = 0
    for order, num_rows in zip(orders, files.rows_of_files, strict=True):
        dropped = dropped_rows(order.words, order.bits, 0, num_rows)
        if dropped is not None:
            stays[first_row : first_row + num_rows] = ~dropped
        first_row += num_rows
    first_row = 0
    for batch in read_batches(files.opened(), None):
        yield Part(batch, stays[first_row : first_row + batch.num_rows])
        first_row += batch.num_rows
    if first_row != files.num_rows:
        raise OnlySparkError(f"{first_row} rows where footers say {files.num_rows}")


def _groups(file: _File) -> Iterator[Iterator[Part]]:
    """Yield the rows of each row group, and which of them stay."""
    first_row = 0
    for group in range(file.source.num_row_groups):
        yield _group(file.source, file.order, group, first_row)
        first_row += file.source.metadata.row_group(group).num_rows


def _group(source: OpenFile, order: RewriteTask, group: int, first_row: int) -> Iterator[Part]:
    for batch in read_batches(source, [group]):
        dropped = dropped_rows(order.words, order.bits, first_row, batch.num_rows)
        known = with_hidden_columns(batch, order, first_row)
        first_row += batch.num_rows
        yield Part(known, None if dropped is None else ~dropped)


def hidden_schema(schema: pa.Schema, order: RewriteTask) -> pa.Schema:
    """Append the columns of row tracking, unless the file has them already."""
    for name in (order.row_id_column, order.version_column):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64()))
    return schema


def with_hidden_columns(
    batch: pa.RecordBatch, order: RewriteTask, first_row: int
) -> pa.RecordBatch:
    """Write down what the log says of rows that do not say it themselves.

    In another file the log would say something else of them.
    """
    if order.row_id_column is not None:
        ids = None
        if order.base_row_id is not None:
            start = order.base_row_id + first_row
            ids = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64))
        batch = _filled(batch, order.row_id_column, ids)
    if order.version_column is not None:
        version = pa.scalar(order.default_version, pa.int64())
        batch = _filled(batch, order.version_column, pa.repeat(version, batch.num_rows))
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


def _writer_options(source: OpenFile, rows: pa.Table, *, grows: bool) -> dict[str, Any]:
    """Choose what the old file chose: dictionaries that were worth it, page index, decimals.

    ``grows``: the new file has rows of others, too.
    """
    if grows:
        dictionaries = worthwhile_dictionaries(rows, kept=kept_dictionaries(source.metadata))
    else:
        dictionaries = saving_dictionaries(source.metadata)
    return {
        "use_dictionary": dictionaries or False,
        "store_schema": b"ARROW:schema" in (source.metadata.metadata or {}),
        **known_options(
            store_decimal_as_integer=True,
            write_page_index=source.metadata.row_group(0).column(0).has_column_index,
        ),
    }


def _codec(source: OpenFile) -> str:
    if source.num_row_groups == 0:
        return "none"
    codec = str(source.metadata.row_group(0).column(0).compression)
    if codec == "UNCOMPRESSED":
        return "none"
    return codec.lower() if codec in _CODECS else "snappy"


# --- the two ways into a worker: plain tuples (RDD), Arrow batches (sessions without RDDs) ----


def rewrite_tuples(orders: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Answer the fields of each `RewriteTask` with the fields of a `FileAnswer`.

    Orders of a group, if they follow each other, are carried out together.
    """
    every = [RewriteTask(**dict(zip(ORDER_SCHEMA.names, order, strict=True))) for order in orders]
    units = itertools.groupby(every, key=lambda o: -1 - o.ordinal if o.group is None else o.group)
    return as_tuples(answer for _, unit in units for answer in split_together(list(unit)))


def rewrite_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Answer every order of the batches (`ORDER_SCHEMA`) with one row of `ANSWER_SCHEMA`."""
    for batch in batches:
        for row in batch.to_pylist():
            answer = split_file(RewriteTask(**row))
            values = {name: [getattr(answer, name)] for name in ANSWER_SCHEMA.names}
            yield pa.RecordBatch.from_pydict(values, schema=ANSWER_SCHEMA)
