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

import io
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.worker.bounded_batches import entries_of
from puredelta.worker.file_columns import parquet_schema, plain_schema
from puredelta.worker.files import DataPath, NewFile, joined
from puredelta.worker.read_rows import Mask, OnlySparkError
from puredelta.worker.wire import LIMITS, Limits, codec_of

OUT_OF_REACH = (FileNotFoundError, PermissionError, NotADirectoryError)
"""What storage raises that this worker cannot see."""
_FILTER_BITS = 8
"""A value sets so many bits of a Bloom filter."""
_RATE_MIN, _RATE_MAX = 1e-9, 0.5


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
    unread: tuple[tuple[str, ...], ...] = ()
    """Float columns, as paths through structs, whose values were copied without being read: they
    hold a NaN if their old file did."""
    copied_groups: int = 0
    """Row groups that were copied as bytes."""
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
    copied: CopiedGroups | None = None,
) -> FileAnswer:
    """Write a row group per table, no file if there is none.

    ``codec`` goes by Arrow's name, ``none`` for no compression; ``options`` are others of Arrow's
    writer for the first table, asked for once there is one: ``compression`` wins over ``codec``.
    ``copied`` are the row groups that the rows come from.
    Storage that this worker cannot see, and rows that it cannot read, are answered as a refusal; a
    full disk is raised. Nothing is left then.
    """

    def write(target: NewFile) -> FileAnswer:
        chosen = lambda rows: {"compression": codec, **options(rows)}  # noqa: E731
        return _written(order.ordinal, tables, schema, chosen, target, copied=copied)

    return in_new_file(order, codec, write)


def in_new_file(order: FileOrder, codec: str, write: Callable[[NewFile], FileAnswer]) -> FileAnswer:
    """Write a file of a new name, of which nothing is left after an error.

    ``write`` finishes the file if it has rows; what it raises is handled as by `write_file`.
    """
    extension = ".parquet" if codec == "none" else f".{codec}.parquet"
    name = f"{order.name_prefix}-{uuid.uuid4()}.c000{extension}"
    target = NewFile(joined(order.directory, name))
    try:
        answer = write(target)
    except (*OUT_OF_REACH, OnlySparkError, MemoryError) as failure:
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
    *,
    copied: CopiedGroups | None,
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
            nan_columns.update(columns_with_nan(rows))
            written = rows if stored is plain else rows.cast(stored)
            writer.write_table(written, row_group_size=rows.num_rows)
            num_rows += rows.num_rows
            del table, rows, written  # the next ones are made while these would be held
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return FileAnswer(ordinal=ordinal)
    if copied is not None:
        copied.check(footers[0])
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
        is_large_row = batch.num_rows == 1 and size_bytes + batch.nbytes > limits.row_group_bytes
        if parts and is_large_row:
            yield pa.Table.from_batches(parts)
            parts, size_bytes = [], 0
        parts.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= limits.row_group_bytes:
            yield pa.Table.from_batches(parts)
            parts, size_bytes = [], 0
    if parts:
        yield pa.Table.from_batches(parts)


@dataclass(slots=True)
class CopiedGroups:
    """Row groups that are copied to a new file, as their footers describe them."""

    number: int = 0
    stored_bytes: int = 0

    def add(self, footer: pq.FileMetaData, groups: Iterable[int]) -> None:
        """Add some row groups of a file. The footer has to be sound."""
        for group in groups:
            self.number += 1
            self.stored_bytes += sum(c.total_compressed_size for c in _chunks(footer, group))

    def check(self, footer: pq.FileMetaData) -> None:
        """Check the footer of the new file.

        Raises:
            OnlySparkError: it has more row groups, and repeats dictionaries in them, so that it
                is much larger. Spark closes row groups by the bytes of their indices.
        """
        number = footer.num_row_groups
        if number <= self.number:
            return
        chunks = (chunk for group in range(number) for chunk in _chunks(footer, group))
        dictionary_bytes = sum(
            chunk.data_page_offset - chunk.dictionary_page_offset
            for chunk in chunks
            if chunk.has_dictionary_page
        )
        repeated = dictionary_bytes * (number - self.number) / number
        if repeated > self.stored_bytes * _REPEATED_SHARE_MAX:
            raise OnlySparkError(
                f"{number} row groups repeat dictionaries of {self.number}: {repeated:.0f} bytes"
                f" in addition to {self.stored_bytes}"
            )


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
    code = pq.write_table.__code__  # inspect takes a tenth of the time of a small file
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: value for name, value in options.items() if name in known}


