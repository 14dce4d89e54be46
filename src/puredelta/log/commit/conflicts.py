"""Conflict rules: may a commit follow a winning commit? One pure function per rule (X-20 to X-28).

Rules 1 and 2 of conflict detection (X-21, X-22). A change may be adopted if the files that we
wrote before it are also right after it, without reading any file again.

A winning commit is a commit of another writer that got a version before ours. The rules are tried
in the order of delta-spark. The first rule that finds a conflict ends the check, because later
rules would reason about a table that is no longer the one we read.

Isolation is Serializable unless the table says otherwise: there is no conflict only if running
the winning operation and then ours, from scratch, would give the table that we are about to make.
Three rules are more precise than those of delta-spark and keep that meaning:

* A file that the winning commit added is a conflict only if a row of it might match what we read,
  by its partition values *and* its statistics. delta-spark uses partition values alone.
* A file that it added with ``dataChange: false`` contains only rows that were in the table before,
  so we have not missed any of them.
* A file that it removed with ``dataChange: false`` had its rows moved to other files. That does not
  matter if we only read the file, but it does if we remove it, too.

One rule is stricter: a file that we commit again (for example with a deletion vector) must still
be in the table, or we would bring back rows that the winning commit deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow.compute as pc

from puredelta.log.commit.commit_request import ReadSet
from puredelta.log.commit.row_ids import ROW_TRACKING_DOMAIN
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
)
from puredelta.protocol.actions.operations import RESTORE, VACUUM_START
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_json import parse_schema
from puredelta.protocol.table.row_tracking import ROW_TRACKING
from puredelta.protocol.table.table_config import TableConfig

FEATURES_SAFE_TO_GAIN = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "inCommitTimestamp",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features that a winning commit may add: they need nothing of rows that are already written, or
only what every attempt to commit does again (row ids, in-commit timestamps). Other features, and
unknown ones, may need more."""

_MAPPING_MODE = "delta.columnMapping.mode"
_ROW_TRACKING = "delta.enableRowTracking"

_SWITCHED_ON: Mapping[str, tuple[str, str]] = {
    # property: (the value that may be adopted, the feature that must be supported)
    _ROW_TRACKING: ("true", ROW_TRACKING),
    "delta.enableDeletionVectors": ("true", "deletionVectors"),
    "delta.enableInCommitTimestamps": ("true", "inCommitTimestamp"),
    "delta.checkpointPolicy": ("v2", "v2Checkpoint"),
    _MAPPING_MODE: ("name", "columnMapping"),
}
_COMPANIONS: Mapping[str, str] = {
    # property: the switch that must be on for its value to change
    "delta.rowTracking.materializedRowIdColumnName": _ROW_TRACKING,
    "delta.rowTracking.materializedRowCommitVersionColumnName": _ROW_TRACKING,
    "delta.inCommitTimestampEnablementVersion": "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementTimestamp": "delta.enableInCommitTimestamps",
    "delta.columnMapping.maxColumnId": _MAPPING_MODE,
}
_CATALOG_IDS = frozenset({"io.unitycatalog.tableId", "ucTableId"})


def unsafe_protocol_change(ours: Protocol, winning: Protocol) -> str | None:
    """Return why a commit prepared under ``ours`` is wrong under ``winning``; None if it is not."""
    before, after = supported_features(ours), supported_features(winning)
    if lost := sorted(before - after):
        return f"it dropped the table feature(s) {', '.join(lost)}"
    if gained := sorted(after - before - FEATURES_SAFE_TO_GAIN):
        return f"it added the table feature(s) {', '.join(gained)}"
    return None


def unsafe_metadata_change(ours: Metadata, winning: Metadata, protocol: Protocol) -> str | None:
    """Return why a commit prepared under ``ours`` is wrong under ``winning``; None if it is not.

    ``protocol`` is the one after the winning commit. Only switching a feature on may be adopted:
    in the configuration and, for column mapping by name, in the metadata of fields. The list is
    that of delta-spark, with nested fields compared as well.
    """
    if replace(ours, configuration={}, schema_string="") != replace(
        winning, configuration={}, schema_string=""
    ):
        return "it changed the table's name, description, id, format or partition columns"
    features = supported_features(protocol)
    if unsafe := sorted(_unsafe_properties(ours.configuration, winning.configuration, features)):
        return f"it changed the table properties {', '.join(unsafe)}"
    if ours.schema_string != winning.schema_string and not _only_mapped(ours, winning):
        return "it changed the schema"
    return None


