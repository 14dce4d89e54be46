"""One version of a table: configuration, active files and what else the log remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import StoredFile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The state of a table at one version; it never changes and may be shared by threads."""

    root_uri: str
    """The table root as an absolute, decoded URI without a trailing slash."""
    version: int
    timestamp_ms: int
    """When the version was committed: its in-commit timestamp, else the file's time."""
    in_commit_timestamp_ms: int | None
    """None where in-commit timestamps are not enabled, or the commit lacks its own (X-11)."""
    config: TableConfig
    """Protocol, metadata and schema, validated together; readable by this library."""
    files: FileTable
    tombstones: pa.Table
    """Removed files (`puredelta.log.files.file_table.TOMBSTONE_SCHEMA`), expired ones included."""
    set_transactions: Mapping[str, SetTransaction]
    """By application id."""
    domain_metadata: Mapping[str, DomainMetadata]
    """By domain; removed domains are left out."""
    commit_file: StoredFile | None
    """The commit file of this version as listed; None where only its checkpoint is left, or
    where it was not listed because it has just been written."""
    last_checkpoint_version: int | None
    """The newest complete checkpoint seen at or below this version."""

    @property
    def protocol(self) -> Protocol:
        """The protocol action in force."""
        return self.config.protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata action in force."""
        return self.config.metadata
