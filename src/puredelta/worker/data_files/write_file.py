"""New data files of Arrow rows, with their dictionaries, inside a Spark worker.

A task may run twice, at once or after a failure: every attempt writes a file of its own
name, and only a name that was *returned* ever becomes part of a table.

Traps this module knows:

* Without ``use_dictionary`` limited to columns that are worth one
  (`puredelta.worker.data_files.write_file`), parquet-cpp tries one for every column: three
  times as slow, and files a quarter larger.
* parquet-cpp leaves NaN out of float bounds: the columns that hold one are reported, so
  that their bounds are not taken for true.

A dictionary of a column whose values are nearly all different is as large as the column, and
making it takes more than half of the time of writing a file. A dictionary of few long values
makes a file hundreds of times smaller. Writers differ in what they do about that: parquet-mr looks
at the first rows, parquet-cpp only gives up at a megabyte. A copy has the dictionaries that made
the old file smaller, as large as they were, and its DELTA and BYTE_STREAM_SPLIT encodings.
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
from puredelta.worker.read_rows import Mask, OnlySparkError
from puredelta.worker.scan.file_columns import parquet_schema, plain_schema
from puredelta.worker.wire import LIMITS, Limits, codec_of

OUT_OF_REACH = (FileNotFoundError, PermissionError, NotADirectoryError)
"""What storage raises that this worker cannot see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """The result of one order to write a file. ``name`` is ``None`` where there was no row."""

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


