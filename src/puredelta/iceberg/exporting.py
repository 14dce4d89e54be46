"""The export of a table's newest version: one more snapshot of its Iceberg metadata.

The export is incremental: the commits since the last exported version say what changed. Where they
cannot say it, the manifests of the last export are compared with the files of the version.
"""

from __future__ import annotations

import json
import logging
import secrets
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2, TableMetadataV3
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import MetadataLogEntry, Operation, SnapshotLogEntry, Summary
from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import IcebergBaseModel

from puredelta.errors import ConflictError, DeltaError, Message
from puredelta.iceberg.avro import Entries, UnreadableRecordsError
from puredelta.iceberg.data_files import data_files, file_locations, vector_entries
from puredelta.iceberg.entry import Exported
from puredelta.iceberg.manifests import (
    Changes,
    ManifestWriter,
    Totals,
    data_manifests,
    entries_max,
    listed_manifests,
    live_files,
    puffin_files,
    vector_manifests,
)
from puredelta.iceberg.schema import (
    LAST_PARTITION_ID,
    IcebergLayout,
    are_ids_kept,
    iceberg_layout,
    known_ids,
    partition_spec,
    renamed_spec,
)
from puredelta.iceberg.storage import (
    DAMAGED_METADATA,
    MetadataFolder,
    StoreFileIO,
    iceberg_location,
)
from puredelta.log.files.clock import Clock, wall_clock
from puredelta.log.files.deletion_vectors import vector_indexes
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.quantities import in_milliseconds

logger = logging.getLogger(__name__)

NAME_MAPPING = "schema.name-mapping.default"
DELTA_VERSION = "delta-version"
DELTA_TIMESTAMP = "delta-timestamp"
TABLE_ID = "delta-table-id"
_PROTECTION = {"gc.enabled": "false"}
"""Keeps Iceberg's engines from deleting data files, which belong to the Delta table."""
_Metadata: TypeAlias = TableMetadataV2 | TableMetadataV3
_ATTEMPTS_MAX = 20
_SNAPSHOTS_MAX = 1_000
_METADATA_FILES_MAX = 100