def _unsafe_properties(
    ours: Mapping[str, str], winning: Mapping[str, str], features: frozenset[str]
) -> frozenset[str]:
    changed = {key for key in ours.keys() | winning.keys() if ours.get(key) != winning.get(key)}
    return frozenset(
        key
        for key in changed
        if key not in _CATALOG_IDS and not _may_adopt(key, ours, winning, features)
    )


def _may_adopt(
    key: str, ours: Mapping[str, str], winning: Mapping[str, str], features: frozenset[str]
) -> bool:
    if key in _COMPANIONS:
        switch = _COMPANIONS[key]
        return key in winning and winning.get(switch) == _SWITCHED_ON[switch][0]
    value, feature = _SWITCHED_ON.get(key, (None, None))
    if key == _MAPPING_MODE and ours.get(key, "none") != "none":
        return False
    return value is not None and winning.get(key) == value and feature in features


def _only_mapped(ours: Metadata, winning: Metadata) -> bool:
    """Return whether the schemas differ only in column mapping that was switched on."""
    if ours.configuration.get(_MAPPING_MODE, "none") != "none":
        return False
    return without_mapping(parse_schema(ours.schema_string)) == without_mapping(
        parse_schema(winning.schema_string)
    )


ISOLATION_LEVEL = "delta.isolationLevel"


class IsolationLevel(Enum):
    """How far concurrent commits may differ from some serial order; values as in ``commitInfo``."""

    SERIALIZABLE = "Serializable"
    """Every added file is checked. The default, and the only level users of delta-spark can set."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """Blind appends of other writers are not checked. Tables of other products may ask for it."""
    SNAPSHOT = "SnapshotIsolation"
    """No added file is checked: for commits that change no data, such as a compaction."""


def isolation_level(actions: Iterable[Action], metadata: Metadata | None) -> IsolationLevel:
    """Choose the level for a commit of ``actions`` to a table with this metadata.

    Rows of other writers cannot affect a commit that only moves rows between files, or has no
    action at all. With any other kind of action (metadata, an application version) the level is
    that of the table, as in delta-spark.
    """
    changes_data = False
    for action in actions:
        match action:
            case Add() | Remove():
                changes_data = changes_data or action.data_change
            case AddChangeFile():
                pass
            case DomainMetadata(domain=domain) if domain == ROW_TRACKING_DOMAIN:
                pass
            case _:
                return _level_of_table(metadata)
    level = _level_of_table(metadata)
    if level is IsolationLevel.SERIALIZABLE and not changes_data:
        return IsolationLevel.SNAPSHOT
    return level


def _level_of_table(metadata: Metadata | None) -> IsolationLevel:
    wanted = metadata.configuration.get(ISOLATION_LEVEL, "") if metadata is not None else ""
    if wanted.lower() == IsolationLevel.WRITE_SERIALIZABLE.value.lower():
        return IsolationLevel.WRITE_SERIALIZABLE
    return IsolationLevel.SERIALIZABLE


_IDENTITY_TAG = "delta.identity.schemaUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """The actions of one version, by kind."""

    version: int
    modified_ms: int
    """When its file was written: the time of the commit unless it has an in-commit timestamp."""
    info: CommitInfo
    protocol: Protocol | None
    metadata: Metadata | None
    app_ids: frozenset[str]
    domains: tuple[DomainMetadata, ...]
    adds: tuple[Add, ...]
    removes: tuple[Remove, ...]

    @classmethod
    def of(cls, commit: Commit) -> WinningCommit:
        """Sort the actions of one commit."""
        actions = commit.actions
        return cls(
            version=commit.version,
            modified_ms=commit.modified_ms,
            info=commit.commit_info or CommitInfo(),
            protocol=next((a for a in actions if isinstance(a, Protocol)), None),
            metadata=next((a for a in actions if isinstance(a, Metadata)), None),
            app_ids=frozenset(a.app_id for a in actions if isinstance(a, SetTransaction)),
            domains=tuple(a for a in actions if isinstance(a, DomainMetadata)),
            adds=tuple(a for a in actions if isinstance(a, Add)),
            removes=tuple(a for a in actions if isinstance(a, Remove)),
        )

    @property
    def is_blind_append(self) -> bool:
        """Whether its writer says that it read nothing."""
        return self.info.is_blind_append is True

    @property
    def advances_identity_only(self) -> bool:
        """Whether its metadata changes only the high water marks of identity columns."""
        return (self.info.tags or {}).get(_IDENTITY_TAG) == "true"

    @property
    def timestamp_ms(self) -> int:
        """When it was committed."""
        in_commit = self.info.in_commit_timestamp_ms
        return self.modified_ms if in_commit is None else in_commit


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
    """One reason why our commit cannot follow the winning commit."""

    kind: ConflictKind
    detail: str = ""
    """What exactly changed, as the end of a sentence."""
    files: tuple[str, ...] = ()
    """The files in conflict, as the log spells them."""
    partition: str | None = None
    """The partition of the first file, ``[month=1]``; None in an unpartitioned table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OurCommit:
    """The facts about our commit that the rules need, besides its reads."""

    actions: tuple[Action, ...]
    isolation: IsolationLevel
    is_blind_append: bool
    operation: str | None = None

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
    """Return the conflicts of the first rule that finds any; empty if our commit may follow.

    ``config`` is the table at the version before ``winner``. No file is read: statistics tell
    what the files of the winning commit contain.
    """
    for rule in _RULES:
        if conflicts := rule(ours, winner, read_set, config):
            return conflicts
    return ()


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
    """Rule 3: both write the same domain; only the row id counter is merged."""
    written = {a.domain for a in ours.actions if isinstance(a, DomainMetadata)}
    shared = written & {domain.domain for domain in winner.domains} - {ROW_TRACKING_DOMAIN}
    return tuple(
        Conflict(kind=ConflictKind.DOMAIN_CHANGED, detail=domain) for domain in sorted(shared)
    )


