"""Commits in numbers, from the actions of each file: rows and bytes, changed and rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from puredelta.errors import CorruptTableError, InvalidRequestError, Message
from puredelta.log.files.row_counts import count_file_rows
from puredelta.log.replay.commit_files import read_actions
from puredelta.log.replay.history import file_times, first_timestamped_version
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    CommitInfo,
    FileAction,
    Metadata,
    Protocol,
    Remove,
)
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import StructField

_INSERTED = ("numTargetRowsInserted", "numOutputRows")
_UPDATED = ("numTargetRowsUpdated", "numUpdatedRows")
_DELETED = ("numTargetRowsDeleted", "numDeletedRows")
_OF_UPDATES = frozenset({"UPDATE", "DELETE", "MERGE", "OPTIMIZE", "REORG", "RESTORE"})
"""Operations whose ``numOutputRows``, if they have it, counts more than insertions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """One commit in numbers; None where the log lacks one."""

    version: int
    timestamp_ms: int
    operation: str
    engine: str | None
    user_metadata: str | None
    metrics: dict[str, str]
    num_added: int
    """Data files."""
    num_removed: int
    added_bytes: int
    removed_bytes: int
    rows_added: int | None
    """Rows in the added files, new and copied ones."""
    rows_removed: int | None
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    changes_data: bool
    """False for a commit that only moves rows, such as OPTIMIZE."""
    changes_schema: bool
    changes_protocol: bool

    @property
    def rows_changed(self) -> int:
        """Rows inserted, updated and deleted."""
        return self.rows_inserted + self.rows_updated + self.rows_deleted

    @property
    def changed_bytes(self) -> int:
        """Estimated bytes of new rows among the written bytes, by their share of rows."""
        if not self.changes_data or not self.rows_added:
            return 0
        new = min(self.rows_inserted + self.rows_updated, self.rows_added)
        return round(self.added_bytes * new / self.rows_added)


def newest_commits(log: TableLog, snapshot: Snapshot, *, limit: int) -> Sequence[CommitFacts]:
    """Return the newest commits in numbers, oldest first, as far as their files exist.

    An unreadable commit is left out: `table_findings` reports it.
    """
    listing = list_log(log.store)
    versions = sorted(v for v in listing.commits if v <= snapshot.version)[-limit:]
    times = file_times(listing.commits)
    timestamped_from = first_timestamped_version(snapshot.config)
    ahead = log.store.read_ahead([listing.commits[version] for version in versions])
    found = []
    for version in versions:
        try:
            actions = read_actions(ahead, listing.commits[version].path)
        except CorruptTableError:
            continue
        is_timestamped = timestamped_from is not None and version >= timestamped_from
        found.append(commit_facts(version, times[version], actions, timestamped=is_timestamped))
    return found


def commit_facts(
    version: int, file_ms: int, actions: Sequence[Action], *, timestamped: bool = False
) -> CommitFacts:
    """Return one commit in numbers; ``file_ms`` counts unless it has its own timestamp."""
    info = next((a for a in actions if isinstance(a, CommitInfo)), None) or CommitInfo()
    adds = [a for a in actions if isinstance(a, Add)]
    removes = [a for a in actions if isinstance(a, Remove)]
    rows = count_file_rows(actions)
    files: list[FileAction] = [*adds, *removes]
    changes_data = any(file.data_change for file in files)
    metrics = {name: str(value) for name, value in (info.operation_metrics or {}).items()}
    operation = info.operation or "unknown"
    return CommitFacts(
        version=version,
        timestamp_ms=(info.in_commit_timestamp_ms if timestamped else None) or file_ms,
        operation=operation,
        engine=info.engine_info,
        user_metadata=info.user_metadata,
        metrics=metrics,
        num_added=len(adds),
        num_removed=len(removes),
        added_bytes=sum(a.size_bytes for a in adds),
        removed_bytes=sum(a.size_bytes or 0 for a in removes),
        rows_added=rows.added,
        rows_removed=rows.removed,
        rows_inserted=_inserted(operation, metrics, rows.added) if changes_data else 0,
        rows_updated=_metric(metrics, _UPDATED),
        rows_deleted=_metric(metrics, _DELETED),
        changes_data=changes_data,
        changes_schema=any(isinstance(a, Metadata) for a in actions),
        changes_protocol=any(isinstance(a, Protocol) for a in actions),
    )


def diff_lines(older: Snapshot, newer: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield differences between two versions besides files: subject, before and after."""
    before = {f.name: f for f in older.config.schema.fields}
    after = {f.name: f for f in newer.config.schema.fields}
    for name in (*before, *(n for n in after if n not in before)):
        if before.get(name) != after.get(name):
            yield f"column {name}", _column(before, name), _column(after, name)
    properties = older.metadata.configuration, newer.metadata.configuration
    for key in sorted({*properties[0], *properties[1]}):
        texts = [p.get(key, "") for p in properties]
        if texts[0] != texts[1]:
            yield f"property {key}", texts[0], texts[1]
    features = older.config.supported_features, newer.config.supported_features
    for name in sorted(features[0] ^ features[1]):
        was, now = (("yes" if name in each else "") for each in features)
        yield f"feature {name}", was, now


def _column(columns: dict[str, StructField], name: str) -> str:
    field = columns.get(name)
    if field is None:
        return ""
    return simple_string(field.type) + ("" if field.nullable else " NOT NULL")


def _inserted(operation: str, metrics: dict[str, str], rows_added: int | None) -> int:
    first = operation.split(maxsplit=1)[0] if operation else ""
    if first in _OF_UPDATES:
        return _metric(metrics, _INSERTED[:1])
    if any(name in metrics for name in _INSERTED):
        return _metric(metrics, _INSERTED)
    return rows_added or 0


def _metric(metrics: dict[str, str], names: Sequence[str]) -> int:
    for name in names:
        text = metrics.get(name, "")
        if text.isascii() and text.isdigit():
            return int(text)
    return 0


def require_before(older: int, newer: int) -> None:
    """Refuse versions in another order.

    Raises:
        InvalidRequestError: the older one is not older.
    """
    if older >= newer:
        raise InvalidRequestError(Message.VERSION_NOT_FOUND_DIFF, newer=newer, version=older)