def export_version(
    log: TableLog, *, clock: Clock = wall_clock, expire_before_ms: int | None = None
) -> Exported:
    """Export the newest version of a table, unless it is exported already.

    Snapshots older than ``expire_before_ms`` are dropped, by default those older than
    ``delta.deletedFileRetentionDuration``, whose data files VACUUM may delete.

    Raises:
        UnsupportedError: Iceberg cannot express the table (DELTA_UNIVERSAL_FORMAT_VIOLATION);
            nothing is written.
        ConflictError: other exporters were always faster
            (DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED).
    """
    log.allow_writes()
    for _ in range(_ATTEMPTS_MAX):
        export = _Export.prepared(log)
        before_ms = expire_before_ms
        if before_ms is None:
            retention = export.snapshot.config.properties.deleted_file_retention
            before_ms = clock() - in_milliseconds(retention)
        done = export.run(now_ms=clock(), before_ms=before_ms)
        if done is not None:
            return done
    raise ConflictError(
        Message.UNIVERSAL_FORMAT_CONVERSION_FAILED_RACE,
        format="iceberg",
        path=log.root_uri,
        attempts=_ATTEMPTS_MAX,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Export:
    """One attempt to export a version."""

    log: TableLog
    folder: MetadataFolder
    snapshot: Snapshot
    number: int
    """Of the newest metadata file, 0 if there is none."""
    known: _Metadata | None
    """The Iceberg table; None if its history begins with this export."""
    layout: IcebergLayout
    before: tuple[IcebergSnapshot, ...]
    """The snapshots that the newest metadata file names."""

    @classmethod
    def prepared(cls, log: TableLog) -> _Export:
        """Read the table and its metadata; nothing is written."""
        folder = MetadataFolder(log.store)
        number, found = folder.newest() or (0, None)
        snapshot = log.snapshot()  # at least as new as what rivals have exported
        known = None
        if isinstance(found, TableMetadataV2 | TableMetadataV3) and _is_continued(found, snapshot):
            known = found
        try:
            before = {} if known is None else known_ids(_name_mapping(known))
        except DAMAGED_METADATA as error:
            raise folder.damaged(number, error) from error
        layout = iceberg_layout(snapshot.config, before)
        if not are_ids_kept(before, layout.ids):
            known, layout = None, iceberg_layout(snapshot.config, {})
        return cls(
            log=log,
            folder=folder,
            snapshot=snapshot,
            number=number,
            known=known,
            layout=layout,
            before=() if found is None else tuple(found.snapshots),
        )

    @property
    def current(self) -> IcebergSnapshot | None:
        """The snapshot of the last export, or of another program."""
        return None if self.known is None else self.known.current_snapshot()

    def run(self, *, now_ms: int, before_ms: int) -> Exported | None:
        """Write the next metadata file if there is something new; None if a rival was faster."""
        last = self.current
        is_new = last is None or delta_version(last) != self.snapshot.version
        if last is not None and self.known is not None and not is_new:
            metadata = self.known
            if _kept(metadata.snapshots, before_ms) == metadata.snapshots:
                return self._exported(last, is_new=False, number=self.number)
            return self._commit(metadata, last, now_ms=now_ms, before_ms=before_ms, is_new=False)
        metadata = self._with_layout(now_ms)
        writer = ManifestWriter(
            folder=self.folder,
            spec=metadata.spec(),
            schema=metadata.schema(),
            snapshot_id=_new_snapshot_id(metadata),
            sequence_number=metadata.last_sequence_number + 1,
            version=metadata.format_version,
            first_row_id=_next_row_id(metadata),
            entries_max=self._entries_max,
        )
        done = None
        try:
            added = self._write_snapshot(writer, metadata)
            metadata = metadata.model_copy(
                update={
                    "snapshots": [*metadata.snapshots, added],
                    "current_snapshot_id": added.snapshot_id,
                    "last_sequence_number": writer.sequence_number,
                    **({"next_row_id": writer.next_row_id} if writer.version == 3 else {}),  # noqa: PLR2004
                    "refs": {
                        "main": SnapshotRef.model_validate(
                            {"snapshot-id": added.snapshot_id, "type": SnapshotRefType.BRANCH}
                        )
                    },
                }
            )
            done = self._commit(metadata, added, now_ms=now_ms, before_ms=before_ms, is_new=True)
        finally:
            if done is None:
                self.folder.delete(writer.written)
        return done

    def _with_layout(self, now_ms: int) -> _Metadata:
        """Return the metadata with the schema, the partition spec and the properties."""
        known, layout = self.known, self.layout
        schemas = [] if known is None else list(known.schemas)
        schema = next((s for s in schemas if s.fields == layout.schema.fields), None)
        if schema is None:
            number = max((s.schema_id for s in schemas), default=-1) + 1
            schema = Schema(*layout.schema.fields, schema_id=number)
            schemas.append(schema)
        specs = [renamed_spec(one, schema) for one in (known.partition_specs if known else ())]
        spec = partition_spec(layout, specs)
        if spec not in specs:
            specs.append(spec)
        fields = [one.field_id for each in specs for one in each.fields]
        values = {
            "location": self.folder.location,
            "last_updated_ms": now_ms,
            "last_column_id": max(layout.ids.values(), default=0),
            "schemas": schemas,
            "current_schema_id": schema.schema_id,
            "partition_specs": specs,
            "default_spec_id": spec.spec_id,
            "last_partition_id": max(fields, default=LAST_PARTITION_ID),
            "properties": {
                **({} if known is None else known.properties),
                **_PROTECTION,
                NAME_MAPPING: layout.mapping.model_dump_json(),
                DELTA_VERSION: str(self.snapshot.version),
                DELTA_TIMESTAMP: str(self.snapshot.timestamp_ms),
                TABLE_ID: self.snapshot.metadata.id,
            },
        }
        if known is not None:
            if self._has_vectors and isinstance(known, TableMetadataV2):
                known = _upgraded(known)
            return known.model_copy(update=values)
        first: dict[str, Any] = {
            **values,
            "table_uuid": uuid.uuid4(),
            "sort_orders": [UNSORTED_SORT_ORDER],
            "default_sort_order_id": UNSORTED_SORT_ORDER.order_id,
        }
        named = {name.replace("_", "-"): value for name, value in first.items()}
        if self._has_vectors:
            return TableMetadataV3.model_validate({**named, "next-row-id": 0})
        return TableMetadataV2.model_validate(named)

    @property
    def _entries_max(self) -> int:
        return entries_max(len(self.snapshot.files))

    @property
    def _has_vectors(self) -> bool:
        return bool(vector_indexes(self.snapshot.files))

    def _write_snapshot(self, writer: ManifestWriter, metadata: _Metadata) -> IcebergSnapshot:
        last = self.current
        manifests: list[ManifestFile] | None = None
        if last is not None:
            try:
                before = listed_manifests(last.manifest_list, self.folder.io)
                changes = self._changes(writer, before, delta_version(last))
                if changes is not None:
                    manifests = writer.next_manifests(before, changes)
            except (FileNotFoundError, UnreadableRecordsError):
                manifests = None
        if manifests is None or not self._is_complete(manifests):
            writer.discard()
            manifests = writer.next_manifests((), self._everything(writer))
        parent_id = None if last is None else last.snapshot_id
        at_ms = self.snapshot.timestamp_ms
        manifest_list = writer.write_list(manifests, parent_id)
        new_rows = {
            "first-row-id": writer.first_row_id,
            "added-rows": writer.next_row_id - writer.first_row_id,
        }
        return IcebergSnapshot.model_validate(
            {
                **({} if isinstance(metadata, TableMetadataV2) else new_rows),
                "snapshot-id": writer.snapshot_id,
                "parent-snapshot-id": parent_id,
                "sequence-number": writer.sequence_number,
                "timestamp-ms": at_ms if last is None else max(at_ms, last.timestamp_ms + 1),
                "manifest-list": manifest_list,
                "summary": self._summary(Totals.of(manifests, writer.snapshot_id)),
                "schema-id": metadata.current_schema_id,
            }
        )

    def _is_complete(self, manifests: Sequence[ManifestFile]) -> bool:
        files = self.snapshot.files
        num_vectors = len(vector_indexes(files))
        return (
            live_files(data_manifests(manifests)) == len(files)
            and live_files(vector_manifests(manifests)) == num_vectors
        )

    def _summary(self, totals: Totals) -> Summary:
        if totals.removed_files == totals.added_vectors == totals.removed_vectors == 0:
            operation = Operation.APPEND
        else:
            is_overwrite = totals.added_files or totals.removed_vectors > totals.added_vectors
            operation = Operation.OVERWRITE if is_overwrite else Operation.DELETE
        counts = {
            "added-data-files": totals.added_files,
            "added-records": totals.added_rows,
            "deleted-data-files": totals.removed_files,
            "deleted-records": totals.removed_rows,
            "total-data-files": totals.files,
            "total-records": totals.rows,
            "total-delete-files": totals.vectors,
            "total-position-deletes": totals.deleted_rows,
            "added-dvs": totals.added_vectors,
            "removed-dvs": totals.removed_vectors,
            DELTA_VERSION: self.snapshot.version,
            DELTA_TIMESTAMP: self.snapshot.timestamp_ms,
        }
        return Summary(operation=operation, **{name: str(n) for name, n in counts.items()})

    # --- changes since the last export -----------------------------------------------------------

    def _everything(self, writer: ManifestWriter) -> Changes:
        return self._changed(self._entries(self.snapshot.files), None, None)(writer)

    def _changed(
        self,
        added: Iterable[Entries],
        replaced: Collection[str] | None,
        touched: Collection[str] | None,
    ) -> Callable[[ManifestWriter], Changes]:
        def changes(writer: ManifestWriter) -> Changes:
            def vectors(names: Collection[str] | None) -> Iterator[Entries]:
                return self._vectors(names, writer)

            return Changes(added=added, replaced=replaced, touched=touched, vectors=vectors)

        return changes

    def _entries(self, files: FileTable) -> Iterator[Entries]:
        config, most = self.snapshot.config, self._entries_max
        return data_files(files, config, self.layout, self.log.store, most)

    def _vectors(self, names: Collection[str] | None, writer: ManifestWriter) -> Iterator[Entries]:
        """Write the deletion vectors of some files of the version, and yield their entries."""
        files = self.snapshot.files
        marked = files.take(vector_indexes(files)) if names is None or names else FileTable.of([])
        if names is not None:
            locations = file_locations(marked, self.log.root_uri)
            marked = marked.select(pa.array([one in names for one in locations], pa.bool_()))

        def write(content: bytes) -> str:
            return writer.store_new("", content, "puffin")

        return vector_entries(marked, self.snapshot.config, self.layout, self.log.store, write)

    def _changes(
        self, writer: ManifestWriter, before: Sequence[ManifestFile], version: int | None
    ) -> Changes | None:
        """Return the changes since the last export; None if everything is to be written."""
        if version is None:
            return None
        data = data_manifests(before)
        committed = self._committed_changes(version, live_files(data))
        if committed is not None:
            return committed(writer)
        live = writer.live_paths(data)
        files = self.snapshot.files
        named = file_locations(files, self.log.root_uri)
        new = files.select(pa.array([path not in live for path in named], pa.bool_()))
        return self._changed(self._entries(new), live.difference(named), None)(writer)

    def _committed_changes(
        self, version: int, num_before: int
    ) -> Callable[[ManifestWriter], Changes] | None:
        """Return what commits say; None if they do not explain the files of the version.

        A commit may add a file that the table has already, and remove one that it has not.
        """
        last: dict[str, Add | None] = {}
        first: dict[str, Remove] = {}
        root = self.log.root_uri
        try:
            for commit in self.log.read_commits(version, through=self.snapshot.version):
                for action in sorted(commit.actions, key=lambda one: isinstance(one, Add)):
                    if not isinstance(action, Add | Remove):
                        continue
                    path = iceberg_location(absolute_uri(root, action.path))
                    if isinstance(action, Remove) and path not in last:
                        first[path] = action
                    last[path] = action if isinstance(action, Add) else None
        except DeltaError:  # commits that are cleaned up
            return None
        # A file that is described again, with another vector above all, stays.
        added = [one for path, one in last.items() if one is not None and path not in first]
        replaced = {path for path in first if last[path] is None}
        if num_before - len(replaced) + len(added) != len(self.snapshot.files):
            return None
        touched = {path for path, one in last.items() if _vector(first.get(path)) != _vector(one)}
        return self._changed(self._entries(FileTable.of(added)), replaced, touched)

    # --- the metadata file -----------------------------------------------------------------------

    def _commit(
        self,
        metadata: _Metadata,
        current: IcebergSnapshot,
        *,
        now_ms: int,
        before_ms: int,
        is_new: bool,
    ) -> Exported | None:
        number = self.number + 1
        kept = _kept(metadata.snapshots, before_ms)
        names = [] if self.known is None else list(self.known.metadata_log)
        if self.known is not None:
            names.append(
                MetadataLogEntry.model_validate(
                    {
                        "metadata-file": self.folder.metadata_location(self.number),
                        "timestamp-ms": self.known.last_updated_ms,
                    }
                )
            )
        content = metadata.model_copy(
            update={
                "snapshots": kept,
                "snapshot_log": _logged(kept, self.known),
                "metadata_log": names[-_METADATA_FILES_MAX:],
                "last_updated_ms": max(now_ms, current.timestamp_ms),
            }
        )
        if not self.folder.put_metadata(number, content):
            return None
        self._clean_up(kept)
        return self._exported(current, is_new=is_new, number=number)

    def _clean_up(self, kept: Sequence[IcebergSnapshot]) -> None:
        """Delete the files of dropped snapshots, and metadata files that no log entry names.

        The export is done: what cannot be deleted is left over.
        """
        ids = {one.snapshot_id for one in kept}
        dropped = [one for one in self.before if one.snapshot_id not in ids]
        try:
            self.folder.delete(_unneeded_files(dropped, kept[0], self.folder.io))
            oldest = self.number - _METADATA_FILES_MAX
            self.folder.delete_metadata(range(max(1, oldest - len(dropped)), oldest + 1))
        except (OSError, ValueError) as error:
            logger.warning("Old Iceberg metadata of %s is left over: %s", self.log.root_uri, error)

    def _exported(self, current: IcebergSnapshot, *, is_new: bool, number: int) -> Exported:
        return Exported(
            version=self.snapshot.version,
            snapshot_id=current.snapshot_id,
            metadata_location=self.folder.metadata_location(number),
            is_new=is_new,
        )


def delta_version(snapshot: IcebergSnapshot) -> int | None:
    """Return the Delta version of a snapshot; None if another program has written it."""
    text = None if snapshot.summary is None else snapshot.summary[DELTA_VERSION]
    return int(text) if text is not None and text.isdecimal() else None


def _kept(snapshots: Sequence[IcebergSnapshot], before_ms: int) -> list[IcebergSnapshot]:
    """Return the snapshots whose data files VACUUM keeps, the last one in any case.

    The files of a version are kept if the next version is not older than the time. Versions that
    were not exported may have removed files earlier.
    """
    found = []
    some = list(snapshots)[-_SNAPSHOTS_MAX:]
    for one, following in zip(some, [*some[1:], None], strict=True):
        if following is None or one.timestamp_ms >= before_ms:
            found.append(one)
            continue
        version, next_version = delta_version(one), delta_version(following)
        is_next = version is not None and next_version == version + 1
        if is_next and following.timestamp_ms >= before_ms:
            found.append(one)
    return found


def _logged(
    snapshots: Sequence[IcebergSnapshot], known: _Metadata | None
) -> list[SnapshotLogEntry]:
    """Return the entries of the log for snapshots: most of them the log has already."""
    before = {} if known is None else {one.snapshot_id: one for one in known.snapshot_log}
    return [
        before.get(one.snapshot_id)
        or SnapshotLogEntry.model_validate(
            {"snapshot-id": one.snapshot_id, "timestamp-ms": one.timestamp_ms}
        )
        for one in snapshots
    ]


def _is_continued(known: _Metadata, snapshot: Snapshot) -> bool:
    """Return whether the metadata is of this table, and of no newer version than it has."""
    text = known.properties.get(DELTA_VERSION, "")
    version = int(text) if text.isdecimal() else -1
    return known.properties.get(TABLE_ID) == snapshot.metadata.id and version <= snapshot.version


def _name_mapping(known: _Metadata) -> NameMapping:
    return parse_mapping_from_json(known.properties.get(NAME_MAPPING, "[]"))


def _new_snapshot_id(metadata: _Metadata) -> int:
    known = {one.snapshot_id for one in metadata.snapshots}
    return next(n for n in iter(lambda: secrets.randbelow(1 << 63), None) if n and n not in known)


def _unneeded_files(
    dropped: Sequence[IcebergSnapshot], oldest: IcebergSnapshot, io: StoreFileIO
) -> set[str]:
    """Return the files of the folder that only dropped snapshots need.

    A file that the oldest of the others does not need is needed by none of them.
    """
    if not dropped:
        return set()
    needed = {m.manifest_path: m for m in listed_manifests(oldest.manifest_list, io)}
    lists = [listed_manifests(one.manifest_list, io) for one in dropped]
    manifests = {m.manifest_path: m for some in lists for m in some}
    gone = {path: one for path, one in manifests.items() if path not in needed}
    puffins = puffin_files(gone.values(), io)
    if puffins:
        puffins -= puffin_files(needed.values(), io)
    return {*(one.manifest_list for one in dropped), *gone, *puffins}


def _vector(action: Add | Remove | None) -> str | None:
    vector = None if action is None else action.deletion_vector
    return None if vector is None else vector.unique_id


def _next_row_id(metadata: _Metadata) -> int:
    return 0 if isinstance(metadata, TableMetadataV2) else metadata.next_row_id or 0


def _upgraded(known: TableMetadataV2) -> TableMetadataV3:
    """Return the metadata in format 3; earlier snapshots stay as they are."""
    values = {
        **json.loads(IcebergBaseModel.model_dump_json(known)),
        "format-version": 3,
        "next-row-id": 0,
    }
    return TableMetadataV3.model_validate(values)