def _applications(
    _: OurCommit, winner: WinningCommit, read_set: ReadSet, __: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 4: an application id that we read has got a newer version."""
    return tuple(
        Conflict(kind=ConflictKind.TRANSACTION_CHANGED, detail=app_id)
        for app_id in sorted(winner.app_ids & read_set.app_ids)
    )


def _vacuumed(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, __: TableConfig
) -> tuple[Conflict, ...]:
    """A VACUUM started after we found the files there that we restore, and may delete them."""
    if ours.operation != RESTORE or winner.info.operation != VACUUM_START:
        return ()
    return (Conflict(kind=ConflictKind.DELETED_WHAT_WE_READ),)


def _appends(
    ours: OurCommit, winner: WinningCommit, read_set: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 7: rows were added that we should have read."""
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
    """Return whether added files matter: depends on our isolation level and on the winner."""
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
        found.update(pc.indices_nonzero(prune_files(files, config, predicate)).to_pylist())
    return tuple(adds[i] for i in sorted(found))


def _deleted_reads(
    ours: OurCommit, winner: WinningCommit, read_set: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 8: a file that we read, or commit again, has lost rows."""
    deleted = {canonical_path(r.path): r for r in winner.removes if r.data_change}
    if not deleted:
        return ()
    recommitted = {
        canonical_path(a.path): a.partition_values for a in ours.actions if isinstance(a, Add)
    }
    needed = {**recommitted, **read_set.files}
    if found := _deletions(ConflictKind.DELETED_WHAT_WE_READ, needed, deleted, config):
        return found
    if read_set.whole_table:
        files = tuple(remove.path for remove in deleted.values())
        return (Conflict(kind=ConflictKind.DELETED_WHAT_WE_READ, files=files),)
    return ()


def _deleted_deletes(
    ours: OurCommit, winner: WinningCommit, _: ReadSet, config: TableConfig
) -> tuple[Conflict, ...]:
    """Rule 9: a file that we remove, or commit again, was removed for any reason."""
    deleted = {canonical_path(remove.path): remove for remove in winner.removes}
    changed: dict[CanonicalPath, Mapping[str, str | None]] = {
        canonical_path(a.path): a.partition_values or {}
        for a in ours.actions
        if isinstance(a, Add | Remove)
    }
    return _deletions(ConflictKind.DELETED_WHAT_WE_DELETE, changed, deleted, config)


def _deletions(
    kind: ConflictKind,
    needed: Mapping[CanonicalPath, Mapping[str, str | None]],
    deleted: Mapping[CanonicalPath, Remove],
    config: TableConfig,
) -> tuple[Conflict, ...]:
    """Return the conflict about the files that are both needed and deleted, if there are any."""
    paths = sorted(needed.keys() & deleted.keys())
    if not paths:
        return ()
    files = tuple(deleted[path].path for path in paths)
    partition = describe_partition(config, needed[paths[0]])
    return (Conflict(kind=kind, files=files, partition=partition),)


def describe_partition(config: TableConfig, values: Mapping[str, str | None]) -> str | None:
    """Return a file's partition as delta-spark shows it in messages, by logical names."""
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
    _vacuumed,
    _appends,
    _deleted_reads,
    _deleted_deletes,
)
