"""Manifests and manifest lists of one export, written with pyiceberg's classes.

A commit that only adds files costs one manifest. Files that are removed are taken out of the
manifests that name them, which are written again; small manifests are put together when there are
many. Manifests that stay are named again by the new manifest list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pydantic_core import to_json
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    construct_partition_summaries,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from puredelta.iceberg.storage import MemoryFile, MetadataFolder, StoreFileIO

ENTRIES_MAX = 10_000
"""The entries of one manifest."""
MANIFESTS_MAX = 100
"""Small manifests are put together when there are more manifests than this."""
_BLOCK_ENTRIES = 1_000
_CODEC: Final = "deflate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes in the files since the last export."""

    added: Iterable[DataFile]
    replaced: Collection[str] | None
    """The locations of files that are gone, and of those that were added again; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of files and rows in manifests."""

    files: int
    rows: int
    added_files: int
    added_rows: int
    removed_files: int
    removed_rows: int

    @classmethod
    def of(cls, manifests: Sequence[ManifestFile], snapshot_id: int) -> Totals:
        """Sum the manifests of a snapshot; added and removed are those of this snapshot."""
        own = [m for m in manifests if m.added_snapshot_id == snapshot_id]
        return cls(
            files=live_files(manifests),
            rows=sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in manifests),
            added_files=sum(m.added_files_count or 0 for m in own),
            added_rows=sum(m.added_rows_count or 0 for m in own),
            removed_files=sum(m.deleted_files_count or 0 for m in own),
            removed_rows=sum(m.deleted_rows_count or 0 for m in own),
        )


def live_files(manifests: Iterable[ManifestFile]) -> int:
    """Return the number of data files in manifests."""
    return sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in manifests)