def filter_options(rates: Iterable[tuple[str, float]], num_rows: int) -> dict[str, Any]:
    """Return the option of Arrow's writer for Bloom filters of row groups with so many rows.

    ``rates`` are the rates of false positives, by column. An older Arrow writes no filters.
    """
    wanted = {name: {"ndv": num_rows, "fpp": rate} for name, rate in rates if num_rows}
    return known_options(bloom_filter_options=wanted) if wanted else {}


def filter_rates(source: pq.FileMetaData) -> Iterator[tuple[str, float]]:
    """Yield the columns of a file that have a Bloom filter, and its rate of false positives.

    The rate follows from the bits for a row. A column is named as by Arrow's writer.
    """
    group = source.row_group(0)
    for chunk in map(group.column, range(group.num_columns)):
        length = getattr(chunk, "bloom_filter_length", None)
        if length and chunk.num_values and "." not in chunk.path_in_schema:
            bits = 8 * length / chunk.num_values
            rate = (1 - math.exp(-_FILTER_BITS / bits)) ** _FILTER_BITS
            yield chunk.path_in_schema, min(max(rate, _RATE_MIN), _RATE_MAX)


def columns_with_nan(rows: pa.Table) -> Iterator[tuple[str, ...]]:
    """Yield the float columns, struct fields included, that hold a NaN."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        yield from _leaves_with_nan((name,), column)


def float_leaves(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """Yield the float columns, struct fields included, as paths."""
    for field in schema:
        yield from _floats_within((field.name,), field.type)


def _floats_within(path: tuple[str, ...], kind: pa.DataType) -> Iterator[tuple[str, ...]]:
    if pa.types.is_floating(kind):
        yield path
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _floats_within((*path, field.name), field.type)


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
_REPEATED_SHARE_MAX = 1 / 4
"""How much larger repeated dictionaries may make a copy."""
_GROUPS_MAX = 16
"""Row groups whose column chunks are looked at: the others are taken to be like them."""
_DICTIONARY_BYTES = 1 << 20
"""The size from which on parquet-cpp gives a dictionary up, unless it is told another."""
_DELTAS = ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
_SPLIT = "BYTE_STREAM_SPLIT"
_WITHOUT_DICTIONARY = frozenset({_SPLIT, *_DELTAS})
_DICTIONARIES = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_VALUE_BYTES = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_LONG_BYTES = 8
_INT32_DIGITS, _INT64_DIGITS = 9, 18
"""Up to how many digits a decimal is stored as an integer."""
_TEXT_KINDS = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)

_Leaf: TypeAlias = tuple[str, pa.ChunkedArray]
"""The path that Arrow's writer gives a leaf column, and its values."""


def written_leaves(rows: pa.Table) -> Iterator[_Leaf]:
    """Yield the leaf columns of rows under the paths by which Arrow's writer takes its options.

    Other writers give other names to what is inside lists and maps; the order is the same.

    >>> rows = pa.table({"a": [[1]], "b": [{"c": 2}]})
    >>> [path for path, _ in written_leaves(rows)]
    ['a.list.element', 'b.c']
    """
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = field.type
        if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind):
            yield from _leaves_of(field.name, column)
        else:
            yield field.name, column


def _leaves_of(path: str, column: pa.ChunkedArray) -> Iterator[_Leaf]:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in column.chunks]
        yield from _leaves_of(path, pa.chunked_array(storage, kind.storage_type))
    elif pa.types.is_struct(kind):
        for field, values in zip(kind, column.flatten(), strict=True):
            yield from _leaves_of(f"{path}.{field.name}", values)
    elif pa.types.is_map(kind):
        pairs = entries_of(column, names=("key", "value"))
        yield from _leaves_of(f"{path}.key_value", pairs)
    elif pa.types.is_nested(kind):
        yield from _leaves_of(f"{path}.list.element", pc.list_flatten(column))
    else:
        yield path, column


def saving_dictionaries(footer: pq.FileMetaData, rows: pa.Table) -> list[str]:
    """Return the columns whose dictionaries make a file smaller; ``rows`` are some of its rows.

    What a column takes in the file is compared with what its values would take one after the
    other: of texts their length in ``rows`` says that.
    """
    return [column.path for column in _columns(footer, rows) if column.dictionary_saves()]


