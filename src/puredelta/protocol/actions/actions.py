"""The actions of the Delta protocol, one frozen class per action (section "Actions").

This module has names and types only, no JSON keys, files or clocks. A value that an action lacks
is ``None``, never an empty substitute.

Writers spell one path in several ways, so paths are compared in their canonical form. A file
whose deletion vector changes is another logical file, because other rows of it count. Rules
about the physical file, such as conflicts between commits, use the canonical path alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from puredelta.protocol.actions.paths import CanonicalPath, canonical_path


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor:
    """Where the deleted row positions of a data file are (section "Deletion Vectors")."""

    storage_type: str
    """``u`` relative file by UUID, ``p`` absolute path, ``i`` inline."""
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int
    """How many rows are deleted."""
    max_row_index: int | None = None

    @property
    def unique_id(self) -> str:
        """What identifies the vector in a file's identity: ``<type><path>[@offset]``."""
        base = f"{self.storage_type}{self.path_or_inline}"
        return base if self.offset is None else f"{base}@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A data file that is part of the table."""

    path: str
    """Percent-encoded URI reference, relative to the table root unless absolute (X-80)."""
    partition_values: Mapping[str, str | None]
    """By physical column name; text as the log spells it (X-82, X-83)."""
    size_bytes: int
    modified_ms: int
    data_change: bool
    stats: str | None = None
    """JSON text, section "Per-file Statistics"."""
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """The tombstone of a data file."""

    path: str
    deleted_ms: int | None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size_bytes: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddChangeFile:
    """A file of change rows, action ``cdc`` (section "Add CDC File")."""

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Schema, partitioning and configuration of the table, action ``metaData``."""

    id: str
    schema_string: str
    """The schema as JSON text."""
    partition_columns: tuple[str, ...]
    """Logical names."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_ms: int | None = None
    name: str | None = None
    description: str | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a client must understand to touch the table.

    The feature sets are ``None`` below reader version 3 and writer version 7, where the
    numbers imply the features.
    """

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction:
    """The last version that an application has written, action ``txn``."""

    app_id: str
    version: int
    last_updated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    """Configuration of a named domain; ``removed`` is its tombstone."""

    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """Provenance of a commit. ``txn_id`` names the attempt, not the version.

    ``extra`` keeps unknown keys, so that the history shows them.
    """

    timestamp_ms: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values are JSON values: text, numbers, booleans."""
    operation_metrics: Mapping[str, str] | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    user_metadata: str | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    in_commit_timestamp_ms: int | None = None
    tags: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata:
    """First action of a V2 checkpoint."""

    version: int
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A file of file actions that a V2 checkpoint refers to, by name in ``_sidecars/``."""

    path: str
    size_bytes: int
    modified_ms: int
    tags: Mapping[str, str] | None = None


Action: TypeAlias = (
    Add
    | Remove
    | AddChangeFile
    | Metadata
    | Protocol
    | SetTransaction
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | Sidecar
)
"""Closed union: ``match`` over it ends in ``assert_never``."""

FileAction: TypeAlias = Add | Remove


VECTOR_SEPARATOR = "\0"
"""Stands between path and deletion vector in `FileActionKey.encoded`; no path has it."""


class FileActionKey(NamedTuple):
    """The identity of a logical file: two actions with equal keys are about the same file.

    A named tuple, because replaying a log makes and hashes one for every action.
    """

    path: CanonicalPath
    vector_id: str | None
    """`DeletionVectorDescriptor.unique_id`; ``None`` for a file without a deletion vector."""

    @classmethod
    def of(cls, action: FileAction) -> FileActionKey:
        """Return the key of the file that an action adds or removes."""
        vector = action.deletion_vector
        return cls(canonical_path(action.path), None if vector is None else vector.unique_id)

    @property
    def encoded(self) -> str:
        """The key as one text, for columns of keys; equal texts mean equal keys.

        Escaped bytes in a path need not be UTF-8, which Arrow cannot hold: they are written
        with backslashes.
        """
        path: str = self.path
        if not path.isascii():
            path = path.encode("utf-8", "backslashreplace").decode()
        return path if self.vector_id is None else f"{path}{VECTOR_SEPARATOR}{self.vector_id}"
