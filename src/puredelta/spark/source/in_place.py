"""A source that is read where it lies: the Parquet files of a plain scan, without a staged copy.

Files are used only if they serve as well as a copy that Spark has just written. Every file must
have the columns wanted, spelt as the relation spells them. Columns whose values Arrow reads, too
(``keys``), must be stored in the one form in which Arrow and Spark read the same values. Row
counts and bounds come from the footers, as for staged files. Each file's size and time are noted
before the first read, so that a change during the statement is noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, DeltaError, Message, UnsupportedError
from puredelta.log.files.file_stats import StatisticsReader, combined
from puredelta.log.files.parquet_footer import ParquetWriter, map_footers, schema_message
from puredelta.log.files.value_order import stored_type
from puredelta.protocol.schema.types import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    MapType,
    StructType,
)
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.spark.scan.data_file import DataFile, require_readable
from puredelta.spark.session.names import PREFIX
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.session.types import from_spark
from puredelta.spark.source.plain_scan import PlainScan
from puredelta.spark.source.staging import StagedRows, group_rows, text_bytes, texts_of_files
from puredelta.store.registry import FileStatus, file_status, read_end

_MANY_FILES = 64
_SMALL_FILE_BYTES = 1024 * 1024
"""If there are many files and they are smaller than this on average, they are staged instead:
every worker that looks keys up opens each of them. At 250 files the copy costs as much as it saves.
"""

_SPARK_OWN = frozenset({"_metadata", "_tmp_metadata_row_index"})
"""Names that mean something else to Spark's reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """Files of the user's that hold the rows of a frame."""

    rows: StagedRows
    """Bounds are by the files' own column names, those of keys alone."""
    column_bytes: int
    """Of the columns wanted."""
    watched: Mapping[str, FileStatus]
    """Every file by URI, also those without rows, as they were before the first read."""

    def changed(self) -> str | None:
        """Return the URI of a file that was changed, replaced or removed since, if there is one."""
        return next((uri for uri, seen in self.watched.items() if file_status(uri) != seen), None)

    def require_unchanged(self) -> None:
        """Call it after the last read, before anything is committed.

        Raises:
            DeltaError: a file changed (DELTA_MERGE_SOURCE_CHANGED).
        """
        if (uri := self.changed()) is not None:
            raise DeltaError(Message.MERGE_SOURCE_CHANGED, path=uri)


def source_files(
    scan: PlainScan, *, wanted: Collection[T.StructField], keys: Collection[str]
) -> SourceFiles | NotApplicable:
    """Describe the files of a scan whose columns ``wanted`` are read. Runs no job.

    ``keys`` are those of them, by name, whose values the driver and its workers look at.
    """
    if (reason := _unusable(scan.files, wanted, keys)) is not None:
        return NotApplicable(reason=reason)
    watched = {}
    for file in scan.files:
        status = file_status(file.uri)
        if status is None or not _is_as_listed(file, status, is_table=scan.is_table):
            return NotApplicable(reason=f"{file.uri} is not as it was listed")
        watched[file.uri] = status
    reader = _FooterReader(wanted, keys)
    found = []
    try:
        for described in map_footers(
            [file.uri for file in scan.files],
            reader.described,
            read_end=read_end,
        ):
            if isinstance(described, NotApplicable):
                return described
            found.append(described)
    except (CorruptTableError, OSError) as failure:
        return NotApplicable(reason=str(failure))
    full = [(file, one) for file, one in zip(scan.files, found, strict=True) if one.num_rows]
    return SourceFiles(
        rows=StagedRows(
            directory=None,
            files=tuple(file for file, _ in full),
            group_rows=tuple(one.group_rows for _, one in full),
            columns=combined((one.num_rows, one.leaves) for one in found),
            text_bytes=texts_of_files([one.texts for _, one in full]),
        ),
        column_bytes=sum(one.column_bytes for one in found),
        watched=watched,
    )


