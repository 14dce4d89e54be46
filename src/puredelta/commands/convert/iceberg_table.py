"""The current snapshot of an Iceberg table (C-03): its files and its partition columns.

An identity partition of Iceberg becomes a partition column of Delta. A computed partition (days,
buckets, prefixes) does not: the files have the column itself, its bounds skip files, and the table
shows no column that Iceberg hides. If the partitioning has changed, only those columns count that
partition all files (C-71). Iceberg gives every field an id, also in data files, so renamed, moved
and dropped columns need nothing more than column mapping by id. A widened type is covered by the
type widening feature; the types in the files come from their footers (C-70).

Values that a manifest does not prove are left out of the statistics: bounds of a column with a NaN,
or without a count of NaNs, and counts of NULLs inside structs, which writers count differently.

Iceberg's readers assign columns to files without ids by a mapping of names. A Delta table has no
such mapping, so all readers would see NULL in those columns: such a file is refused.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from gzip import BadGzipFile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as I
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import FileScanTask, ManifestGroupPlanner
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform

from puredelta.commands.convert.iceberg_plan import IcebergContent, IcebergFile
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    InvalidRequestError,
    Message,
    UnsupportedError,
)
from puredelta.iceberg.avro import UnreadableRecordsError, decoded_records, decoding
from puredelta.iceberg.storage import DAMAGED_METADATA, StoreFileIO, located
from puredelta.log.files.parquet_footer import map_footers, schema_message
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import encode_path, encode_uri, relative_path
from puredelta.protocol.features.column_mapping import FIELD_ID, PHYSICAL_NAME
from puredelta.protocol.features.type_widening import can_widen, with_type_changes
from puredelta.protocol.schema.partition_values import (
    HIVE_NULL,
    encode_partition_value,
    is_partition_type,
)
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.store.base import FileEnd, Store
from puredelta.worker.sound_kinds import sound_parquet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    field_id: int
    name: str
    iceberg_type: I.PrimitiveType
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partition columns shared by all files."""

    specs: Mapping[int, Mapping[int, int]]
    """Positions of the columns' values, by specification and field id."""
    columns: tuple[_Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in partitioning order."""
        return tuple(column.name for column in self.columns)

    @classmethod
    def of(
        cls, metadata: TableMetadata, files: Sequence[DataFile], columns: Sequence[FileColumns]
    ) -> Partitions:
        """Choose the partition columns."""
        specs = {number: _places(spec) for number, spec in metadata.specs().items()}
        used = {file.spec_id for file in files} or {metadata.default_spec_id}
        top = {field.field_id: field for field in metadata.schema().fields}
        found = []
        for field_id in specs[metadata.default_spec_id]:
            field = top.get(field_id)
            if field is None or not isinstance(field.field_type, I.PrimitiveType):
                continue
            kind = field.field_type
            column = _Column(
                field_id=field_id,
                name=field.name,
                iceberg_type=kind,
                type=primitive(kind, (field.name,)),
            )
            everywhere = all(field_id in specs[number] for number in used)
            if everywhere and is_partition_type(column.type):
                found.append(column)
        chosen = cls(specs=specs, columns=tuple(found))
        exact = tuple(c for c in found if all(chosen._is_exact(c, file) for file in files))
        if len(exact) == len(top):
            exact = ()
        chosen = cls(specs=specs, columns=exact)
        chosen._require_in_files(files, columns, top)
        return chosen

    def values(self, file: DataFile) -> Mapping[str, str | None]:
        """Return the partition values of a file, by column."""
        try:
            return {
                column.name: encode_partition_value(self._value(column, file), column.type)
                for column in self.columns
            }
        except DAMAGED_METADATA as error:  # a specification of other columns
            raise _damaged(file.file_path, f"its partition values are {file.partition}") from error

    def _value(self, column: _Column, file: DataFile) -> object:
        return python_value(
            column.iceberg_type, file.partition[self.specs[file.spec_id][column.field_id]]
        )

    def _is_exact(self, column: _Column, file: DataFile) -> bool:
        """Return whether the log can hold a value: empty text becomes NULL there."""
        value = self._value(column, file)
        if isinstance(value, float):
            return not math.isnan(value) and value != 0
        return value not in ("", b"", HIVE_NULL)

    def _require_in_files(
        self,
        files: Sequence[DataFile],
        columns: Sequence[FileColumns],
        top: Mapping[int, I.NestedField],
    ) -> None:
        """Refuse a column that exists only in the partition values of a file, as in Hive tables."""
        chosen = {column.field_id for column in self.columns}
        for file, found in zip(files, columns, strict=True):
            for field_id in self.specs[file.spec_id]:
                if field_id in top and field_id not in chosen and field_id not in found.ids:
                    raise UnsupportedError(
                        Message.UNSUPPORTED_ICEBERG_TABLE_MISSING_COLUMN,
                        path=file.file_path,
                        column=top[field_id].name,
                    )


def _places(spec: PartitionSpec) -> Mapping[int, int]:
    return {
        field.source_id: place
        for place, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    }


_ROWS_TOGETHER = "file_path", "pos"


def read_content(metadata: TableMetadata, store: Store) -> IcebergContent:
    """Read manifests, footers and the files of deleted rows; see `IcebergTable.read`."""
    schema = metadata.schema()
    io = StoreFileIO(store)
    delta_schema(schema, {})  # refused before any file is read
    snapshot = metadata.current_snapshot()
    tasks = () if snapshot is None else _tasks(metadata, snapshot, io)
    columns = read_columns(store, [(task.file.file_path, task.file) for task in tasks])
    narrowest: Mapping[int, DataType] = narrowest_types(schema, columns)
    partitions = Partitions.of(metadata, [task.file for task in tasks], columns)
    deleted = _DeletedRows(io)
    known = tuple(leaves(schema))
    files = [
        IcebergFile(
            path=_log_path(store, task.file.file_path),
            size_bytes=task.file.file_size_in_bytes,
            num_rows=task.file.record_count,
            partition_values=partitions.values(task.file),
            leaves=file_statistics(known, task.file, found.ids),
            deleted=deleted.of(task),
        )
        for task, found in zip(tasks, columns, strict=True)
    ]
    return IcebergContent(
        schema=delta_schema(schema, narrowest),
        partition_columns=partitions.names,
        max_column_id=metadata.last_column_id,
        timestamp_ms=metadata.last_updated_ms if snapshot is None else snapshot.timestamp_ms,
        files=files,
    )


def _tasks(metadata: TableMetadata, snapshot: Snapshot, io: FileIO) -> Sequence[FileScanTask]:
    """Return the data files with the files of their deleted rows, sorted by path."""
    manifests = tuple(_records(snapshot.manifest_list, io, _listed))
    for manifest in manifests:
        if manifest.partition_spec_id not in metadata.specs():
            number = manifest.partition_spec_id
            raise _damaged(snapshot.manifest_list, f"the table has no partition spec {number}")
        if manifest.content is ManifestContent.DELETES:
            for entry in manifest.fetch_manifest_entry(io):
                _require_positions(entry.data_file)
    tasks = sorted(
        ManifestGroupPlanner(metadata, io).plan_files(manifests), key=lambda t: t.file.file_path
    )
    for task in tasks:
        _require_parquet(task.file)
    return tasks


class _Manifest(ManifestFile):
    """A manifest whose damage is an error: the decoder of pyiceberg's own method trusts lengths."""

    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:  # noqa: FBT001, FBT002 - pyiceberg's
        """Read the entries, and what they inherit from their manifest."""
        return [
            self._inherited(entry)
            for entry in _records(self.manifest_path, io, _entries)
            if not discard_deleted or entry.status is not ManifestEntryStatus.DELETED
        ]

    def _inherited(self, entry: ManifestEntry) -> ManifestEntry:
        if entry.snapshot_id is None and self.added_snapshot_id is not None:
            entry.snapshot_id = self.added_snapshot_id
        if self.sequence_number == 0 or entry.status is ManifestEntryStatus.ADDED:
            if entry.sequence_number is None:
                entry.sequence_number = self.sequence_number
            if entry.file_sequence_number is None:
                entry.file_sequence_number = self.sequence_number
        entry.data_file.spec_id = self.partition_spec_id
        return entry


def _listed(schema: Schema) -> Reader:
    return resolve_reader(
        schema,
        MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
        read_types={-1: _Manifest, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    )


def _entries(schema: Schema) -> Reader:
    return resolve_reader(
        schema,
        MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    )


def _records(location: str, io: FileIO, reader: Callable[[Schema], Reader]) -> Sequence[Any]:
    """Read a manifest or a list of manifests."""
    try:
        with decoding(), io.new_input(location).open() as stream:
            return list(decoded_records(stream.read(), reader))
    except (FileNotFoundError, UnreadableRecordsError) as error:
        what = "it is missing" if isinstance(error, FileNotFoundError) else error.__cause__
        raise _damaged(location, what or "its blocks do not end where they should") from error


def _damaged(path: str, error: object) -> CorruptTableError:
    return CorruptTableError(Message.UNSUPPORTED_ICEBERG_TABLE_METADATA, error=error, path=path)


def _require_positions(file: DataFile) -> None:
    if file.content is DataFileContent.EQUALITY_DELETES:
        raise _unsupported(
            f"deletes rows by their values ({file.file_path}), and a Delta table only knows rows "
            "by their positions"
        )
    if file.file_format is not FileFormat.PARQUET:
        raise _unsupported(
            f"deletes rows by the file {file.file_path}, which is not Parquet but "
            f"{file.file_format.value}"
        )


def _require_parquet(file: DataFile) -> None:
    if file.file_format is not FileFormat.PARQUET:
        raise _unsupported(f"has the {file.file_format.value} file {file.file_path}")
    if file.key_metadata is not None:
        raise _unsupported(f"has the encrypted file {file.file_path}")


def _unsupported(reason: str) -> UnsupportedError:
    return UnsupportedError(Message.UNSUPPORTED_ICEBERG_TABLE_REASON, reason=reason)


def _log_path(store: Store, location: str) -> str:
    uri = located(store, location)
    below = relative_path(store.root_uri, uri)
    return encode_uri(uri) if below is None else encode_path(below)


@dataclass(slots=True)
class _DeletedRows:
    """The files of deleted rows, each read once (C-72)."""

    io: FileIO
    known: dict[str, Mapping[str, npt.NDArray[np.int64]]] = field(default_factory=dict)

    def of(self, task: FileScanTask) -> RowIndexes | None:
        """Return the positions of the deleted rows of a data file."""
        path, parts = task.file.file_path, []
        for file in task.delete_files:
            if file.file_path not in self.known:
                self.known[file.file_path] = dict(self._read(file.file_path))
            if (rows := self.known[file.file_path].get(path)) is not None:
                parts.append(rows)
        if not parts:
            return None
        positions = np.unique(np.concatenate(parts))
        if positions[0] < 0 or positions[-1] >= task.file.record_count:
            raise CorruptTableError(
                Message.UNSUPPORTED_ICEBERG_TABLE_DELETES,
                record_count=task.file.record_count,
                positions=positions[-1],
                path=path,
            )
        return positions.astype(np.uint64)

    def _read(self, location: str) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        with self.io.new_input(location).open() as stream:
            content = pa.py_buffer(stream.read())
        table = sound_parquet(pa.BufferReader(content)).read(columns=list(_ROWS_TOGETHER))
        found = defaultdict(list)
        for batch in table.to_batches():
            paths = batch.column(0).cast(pa.string()).dictionary_encode()
            codes, positions = paths.indices.to_numpy(), batch.column(1).to_numpy()
            for code, path in enumerate(paths.dictionary.to_pylist()):
                found[path].append(positions[codes == code])
        for path, parts in found.items():
            yield path, np.concatenate(parts)


_HINT = "metadata/version-hint.text"
_METADATA = re.compile(r".*\.metadata\.json(?:\.gz)?|.*\.gz\.metadata\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFile:
    """A table given by one of its metadata files; see `IcebergTable`."""

    store: Store
    """Of the table's root."""
    metadata: TableMetadata
    uri: str
    """Of the metadata file."""
    listed: tuple[str, ...]
    """The metadata files in the same directory, including this one."""

    @property
    def location(self) -> str:
        """The table's root, from the metadata."""
        return self.store.root_uri

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def read(self) -> IcebergContent:
        """Read the content of the current snapshot."""
        return read_content(self.metadata, self.store)

    def require_current(self) -> None:
        """Search for metadata newer than the metadata that was read.

        Raises:
            ConcurrentWriteException: there is some.
        """
        directory = self.uri.rpartition("/")[0]
        new = set(_metadata_files(self.store.at(directory))) - set(self.listed)
        if new:
            raise ConcurrentWriteException(
                Message.CONCURRENT_WRITE_ICEBERG, newest=min(new), path=self.location
            )


def open_table(store: Store) -> MetadataFile:
    """Open the table in a directory, or by its metadata file; the store is at the given location.

    Raises:
        InvalidRequestError: there is no table, or its newest metadata cannot be determined.
        CorruptTableError: the metadata cannot be read.
    """
    directory, _, name = store.root_uri.rpartition("/")
    if not _METADATA.fullmatch(name):
        directory, name = f"{store.root_uri}/metadata", _newest(store)
    beside = store.at(directory)
    listed = _metadata_files(beside)
    if name not in listed:
        raise _not_found(f"{directory}/{name}")
    uri = f"{directory}/{name}"
    try:
        metadata = FromInputFile.table_metadata(StoreFileIO(store).new_input(uri))
    except (*DAMAGED_METADATA, BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(uri, str(error).partition("\n")[0]) from error
    root = store.at(located(store, metadata.location.rstrip("/")))
    return MetadataFile(store=root, metadata=metadata, uri=uri, listed=listed)


def _metadata_files(store: Store) -> tuple[str, ...]:
    return tuple(file.path for file in store.list_from("") if _METADATA.fullmatch(file.path))


def _newest(store: Store) -> str:
    """Return the name of the metadata file that the version hint of a directory names."""
    if store.exists(_HINT):
        hint = store.read(_HINT).decode(errors="replace").strip()
        if _METADATA.fullmatch(hint):
            return hint
        return f"v{hint}.metadata.json" if hint.isdecimal() else f"{hint}.metadata.json"
    found = [file.name for file in store.list_from("metadata") if _METADATA.fullmatch(file.name)]
    if not found:
        raise _not_found(store.root_uri)
    raise InvalidRequestError(
        Message.UNSUPPORTED_ICEBERG_TABLE_METADATA_FILES, newest=max(found), path=store.root_uri
    )


def _not_found(place: str) -> InvalidRequestError:
    return InvalidRequestError(Message.PATH_NOT_FOUND_ICEBERG, path=place)


_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_FLOATS = (I.FloatType, I.DoubleType)
_WITHOUT_BOUNDS = (I.BooleanType, I.BinaryType, I.FixedType)


def file_statistics(
    leaves: Iterable[Leaf], file: DataFile, ids: Collection[int]
) -> Mapping[LeafPath, LeafStatistics]:
    """Return the known statistics of a file's leaves; ``ids`` are those of its fields."""
    return {leaf.path: _leaf(leaf, file, ids) for leaf in leaves}


def _leaf(leaf: Leaf, file: DataFile, ids: Collection[int]) -> LeafStatistics:
    if leaf.field_id not in ids:
        return LeafStatistics(None, None, file.record_count)
    nulls = (file.null_value_counts or {}).get(leaf.field_id) if len(leaf.path) == 1 else None
    if nulls == file.record_count or isinstance(leaf.type, _WITHOUT_BOUNDS):
        return LeafStatistics(None, None, nulls)
    if isinstance(leaf.type, _FLOATS) and (file.nan_value_counts or {}).get(leaf.field_id) != 0:
        return LeafStatistics(None, None, nulls)
    minimum = _bound(leaf.type, (file.lower_bounds or {}).get(leaf.field_id))
    maximum = _bound(leaf.type, (file.upper_bounds or {}).get(leaf.field_id))
    if isinstance(leaf.type, _FLOATS):  # both zeros are equal
        minimum = -0.0 if minimum == 0 else minimum
        maximum = 0.0 if maximum == 0 else maximum
    return LeafStatistics(minimum, maximum, nulls)


def _bound(kind: I.PrimitiveType, content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        value = python_value(kind, from_bytes(kind, content))
    except (struct.error, UnicodeDecodeError, OverflowError):
        return None  # of a former type of the column
    return None if isinstance(value, float) and math.isnan(value) else value


def python_value(kind: I.PrimitiveType, value: Any) -> Any:
    """Return a value as Python represents it: Iceberg counts days and microseconds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    match kind:
        case I.DateType():
            return date.fromordinal(_EPOCH.toordinal() + value)
        case I.TimestampType():
            return _EPOCH + timedelta(microseconds=value)
        case I.TimestamptzType():
            return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=timezone.utc)
        case _:
            return value


_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The columns of files of one kind; shared by all such files."""

    types: Mapping[int, pa.DataType]
    """Of the leaves, by field id."""
    ids: frozenset[int]
    """Of all fields, nested ones too."""


def read_columns(store: Store, files: Sequence[tuple[str, DataFile]]) -> Sequence[FileColumns]:
    """Read the footers of data files, given by their locations, in their order.

    Raises:
        CorruptTableError: a file has another size or number of rows than Iceberg says, is missing
            or not Parquet.
        UnsupportedError: a file has columns without ids.
    """
    kinds: dict[str, FileColumns] = {}
    ends: dict[str, int] = {}

    def read_end(source: tuple[str, DataFile], num_bytes: int) -> FileEnd:
        directory, _, name = located(store, source[0]).rpartition("/")
        try:
            end = store.at(directory).read_end(name, num_bytes)
        except FileNotFoundError as missing:
            raise _broken(source[0], "is missing") from missing
        ends[source[0]] = end.size_bytes
        return end

    def describe(source: tuple[str, DataFile], footer: pq.FileMetaData) -> FileColumns:
        location, file = source
        size = ends.pop(location)
        if (size, footer.num_rows) != (file.file_size_in_bytes, file.record_count):
            raise _broken(
                location,
                f"has {size} bytes and {footer.num_rows} rows, and the manifest says "
                f"{file.file_size_in_bytes} and {file.record_count}",
            )
        message = schema_message(footer)
        if message not in kinds:
            kinds[message] = _columns(location, footer.schema.to_arrow_schema())
        return kinds[message]

    return list(map_footers(files, describe, read_end=read_end, name=lambda source: source[0]))


def _broken(location: str, reason: str) -> CorruptTableError:
    return CorruptTableError(Message.UNSUPPORTED_ICEBERG_TABLE_FILE, reason=reason, path=location)


def _columns(location: str, schema: pa.Schema) -> FileColumns:
    types: dict[int, pa.DataType] = {}
    ids = set()
    for path, file_field in _fields(list(schema), ()):
        text = (file_field.metadata or {}).get(_ID)
        if text is None:
            raise UnsupportedError(
                Message.UNSUPPORTED_ICEBERG_TABLE_FIELD_IDS, path=location, column=".".join(path)
            )
        ids.add(int(text))
        if not pa.types.is_nested(file_field.type):
            types[int(text)] = file_field.type
    return FileColumns(types=types, ids=frozenset(ids))


def _fields(
    fields: Sequence[pa.Field], prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """Yield all fields, nested ones too."""
    for file_field in fields:
        path = (*prefix, file_field.name)
        yield path, file_field
        kind = file_field.type
        if pa.types.is_struct(kind):
            yield from _fields([kind.field(n) for n in range(kind.num_fields)], path)
        elif pa.types.is_map(kind):
            yield from _fields([kind.key_field, kind.item_field], path)
        elif pa.types.is_nested(kind):
            yield from _fields([kind.value_field], path)


def narrowest_types(schema: Schema, columns: Sequence[FileColumns]) -> Mapping[int, DataType]:
    """Return the types of files that are narrower than the table's, by field id."""
    wanted = {
        file_field.field_id: primitive(
            file_field.field_type, (str(schema.find_column_name(file_field.field_id)),)
        )
        for file_field in index_by_id(schema).values()
        if isinstance(file_field.field_type, I.PrimitiveType)
    }
    found: dict[int, DataType] = {}
    for kind in {id(known): known for known in columns}.values():
        for field_id, arrow in kind.types.items():
            narrow, wide = _widened(arrow), wanted.get(field_id)
            if narrow is None or wide is None or not can_widen(narrow, wide):
                continue
            if field_id not in found or can_widen(narrow, found[field_id]):
                found[field_id] = narrow
    return found


def _widened(kind: pa.DataType) -> DataType | None:
    """Return the type of a file's leaf if it is one that Iceberg widens."""
    if pa.types.is_int32(kind):
        return INTEGER
    if pa.types.is_float32(kind):
        return FLOAT
    if pa.types.is_date32(kind):
        return DATE
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    return None


_PRIMITIVES: Mapping[type[I.IcebergType], DataType] = {
    I.BooleanType: BOOLEAN,
    I.IntegerType: INTEGER,
    I.LongType: LONG,
    I.FloatType: FLOAT,
    I.DoubleType: DOUBLE,
    I.DateType: DATE,
    I.TimestampType: TIMESTAMP_NTZ,
    I.TimestamptzType: TIMESTAMP,
    I.StringType: STRING,
    I.BinaryType: BINARY,
    I.FixedType: BINARY,
}


def delta_schema(schema: Schema, narrowest: Mapping[int, DataType]) -> StructType:
    """Return the columns of a Delta table; ``narrowest`` has the types in files, by field id."""
    after = _struct(schema.fields, {}, ())
    return with_type_changes(_struct(schema.fields, narrowest, ()), after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A column without fields, not inside an array or map."""

    field_id: int
    path: LeafPath
    type: I.PrimitiveType


def leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the leaves that can have statistics, in schema order."""
    yield from _leaves(schema.fields, ())


def _leaves(fields: tuple[I.NestedField, ...], prefix: LeafPath) -> Iterator[Leaf]:
    for nested in fields:
        path = (*prefix, nested.name)
        match nested.field_type:
            case I.StructType() as inner:
                yield from _leaves(inner.fields, path)
            case I.PrimitiveType() as kind:
                yield Leaf(field_id=nested.field_id, path=path, type=kind)
            case _:
                continue


def _struct(
    fields: tuple[I.NestedField, ...], narrowest: Mapping[int, DataType], prefix: LeafPath
) -> StructType:
    return StructType(tuple(_field(field, narrowest, prefix) for field in fields))


def _field(
    field: I.NestedField, narrowest: Mapping[int, DataType], prefix: LeafPath
) -> StructField:
    path = (*prefix, field.name)
    if field.initial_default is not None:
        raise _unsupported_type(
            path, f"has the default {field.initial_default!r} for rows that were there before it"
        )
    metadata = {FIELD_ID: field.field_id, PHYSICAL_NAME: field.name}
    if field.doc:
        metadata["comment"] = field.doc
    return StructField(
        field.name,
        _type(field, narrowest, path),
        # A Delta table would have to check NOT NULL inside structs itself.
        nullable=bool(prefix) or field.optional,
        metadata=metadata,
    )


def _type(field: I.NestedField, narrowest: Mapping[int, DataType], path: LeafPath) -> DataType:
    match field.field_type:
        case I.StructType() as struct:
            return _struct(struct.fields, narrowest, path)
        case I.ListType() as array:
            return ArrayType(_type(array.element_field, narrowest, (*path, "element")))
        case I.MapType() as map_:
            return MapType(
                _type(map_.key_field, narrowest, (*path, "key")),
                _type(map_.value_field, narrowest, (*path, "value")),
            )
        case I.PrimitiveType() as kind:
            return narrowest.get(field.field_id) or primitive(kind, path)
        case other:
            raise _unsupported_type(path, f"has the type {other}")


def primitive(kind: I.PrimitiveType, path: LeafPath) -> DataType:
    """Return the Delta type for an Iceberg type.

    Raises:
        UnsupportedError: there is none.
    """
    if isinstance(kind, I.DecimalType):
        return DecimalType(kind.precision, kind.scale)
    found = _PRIMITIVES.get(type(kind))
    if found is None:
        raise _unsupported_type(path, f"has the type {kind}")
    return found


def _unsupported_type(path: LeafPath, reason: str) -> UnsupportedError:
    column = ".".join(path)
    return UnsupportedError(Message.UNSUPPORTED_DATA_TYPES_ICEBERG, reason=reason, column=column)
