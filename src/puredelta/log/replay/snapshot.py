"""One version of a table: its configuration and the state of its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.replay import LogState
from puredelta.protocol.actions.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from puredelta.protocol.table.table_config import TableConfig
from puredelta.quantities import in_milliseconds
from puredelta.store.base import Store, StoredFile
from puredelta.store.registry import open_store


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The state of a table at one version; it never changes and may be shared by threads."""

    root_uri: str
    """The table root as an absolute, decoded URI without a trailing slash."""
    version: int
    timestamp_ms: int
    """When the version was committed: its in-commit timestamp, else the file's time."""
    in_commit_timestamp_ms: int | None
    """None if in-commit timestamps are not enabled, or the commit lacks its own (X-11)."""
    config: TableConfig
    """Protocol, metadata and schema, validated together; readable by this library."""
    state: LogState
    """Files, tombstones, transactions and domains after all commits."""
    commit_file: StoredFile | None
    """The commit file of this version as listed; None if only its checkpoint is left, or if
    the commit has just been written and not been listed."""
    last_checkpoint_version: int | None
    """The version of the newest complete checkpoint that was listed, at most this version."""

    open_at: Callable[[str], Store] = field(default=open_store, repr=False)
    """Opens a directory outside of the table that the log names, as the table was opened."""

    opened_as: str | None = None
    """The location by which a session opens the table, where that is not its root."""

    @property
    def address(self) -> str:
        """The location by which a session opens the table again."""
        return self.root_uri if self.opened_as is None else self.opened_as

    def with_files(self, files: FileTable) -> Snapshot:
        """Return the version as if these were its active files: some of them, or change files."""
        return replace(self, state=replace(self.state, files=files))

    @property
    def files(self) -> FileTable:
        """The active data files."""
        return self.state.files

    @property
    def tombstones(self) -> pa.Table:
        """The removed files (`TOMBSTONE_SCHEMA`), expired ones included."""
        return self.state.tombstones

    @property
    def set_transactions(self) -> Mapping[str, SetTransaction]:
        """The newest ``txn`` action of every application, expired ones included, by its id."""
        return self.state.set_transactions

    def unexpired_transactions(self, now_ms: int) -> Mapping[str, SetTransaction]:
        """Return `set_transactions` that ``delta.setTransactionRetentionDuration`` still keeps.

        A transaction without a time counts as older than any other.
        """
        retention = self.config.properties.set_transaction_retention
        if retention is None:
            return self.set_transactions
        oldest_ms = now_ms - in_milliseconds(retention)
        return {
            app_id: transaction
            for app_id, transaction in self.set_transactions.items()
            if transaction.last_updated_ms is not None and transaction.last_updated_ms > oldest_ms
        }

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """The metadata of every domain that was not removed, by domain."""
        return self.state.domain_metadata

    @property
    def protocol(self) -> Protocol:
        """The protocol action in force."""
        return self.config.protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata action in force."""
        return self.config.metadata