def _unusable(
    files: Sequence[DataFile], wanted: Collection[T.StructField], keys: Collection[str]
) -> str | None:
    """Return what is wrong with the names and the number of files and columns."""
    names = [field.name.lower() for field in wanted]
    if any(name.startswith(PREFIX) or name in _SPARK_OWN for name in names):
        return "a column has a reserved name"
    if any("." in key for key in keys):
        return "the name of a key has a dot"
    size_bytes = sum(file.size_bytes for file in files)
    if len(files) > _MANY_FILES and size_bytes < len(files) * _SMALL_FILE_BYTES:
        return f"its {len(files)} files are small"
    try:
        require_readable(files)
    except (UnsupportedError, CorruptTableError) as refused:
        return refused.message
    return None


def _is_as_listed(file: DataFile, status: FileStatus, *, is_table: bool) -> bool:
    """Return whether a file is the one that Spark listed; the times in a log are only hints."""
    if status.size_bytes != file.size_bytes:
        return False
    return is_table or status.modified_ms == file.modified_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """The facts of one footer."""

    group_rows: tuple[int, ...]
    leaves: Mapping[LeafPath, LeafStatistics]
    column_bytes: int
    texts: Mapping[str, int | None]

    @property
    def num_rows(self) -> int:
        return sum(self.group_rows)


class _FooterReader:
    """Reads footers; what is the same for all files of one schema is found out once."""

    def __init__(self, wanted: Collection[T.StructField], keys: Collection[str]) -> None:
        self._wanted = tuple(wanted)
        key_schema = from_spark(T.StructType([f for f in wanted if f.name in keys]))
        self._key_types = {field.name: field.type for field in key_schema.fields}
        self._statistics = StatisticsReader(key_schema)
        self._places: dict[tuple[str, bytes, bool], tuple[int, ...] | NotApplicable] = {}

    def described(self, uri: str, footer: pq.FileMetaData) -> _Described | NotApplicable:
        """Return what the footer tells, if the file can be used."""
        hybrid = ParquetWriter.of(footer).hybrid_calendar
        kind = (schema_message(footer), (footer.metadata or {}).get(b"ARROW:schema", b""), hybrid)
        places = self._places.get(kind)
        if places is None:
            places = self._places[kind] = self._leaf_places(uri, footer, hybrid=hybrid)
        if isinstance(places, NotApplicable):
            return places
        groups = map(footer.row_group, range(footer.num_row_groups))
        return _Described(
            group_rows=group_rows(footer),
            leaves=self._statistics.leaves(footer),
            column_bytes=sum(
                group.column(place).total_compressed_size for group in groups for place in places
            ),
            texts=text_bytes(footer, places),
        )

    def _leaf_places(
        self, uri: str, footer: pq.FileMetaData, *, hybrid: bool
    ) -> tuple[int, ...] | NotApplicable:
        """Return where the leaves of the wanted columns are in a row group."""
        try:
            stored = footer.schema.to_arrow_schema()
        except pa.ArrowException as unknown:
            return NotApplicable(reason=f"{uri}: {unknown}")
        spelt = [name.lower() for name in stored.names]
        for field in self._wanted:
            if field.name not in stored.names or spelt.count(field.name.lower()) != 1:
                return NotApplicable(reason=f"{uri} does not have exactly the column {field.name}")
            if field.name in self._key_types and not reads_alike(
                self._key_types[field.name], stored.field(field.name).type, hybrid_calendar=hybrid
            ):
                return NotApplicable(reason=f"{uri} stores the key {field.name} in another form")
        paths = [footer.schema.column(n).path for n in range(len(footer.schema))]
        names = tuple(field.name for field in self._wanted)
        inside = tuple(f"{name}." for name in names)
        return tuple(n for n, p in enumerate(paths) if p in names or p.startswith(inside))


def reads_alike(kind: DataType, stored: pa.DataType, *, hybrid_calendar: bool) -> bool:
    """Return whether Arrow reads a column of Parquet exactly as Spark does under ``kind``.

    Every nested column passes, because Arrow reads none.
    """
    if isinstance(kind, StructType | ArrayType | MapType):
        return True
    if hybrid_calendar and kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return False
    return bool(plain_type(stored) == stored_type(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the same values, however Arrow lays them out."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
