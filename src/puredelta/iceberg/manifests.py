"""Manifests and manifest lists of one export.

A commit that only adds files costs one manifest. Files that are removed are taken out of the
manifests that name them, which are written again; small manifests are put together when there are
many. Manifests that stay are named again by the new manifest list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import to_json
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from puredelta.iceberg.avro import (
    ABSENT,
    PRESENT,
    AvroHead,
    Entries,
    Numbers,
    RawRecords,
    joined,
    primitive,
    summary,
    varint,
    varints,
)
from puredelta.iceberg.storage import MemoryFile, MetadataFolder, StoreFileIO

ENTRIES_MAX = 10_000
"""The entries of one manifest."""
MANIFESTS_MAX = 100
"""Small manifests are put together when there are more manifests than this."""
_EXISTING, _ADDED, _DELETED = (
    int(status)
    for status in (
        ManifestEntryStatus.EXISTING,
        ManifestEntryStatus.ADDED,
        ManifestEntryStatus.DELETED,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes in the files since the last export."""

    added: Iterable[Entries]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Entries of a manifest, as they are written."""

    records: pa.Array
    statuses: Numbers
    rows: Numbers
    sequence_numbers: Numbers
    count_places: Numbers
    summaries: Sequence[PartitionFieldSummary]

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True, slots=True)
class _OldEntries:
    """The live entries of a manifest that is there, undecoded but for what changes."""

    raw: RawRecords
    numbers: Sequence[Numbers]
    """The ids of snapshots, the sequence numbers and those of the files."""
    bodies: Numbers
    """The places where the descriptions of files begin."""
    rows: Numbers
    paths: pa.Array

    @classmethod
    def read(cls, content: bytes, manifest: ManifestFile) -> _OldEntries:
        """Read a manifest, with what its entries inherit.

        Raises:
            UnknownRecordsError: another program has written it.
        """
        raw = RawRecords.read(content)
        statuses, _ = raw.numbers(raw.starts)
        raw = raw.select(statuses != _DELETED)
        _, place = raw.numbers(raw.starts)
        numbers = []
        number = manifest.sequence_number
        for inherited in (manifest.added_snapshot_id or 0, number, number):
            found, place = raw.optional_numbers(place, inherited)
            numbers.append(found)
        bodies = place
        _, place = raw.numbers(bodies)  # the kind of content
        lengths, place = raw.numbers(place)
        paths = raw.slices(place, place + lengths).cast(pa.large_string())
        rows, _ = raw.numbers(raw.count_places)
        return cls(raw, numbers, bodies, rows, paths)

    def __len__(self) -> int:
        return len(self.raw)

    def part(
        self, gone: Numbers, snapshot_id: int, summaries: Sequence[PartitionFieldSummary]
    ) -> _Part:
        """Return the entries for a manifest that is written again."""
        statuses = np.where(gone, _DELETED, _EXISTING)
        ids, sequence_numbers, file_numbers = self.numbers
        ids = np.where(gone, snapshot_id, ids)
        fields = [varints(one) for one in (statuses, ids, sequence_numbers, file_numbers)]
        status, *optional = fields
        columns = [status, *(column for one in optional for column in (PRESENT, one))]
        head = joined(columns, len(self))
        body = self.raw.slices(self.bodies, self.raw.ends)
        return _Part(
            records=joined([head, body], len(self)),
            statuses=statuses,
            rows=self.rows,
            sequence_numbers=sequence_numbers,
            count_places=pc.binary_length(head).to_numpy() + self.raw.count_places - self.bodies,
            summaries=summaries,
        )


@dataclass(kw_only=True)
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
        """Read the locations of all data files in manifests.

        Raises:
            UnknownRecordsError: another program has written one of them.
        """
        return {path for m in manifests for path in self._old_entries(m).paths.to_pylist()}

    def next_manifests(
        self, before: Sequence[ManifestFile], changes: Changes
    ) -> list[ManifestFile]:
        """Write the manifests that change, and return those of the new snapshot.

        Raises:
            UnknownRecordsError: another program has written a manifest that changes.
        """
        found: list[ManifestFile] = []
        if changes.replaced is not None:
            changed = list(self._write_together(self._split(before, changes.replaced, found)))
            found += changed
        return [*found, *(self._write([self._added(some)]) for some in changes.added)]

    def discard(self) -> None:
        """Remove what was written so far."""
        self.folder.delete(self.written)
        self.written.clear()

    def _split(
        self,
        before: Sequence[ManifestFile],
        replaced: Collection[str],
        kept: list[ManifestFile],
    ) -> Iterator[_Part]:
        """Add the manifests that stay to ``kept``, and yield the entries of the others."""
        live = [m for m in before if m.has_added_files() or m.has_existing_files()]
        small = [m for m in live if live_files([m]) < ENTRIES_MAX // 2]
        has_many = len(live) > MANIFESTS_MAX
        same_spec = [m for m in small if m.partition_spec_id == self.spec.spec_id]
        merged = {m.manifest_path for m in same_spec if has_many}
        wanted = pa.array(list(replaced), pa.large_string())
        num_left = len(wanted)
        for manifest in live:
            is_other_spec = manifest.partition_spec_id != self.spec.spec_id
            is_merged = manifest.manifest_path in merged
            if not num_left and not is_merged:
                kept.append(manifest)
                continue
            entries = self._old_entries(manifest)
            gone = pc.is_in(entries.paths, wanted).to_numpy(zero_copy_only=False)
            num_gone = np.count_nonzero(gone)
            if not num_gone and not is_merged:
                kept.append(manifest)
                continue
            num_left -= num_gone
            if not is_other_spec:  # a table with another spec has no file of the old one
                yield entries.part(gone, self.snapshot_id, manifest.partitions or ())

    def _old_entries(self, manifest: ManifestFile) -> _OldEntries:
        with self._io.new_input(manifest.manifest_path).open() as stream:
            return _OldEntries.read(stream.read(), manifest)

    def _added(self, entries: Entries) -> _Part:
        head = PRESENT + PRESENT + varint(self.snapshot_id) + ABSENT + ABSENT
        num_files = len(entries.records)
        return _Part(
            records=joined([head, entries.records], num_files),
            statuses=np.full(num_files, _ADDED),
            rows=entries.rows,
            sequence_numbers=np.full(num_files, self.sequence_number),
            count_places=entries.count_places + len(head),
            summaries=entries.summaries,
        )

    def _write_together(self, parts: Iterable[_Part]) -> Iterator[ManifestFile]:
        some: list[_Part] = []
        for part in parts:
            if some and sum(map(len, some)) + len(part) > ENTRIES_MAX:
                yield self._write(some)
                some = []
            some.append(part)
        if some:
            yield self._write(some)

    @cached_property
    def _head(self) -> AvroHead:
        partitions = self.spec.partition_type(self.schema)
        version = DEFAULT_READ_VERSION
        data_file = data_file_with_partition(partitions, version)
        metadata = {
            "schema": self.schema.model_dump_json(),
            "partition-spec": to_json(self.spec.fields).decode(),
            "partition-spec-id": str(self.spec.spec_id),
            "format-version": str(version),
            "content": "data",
        }
        schema = manifest_entry_schema_with_data_file(version, data_file)
        return AvroHead.of(schema, "manifest_entry", metadata)

    def _write(self, parts: Sequence[_Part]) -> ManifestFile:
        content = self._head.file(
            pa.concat_arrays([part.records for part in parts]),
            np.concatenate([part.count_places for part in parts]),
        )
        location = self.folder.new_location("")
        self._store(location, content)
        statuses = np.concatenate([part.statuses for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        live_numbers = np.concatenate([part.sequence_numbers for part in parts])
        live_numbers = live_numbers[statuses != _DELETED]

        def count(status: int) -> int:
            return int(np.count_nonzero(statuses == status))

        def num_rows(status: int) -> int:
            return int(rows[statuses == status].sum())

        return ManifestFile.from_args(
            manifest_path=location,
            manifest_length=len(content),
            partition_spec_id=self.spec.spec_id,
            content=ManifestContent.DATA,
            sequence_number=self.sequence_number,
            min_sequence_number=int(min(live_numbers, default=self.sequence_number)),
            added_snapshot_id=self.snapshot_id,
            added_files_count=count(_ADDED),
            existing_files_count=count(_EXISTING),
            deleted_files_count=count(_DELETED),
            added_rows_count=num_rows(_ADDED),
            existing_rows_count=num_rows(_EXISTING),
            deleted_rows_count=num_rows(_DELETED),
            partitions=self._together([part.summaries for part in parts]),
            key_metadata=None,
        )

    def _together(
        self, summaries: Sequence[Sequence[PartitionFieldSummary]]
    ) -> list[PartitionFieldSummary]:
        """Return summaries of the partitions of several manifests."""
        if len(summaries) == 1:
            return list(summaries[0])
        found = []
        fields = self.spec.partition_type(self.schema).fields
        for field_, column in zip(fields, zip(*summaries, strict=True), strict=True):
            kind = primitive(field_.field_type)
            bounds = [bound for one in column for bound in (one.lower_bound, one.upper_bound)]
            values = [None if b is None else from_bytes(kind, b) for b in bounds]
            whole = summary(kind, values)
            found.append(
                PartitionFieldSummary(
                    any(one.contains_null for one in column),
                    any(one.contains_nan for one in column),
                    whole.lower_bound,
                    whole.upper_bound,
                )
            )
        return found

    def write_list(self, manifests: list[ManifestFile], parent_id: int | None) -> str:
        """Write the manifest list of the snapshot and return its location."""
        file = MemoryFile(self.folder.new_location(f"snap-{self.snapshot_id}-"))
        with write_manifest_list(
            format_version=DEFAULT_READ_VERSION,
            output_file=file,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=self.sequence_number,
            avro_compression="deflate",
        ) as manifest_list:
            if manifests:
                manifest_list.add_manifests(manifests)
        self._store(file.location, file.content)
        return file.location

    def _store(self, location: str, content: bytes) -> None:
        self.folder.write(location, content)
        self.written.append(location)

    @property
    def _io(self) -> StoreFileIO:
        return StoreFileIO(self.folder.store)
