"""The current snapshot of an Iceberg table, file by file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import FileScanTask, ManifestGroupPlanner
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from puredelta.commands.convert.iceberg.content import IcebergContent, IcebergFile
from puredelta.commands.convert.iceberg.footers import narrowest_types, read_columns
from puredelta.commands.convert.iceberg.partitions import Partitions
from puredelta.commands.convert.iceberg.schema import delta_schema, leaves
from puredelta.commands.convert.iceberg.statistics import file_statistics
from puredelta.commands.convert.iceberg.store_io import StoreFileIO, located
from puredelta.errors import CorruptTableError, ErrorCode, UnsupportedError
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.actions.paths import encode_path, encode_uri, relative_path
from puredelta.protocol.schema.types import DataType
from puredelta.store.base import Store
from puredelta.worker.sound_kinds import sound_parquet

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
    return UnsupportedError(
        f"The Iceberg table cannot become a Delta table: it {reason}. Rewrite its data files in "
        "Iceberg (rewrite_data_files), then convert it again.",
        code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
    )


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
        """Return the positions that are deleted in a data file."""
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
                f"Rows are deleted that the file {path} does not have: it has "
                f"{task.file.record_count}, and row {positions[-1]} is deleted.",
                code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
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
