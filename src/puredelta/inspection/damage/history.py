"""Damage in the commits of a table: each commit is compared with itself and with those before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timezone

from puredelta.errors import DeltaError
from puredelta.inspection.damage.kinds import Damage, Damages
from puredelta.log.commit.row_ids import ROW_TRACKING_DOMAIN, assigns_row_ids, high_water_mark
from puredelta.log.files.row_counts import logical_rows, physical_rows
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CommitInfo,
    DomainMetadata,
    FileActionKey,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
)
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.features.column_mapping import FIELD_ID
from puredelta.protocol.schema.partition_values import partition_identity
from puredelta.protocol.schema.traversal import all_fields
from puredelta.protocol.table.table_config import TableConfig

_HOUR_MS = 3_600_000
_REPLACING = ("CREATE", "REPLACE", "CLONE", "RESTORE", "CONVERT")
_WRITES = ("WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT")
IN_COMMIT_TIMESTAMP = "inCommitTimestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChanges:
    """The change files of one commit, and how many rows they must add up to."""

    version: int
    modified_ms: int
    paths: tuple[str, ...]
    difference: int | None
    """Rows added less rows removed, None where the log does not say."""


@dataclass(slots=True, kw_only=True)
class History:
    """The table as its commits so far leave it."""

    found: Damages
    is_complete: bool = True
    """Whether every commit so far was read: only then the active files are known."""
    active: dict[FileActionKey, Add] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    config: TableConfig | None = None
    applications: dict[str, int] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """Encoded paths of all files that commits name."""
    changes: list[CommitChanges] = field(default_factory=list)
    _transactions: dict[str, int] = field(default_factory=dict)
    _newest_ms: int | None = None
    _in_commit_ms: int | None = None

    def begin(self, snapshot: Snapshot) -> None:
        """Start at the version of a checkpoint: older commits are gone."""
        self.active = {FileActionKey.of(add): add for add in snapshot.files.adds()}
        self.protocol, self.metadata = snapshot.protocol, snapshot.metadata
        self.config = snapshot.config
        self.applications = {a: t.version for a, t in snapshot.set_transactions.items()}
        self.domains = dict(snapshot.domain_metadata)
        self.named |= {path for add in self.active.values() for path in _paths(add)}
        self.named |= set(snapshot.tombstones["path"].to_pylist())

    def see(self, commit: Commit) -> None:
        """Check a commit, and apply it."""
        info = commit.commit_info
        self._check_definitions(commit)
        self._check_provenance(commit, info)
        self._apply_definition(commit, info)
        self._check_times(commit, info)
        self._check_files(commit, info)
        self._apply_files(commit)

    def see_older(self, commit: Commit) -> None:
        """Check a commit by itself: the state before it is not known."""
        self._check_definitions(commit)
        self._check_provenance(commit, commit.commit_info)
        self.named |= {path for action in commit.actions for path in _paths(action)}

    # --- rules of one commit ---------------------------------------------------------------------

    def _check_definitions(self, commit: Commit) -> None:
        kinds = Counter(type(action) for action in commit.actions)
        for kind in (Metadata, Protocol):
            if kinds[kind] > 1:
                text = f"version {commit.version}: {kinds[kind]} {kind.__name__.lower()} actions"
                self.found.add(Damage.DEFINITIONS, text)
        if commit.version == 0 and not (kinds[Metadata] and kinds[Protocol]):
            self.found.add(Damage.FIRST_COMMIT, "version 0")

    def _check_provenance(self, commit: Commit, info: CommitInfo | None) -> None:
        version = commit.version
        if info is None:
            return
        if info.read_version is not None and info.read_version >= version:
            text = f"version {version}: readVersion {info.read_version}"
            self.found.add(Damage.READ_VERSION, text)
        if info.txn_id is not None:
            first = self._transactions.setdefault(info.txn_id, version)
            if first != version:
                text = f"versions {first} and {version}: txnId {info.txn_id}"
                self.found.add(Damage.TRANSACTION_TWICE, text)
        self._check_output(commit, info)

    def _check_output(self, commit: Commit, info: CommitInfo) -> None:
        """Compare the rows that a write counted with those that its commit adds.

        The number of files proves nothing: delta-spark counts files without rows, too.
        """
        said = _whole(info.operation_metrics, "numOutputRows")
        has_changes = any(isinstance(action, AddChangeFile) for action in commit.actions)
        if info.operation not in _WRITES or said is None or has_changes:
            return
        counts = [physical_rows(a) for a in commit.actions if isinstance(a, Add)]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts) and sum(known) < said:
            text = f"version {commit.version}: numOutputRows {said}, {sum(known)} rows are added"
            self.found.add(Damage.LOST_ACTIONS, text)

    def _check_times(self, commit: Commit, info: CommitInfo | None) -> None:
        at_ms = None if info is None else info.timestamp_ms
        if at_ms is not None:
            if self._newest_ms is not None and at_ms < self._newest_ms - _HOUR_MS:
                hours = (self._newest_ms - at_ms) / _HOUR_MS
                self.found.add(
                    Damage.TIMESTAMPS, f"version {commit.version}: {hours:.1f} hours earlier"
                )
            self._newest_ms = max(at_ms, self._newest_ms or at_ms)
        if self.config is None or not self.config.is_active(IN_COMMIT_TIMESTAMP):
            self._in_commit_ms = None
            return
        is_first = bool(commit.actions) and isinstance(commit.actions[0], CommitInfo)
        in_commit = None if info is None or not is_first else info.in_commit_timestamp_ms
        text = f"version {commit.version}: {in_commit}, before it {self._in_commit_ms}"
        if in_commit is None or in_commit <= (self._in_commit_ms or 0):
            self.found.add(Damage.IN_COMMIT_TIMESTAMP, text)
        self._in_commit_ms = max(in_commit or 0, self._in_commit_ms or 0) or None

    # --- rules beside the state ------------------------------------------------------------------

    def _apply_definition(self, commit: Commit, info: CommitInfo | None) -> None:
        before = self.metadata
        for action in commit.actions:
            match action:
                case Metadata():
                    self.metadata = action
                case Protocol():
                    self.protocol = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case SetTransaction():
                    self._check_application(commit, action)
                case _:
                    pass
        if self.metadata is not None and before is not None and self.metadata.id != before.id:
            operation = (info.operation if info is not None else None) or ""
            if not operation.startswith(_REPLACING):
                text = f"version {commit.version}: {before.id}, then {self.metadata.id}"
                self.found.add(Damage.TABLE_ID, text)
        if self.protocol is not None and self.metadata is not None:
            try:
                self.config = TableConfig.of(self.protocol, self.metadata)
            except DeltaError:
                self.config = None

    def _check_application(self, commit: Commit, action: SetTransaction) -> None:
        before = self.applications.get(action.app_id)
        if before is not None and action.version < before:
            text = f"version {commit.version}: {action.app_id} {before}, then {action.version}"
            self.found.add(Damage.APPLICATION_VERSION, text)
        self.applications[action.app_id] = action.version

    def _check_files(self, commit: Commit, info: CommitInfo | None) -> None:
        adds = [action for action in commit.actions if isinstance(action, Add)]
        removes = [action for action in commit.actions if isinstance(action, Remove)]
        added = Counter(FileActionKey.of(add) for add in adds)
        removed = {FileActionKey.of(remove) for remove in removes}
        version = commit.version
        for key, count in added.items():
            if count > 1 or key in removed:
                self.found.add(Damage.ADDED_AND_REMOVED, f"version {version}: {key.path}")
        if self.is_complete:
            for remove in removes:
                if FileActionKey.of(remove) not in self.active:
                    self.found.add(Damage.REMOVED_UNKNOWN, f"version {version}: {remove.path}")
            for add in adds:
                key = FileActionKey.of(add)
                if add.data_change and key in self.active and key not in removed:
                    self.found.add(Damage.ADDED_AGAIN, f"version {version}: {add.path}")
        if self.config is not None:
            for add in adds:
                self._check_partition(version, add, self.config)
                self._check_row_ids(version, add, self.config)
        self._note_changes(commit, adds, removes, info)

    def _check_partition(self, version: int, add: Add, config: TableConfig) -> None:
        columns = config.physical_partition_columns
        if set(add.partition_values) != set(columns):
            names = ", ".join(add.partition_values) or "none"
            text = f"version {version}: {add.path} has {names}, the table {', '.join(columns)}"
            self.found.add(Damage.PARTITION_VALUES, text)
            return
        for one, name in zip(config.partition_schema.fields, columns, strict=True):
            value = add.partition_values[name]
            if partition_identity(value, one.type, timezone.utc) == ("text", value):
                text = f"version {version}: {add.path} has {one.name} = {value!r}"
                self.found.add(Damage.PARTITION_VALUES, text)

    def _check_row_ids(self, version: int, add: Add, config: TableConfig) -> None:
        if not assigns_row_ids(config):
            return
        of_commit = add.default_row_commit_version
        if add.base_row_id is None or of_commit is None or of_commit > version:
            text = f"{add.base_row_id}, commit version {of_commit}"
            self.found.add(Damage.ROW_IDS, f"version {version}: {add.path} has row id {text}")

    def _note_changes(
        self, commit: Commit, adds: list[Add], removes: list[Remove], info: CommitInfo | None
    ) -> None:
        files = [action for action in commit.actions if isinstance(action, AddChangeFile)]
        if not files or info is None:
            return
        rows_added = [logical_rows(add) for add in adds if add.data_change]
        rows_removed = [self._rows_of(remove) for remove in removes if remove.data_change]
        is_known = None not in rows_added and None not in rows_removed
        known = sum(filter(None, rows_added)) - sum(filter(None, rows_removed))
        self.changes.append(
            CommitChanges(
                version=commit.version,
                modified_ms=commit.modified_ms,
                paths=tuple(file.path for file in files),
                difference=known if is_known else None,
            )
        )

    def _rows_of(self, remove: Remove) -> int | None:
        known = self.active.get(FileActionKey.of(remove))
        return logical_rows(remove) if known is None else logical_rows(known)

    def _apply_files(self, commit: Commit) -> None:
        for action in commit.actions:
            self.named.update(_paths(action))
            if isinstance(action, Remove):
                self.active.pop(FileActionKey.of(action), None)
        for action in commit.actions:
            if isinstance(action, Add):
                self.active[FileActionKey.of(action)] = action

    # --- rules of the newest version -------------------------------------------------------------

    def finish(self) -> None:
        """Check the state after the last commit."""
        if self.config is not None:
            self._check_column_ids(self.config)
        if not self.is_complete:
            return
        paths = Counter(key.path for key in self.active)
        for path, count in paths.items():
            if count > 1:
                self.found.add(Damage.FILE_TWICE, f"{path}: {count} times")
        if self.config is not None and assigns_row_ids(self.config):
            self._check_ranges()

    def _check_ranges(self) -> None:
        """Check that no row id belongs to two files, nor is above the high-water mark."""
        ranges = sorted(
            (add.base_row_id, add.base_row_id + (physical_rows(add) or 0), add.path)
            for add in self.active.values()
            if add.base_row_id is not None
        )
        end, owner = -1, ""
        for first, after, path in ranges:
            if first < end:
                self.found.add(Damage.ROW_IDS, f"{owner} and {path} share row id {first}")
            if after > end:
                end, owner = after, path
        known = [d for d in self.domains.values() if d.domain == ROW_TRACKING_DOMAIN]
        mark = high_water_mark(known)
        if end - 1 > mark:
            self.found.add(Damage.ROW_IDS, f"{owner} has row id {end - 1}, the mark is {mark}")

    def _check_column_ids(self, config: TableConfig) -> None:
        ids = [f.metadata[FIELD_ID] for f in all_fields(config.schema) if FIELD_ID in f.metadata]
        highest = config.properties.column_mapping_max_id
        used = max((number for number in ids if isinstance(number, int)), default=0)
        if config.supports("columnMapping") and used > highest:
            self.found.add(Damage.COLUMN_IDS, f"maxColumnId {highest}, a column has {used}")


def _paths(action: Action) -> Iterable[str]:
    """Return the encoded paths of the files that an action names."""
    if isinstance(action, Add | Remove):
        vector = None if action.deletion_vector is None else vector_path(action.deletion_vector)
        return (action.path,) if vector is None else (action.path, vector)
    return (action.path,) if isinstance(action, AddChangeFile) else ()


def _whole(metrics: Mapping[str, str] | None, name: str) -> int | None:
    text = str((metrics or {}).get(name, ""))
    return int(text) if text.isascii() and text.isdigit() else None
