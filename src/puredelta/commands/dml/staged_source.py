"""The source of a statement as files: a staged copy, or the Parquet files of a plain scan in place.

A source column has three names: the user's, the *staged name* in the resolved statement,
and the name of a column inside the source's files. Only `ColumnNames` turns a staged name
into the name inside the files.

Files are read in place only if they serve as well as a copy that Spark has just written. Every file
must have the columns wanted, spelt as the relation spells them. Columns whose values Arrow reads,
too (``keys``), must be stored in the one form in which Arrow and Spark read the same values. Row
counts and bounds come from the footers. Each file's size and time are noted before the first read,
so that a change during the statement is noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.source_texts import SourceTexts
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
from puredelta.spark.connect.messages import with_known_columns
from puredelta.spark.scan.data_file import DataFile, require_readable
from puredelta.spark.scan.plain_scan import PlainScan
from puredelta.spark.scan.scan import scan_parquet
from puredelta.spark.session.names import (
    FILE_ORDINAL,
    PREFIX,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.session.types import from_spark, quoted
from puredelta.spark.write.staging import StagedRows, group_rows, text_bytes, texts_of_files
from puredelta.store.base import Store
from puredelta.store.registry import FileStatus, file_status, open_store, read_end
from puredelta.worker.read_rows import LEGACY_INT96, counts_from_midnight

_MANY_FILES = 64
_SMALL_FILE_BYTES = 1024 * 1024
"""If there are many files and they are smaller than this on average, they are staged instead:
every worker that looks keys up opens each of them. At 250 files the copy costs as much as it saves.
"""

_SPARK_OWN = frozenset({"_metadata", "_tmp_metadata_row_index"})
"""Names that mean something else to Spark's reader."""