_SAMPLE_ROWS = 20_000
"""What parquet-mr looks at: its first page (``parquet.page.row.count.limit``)."""
_GLANCE_ROWS = 2_000
_DIFFERENT_SHARE = 39 / 40
"""Where more of the first rows at a glance differ, a dictionary saves next to nothing."""
_SAVED_SHARE = 1 / 8
"""What a dictionary must save of a column that is there to be seen, to be worth its time."""
_KNOWN_SHARE_MAX = 5 / 4
"""How much of its plain values a column with a useless dictionary takes at the most."""
_GROWTH = 4
"""How much larger than in the first rows a dictionary may be in a row group."""
_GROUPS_MAX = 16
"""Row groups whose column chunks are looked at: the others are taken to be like them."""
_DICTIONARY_BYTES = 1 << 20
"""The size from which on parquet-cpp gives a dictionary up, unless it is told another."""
_ENCODINGS = ("DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
_SPLIT = "BYTE_STREAM_SPLIT"
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_VALUE_BYTES = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_SPLIT_TYPES = frozenset({"FLOAT", "DOUBLE"})
"""Arrow 17 splits the bytes of these; of whole numbers newer ones do."""
_INT32_DIGITS, _INT64_DIGITS = 9, 18
"""Up to how many digits a decimal is stored as an integer."""


def kept_dictionaries(footer: pq.FileMetaData) -> list[str]:
    """Return the columns whose dictionaries a file's writer kept to the end.

    What grew too large was given up, and the pages after it are PLAIN; trying again would only
    cost time. The first row group speaks for all.
    """
    return [chunk.path_in_schema for chunk in _chunks(footer, 0) if _is_kept(set(chunk.encodings))]


def saving_dictionaries(footer: pq.FileMetaData, rows: pa.Table) -> list[str]:
    """Return the columns whose dictionaries make a file smaller; ``rows`` are some of its rows.

    What a column takes in the file is compared with what its values would take one after the
    other: of texts their length in ``rows`` says that.
    """
    return [column.path for column in _columns(footer, rows) if column.dictionary_saves()]


def copied_encodings(footer: pq.FileMetaData, rows: pa.Table) -> dict[str, Any]:
    """Return the options of Arrow's writer for a copy of a file; ``rows`` are the first of it.

    The copy of a column is not much larger than the column was, whatever made it small.
    """
    columns = list(_columns(footer, rows))
    dictionaries = [column for column in columns if column.dictionary_saves()]
    others = {
        column.path: column.encoding
        for column in columns
        if column.encoding is not None and column not in dictionaries
    }
    largest = max((column.chunk_bytes_max for column in dictionaries), default=0)
    return {
        "use_dictionary": [column.path for column in dictionaries] or False,
        "dictionary_pagesize_limit": max(_DICTIONARY_BYTES, largest),
        **({"column_encoding": others} if others else {}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A leaf column as the footer of a file describes it, in some row groups."""

    path: str
    has_dictionary: bool
    encoding: str | None
    """An encoding without a dictionary that makes values smaller, if it has one."""
    stored_bytes: int
    """Of its encoded values, before they are compressed."""
    plain_bytes: float | None
    """Of its values one after the other; None where that is not known."""
    is_measured: bool
    """Whether the length of its values was measured in some rows."""
    chunk_bytes_max: int

    def dictionary_saves(self) -> bool:
        """Return whether it has a dictionary that is worth its time."""
        if not self.has_dictionary or self.plain_bytes is None:
            return self.has_dictionary
        if self.is_measured and self.stored_bytes > self.plain_bytes * _KNOWN_SHARE_MAX:
            return True  # values elsewhere are longer than those that were measured
        return self.stored_bytes < self.plain_bytes * (1 - _SAVED_SHARE)


def _columns(footer: pq.FileMetaData, rows: pa.Table) -> Iterator[_Column]:
    step = -(-footer.num_row_groups // _GROUPS_MAX)
    groups = [_chunks(footer, n) for n in range(0, footer.num_row_groups, step)]
    leaves = pq.ParquetSchema(footer)
    for n, chunks in enumerate(zip(*groups, strict=True)):
        encodings = {encoding for chunk in chunks for encoding in chunk.encodings}
        num_values = sum(chunk.num_values - _null_count(chunk) for chunk in chunks)
        value_bytes = _value_bytes(leaves.column(n), rows)
        yield _Column(
            path=chunks[0].path_in_schema,
            has_dictionary=bool(encodings & _DICTIONARIES),
            encoding=_encoding(leaves.column(n).physical_type, encodings),
            stored_bytes=sum(chunk.total_uncompressed_size for chunk in chunks),
            plain_bytes=None if value_bytes is None else num_values * value_bytes,
            is_measured=leaves.column(n).physical_type == "BYTE_ARRAY",
            chunk_bytes_max=max(chunk.total_uncompressed_size for chunk in chunks),
        )


def _chunks(footer: pq.FileMetaData, group: int) -> list[pq.ColumnChunkMetaData]:
    described = footer.row_group(group)
    return [described.column(n) for n in range(footer.num_columns)]


def _encoding(physical_type: str, encodings: set[str]) -> str | None:
    """Return the encoding to repeat; levels are RLE, so that of flags tells where PLAIN is none."""
    if physical_type == "BOOLEAN":
        return "RLE" if "RLE" in encodings and "PLAIN" not in encodings else None
    if _SPLIT in encodings:
        return _SPLIT if physical_type in _SPLIT_TYPES else None
    return next((one for one in _ENCODINGS if one in encodings), None)


def _value_bytes(leaf: Any, rows: pa.Table) -> float | None:
    """Return what one value takes in a file without a dictionary; None where it is not known."""
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return float(leaf.length)
    if leaf.physical_type != "BYTE_ARRAY":
        return _VALUE_BYTES.get(leaf.physical_type)
    texts = _leaf_values(rows, str(leaf.path).split("."))
    if texts is None or not len(texts):
        return None
    num_values = len(texts) - texts.null_count
    return texts.nbytes / num_values if num_values else None


def _leaf_values(rows: pa.Table, path: Sequence[str]) -> pa.ChunkedArray | None:
    """Return the values of a leaf column; None where a name has a dot or is there twice."""
    if rows.column_names.count(path[0]) != 1:
        return None
    values = rows.slice(0, _SAMPLE_ROWS)[path[0]]
    for name in path[1:]:
        if pa.types.is_struct(values.type):
            if values.type.get_field_index(name) < 0:
                return None
            values = pc.struct_field(values, name)
        elif pa.types.is_list(values.type) and name not in {"list", "bag", "array"}:
            values = pc.list_flatten(values)
    kind = values.type
    return values if pa.types.is_string(kind) or pa.types.is_binary(kind) else None


def worthwhile_dictionaries(rows: pa.Table, *, kept: Sequence[str] = ()) -> list[str]:
    """Return the columns of a new file whose first rows a dictionary makes smaller.

    This is the rule of parquet-mr (``DictionaryValuesWriter.isCompressionSatisfying``), for files
    that get rows of several others: what small files say of their dictionaries is not true of all
    together. Columns within columns have one if they are among ``kept``.

    Examples:
        >>> rows = pa.table({"key": range(100), "kind": [1, 2] * 50})
        >>> worthwhile_dictionaries(rows, kept=["key"])
        ['kind']
    """
    return list(_dictionary_sizes(rows, kept))


def new_encodings(rows: pa.Table, *, kept: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options of Arrow's writer for a new file, by its first rows.

    The dictionaries are `worthwhile_dictionaries`. They may grow: the first rows are few.
    """
    sizes = _dictionary_sizes(rows, kept)
    largest = max(sizes.values(), default=0) * _GROWTH
    return {
        "use_dictionary": list(sizes) or False,
        "dictionary_pagesize_limit": max(_DICTIONARY_BYTES, largest),
    }


def _dictionary_sizes(rows: pa.Table, kept: Sequence[str]) -> dict[str, int]:
    """Return the bytes of dictionaries in the first rows by column; 0 where they are not known."""
    first = rows.slice(0, _SAMPLE_ROWS)
    plain = [name for name in first.column_names if _is_plain(first[name].type)]
    sizes = {name: size for name in plain if (size := _dictionary_bytes(first[name])) is not None}
    return sizes | {path: 0 for path in kept if path not in plain}


def _is_kept(encodings: set[str]) -> bool:
    if "PLAIN_DICTIONARY" in encodings:
        return "PLAIN" not in encodings
    return "RLE_DICTIONARY" in encodings  # here PLAIN may be the dictionary page itself


def _null_count(chunk: pq.ColumnChunkMetaData) -> int:
    known = chunk.statistics
    return known.null_count if known is not None and known.has_null_count else 0


def _dictionary_bytes(column: pa.ChunkedArray) -> int | None:
    """Return the bytes of a column's dictionary; None where it makes the column no smaller."""
    values = column.drop_null()
    glance = values.slice(0, _GLANCE_ROWS)
    if len(pc.unique(glance)) > _DIFFERENT_SHARE * len(glance):
        return None
    kinds = pc.unique(values)
    place_bits = max(0, len(kinds) - 1).bit_length()
    size = _plain_bytes(kinds)
    return size if size + len(values) * place_bits / 8 < _plain_bytes(values) else None


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether a column's values can be compared and measured here; flags need none."""
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return True
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal128(kind):
        return True
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _plain_bytes(values: pa.Array | pa.ChunkedArray) -> int:
    """Return what values that are not NULL take in a file one after the other."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return int(values.nbytes)  # with an offset of four bytes each, as long as their length
    if pa.types.is_decimal128(kind):
        small, middle = kind.precision <= _INT32_DIGITS, kind.precision <= _INT64_DIGITS
        return (4 if small else 8 if middle else 16) * len(values)
    return max(4, int(kind.bit_width) // 8) * len(values)
