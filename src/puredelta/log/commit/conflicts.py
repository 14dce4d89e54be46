"""Whether our commit may stand after a rival's: pure functions, one per rule (X-20 to X-27).

The order of the rules is the reference's, and the first that finds something ends the
check: later ones would reason about a table that is no longer the one we read. Isolation
is Serializable unless the table says otherwise: the answer is "no conflict" only when
running first the rival and then us, from scratch, would give the table we are about to
make. Three rules are sharper than the reference's and keep that meaning:

* A file the rival added conflicts only if a row of it might match what we read, judged by
  its partition values *and* its statistics; the reference looks at partitions alone.
* A file added with ``dataChange: false`` holds only rows that were in the table before,
  so there is nothing new in it to have missed.
* A file removed with ``dataChange: false`` had its rows moved elsewhere unchanged. That
  does not disturb us for having read it, but it does if we remove it, too.

One rule is stricter: a file that we commit anew (with a deletion vector, say) must still
be in the table, or we would bring rows back that the rival deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow.compute as pc

from puredelta.log.commit.isolation import IsolationLevel
from puredelta.log.commit.metadata_changes import unsafe_metadata_change, unsafe_protocol_change
from puredelta.log.commit.read_set import ReadSet
from puredelta.log.commit.row_ids import ROW_TRACKING_DOMAIN
from puredelta.log.commit.winning_commit import WinningCommit
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
)
from puredelta.protocol.actions.paths import canonical_path
from puredelta.protocol.table.table_config import TableConfig


class ConflictKind(Enum):
    """Which rule was broken, in the order of the rules."""

    PROTOCOL_CHANGED = "protocol changed"
    METADATA_CHANGED = "metadata changed"
    DOMAIN_CHANGED = "domain metadata changed"
    TRANSACTION_CHANGED = "application transaction changed"
    APPENDED = "files added that should have been read"
    DELETED_WHAT_WE_READ = "files removed that were read"
    DELETED_WHAT_WE_DELETE = "files removed that are removed here, too"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One reason why our commit cannot stand after the rival's."""

    kind: ConflictKind
    detail: str = ""
    """What exactly changed, as the end of a sentence."""
    files: tuple[str, ...] = ()
    """The offending files, as the log spells them."""
    partition: str | None = None
    """Where the first of them lies, ``[month=1]``; None in an unpartitioned table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OurCommit:
    """What of our side the rules look at, beside what was read."""

    actions: tuple[Action, ...]
    isolation: IsolationLevel
    is_blind_append: bool

    @property
    def changes_metadata(self) -> bool:
        """Whether we replace the table's metadata."""
        return any(isinstance(action, Metadata) for action in self.actions)

    @property
    def changes_protocol(self) -> bool:
        """Whether we replace the table's protocol."""
        return any(isinstance(action, Protocol) for action in self.actions)