def copied_encodings(
    footer: pq.FileMetaData, rows: pa.Table, leaves: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the options of Arrow's writer for a copy of a file; ``rows`` are the first of it.

    The copy of a column is not much larger than the column was, whatever made it small.
    ``leaves`` are the numbers of the file's leaves that ``rows`` have; ``None``: all of them.
    """
    dictionaries, others, largest = [], {}, 0
    for column in _columns(footer, rows, leaves):
        if column.dictionary_saves():
            dictionaries.append(column.path)
            largest = max(largest, column.chunk_bytes_max)
        elif column.encoding is not None:
            others[column.path] = column.encoding
    return _encodings(dictionaries, largest, others)


def _encodings(dictionaries: list[str], largest: int, others: Mapping[str, str]) -> dict[str, Any]:
    return {
        "use_dictionary": dictionaries or False,
        "dictionary_pagesize_limit": max(_DICTIONARY_BYTES, largest),
        **({"column_encoding": dict(others)} if others else {}),
    }


class _Column(NamedTuple):
    """A leaf column as the footer of a file describes it, in some row groups."""

    path: str
    """In the new file."""
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
    num_values: int
    """Without NULLs."""

    def takes_more_than(self, value_bytes: float) -> bool:
        """Return whether a value takes more than so many bytes, or whether it has no encoding."""
        return self.encoding is None or self.stored_bytes > value_bytes * self.num_values

    def dictionary_saves(self) -> bool:
        """Return whether it has a dictionary that is worth its time."""
        if not self.has_dictionary or self.plain_bytes is None:
            return self.has_dictionary
        if self.is_measured and self.stored_bytes > self.plain_bytes * _KNOWN_SHARE_MAX:
            return True  # values elsewhere are longer than those that were measured
        return self.stored_bytes < self.plain_bytes * (1 - _SAVED_SHARE)


def _columns(
    footer: pq.FileMetaData, rows: pa.Table, numbers: Sequence[int] | None = None
) -> Iterator[_Column]:
    """Yield the columns that have a dictionary or an encoding; there is nothing to say of others.

    ``numbers`` are those of the leaves that ``rows`` have; ``None``: all of them.
    """
    step = -(-footer.num_row_groups // _GROUPS_MAX)
    groups = [_chunks(footer, n) for n in range(0, footer.num_row_groups, step)]
    leaves = pq.ParquetSchema(footer)
    written = written_leaves(rows.slice(0, _SAMPLE_ROWS))
    # The rows may have more columns, at their end.
    every = range(footer.num_columns) if numbers is None else numbers
    for n, (path, values) in zip(every, written, strict=False):
        chunks = [group[n] for group in groups]
        encodings = {encoding for chunk in chunks for encoding in chunk.encodings}
        has_dictionary = not encodings.isdisjoint(_DICTIONARIES)
        encoding = _encoding(values.type, encodings)
        if not has_dictionary and encoding is None:
            continue
        num_values = stored = largest = 0
        for chunk in chunks:
            num_values += chunk.num_values - _null_count(chunk)
            size = chunk.total_uncompressed_size
            stored, largest = stored + size, max(largest, size)
        kind = chunks[0].physical_type
        value_bytes = _value_bytes(leaves, n, kind, values)
        yield _Column(
            path=path,
            has_dictionary=has_dictionary,
            encoding=encoding,
            stored_bytes=stored,
            plain_bytes=None if value_bytes is None else num_values * value_bytes,
            is_measured=kind == "BYTE_ARRAY",
            chunk_bytes_max=largest,
            num_values=num_values,
        )


def _chunks(footer: pq.FileMetaData, group: int) -> list[pq.ColumnChunkMetaData]:
    described = footer.row_group(group)
    return [described.column(n) for n in range(footer.num_columns)]


def _encoding(kind: pa.DataType, encodings: set[str]) -> str | None:
    """Return the encoding of old values that new ones of a type can have, too.

    Levels are RLE, so that of flags tells where PLAIN is none.
    """
    if pa.types.is_boolean(kind):
        return "RLE" if "RLE" in encodings and "PLAIN" not in encodings else None
    if encodings.isdisjoint(_WITHOUT_DICTIONARY):
        return None
    if _SPLIT in encodings:
        return None if _is_text(kind) or pa.types.is_dictionary(kind) else _SPLIT
    delta = [one for one in _DELTAS if one in encodings]
    if not delta or pa.types.is_floating(kind) or pa.types.is_dictionary(kind):
        return None
    if _is_text(kind):
        return delta[-1]
    is_number = not pa.types.is_fixed_size_binary(kind) and _number_bytes(kind) <= _LONG_BYTES
    return "DELTA_BINARY_PACKED" if is_number else "DELTA_BYTE_ARRAY"


def _value_bytes(
    leaves: pq.ParquetSchema, number: int, kind: str, values: pa.ChunkedArray
) -> float | None:
    """Return what one value takes in a file without a dictionary; None where it is not known."""
    if kind == "FIXED_LEN_BYTE_ARRAY":
        return float(leaves.column(number).length)
    if kind != "BYTE_ARRAY":
        return _VALUE_BYTES.get(kind)
    num_values = len(values) - values.null_count
    return values.nbytes / num_values if num_values and _is_text(values.type) else None


def new_encodings(
    rows: pa.Table, *, like: pq.FileMetaData | None = None, files: int = 1
) -> dict[str, Any]:
    """Return the options of Arrow's writer for a new file, by its first rows.

    Columns have a dictionary where one makes the first rows smaller. This is the rule of
    parquet-mr (``DictionaryValuesWriter.isCompressionSatisfying``), for files that get rows of
    several others: what small files say of their dictionaries is not true of all together. They
    may grow: the first rows are few. Columns of ``like``, which is one of several old ``files``,
    keep an encoding that takes less than a dictionary.

    Examples:
        >>> rows = pa.table({"key": range(100), "kind": [1, 2] * 50})
        >>> new_encodings(rows)["use_dictionary"]
        ['kind']
    """
    old = {} if like is None else {column.path: column for column in _columns(like, rows)}
    sizes: dict[str, int] = {}
    for path, leaf in written_leaves(rows.slice(0, _SAMPLE_ROWS)):
        values, column = leaf.slice(0, _SAMPLE_ROWS).drop_null(), old.get(path)
        if (column is None or not column.dictionary_saves()) and _differ_at_a_glance(values):
            continue
        size, value_bytes = _dictionary_bytes(values)
        if size and (column is None or column.takes_more_than(value_bytes)):
            sizes[path] = size
    others = {c.path: c.encoding for c in old.values() if c.encoding and c.path not in sizes}
    largest = max(sizes.values(), default=0) * max(_GROWTH, files)
    return _encodings(list(sizes), largest, others)


def _null_count(chunk: pq.ColumnChunkMetaData) -> int:
    known = chunk.statistics
    return known.null_count if known is not None and known.has_null_count else 0


def _differ_at_a_glance(values: pa.ChunkedArray) -> bool:
    """Return whether nearly all of the first values differ."""
    if not _can_have_dictionary(values.type):
        return False
    glance = values.slice(0, _GLANCE_ROWS)
    return len(pc.unique(glance)) > _DIFFERENT_SHARE * len(glance)


def _dictionary_bytes(values: pa.ChunkedArray) -> tuple[int, float]:
    """Return the bytes of a dictionary, 0 where it saves nothing, and of a value that has one."""
    if pa.types.is_dictionary(values.type):
        return int(values.nbytes), 0
    if not _can_have_dictionary(values.type):
        return 0, 0
    kinds = pc.unique(values)
    size = _plain_bytes(kinds)
    all_bytes = size + len(values) * max(0, len(kinds) - 1).bit_length() / 8
    return (size, all_bytes / len(values)) if all_bytes < _plain_bytes(values) else (0, 0)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _TEXT_KINDS)


def _can_have_dictionary(kind: pa.DataType) -> bool:
    """Return whether a column's values can be compared and measured here; flags need none."""
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind):
        return False
    is_fixed = pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return is_fixed or pa.types.is_primitive(kind) or _is_text(kind)


def _plain_bytes(values: pa.Array | pa.ChunkedArray) -> int:
    """Return what values that are not NULL take in a file one after the other."""
    if _is_text(values.type):
        return int(values.nbytes)  # with an offset of four bytes each, as long as their length
    return _number_bytes(values.type) * len(values)


def _number_bytes(kind: pa.DataType) -> int:
    """Return what a value of fixed length takes in a file."""
    if pa.types.is_decimal(kind):
        small, middle = kind.precision <= _INT32_DIGITS, kind.precision <= _INT64_DIGITS
        return 4 if small else _LONG_BYTES if middle else 16
    return max(4, int(kind.bit_width) // 8)
