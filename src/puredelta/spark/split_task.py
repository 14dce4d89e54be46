"""The code that copies one data file without some of its rows, inside a Spark worker.

It is shipped by value and knows the standard library, numpy and pyarrow only: executors
need no puredelta. No expression is evaluated; what stays is copied column by column in
Arrow, so order, row groups, codecs, dictionaries, field ids and the key-value metadata of
the old file (Spark's schema, calendar marks) live on.

A task may run twice, at once or after a failure: every attempt writes a file of its own
name, and only a name that was *returned* ever becomes part of a table.

Traps this module knows:

* Without ``use_dictionary`` limited to columns that had one, parquet-cpp tries one for
  every column: slower by half, and files a quarter larger.
* INT96 timestamps are read as nanoseconds, which overflow outside 1677..2262: microseconds
  are asked for, and the instant is marked as one (INT96 carries no such mark).
* parquet-cpp leaves NaN out of float bounds: the columns that hold one are reported, so
  that nobody takes the bounds for true.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH_ROWS = 65_536
GROUP_BYTES_MAX = 128 * 1024 * 1024
"""Decoded bytes after which a row group is closed early: what bounds a task's memory."""

LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_CODECS = frozenset({"SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"})
_UNFAITHFUL_TYPES = frozenset(
    {"ENUM", "BSON", "JSON", "INTERVAL", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)

OUT_OF_REACH = (FileNotFoundError, PermissionError, NotADirectoryError)
"""What storage raises that this worker cannot see."""

Mask: TypeAlias = npt.NDArray[np.bool_]

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
    ]
)
ANSWER_SCHEMA = pa.schema(
    [
        ("ordinal", pa.int32()),
        ("name", pa.string()),
        ("physical_rows", pa.int64()),
        ("kept_rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("footer", pa.binary()),
        ("nan_columns", pa.list_(pa.list_(pa.string()))),
        ("refusal", pa.string()),
    ]
)


class UnreadableError(Exception):
    """Rows that Arrow cannot read; Spark may, or says what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOrder:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswer:
    """What became of one order. ``name`` is ``None`` where no row stayed."""

    ordinal: int
    name: str | None = None
    physical_rows: int = 0
    kept_rows: int = 0
    size_bytes: int = 0
    modified_ms: int = 0
    footer: bytes = b""
    """The new file's footer, as a Parquet file of metadata only."""
    nan_columns: tuple[tuple[str, ...], ...] = ()
    """Float columns, as paths through structs, that hold a NaN: their bounds leave it out."""
    refusal: str | None = None
    """Why this worker cannot do it; nothing was written then."""


def split_file(order: SplitOrder) -> SplitAnswer:
    """Copy the rows of ``order.source`` that stay; memory is bounded by one row group's share.

    What another way of copying could still do (storage this worker cannot see, a file that
    Arrow cannot read, a type that does not survive it) is answered as a refusal; a full disk
    is raised.
    """
    try:
        source = pq.ParquetFile(order.source, coerce_int96_timestamp_unit="us", pre_buffer=False)
    except (OSError, pa.ArrowException) as failure:
        return SplitAnswer(ordinal=order.ordinal, refusal=f"{type(failure).__name__}: {failure}")
    with source:
        if (reason := unfaithful(source)) is not None:
            return SplitAnswer(ordinal=order.ordinal, refusal=f"{order.source}: {reason}")
        name = f"{order.name_prefix}-{uuid.uuid4()}.c000{_extension(source)}"
        target = os.path.join(order.directory, name)  # noqa: PTH118 - text in, text out
        try:
            return _copy(source, order, name, target)
        except (*OUT_OF_REACH, UnreadableError) as failure:
            remove_file(target)
            return SplitAnswer(
                ordinal=order.ordinal, refusal=f"{type(failure).__name__}: {failure}"
            )
        except BaseException:
            remove_file(target)
            raise


def _copy(source: pq.ParquetFile, order: SplitOrder, name: str, target: str) -> SplitAnswer:
    words = np.frombuffer(order.words, "<i8")
    bits = np.frombuffer(order.bits, "<u8")
    schema = hidden_schema(target_schema(source), order)
    footers: list[pq.FileMetaData] = []
    nan_columns: set[tuple[str, ...]] = set()
    kept_rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in _kept_groups(source, order, words, bits):
            rows = table.cast(schema) if table.schema != schema else table
            if writer is None:
                writer = pq.ParquetWriter(
                    target, schema, metadata_collector=footers, **_writer_options(source)
                )
            nan_columns.update(columns_with_nan(rows))
            writer.write_table(rows, row_group_size=rows.num_rows)
            kept_rows += rows.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return SplitAnswer(ordinal=order.ordinal, physical_rows=source.metadata.num_rows)
    written = os.stat(target)  # noqa: PTH116
    return SplitAnswer(
        ordinal=order.ordinal,
        name=name,
        physical_rows=source.metadata.num_rows,
        kept_rows=kept_rows,
        size_bytes=written.st_size,
        modified_ms=written.st_mtime_ns // 1_000_000,
        footer=serialized(footers[0]),
        nan_columns=tuple(sorted(nan_columns)),
    )


def _kept_groups(
    source: pq.ParquetFile,
    order: SplitOrder,
    words: npt.NDArray[np.int64],
    bits: npt.NDArray[np.uint64],
) -> Iterator[pa.Table]:
    """Yield what stays of each row group, a large one in several pieces.

    Raises:
        UnreadableError: Arrow cannot read them.
    """
    first_row = 0
    for group in range(source.num_row_groups):
        parts: list[pa.RecordBatch] = []
        size_bytes = 0
        for batch in readable(
            source.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False)
        ):
            dropped = dropped_rows(words, bits, first_row, batch.num_rows)
            known = with_hidden_columns(batch, order, first_row)
            first_row += batch.num_rows
            kept = known if dropped is None else known.filter(pa.array(~dropped))
            if kept.num_rows == 0:
                continue
            parts.append(kept)
            size_bytes += kept.nbytes
            if size_bytes >= GROUP_BYTES_MAX:
                yield pa.Table.from_batches(parts)
                parts, size_bytes = [], 0
        if parts:
            yield pa.Table.from_batches(parts)