_POSITION = (
    T.StructField(SOURCE_FILE, T.IntegerType()),
    T.StructField(SOURCE_ROW, T.LongType()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The names of source columns inside the files."""

    in_files: Mapping[str, str] = field(default_factory=dict)
    """By staged name; empty where files of this library have the staged names."""

    def in_file(self, staged: str) -> str:
        """Return the name of a staged column inside the files."""
        return self.in_files.get(staged, staged)

    def by_staged_name(
        self, leaves: Mapping[LeafPath, LeafStatistics]
    ) -> Mapping[LeafPath, LeafStatistics]:
        """Return the footers' facts about columns by staged name, for each name of a column."""
        if not self.in_files:
            return leaves
        return {
            (staged, *path[1:]): leaf
            for staged, name in self.in_files.items()
            for path, leaf in leaves.items()
            if path[0] == name
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProfile:
    """Facts about the source's rows that need no second read."""

    num_rows: int
    size_bytes: int
    bounds: Mapping[LeafPath, LeafStatistics] = field(default_factory=dict)
    """By staged path."""
    distinct: Mapping[LeafPath, Sequence[Any]] = field(default_factory=dict)
    """All values but NULL, where they are few; whole numbers in an ``array("q")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSource:
    """The rows of the source, in files of this library until `remove`, or in its own files."""

    staged: StagedRows | None
    """``None`` for a statement without a source."""
    schema: T.StructType
    """The schema of the staged frame: columns by staged name."""
    profile: SourceProfile
    names: ColumnNames = field(default_factory=ColumnNames)
    texts: SourceTexts | None = field(default=None, repr=False)
    """Sizes of its texts; ``None`` if they are unknown."""
    in_place: SourceFiles | None = None
    """The source's own files, if they are read in place."""
    mode: str = "without a source"
    """The way the source is read, with the reason, for the log."""
    is_known: bool = True
    """Whether rows and keys were read; else the profile is a placeholder."""

    @classmethod
    def none(cls) -> StagedSource:
        """Return the source of a statement that has none: no row, no file, no job."""
        return cls(
            staged=None, schema=T.StructType(), profile=SourceProfile(num_rows=0, size_bytes=0)
        )

    @classmethod
    def unread(cls, reason: str) -> StagedSource:
        """Return an unread source that would be staged: some rows, of which nothing is known."""
        return cls(
            staged=None,
            schema=T.StructType(),
            profile=SourceProfile(num_rows=1, size_bytes=0),
            mode=f"the source will be staged ({reason})",
            is_known=False,
        )

    @property
    def num_rows(self) -> int:
        """The number of rows of the source."""
        return self.profile.num_rows

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files with the rows."""
        return () if self.staged is None else self.staged.files

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The number of rows of each file, by `SOURCE_FILE`."""
        return () if self.staged is None else self.staged.row_counts

    @property
    def is_materialized(self) -> bool:
        """Whether the rows were written to files of this library."""
        return self.staged is not None and self.in_place is None

    def describe(self) -> str:
        """Return one line for the log."""
        return self.mode

    def rows(self, spark: SparkSession, columns: Collection[str]) -> DataFrame:
        """Return staged columns with the position of each row (`SOURCE_FILE`, `SOURCE_ROW`)."""
        wanted = [field for field in self.schema.fields if field.name in columns]
        stored = {
            self.names.in_file(f.name): storable(f.dataType)
            for f in wanted
            if not isinstance(f.dataType, T.NullType)
        }
        schema = T.StructType([T.StructField(name, kind) for name, kind in stored.items()])
        open_at = open_store if self.staged is None else self.staged.open_at
        rows = scan_parquet(spark, self.files, schema=schema, with_position=True, open_at=open_at)
        if self.names.in_files:
            named = {f.name: self.names.in_file(f.name) for f in wanted}
            named |= {SOURCE_FILE: FILE_ORDINAL, SOURCE_ROW: ROW_INDEX}
            renamed = rows.selectExpr(*(f"{quoted(old)} AS {new}" for new, old in named.items()))
            return with_known_columns(renamed, T.StructType([*wanted, *_POSITION]))
        rows = rows.withColumnsRenamed({FILE_ORDINAL: SOURCE_FILE, ROW_INDEX: SOURCE_ROW})
        with_known_columns(rows, T.StructType([*schema.fields, *_POSITION]))
        voids = {f.name: F.lit(None) for f in wanted if isinstance(f.dataType, T.NullType)}
        return rows.withColumns(voids) if voids else rows

    def require_unchanged(self) -> None:
        """Check the files after the last read, before anything is committed."""
        if self.in_place is not None:
            self.in_place.require_unchanged()

    def remove(self, store: Store) -> None:
        """Delete the files of this library; a missing file is no error."""
        if self.staged is not None:
            self.staged.remove(store)


def storable(kind: Any) -> Any:
    """Replace VOID inside nested types by STRING: its only value is NULL either way."""
    match kind:
        case T.NullType():
            return T.StringType()
        case T.StructType():
            return T.StructType(
                [
                    T.StructField(f.name, storable(f.dataType), f.nullable, f.metadata)
                    for f in kind.fields
                ]
            )
        case T.ArrayType():
            return T.ArrayType(storable(kind.elementType), kind.containsNull)
        case T.MapType():
            return T.MapType(
                storable(kind.keyType), storable(kind.valueType), kind.valueContainsNull
            )
        case _:
            return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """Files of the user's that hold the rows of a frame."""

    rows: StagedRows
    """Bounds are by the files' own column names, those of keys alone."""
    column_bytes: int
    """Of the columns wanted."""
    watched: Mapping[str, FileStatus]
    """Every file by URI, also those without rows, as they were before the first read."""
    int96_keys: frozenset[str] = frozenset()
    """Keys that some file stores in the old form of timestamps, which has no bounds."""

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
        int96_keys=frozenset(reader.int96_keys),
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
        self._places: dict[tuple[str, bytes, bool, bool], tuple[int, ...] | NotApplicable] = {}
        self.int96_keys: set[str] = set()

    def described(self, uri: str, footer: pq.FileMetaData) -> _Described | NotApplicable:
        """Return what the footer tells, if the file can be used."""
        hybrid = ParquetWriter.of(footer).hybrid_calendar
        pairs = footer.metadata or {}
        is_old = not _reads_int96(footer)
        kind = (schema_message(footer), pairs.get(b"ARROW:schema", b""), hybrid, is_old)
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
        for column in self._wanted:
            if column.name not in stored.names or spelt.count(column.name.lower()) != 1:
                return NotApplicable(reason=f"{uri} does not have exactly the column {column.name}")
            known = self._key_types.get(column.name)
            if known is None or reads_alike(
                known, stored.field(column.name).type, hybrid_calendar=hybrid
            ):
                continue
            if hybrid or known != TIMESTAMP or not _has_instants(footer, column.name):
                return NotApplicable(reason=f"{uri} stores the key {column.name} in another form")
            self.int96_keys.add(column.name)
        paths = [footer.schema.column(n).path for n in range(len(footer.schema))]
        names = tuple(column.name for column in self._wanted)
        inside = tuple(f"{name}." for name in names)
        return tuple(n for n, p in enumerate(paths) if p in names or p.startswith(inside))


def _has_instants(footer: pq.FileMetaData, name: str) -> bool:
    """Tell whether a column is of INT96 and Arrow reads it as Spark does."""
    leaves = map(footer.schema.column, range(len(footer.schema)))
    is_int96 = any(leaf.path == name and leaf.physical_type == "INT96" for leaf in leaves)
    return is_int96 and _reads_int96(footer)


def _reads_int96(footer: pq.FileMetaData) -> bool:
    """Tell whether Arrow reads timestamps of INT96 as Spark does."""
    return LEGACY_INT96 not in (footer.metadata or {}) and counts_from_midnight(footer)


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
