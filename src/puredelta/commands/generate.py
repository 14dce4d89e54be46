"""GENERATE: files that tell engines without Delta support which data files are the table's.

``symlink_format_manifest`` writes, for each partition, a text file with one absolute path a
line, as Presto's and Athena's ``SymlinkTextInputFormat`` reads it.
"""

from __future__ import annotations

from collections import defaultdict

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.values.partition_escape import partition_directory
from puredelta.store.base import Store

SYMLINK_MANIFEST = "symlink_format_manifest"
MANIFEST_DIRECTORY = "_symlink_format_manifest"

_MANIFEST = "manifest"


def generate(store: Store, snapshot: Snapshot, mode: str) -> int:
    """Write the files of a mode, case ignored, for this version; return how many.

    Manifests of partitions that have no files any more are removed.

    Raises:
        InvalidRequestError: there is no such mode (DELTA_MODE_NOT_SUPPORTED), or files have
            deletion vectors, which other engines would not see.
        UnsupportedError: the table has column mapping
            (UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING).
    """
    if mode.lower() != SYMLINK_MANIFEST:
        raise InvalidRequestError(
            f"Specified mode '{mode}' is not supported. Supported modes are: {SYMLINK_MANIFEST}",
            code=ErrorCode.UNSUPPORTED_GENERATE_MODE,
            mode=mode,
        )
    _require_readable_by_others(snapshot)
    manifests = manifest_contents(snapshot)
    for path, content in manifests.items():
        store.put(path, content.encode())
    for file in list(store.walk(MANIFEST_DIRECTORY)):
        if file.name == _MANIFEST and file.path not in manifests:
            store.delete(file.path)
    return len(manifests)


def manifest_contents(snapshot: Snapshot) -> dict[str, str]:
    """Return the text of each manifest by its path; an unpartitioned table has one always."""
    columns = tuple(
        zip(
            snapshot.config.partition_columns,
            snapshot.config.physical_partition_columns,
            strict=True,
        )
    )
    lines: defaultdict[str, list[str]] = defaultdict(list)
    if not columns:
        lines[f"{MANIFEST_DIRECTORY}/{_MANIFEST}"] = []
    for add in snapshot.files.adds():
        values = [(name, add.partition_values.get(physical)) for name, physical in columns]
        partition = f"{partition_directory(values)}/" if values else ""
        path = f"{MANIFEST_DIRECTORY}/{partition}{_MANIFEST}"
        lines[path].append(absolute_uri(snapshot.root_uri, add.path))
    return {path: "".join(f"{uri}\n" for uri in uris) for path, uris in lines.items()}


def _require_readable_by_others(snapshot: Snapshot) -> None:
    if snapshot.config.column_mapping is not ColumnMappingMode.NONE:
        raise UnsupportedError(
            "Manifest generation is not supported for tables that leverage column mapping, as "
            "external readers cannot read these Delta tables.",
            code=ErrorCode.UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING,
        )
    vectors = snapshot.files.rows["deletion_vector"]
    if vectors.null_count < len(vectors):
        raise InvalidRequestError(
            "Symlink manifest generation is unsupported while deletion vectors are present in the "
            f"table {snapshot.root_uri}. In order to produce a version of the table without "
            "deletion vectors, rewrite its files.",
            code=ErrorCode.MANIFEST_WITH_DELETION_VECTORS,
            path=snapshot.root_uri,
        )
