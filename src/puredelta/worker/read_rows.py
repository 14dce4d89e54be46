"""Rows of a data file as Arrow batches, inside a Spark worker.

Traps this module knows:

* INT96 timestamps are read as nanoseconds, which overflow outside 1677..2262: microseconds
  are asked for. Those of some writers have a negative time of the day before 1970, which Spark
  reads and Arrow takes for a day 584 years later (`counts_from_midnight`).
* ``ParquetFile`` looks at every column's name and asks which file system a path is of, which
  takes as long as to parse the footer; its reader alone does neither. Its option for
  Arrow's extension types is unknown to Arrow 20 and before.
* Dates and timestamps may be stored in the hybrid calendar, which Spark converts; they are used
  only where none is old enough for the calendars to differ.
* delta-rs writes string views, with which Arrow can do little; they are read as strings.
* What Arrow cannot read or does not implement comes as an error of Arrow or of the system
  alike: either says that Spark has to do it, or to say what is wrong with the file.
* A look at a column chunk of a damaged footer ends the process (`puredelta.worker.footers`), so
  chunks are only looked at after `OpenFile.require_sound`. To decode one raises an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from puredelta.worker.bounded_batches import (
    decoded_batches,
    has_dictionaries,
    has_large_column,
    is_harmless,
    plan_decoding,
)
from puredelta.worker.files import DataPath
from puredelta.worker.range_file import RangeFile
from puredelta.worker.sound_kinds import require_sound_file, require_sound_path
from puredelta.worker.wire import CHECKSUMS, INT96, LIMITS, OLD_TIMES, Limits


def without_views(schema: pa.Schema) -> pa.Schema:
    """Return the schema with views as what they are views of, the very schema if there are none.

    >>> without_views(pa.schema([("a", pa.string())])).types
    [DataType(string)]
    """
    plain = pa.schema([_plain_field(field) for field in schema], schema.metadata)
    return schema if plain.equals(schema) else plain


def _plain(kind: pa.DataType) -> pa.DataType:
    name = str(kind)
    if "view" not in name:
        return kind
    if name == "string_view":
        return pa.string()
    if name == "binary_view":
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if pa.types.is_list(kind) or name.startswith("list_view"):
        return pa.list_(_plain_field(kind.value_field))
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


_ARROW_SCHEMA = b"ARROW:schema"
LEGACY_INT96 = b"org.apache.spark.legacyINT96"
SPARK_VERSION = b"org.apache.spark.version"
FIELD_ID = b"PARQUET:field_id"
_UNFAITHFUL_TYPES = frozenset(
    {"ENUM", "BSON", "JSON", "INTERVAL", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
)
_WITHOUT_NAME = frozenset({"UNDEFINED", "UNKNOWN"})
"""What an Arrow calls types that it only knows by halves: 20 to 25 do geometries, for example."""
_CALENDARS_AGREE_DAYS = -25_567
"""1900-01-01: long after the last country changed its calendar, and before zones had rules."""
_DAY_US = 86_400_000_000
_BUFFER_BYTES = 1 << 17
"""Of a column chunk, read from a disk at a time."""
_BUFFERS_BYTES = 1 << 25
"""Of all columns together: each column has a buffer while a row group is read. A file of no more
is read by whole column chunks: then no page can be longer than its chunk, whatever it says."""
_BUFFER_BYTES_MIN = 1 << 13

Mask: TypeAlias = npt.NDArray[np.bool_]


class OnlySparkError(Exception):
    """Values that Arrow cannot read, or reads or compares otherwise than Spark; or too many."""


class OpenFile:
    """A Parquet file whose footer is parsed, by path or open; closed with its last reference.

    Of an object only the column chunks are brought that are read, those of a row group together.
    Its methods raise Arrow's errors.
    """

    def __init__(self, source: DataPath | pa.NativeFile, *, has_threads: bool = False) -> None:
        self._data_end: int | None = None
        self._has_threads = has_threads and isinstance(source, str)
        self._object = RangeFile(source) if isinstance(source, tuple) else None
        if self._object is not None:
            source = pa.PythonFile(self._object, mode="r")
        self._source: str | pa.NativeFile = source
        is_large = isinstance(source, str) and os.path.getsize(source) > _BUFFERS_BYTES  # noqa: PTH202 - as pyarrow opens it
        self._buffer_bytes = _BUFFER_BYTES if is_large else 0
        self._reader = _reader(source, self._buffer_bytes)
        self.metadata: pq.FileMetaData = self._reader.metadata
        share = _BUFFERS_BYTES // max(1, self.metadata.num_columns)
        if share < self._buffer_bytes:
            self._buffer_bytes = max(_BUFFER_BYTES_MIN, share)
            self._reader = self._another_reader()
        # Only a file that says what Arrow it was made of can have other types than Parquet's.
        self._may_have_views = _ARROW_SCHEMA in (self.metadata.metadata or ())

    def require_sound(self) -> None:
        """Check the footer, once. Call it before column chunks of ``metadata`` are looked at."""
        self._sound_data_end()

    def _sound_data_end(self) -> int:
        """Return where the footer is, which is sound."""
        if self._data_end is None:
            if isinstance(self._source, str):
                self._data_end = require_sound_path(self._source)
            else:
                self._data_end = require_sound_file(self._source)
        return self._data_end

    @property
    def ranges(self) -> RangeFile | None:
        """The object that it is read from; ``None`` on a file system."""
        return self._object

    @property
    def num_row_groups(self) -> int:
        """How many row groups it has."""
        return int(self.metadata.num_row_groups)

    @property
    def schema_arrow(self) -> pa.Schema:
        """Its columns as Arrow has them; made again for every call."""
        self._leaf_paths()
        schema: pa.Schema = self._reader.schema_arrow
        return without_views(schema) if self._may_have_views else schema

    def leaves(self) -> list[Any]:
        """Return its columns as Parquet describes them, those within columns, too."""
        # Not metadata.schema: the metadata keeps that, which keeps the metadata, as garbage.
        schema = pq.ParquetSchema(self.metadata)
        return [schema.column(n) for n in range(len(schema))]

    def leaves_of(self, names: Iterable[str]) -> list[int]:
        """Return the places of all leaves of some columns."""
        wanted = set(names)
        return [n for n, path in enumerate(self._leaf_paths()) if path[0] in wanted]

    def _leaf_paths(self) -> Sequence[Sequence[str]]:
        try:
            paths: Sequence[Sequence[str]] = self._reader.column_paths
        except UnicodeDecodeError as other:
            raise pa.ArrowInvalid("the name of a column is no UTF-8") from other
        return paths

    def read(
        self,
        batch_rows: int,
        *,
        groups: Sequence[int] | None = None,
        leaves: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read some row groups, and some leaves of columns in the order of the file, or all."""
        groups = range(self.num_row_groups) if groups is None else groups
        if self._object is not None:
            return self._fetched(self._object, batch_rows, groups, leaves)
        return self._decoded(batch_rows, groups, leaves)

    def _decoded(
        self, batch_rows: int, groups: Sequence[int], leaves: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        missing = sum(self.metadata.row_group(group).num_rows for group in groups)
        for batch in self._bounded(batch_rows, list(groups), leaves):
            missing -= batch.num_rows
            yield _without_views(batch) if self._may_have_views else batch
        if missing:
            # Arrow decodes what pages hold, whatever a footer says; positions go by the footer.
            raise pa.ArrowInvalid(f"the footer says of {missing} rows more than its pages hold")

    def _bounded(
        self, batch_rows: int, groups: Sequence[int], leaves: Sequence[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """Decode rows in batches of so many rows, or fewer where their values are large."""
        if is_harmless(self.metadata, groups):
            yield from self._reader.iter_batches(
                batch_rows, groups, column_indices=leaves, use_threads=self._has_threads
            )
            return
        self.require_sound()
        # A file of Arrow's own dictionaries keeps them, and the others could not be told apart.
        as_dictionaries = not has_dictionaries(self._reader.schema_arrow)
        readers: dict[tuple[str, ...], pq.ParquetReader] = {(): self._reader}
        for group in groups:
            decoding = plan_decoding(
                self.metadata.row_group(group),
                range(self.metadata.num_columns) if leaves is None else leaves,
                batch_rows=batch_rows,
                batch_bytes=LIMITS.read_bytes,
                as_dictionaries=as_dictionaries,
            )
            paths = decoding.dictionaries
            if paths not in readers:
                readers[paths] = self._another_reader(read_dictionary=paths)
            batches = readers[paths].iter_batches(
                decoding.batch_rows, [group], column_indices=leaves, use_threads=self._has_threads
            )
            for batch in batches:
                for rows in decoded_batches(batch, LIMITS.read_bytes) if paths else (batch,):
                    yield rows
                    if has_large_column(rows):
                        pa.default_memory_pool().release_unused()

    def _another_reader(self, **options: Any) -> pq.ParquetReader:
        return _reader(self._source, self._buffer_bytes, metadata=self.metadata, **options)

    def _fetched(
        self,
        source: RangeFile,
        batch_rows: int,
        groups: Sequence[int],
        leaves: Sequence[int] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Bring what is read of a row group, then decode it."""
        for group in groups:
            source.fetch(self.chunks(group, leaves))
            yield from self._decoded(batch_rows, [group], leaves)

    def chunks(self, group: int, leaves: Sequence[int] | None) -> Iterator[tuple[int, int]]:
        """Yield where the column chunks of a row group begin and end; ``None``: of all leaves."""
        data_end = self._sound_data_end()
        described = self.metadata.row_group(group)
        for leaf in range(described.num_columns) if leaves is None else leaves:
            chunk = described.column(leaf)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            end = start + chunk.total_compressed_size
            if not 0 <= start <= end <= data_end:
                raise pa.ArrowInvalid(f"a column from {start} to {end} in {data_end} bytes")
            yield start, end


def _reader(source: str | pa.NativeFile, buffer_bytes: int, **options: Any) -> pq.ParquetReader:
    """Open a file with the reader of `ParquetFile`, which alone looks at no name."""
    reader = pq.ParquetReader()
    options |= {"pre_buffer": False, "coerce_int96_timestamp_unit": "us"}
    if isinstance(source, str):  # otherwise a column chunk is held whole
        options["buffer_size"] = buffer_bytes
    try:
        reader.open(source, arrow_extensions_enabled=True, **options)
    except TypeError:
        reader.open(source, **options)
    except UnicodeEncodeError as other:
        raise pa.ArrowInvalid(f"the path {source!a} is no UTF-8") from other
    return reader


def ranges_of_columns(names: Iterable[str], source: RangeFile) -> list[tuple[int, int]]:
    """Return which ranges of an object hold some of its columns."""
    file = OpenFile(pa.PythonFile(source, mode="r"))
    leaves = file.leaves_of(names)
    return [span for group in range(file.num_row_groups) for span in file.chunks(group, leaves)]


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    written = batch.schema
    schema = without_views(written)
    return batch if schema is written else batch.cast(schema)


@contextmanager
def arrow_threads(count: int) -> Iterator[None]:
    """Let Arrow decode by so many threads inside the context.

    A Python worker of Spark has one, and serves other statements later.
    """
    before = pa.cpu_count()
    if count > before:
        pa.set_cpu_count(count)
    try:
        yield
    finally:
        if count > before:
            pa.set_cpu_count(before)


def opened(path: DataPath, *, describes: bool = False, has_threads: bool = False) -> OpenFile:
    """Open a file to read some of its rows; ``describes``: and to look at its column chunks.

    ``has_threads``: its columns are decoded side by side, if it is on a disk.

    Raises:
        OnlySparkError: Arrow cannot read it here.
    """
    try:
        file = OpenFile(path, has_threads=has_threads)
        if describes:
            file.require_sound()
    except (OSError, pa.ArrowException) as failure:
        raise OnlySparkError(f"{type(failure).__name__}: {failure}") from failure
    return file


def read_batches(
    file: OpenFile,
    groups: Sequence[int] | None,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = LIMITS.read_rows,
) -> Iterator[pa.RecordBatch]:
    """Read the rows of some row groups; ``None``: all of them, and all columns.

    Raises:
        OnlySparkError: Arrow cannot read them.
    """
    try:
        leaves = None if columns is None else file.leaves_of(columns)
        yield from file.read(batch_rows, groups=groups, leaves=leaves)
    except (OSError, pa.ArrowException) as failure:
        raise OnlySparkError(f"{type(failure).__name__}: {failure}") from failure


def dropped_rows(
    packed_words: bytes, packed_bits: bytes, first_row: int, num_rows: int
) -> Mask | None:
    """Return which of the rows from ``first_row`` on have their bit set; ``None`` if none has.

    Words (little-endian int64) say which runs of 64 rows have one, ascending, bits (uint64) which
    rows of each.
    """
    if not packed_words:
        return None
    words, bits = np.frombuffer(packed_words, "<i8"), np.frombuffer(packed_bits, "<u8")
    first_word, last_word = first_row >> 6, (first_row + num_rows - 1) >> 6
    low, high = np.searchsorted(words, [first_word, last_word + 1])
    if low == high:
        return None
    dense = np.zeros(last_word - first_word + 1, "<u8")
    dense[words[low:high] - first_word] = bits[low:high]
    flags = np.unpackbits(dense.view(np.uint8), bitorder="little").view(np.bool_)
    start = first_row - (first_word << 6)
    return flags[start : start + num_rows]


def require_read_alike(
    file: OpenFile, only_spark: Collection[str], columns: Collection[str] | None = None
) -> None:
    """Refuse a file of which Spark reads other values than Arrow, by settings of the session.

    ``only_spark`` is that of `Limits`; without ``columns`` all of them are looked at.

    Raises:
        OnlySparkError: there is a column that only Spark reads.
    """
    if CHECKSUMS in only_spark:
        raise OnlySparkError("the session has Spark verify the checksums of pages")
    is_moved = INT96 in only_spark
    if is_moved or not counts_from_midnight(file.metadata):
        name = _int96_column(file, columns)
        if name is not None:
            reason = "settings of the session move" if is_moved else "Arrow may read otherwise"
            raise OnlySparkError(f"column {name} has INT96 timestamps, which {reason}")


def counts_from_midnight(footer: pq.FileMetaData) -> bool:
    """Return whether the writer of a file is known to count the time of an INT96 timestamp from
    the midnight before it, in every year.

    Arrow before 23 counted from the midnight after it before 1970
    (https://github.com/apache/arrow/issues/48246).
    """
    try:
        found = _INT96_WRITER.match(footer.created_by or "")
    except UnicodeDecodeError:
        return False
    return found is not None and (found[1] is None or int(found[1]) >= _FIRST_RIGHT_ARROW)


_INT96_WRITER = re.compile(r"(?:parquet-mr|impala)\b|parquet-cpp-arrow version (\d{1,6})\.")
_FIRST_RIGHT_ARROW = 23


def require_kept_rules(file: OpenFile, limits: Limits) -> None:
    """Refuse a file that lacks what the table asks of new files, so that no copy is made of it.

    Raises:
        OnlySparkError: a partition column, an id or a timestamp of 64 bits is missing.
    """
    if not limits.needs_columns and not limits.needs_ids:
        return
    lacks = lacking(file.schema_arrow, limits.needs_columns, limits.needs_ids)
    int96 = _int96_column(file, limits.needs_ids)
    lacks = lacks or (f"has 96 bits in the timestamps of column {int96}" if int96 else None)
    if lacks is not None:
        raise OnlySparkError(f"it {lacks}")


def lacking(schema: pa.Schema, columns: Collection[str], with_ids: Collection[str]) -> str | None:
    """Say what a file lacks: one of some columns, or an id in others; ``None``: nothing.

    A column that the file does not have needs no id.
    """
    for name in columns:
        if name not in schema.names:
            return f"does not hold the partition column {name}"
    for field in schema:
        if field.name in with_ids and (path := _without_id(field)) is not None:
            return f"has no field id for {path}"
    return None


def _without_id(field: pa.Field, path: str = "") -> str | None:
    path = f"{path}.{field.name}".lstrip(".")
    if FIELD_ID not in (field.metadata or {}):
        return path
    kind = field.type
    if pa.types.is_map(kind):
        parts = [kind.key_field, kind.item_field]
    elif pa.types.is_nested(kind):
        parts = [kind.field(n) for n in range(kind.num_fields)]
    else:
        return None
    found = (_without_id(part, path) for part in parts)
    return next((one for one in found if one is not None), None)


def _int96_column(file: OpenFile, columns: Collection[str] | None) -> str | None:
    leaves = (leaf for leaf in file.leaves() if leaf.physical_type == "INT96")
    paths = (str(leaf.path) for leaf in leaves)
    return next((p for p in paths if columns is None or p.split(".", 1)[0] in columns), None)


def names_no_calendar(file: OpenFile, only_spark: Collection[str]) -> bool:
    """Return whether settings of the session decide in which calendar old times of a file are."""
    return OLD_TIMES in only_spark and SPARK_VERSION not in (file.metadata.metadata or {})


def unfaithful(source: OpenFile, columns: Collection[str] | None = None) -> str | None:
    """Say why a copy through Arrow would not be the same file; ``None`` if it would.

    Without ``columns`` all of them are looked at.
    """
    leaves = source.leaves()
    if columns is not None:
        leaves = [leaf for leaf in leaves if str(leaf.path).split(".", 1)[0] in columns]
    for leaf in leaves:
        kind = leaf.logical_type.type
        if kind in _UNFAITHFUL_TYPES or (kind in _WITHOUT_NAME and not _is_null_type(leaf)):
            return f"column {leaf.path} has logical type {kind}"
    marks = source.metadata.metadata or {}
    if LEGACY_INT96 in marks and any(leaf.physical_type == "INT96" for leaf in leaves):
        return "INT96 timestamps in the hybrid calendar"
    return None


def _is_null_type(leaf: Any) -> bool:
    return '"Null"' in leaf.logical_type.to_json()


def require_one_calendar(column: pa.Array) -> None:
    """Refuse dates and timestamps of a time in which calendars differ.

    Raises:
        OnlySparkError: there is one.
    """
    if pa.types.is_date(column.type):
        earliest = pc.min(column.cast(pa.int32())).as_py()
    elif pa.types.is_timestamp(column.type):
        micros = pc.min(column.cast(pa.int64())).as_py()
        earliest = None if micros is None else micros // _DAY_US
    else:
        return
    if earliest is not None and earliest < _CALENDARS_AGREE_DAYS:
        raise OnlySparkError(f"a value is {earliest} days from 1970-01-01")