def readable(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as they are read.

    Raises:
        UnreadableError: Arrow cannot read them.
    """
    try:
        yield from batches
    except (OSError, pa.ArrowException) as failure:  # of reading: whoever writes is not in here
        raise UnreadableError(f"{type(failure).__name__}: {failure}") from failure


def dropped_rows(
    words: npt.NDArray[np.int64],
    bits: npt.NDArray[np.uint64],
    first_row: int,
    num_rows: int,
) -> Mask | None:
    """Tell which of the rows from ``first_row`` on have their bit set; ``None`` if none has."""
    first_word, last_word = first_row >> 6, (first_row + num_rows - 1) >> 6
    low, high = np.searchsorted(words, [first_word, last_word + 1])
    if low == high:
        return None
    dense = np.zeros(last_word - first_word + 1, "<u8")
    dense[words[low:high] - first_word] = bits[low:high]
    flags = np.unpackbits(dense.view(np.uint8), bitorder="little").view(np.bool_)
    start = first_row - (first_word << 6)
    return flags[start : start + num_rows]


def hidden_schema(schema: pa.Schema, order: SplitOrder) -> pa.Schema:
    """Append the columns of row tracking, unless the file has them already."""
    for name in (order.row_id_column, order.version_column):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64()))
    return schema


def with_hidden_columns(batch: pa.RecordBatch, order: SplitOrder, first_row: int) -> pa.RecordBatch:
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


def unfaithful(source: pq.ParquetFile) -> str | None:
    """Say why a copy through Arrow would not be the same file; ``None`` if it would."""
    leaves = [source.schema.column(i) for i in range(len(source.schema))]
    for leaf in leaves:
        kind = leaf.logical_type.type
        if kind in _UNFAITHFUL_TYPES:
            return f"column {leaf.path} has logical type {kind}"
    marks = source.metadata.metadata or {}
    if LEGACY_INT96 in marks and any(leaf.physical_type == "INT96" for leaf in leaves):
        return "INT96 timestamps in the hybrid calendar"
    return None


def target_schema(source: pq.ParquetFile) -> pa.Schema:
    """Return the Arrow schema to write: the file's own, with INT96 marked as instants."""
    schema: pa.Schema = source.schema_arrow
    leaves = [source.schema.column(i) for i in range(len(source.schema))]
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


def _writer_options(source: pq.ParquetFile) -> Mapping[str, Any]:
    """Choose what the old file chose: codec, dictionaries, page index, how decimals lie."""
    options: dict[str, Any] = {
        "compression": _codec(source),
        "use_dictionary": dictionary_columns(source.metadata),
        "store_schema": b"ARROW:schema" in (source.metadata.metadata or {}),
    }
    known = inspect.signature(pq.write_table).parameters
    if "store_decimal_as_integer" in known:
        options["store_decimal_as_integer"] = True
    if "write_page_index" in known:
        options["write_page_index"] = source.metadata.row_group(0).column(0).has_column_index
    return options


def _codec(source: pq.ParquetFile) -> str:
    codec = str(source.metadata.row_group(0).column(0).compression)
    if codec == "UNCOMPRESSED":
        return "none"
    return codec.lower() if codec in _CODECS else "snappy"


def _extension(source: pq.ParquetFile) -> str:
    if source.num_row_groups == 0:
        return ".parquet"
    codec = _codec(source)
    return ".parquet" if codec == "none" else f".{codec}.parquet"


def dictionary_columns(footer: pq.FileMetaData) -> list[str] | bool:
    """Return the columns that the original writer found worth a dictionary to the end.

    parquet-mr gives a dictionary up when it grows too large, and the pages after it are
    PLAIN; trying again would only cost time.
    """
    chunks = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    found = [c.path_in_schema for c in chunks if _keeps_dictionary(set(c.encodings))]
    return found or False


def _keeps_dictionary(encodings: set[str]) -> bool:
    if "PLAIN_DICTIONARY" in encodings:
        return "PLAIN" not in encodings
    return "RLE_DICTIONARY" in encodings  # here PLAIN may be the dictionary page itself


def columns_with_nan(rows: pa.Table) -> Iterator[tuple[str, ...]]:
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


def serialized(footer: pq.FileMetaData) -> bytes:
    """Return a footer as a Parquet file of metadata only."""
    out = io.BytesIO()
    footer.write_metadata_file(out)
    return out.getvalue()


def remove_file(path: str) -> None:
    """Delete a file that may be there."""
    try:
        os.remove(path)  # noqa: PTH107
    except OSError:
        return  # best effort: the job removes what no answer names


# --- the two ways into a worker: plain tuples (RDD), Arrow batches (sessions without RDDs) ----


def split_if_able(payload: bytes, orders: Iterable[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Unpack `split_tuples` from ``payload`` and run it; refuse if its libraries are missing.

    Itself it needs the standard library only, so it can be unpacked anywhere.
    """
    try:
        split = pickle.loads(payload)  # noqa: S301 - our own code, on its way to us
    except ImportError as missing:
        reason = f"{type(missing).__name__} on a worker: {missing}"
        return [(order[0], None, 0, 0, 0, 0, b"", (), reason) for order in orders]
    answers: Sequence[tuple[Any, ...]] = split(orders)
    return answers


def split_tuples(orders: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Answer the fields of each `SplitOrder` with the fields of a `SplitAnswer`, in their order.

    Tuples, because a class shipped by value cannot be pickled on its way back.
    """
    answers = [
        split_file(SplitOrder(**dict(zip(ORDER_SCHEMA.names, order, strict=True))))
        for order in orders
    ]
    return [tuple(getattr(answer, name) for name in ANSWER_SCHEMA.names) for answer in answers]


def split_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Answer every order of the batches (`ORDER_SCHEMA`) with one row of `ANSWER_SCHEMA`."""
    for batch in batches:
        for row in batch.to_pylist():
            answer = split_file(SplitOrder(**row))
            values = {name: [getattr(answer, name)] for name in ANSWER_SCHEMA.names}
            yield pa.RecordBatch.from_pydict(values, schema=ANSWER_SCHEMA)
