"""The current snapshot of an Iceberg table (C-03): its files and its partition columns.

An identity partition of Iceberg becomes a partition column of Delta. A computed partition (days,
buckets, prefixes) does not: the files have the column itself, its bounds skip files, and the table
shows no column that Iceberg hides. If the partitioning has changed, only those columns count that
partition all files (C-71).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError as InvalidJsonError
from pyiceberg import types as I
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import FileScanTask, ManifestGroupPlanner
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform

from puredelta.commands.convert.iceberg_files import (
    FileColumns,
    StoreFileIO,
    file_statistics,
    located,
    narrowest_types,
    python_value,
    read_columns,
)
from puredelta.commands.convert.iceberg_plan import IcebergContent, IcebergFile
from puredelta.commands.convert.iceberg_schema import delta_schema, leaves, primitive
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    InvalidRequestError,
    Message,
    UnsupportedError,
)
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import encode_path, encode_uri, relative_path
from puredelta.protocol.schema.partition_values import (
    HIVE_NULL,
    encode_partition_value,
    is_partition_type,
)
from puredelta.protocol.schema.types import DataType
from puredelta.store.base import Store
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
        return {
            column.name: encode_partition_value(self._value(column, file), column.type)
            for column in self.columns
        }

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
    manifests = snapshot.manifests(io)
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES:
            for entry in manifest.fetch_manifest_entry(io):
                _require_positions(entry.data_file)
    tasks = sorted(
        ManifestGroupPlanner(metadata, io).plan_files(manifests), key=lambda t: t.file.file_path
    )
    for task in tasks:
        _require_parquet(task.file)
    return tasks


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
    except (ValidationError, InvalidJsonError, ValueError) as error:
        raise CorruptTableError(
            Message.UNSUPPORTED_ICEBERG_TABLE_METADATA, error=error, path=uri
        ) from error
    root = store.at(located(store, metadata.location.rstrip("/")))
    return MetadataFile(store=root, metadata=metadata, uri=uri, listed=listed)


def _metadata_files(store: Store) -> tuple[str, ...]:
    return tuple(file.path for file in store.list_from("") if _METADATA.fullmatch(file.path))


def _newest(store: Store) -> str:
    """Return the name of the metadata file that the version hint of a directory names."""
    if store.exists(_HINT):
        hint = store.read(_HINT).decode().strip()
        if _METADATA.fullmatch(hint):
            return hint
        return f"v{hint}.metadata.json" if hint.isdigit() else f"{hint}.metadata.json"
    found = [file.name for file in store.list_from("metadata") if _METADATA.fullmatch(file.name)]
    if not found:
        raise _not_found(store.root_uri)
    raise InvalidRequestError(
        Message.UNSUPPORTED_ICEBERG_TABLE_METADATA_FILES, newest=max(found), path=store.root_uri
    )


def _not_found(place: str) -> InvalidRequestError:
    return InvalidRequestError(Message.PATH_NOT_FOUND_ICEBERG, path=place)