@dataclass(slots=True, kw_only=True)
class ManifestWriter:
    """Writes the manifests of one snapshot into the folder of a table."""

    folder: MetadataFolder
    spec: PartitionSpec
    schema: Schema
    snapshot_id: int
    sequence_number: int
    written: list[str] = field(default_factory=list)
    """The locations of all files so far: without a commit they are left over."""

    def read(self, manifest_list: str) -> tuple[ManifestFile, ...]:
        """Read a manifest list."""
        return tuple(read_manifest_list(self._io.new_input(manifest_list)))

    def live_paths(self, manifests: Iterable[ManifestFile]) -> set[str]:
        """Read the locations of all data files in manifests."""
        return {e.data_file.file_path for m in manifests for e in m.fetch_manifest_entry(self._io)}

    def next_manifests(
        self, before: Sequence[ManifestFile], changes: Changes
    ) -> list[ManifestFile]:
        """Write the manifests that change, and return those of the new snapshot."""
        added = (
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self.snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            for file in changes.added
        )
        if changes.replaced is None:
            return list(self._write(added))
        kept, changed = self._split(before, set(changes.replaced))
        return [*kept, *self._write(changed), *self._write(added)]

    def _split(
        self, before: Sequence[ManifestFile], replaced: set[str]
    ) -> tuple[list[ManifestFile], list[ManifestEntry]]:
        """Return the manifests that stay, and the entries of the others."""
        live = [m for m in before if m.has_added_files() or m.has_existing_files()]
        small = [m for m in live if live_files([m]) < ENTRIES_MAX // 2]
        has_many = len(live) > MANIFESTS_MAX
        same_spec = [m for m in small if m.partition_spec_id == self.spec.spec_id]
        merged = {m.manifest_path for m in same_spec if has_many}
        kept: list[ManifestFile] = []
        changed: list[ManifestEntry] = []
        for manifest in live:
            is_other_spec = manifest.partition_spec_id != self.spec.spec_id
            if not (replaced or manifest.manifest_path in merged) or (
                is_other_spec and not replaced
            ):
                kept.append(manifest)
                continue
            entries = manifest.fetch_manifest_entry(self._io)
            paths = {entry.data_file.file_path for entry in entries}
            if paths.isdisjoint(replaced) and manifest.manifest_path not in merged:
                kept.append(manifest)
                continue
            gone = paths & replaced
            replaced -= gone
            if manifest.partition_spec_id != self.spec.spec_id:
                continue  # a table with another spec has no file of the old one
            changed += (self._after(entry, gone) for entry in entries)
        return kept, changed

    def _after(self, entry: ManifestEntry, gone: Collection[str]) -> ManifestEntry:
        """Return the entry of a file in a manifest that is written again."""
        is_gone = entry.data_file.file_path in gone
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if is_gone else ManifestEntryStatus.EXISTING,
            snapshot_id=self.snapshot_id if is_gone else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _write(self, entries: Iterable[ManifestEntry]) -> Iterator[ManifestFile]:
        remaining = iter(entries)
        while some := list(islice(remaining, ENTRIES_MAX)):
            yield self._write_manifest(some)

    def _write_manifest(self, entries: Sequence[ManifestEntry]) -> ManifestFile:
        file = MemoryFile(self.folder.new_location(""))
        partitions = self.spec.partition_type(self.schema)
        entry_schema = manifest_entry_schema_with_data_file(
            DEFAULT_READ_VERSION, data_file_with_partition(partitions, DEFAULT_READ_VERSION)
        )
        metadata = {
            "schema": self.schema.model_dump_json(),
            "partition-spec": to_json(self.spec.fields).decode(),
            "partition-spec-id": str(self.spec.spec_id),
            "format-version": str(DEFAULT_READ_VERSION),
            "content": "data",
            "avro.codec": _CODEC,
        }
        with AvroOutputFile[ManifestEntry](
            file, entry_schema, "manifest_entry", metadata=metadata
        ) as avro:
            for start in range(0, len(entries), _BLOCK_ENTRIES):
                avro.write_block(list(entries[start : start + _BLOCK_ENTRIES]))
        self._store(file)
        return self._described(file, entries)

    def _described(self, file: MemoryFile, entries: Sequence[ManifestEntry]) -> ManifestFile:
        counts = {status: [0, 0] for status in ManifestEntryStatus}
        for entry in entries:
            counts[entry.status][0] += 1
            counts[entry.status][1] += entry.data_file.record_count
        sequence_numbers = (
            self.sequence_number if entry.sequence_number is None else entry.sequence_number
            for entry in entries
            if entry.status is not ManifestEntryStatus.DELETED
        )
        added = counts[ManifestEntryStatus.ADDED]
        existing = counts[ManifestEntryStatus.EXISTING]
        deleted = counts[ManifestEntryStatus.DELETED]
        return ManifestFile.from_args(
            manifest_path=file.location,
            manifest_length=len(file),
            partition_spec_id=self.spec.spec_id,
            content=ManifestContent.DATA,
            sequence_number=self.sequence_number,
            min_sequence_number=min(sequence_numbers, default=self.sequence_number),
            added_snapshot_id=self.snapshot_id,
            added_files_count=added[0],
            existing_files_count=existing[0],
            deleted_files_count=deleted[0],
            added_rows_count=added[1],
            existing_rows_count=existing[1],
            deleted_rows_count=deleted[1],
            partitions=construct_partition_summaries(
                self.spec, self.schema, [entry.data_file.partition for entry in entries]
            ),
            key_metadata=None,
        )

    def write_list(self, manifests: list[ManifestFile], parent_id: int | None) -> str:
        """Write the manifest list of the snapshot and return its location."""
        file = MemoryFile(self.folder.new_location(f"snap-{self.snapshot_id}-"))
        with write_manifest_list(
            format_version=DEFAULT_READ_VERSION,
            output_file=file,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=self.sequence_number,
            avro_compression=_CODEC,
        ) as manifest_list:
            if manifests:
                manifest_list.add_manifests(manifests)
        self._store(file)
        return file.location

    def _store(self, file: MemoryFile) -> None:
        self.folder.write(file)
        self.written.append(file.location)

    @property
    def _io(self) -> StoreFileIO:
        return StoreFileIO(self.folder.store)
