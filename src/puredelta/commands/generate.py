"""Manifests: lists of a table's data files for engines without Delta support.

``symlink_format_manifest`` writes, for each partition, a text file with one absolute path a
line, in the format of Presto's and Athena's ``SymlinkTextInputFormat``. GENERATE writes them; for
a table with ``delta.compatibility.symlinkFormatManifest.enabled`` every commit updates them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import Action, Add, Remove
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.partition_values import partition_directory
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store

SYMLINK_MANIFEST = "symlink_format_manifest"
MANIFEST_DIRECTORY = "_symlink_format_manifest"

_MANIFEST = "manifest"


def generate(store: Store, snapshot: Snapshot, mode: str) -> int:
    """Write the files of a mode, case ignored, for this version; return their number.

    Manifests of partitions without files are removed.

    Raises:
        InvalidRequestError: there is no such mode (DELTA_MODE_NOT_SUPPORTED), or files have
            deletion vectors, which other engines would not see.
        UnsupportedError: the table has column mapping
            (UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING).
    """
    if mode.lower() != SYMLINK_MANIFEST:
        raise InvalidRequestError(
            Message.UNSUPPORTED_GENERATE_MODE, symlink_manifest=SYMLINK_MANIFEST, mode=mode
        )
    return _write(store, snapshot, frozenset(), every=True)


def update_manifests(store: Store, snapshot: Snapshot, changes: Iterable[Action]) -> int:
    """Write the manifests of the partitions that these actions change; return their number.

    If there is no manifest yet, all of them are written.
    """
    changed = [action for action in changes if isinstance(action, Add | Remove)]
    unknown = any(action.partition_values is None for action in changed)
    every = unknown or not store.exists(MANIFEST_DIRECTORY)
    columns = snapshot.config.physical_partition_columns
    keys = (_key(action.partition_values or {}, columns) for action in changed)
    return _write(store, snapshot, frozenset(keys), every=every)


_Key: TypeAlias = tuple[str | None, ...]


def _write(store: Store, snapshot: Snapshot, keys: frozenset[_Key], *, every: bool) -> int:
    """Write the manifests of some partitions, or of all; remove those without files."""
    _require_readable_by_others(snapshot)
    manifests = manifest_contents(snapshot, None if every else keys)
    if every:
        known = {file.path for file in store.walk(MANIFEST_DIRECTORY) if file.name == _MANIFEST}
    else:
        known = {_manifest_path(snapshot.config, key) for key in keys}
    for path, content in manifests.items():
        store.put(path, content.encode())
    for path in known - manifests.keys():
        store.delete(path)
    return len(manifests)


def manifest_contents(snapshot: Snapshot, keys: frozenset[_Key] | None = None) -> dict[str, str]:
    """Return the text of each manifest, or of those of some partitions, by its path.

    An unpartitioned table always has one.
    """
    config, columns = snapshot.config, snapshot.config.physical_partition_columns
    texts = [
        [text or None for text in snapshot.files.partition_texts(name).to_pylist()]
        for name in columns
    ]
    lines: defaultdict[_Key, list[str]] = defaultdict(list)
    if not columns:
        lines[()] = []
    partitions = zip(*texts, strict=True) if columns else itertools.repeat(())
    for key, path in zip(partitions, snapshot.files.rows["path"].to_pylist(), strict=False):
        if keys is None or key in keys:
            lines[key].append(absolute_uri(snapshot.root_uri, path))
    return {
        _manifest_path(config, key): "".join(f"{uri}\n" for uri in uris)
        for key, uris in lines.items()
    }


def _key(values: Mapping[str, str | None], columns: Iterable[str]) -> _Key:
    """Return a partition as in the name of its directory: by its text, with empty text as NULL.

    Two spellings of one value have a manifest each, as in delta-spark: its directory is named after
    the directory of its files, and each file is in one manifest.
    """
    return tuple(values.get(name) or None for name in columns)


def _manifest_path(config: TableConfig, key: _Key) -> str:
    partition = partition_directory(zip(config.partition_columns, key, strict=True))
    return "/".join(filter(None, (MANIFEST_DIRECTORY, partition, _MANIFEST)))


def _require_readable_by_others(snapshot: Snapshot) -> None:
    if snapshot.config.column_mapping is not ColumnMappingMode.NONE:
        raise UnsupportedError(Message.UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING)
    vectors = snapshot.files.rows["deletion_vector"]
    if vectors.null_count < len(vectors):
        raise InvalidRequestError(Message.MANIFEST_WITH_DELETION_VECTORS, path=snapshot.root_uri)