def find_conflicts(
    ours: OurCommit, winner: WinningCommit, *, read_set: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Return the conflicts of the first rule that finds any; empty when ours may follow.

    ``config`` is the table as of the version before ``winner``. Asks for no file: what is
    in a rival's file is told by its statistics.
    """
    for rule in _RULES:
        if conflicts := rule(ours, winner, read_set, config):
            return conflicts
    return ()


def find_application_conflicts(winner: WinningCommit, read_set: ReadSet) -> tuple[Conflict, ...]:
    """Return the application ids we looked up that the rival has advanced.

    It is the one rule that counts for a table that we have found not to be there, too.
    """
    return tuple(
        Conflict(kind=ConflictKind.TRANSACTION_CHANGED, detail=app_id)
        for app_id in sorted(winner.app_ids & read_set.app_ids)
    )


def _protocol(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 1: the protocol changed in a way we cannot adopt."""
    if winner.protocol is None:
        return ()
    reason = unsafe_protocol_change(config.protocol, winner.protocol)
    if ours.changes_protocol:
        reason = "this operation changes the protocol, too"
    if reason is None:
        return ()
    return (Conflict(kind=ConflictKind.PROTOCOL_CHANGED, detail=reason),)


def _metadata(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 2: the metadata changed in a way we cannot adopt."""
    if winner.metadata is None:
        return ()
    if ours.changes_metadata:
        reason: str | None = "this operation changes the metadata, too"
    elif winner.advances_identity_only:
        reason = None
    else:
        protocol = winner.protocol or config.protocol
        reason = unsafe_metadata_change(config.metadata, winner.metadata, protocol)
    if reason is None:
        return ()
    return (Conflict(kind=ConflictKind.METADATA_CHANGED, detail=reason),)


def _domains(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, __: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 3: both write one domain; the row id counter is merged instead."""
    written = {a.domain for a in ours.actions if isinstance(a, DomainMetadata)}
    shared = written & {domain.domain for domain in winner.domains} - {ROW_TRACKING_DOMAIN}
    return tuple(
        Conflict(kind=ConflictKind.DOMAIN_CHANGED, detail=domain) for domain in sorted(shared)
    )


def _applications(
    _: OurCommit, winner: WinningCommit, read_set: ReadSet, __: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 4: an application id we looked up has moved on."""
    return find_application_conflicts(winner, read_set)


def _appends(
    ours: OurCommit, winner: WinningCommit, read_set: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 7: rows were added that we would have read."""
    if ours.is_blind_append or not _appends_count(ours, winner):
        return ()
    added = tuple(add for add in winner.adds if add.data_change)
    found = _might_match(added, read_set, config)
    if not found:
        return ()
    return (
        Conflict(
            kind=ConflictKind.APPENDED,
            files=tuple(add.path for add in found),
            partition=describe_partition(config, found[0].partition_values),
        ),
    )


def _appends_count(ours: OurCommit, winner: WinningCommit) -> bool:
    """The isolation matrix: whose added files are looked at, at which level."""
    match ours.isolation:
        case IsolationLevel.SERIALIZABLE:
            return True
        case IsolationLevel.WRITE_SERIALIZABLE:
            return ours.changes_metadata or not winner.is_blind_append
        case IsolationLevel.SNAPSHOT:
            return False


def _might_match(adds: tuple[Add, ...], read_set: ReadSet, config: TableConfig) -> tuple[Add, ...]:
    if read_set.whole_table or not adds:
        return adds
    files = FileTable.of(adds)
    found: set[int] = set()
    for predicate in read_set.predicates:
        mask = prune_files(files, config, predicate)
        found.update(pc.indices_nonzero(pc.fill_null(mask, fill_value=True)).to_pylist())
    return tuple(adds[i] for i in sorted(found))


def _deleted_reads(
    ours: OurCommit, winner: WinningCommit, read_set: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 8: a file we read, or commit again, has lost rows."""
    deleted = {canonical_path(r.path): r for r in winner.removes if r.data_change}
    if not deleted:
        return ()
    recommitted = {
        canonical_path(a.path): a.partition_values for a in ours.actions if isinstance(a, Add)
    }
    known = {**recommitted, **read_set.files}
    hits = tuple(known.keys() & deleted.keys())
    if hits:
        return (_deletion(ConflictKind.DELETED_WHAT_WE_READ, hits, deleted, known, config),)
    if read_set.whole_table:
        files = tuple(remove.path for remove in deleted.values())
        return (Conflict(kind=ConflictKind.DELETED_WHAT_WE_READ, files=files),)
    return ()


def _deleted_deletes(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 9: a file we remove, or commit again, is gone already, whatever for."""
    deleted = {canonical_path(remove.path): remove for remove in winner.removes}
    mine: dict[str, Mapping[str, str | None]] = {
        canonical_path(a.path): a.partition_values or {}
        for a in ours.actions
        if isinstance(a, Add | Remove)
    }
    hits = tuple(mine.keys() & deleted.keys())
    if not hits:
        return ()
    return (_deletion(ConflictKind.DELETED_WHAT_WE_DELETE, hits, deleted, mine, config),)


def _deletion(
    kind: ConflictKind,
    hits: Iterable[str],
    deleted: Mapping[str, Remove],
    known: Mapping[str, Mapping[str, str | None]],
    config: TableConfig,
) -> Conflict:
    ordered = sorted(hits)
    return Conflict(
        kind=kind,
        files=tuple(deleted[path].path for path in ordered),
        partition=describe_partition(config, known[ordered[0]]),
    )


def describe_partition(config: TableConfig, values: Mapping[str, str | None]) -> str | None:
    """Write a file's partition as the reference's hint does, by logical names."""
    if not config.partition_columns or not values:
        return None
    shown = (
        f"{name}={_shown(values.get(config.physical_name(name)))}"
        for name in config.partition_columns
    )
    return f"[{', '.join(shown)}]"


def _shown(value: str | None) -> str:
    return "null" if value is None else value


_Rule = Callable[[OurCommit, WinningCommit, ReadSet, TableConfig], tuple[Conflict, ...]]
_RULES: tuple[_Rule, ...] = (
    _protocol,
    _metadata,
    _domains,
    _applications,
    _appends,
    _deleted_reads,
    _deleted_deletes,
)
