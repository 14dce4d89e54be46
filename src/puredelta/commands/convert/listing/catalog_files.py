"""The data files of a table of the catalog: those of the partitions that the catalog knows.

Nobody looks below the directories it names (C-22). A partition whose directory is gone has no
files; one that lies outside of the table's directory cannot be part of a Delta table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from puredelta.commands.convert.listing.parquet_dir import require_files
from puredelta.commands.convert.listing.partitions import PartitionDirectory
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.protocol.actions.paths import decode_path, relative_path
from puredelta.protocol.values.partition_escape import HIVE_NULL, partition_directory
from puredelta.spark.jvm.entry_format import StoredPartition
from puredelta.store.base import Store, StoredFile

_HIDDEN = ("_", ".")
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFiles:
    """What the catalog says lies where."""

    files: tuple[StoredFile, ...]
    """Ordered by path."""
    directories: Mapping[str, PartitionDirectory]


def list_table_files(store: Store) -> CatalogFiles:
    """Return the files directly in the directory of a table without partitions.

    Raises:
        TableNotFoundError, InvalidRequestError: as `require_files`.
    """
    files = _visible(store, "")
    require_files(store, files)
    nothing = PartitionDirectory(levels=(), file_uri=store.root_uri)
    return CatalogFiles(files=tuple(files), directories={"": nothing})


def list_partition_files(
    store: Store, table: str, partitions: Iterable[StoredPartition], columns: Sequence[str]
) -> CatalogFiles:
    """Return the files directly in the directories of a table's partitions.

    Raises:
        InvalidRequestError: the catalog has no partitions (DELTA_CONVERSION_NO_PARTITION_FOUND),
            one that lies outside of the table's directory, or two in one directory.
        TableNotFoundError, InvalidRequestError: as `require_files`.
    """
    directories: dict[str, PartitionDirectory] = {}
    for partition in partitions:
        levels = _levels(partition, columns)
        path = _directory(store, table, partition, levels)
        if path in directories:
            raise _shared(store, table, path)
        uri = f"{store.root_uri}/{path}"
        directories[path] = PartitionDirectory(levels=levels, file_uri=uri)
    if not directories:
        raise InvalidRequestError(
            f"Found no partition information in the catalog for table {table}. Have you run "
            '"MSCK REPAIR TABLE" on your table to discover partitions?',
            code=ErrorCode.CONVERSION_NO_PARTITION_FOUND,
            table=table,
        )
    with ThreadPoolExecutor(max_workers=_THREADS) as threads:
        listed = threads.map(lambda path: _visible(store, path), directories)
        files = [file for found in listed for file in found]
    require_files(store, files)
    return CatalogFiles(files=tuple(sorted(files, key=lambda f: f.path)), directories=directories)


def _visible(store: Store, directory: str) -> list[StoredFile]:
    found = store.list_from(directory)
    return [file for file in found if not file.name.startswith(_HIDDEN)]


def _levels(
    partition: StoredPartition, columns: Sequence[str]
) -> tuple[tuple[str, str | None], ...]:
    by_name = {name.lower(): text for name, text in partition.values.items()}
    texts = [(name, by_name.get(name.lower())) for name in columns]
    return tuple((name, None if text in (HIVE_NULL, "") else text) for name, text in texts)


def _directory(
    store: Store,
    table: str,
    partition: StoredPartition,
    levels: tuple[tuple[str, str | None], ...],
) -> str:
    """Return the path of a partition's directory, relative to that of the table."""
    usual = partition_directory(levels)
    if partition.location is None:
        return usual
    uri = decode_path(partition.location)
    # The table's own directory has no path below itself: a file in it has.
    below = relative_path(store.root_uri, f"{uri.rstrip('/')}/file")
    if below is None:
        raise InvalidRequestError(
            f"Fail to relativize path {uri} against base path {store.root_uri}: the partition "
            f"{usual} of {table} lies outside of the table's directory. Move its files to "
            f"{store.root_uri}/{usual} and set its location (ALTER TABLE ... SET LOCATION), or "
            "drop the partition from the catalog.",
            code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
            table=table,
            partition=usual,
            location=uri,
        )
    return below.rpartition("/")[0]


def _shared(store: Store, table: str, path: str) -> DeltaError:
    return InvalidRequestError(
        f"Two partitions of {table} share the directory {store.root_uri}/{path}, so their files "
        "cannot be told apart. Drop one of them from the catalog.",
        code=ErrorCode.OPERATION_NOT_ALLOWED_DETAIL,
        table=table,
        location=f"{store.root_uri}/{path}",
    )
