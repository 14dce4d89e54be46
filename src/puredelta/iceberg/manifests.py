"""Manifests and manifest lists of one export.

A commit that only adds files costs one manifest. Files that are removed are taken out of the
manifests that name them, which are written again; small manifests are put together when there are
many. Manifests that stay are named again by the new manifest list. Deletion vectors are in
manifests of their own, which are of format 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import to_json
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import StructType

from puredelta.iceberg.avro import (
    ABSENT,
    PRESENT,
    AvroHead,
    Entries,
    FieldBytes,
    Numbers,
    RawRecords,
    UnreadableRecordsError,
    avro_schema,
    decoded_records,
    decoding,
    joined,
    primitive,
    summary,
    value_encoder,
    varint,
    varints,
)
from puredelta.iceberg.storage import DecodedFiles, MetadataFolder, StoreFileIO

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
_DATA, _DELETES = ManifestContent.DATA, ManifestContent.DELETES
_LONG_MAX = (1 << 63) - 1
_FIRST_ROW_ID = 15
"""The place of the id in `ManifestFile`, which has no name for it."""
FormatVersion: TypeAlias = Literal[2, 3]


def entries_max(num_files: int) -> int:
    """Return the most entries of one manifest of a table.

    A file that is removed costs its manifest, and each commit costs the list of all manifests. So
    both grow with the root of the number of files.

    >>> entries_max(10_000), entries_max(100_000), entries_max(5_000_000)
    (1000, 3160, 10000)
    """
    return min(max(1_000, 10 * math.isqrt(num_files)), 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes in the files since the last export."""

    added: Iterable[Entries]
    replaced: Collection[str] | None
    """The locations of files that are gone; None: all."""
    touched: Collection[str] | None
    """The locations of files whose deletion vector came, changed or is gone; None: all."""
    vectors: Callable[[Collection[str] | None], Iterable[Entries]]
    """Returns the entries of the vectors of some files, by their locations; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of files and rows in manifests."""

    files: int
    rows: int
    added_files: int
    added_rows: int
    removed_files: int
    removed_rows: int
    vectors: int
    deleted_rows: int
    added_vectors: int
    removed_vectors: int

    @classmethod
    def of(cls, manifests: Sequence[ManifestFile], snapshot_id: int) -> Totals:
        """Sum the manifests of a snapshot; added and removed are those of this snapshot."""
        data, vectors = data_manifests(manifests), vector_manifests(manifests)
        own = [m for m in data if m.added_snapshot_id == snapshot_id]
        own_vectors = [m for m in vectors if m.added_snapshot_id == snapshot_id]
        return cls(
            files=live_files(data),
            rows=_live_rows(data),
            added_files=sum(m.added_files_count or 0 for m in own),
            added_rows=sum(m.added_rows_count or 0 for m in own),
            removed_files=sum(m.deleted_files_count or 0 for m in own),
            removed_rows=sum(m.deleted_rows_count or 0 for m in own),
            vectors=live_files(vectors),
            deleted_rows=_live_rows(vectors),
            added_vectors=sum(m.added_files_count or 0 for m in own_vectors),
            removed_vectors=sum(m.deleted_files_count or 0 for m in own_vectors),
        )


def data_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests of data files."""
    return [m for m in manifests if m.content is _DATA]


def vector_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Return the manifests of deletion vectors."""
    return [m for m in manifests if m.content is _DELETES]


def live_files(manifests: Iterable[ManifestFile]) -> int:
    """Return the number of files in manifests."""
    return sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in manifests)


def _live_rows(manifests: Iterable[ManifestFile]) -> int:
    return sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in manifests)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Entries of a manifest, as they are written."""

    records: pa.Array
    statuses: Numbers
    rows: Numbers
    sequence_numbers: Numbers
    places: Sequence[Numbers]
    summaries: Sequence[PartitionFieldSummary]

    def __len__(self) -> int:
        return len(self.records)

    def slice(self, start: int, end: int) -> _Part:
        """Return some of the entries; the summaries are those of all."""
        return _Part(
            records=self.records[start:end],
            statuses=self.statuses[start:end],
            rows=self.rows[start:end],
            sequence_numbers=self.sequence_numbers[start:end],
            places=[one[start:end] for one in self.places],
            summaries=self.summaries,
        )


def _first_row_id(manifest: ManifestFile) -> int | None:
    found: int | None = manifest[_FIRST_ROW_ID]
    return found


def _row_fields(first_row_ids: Numbers) -> Sequence[FieldBytes]:
    """Return the last fields of data files in format 3."""
    return (PRESENT, varints(first_row_ids), ABSENT * 3)


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
    """Of data files, or of the Puffin files of vectors."""
    names: pa.Array
    """The locations of the data files, which vectors belong to."""

    @classmethod
    def read(cls, manifest: ManifestFile, io: StoreFileIO) -> _OldEntries:
        """Read a manifest, with what its entries inherit.

        Raises:
            UnreadableRecordsError: it is damaged, or another program has written it.
        """
        with decoding(), io.new_input(manifest.manifest_path).open() as stream:
            raw = _RECORDS.of(stream.read(), RawRecords.read)
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
        names = paths = raw.texts(place)[0]
        if manifest.content is _DELETES:
            names, _ = raw.texts(raw.places[1] + len(PRESENT))
        rows, _ = raw.numbers(raw.places[0])
        return cls(raw, numbers, bodies, rows, paths, names)

    def __len__(self) -> int:
        return len(self.raw)

    def first_row_ids(self, first: int) -> Numbers:
        """Return the id of each file's first row, if the manifest's is the first of them."""
        return first + np.cumsum(self.rows) - self.rows

    def part(
        self,
        gone: Numbers,
        snapshot_id: int,
        summaries: Sequence[PartitionFieldSummary],
        rest: Sequence[FieldBytes],
    ) -> _Part:
        """Return the entries for a manifest that is written again, with fields of its format."""
        statuses = np.where(gone, _DELETED, _EXISTING)
        ids, sequence_numbers, file_numbers = self.numbers
        ids = np.where(gone, snapshot_id, ids)
        fields = [varints(one) for one in (statuses, ids, sequence_numbers, file_numbers)]
        status, *optional = fields
        columns = [status, *(column for one in optional for column in (PRESENT, one))]
        head = joined(columns, len(self))
        body = self.raw.slices(self.bodies, self.raw.ends)
        moved = pc.binary_length(head).to_numpy()
        return _Part(
            records=joined([head, body, *rest], len(self)),
            statuses=statuses,
            rows=self.rows,
            sequence_numbers=sequence_numbers,
            places=[moved + one - self.bodies for one in self.raw.places],
            summaries=summaries,
        )


def listed_manifests(manifest_list: str, io: StoreFileIO) -> tuple[ManifestFile, ...]:
    """Read a manifest list.

    Raises:
        UnreadableRecordsError: it is damaged.
    """
    with decoding(), io.new_input(manifest_list).open() as stream:
        return _LISTS.of(stream.read(), _decoded_list)


def _decoded_list(content: bytes) -> tuple[ManifestFile, ...]:
    found = tuple(decoded_records(content, _manifest_reader))
    values = [one[place] for one in found for place in range(len(one))]
    if any(isinstance(value, int) and abs(value) > _LONG_MAX for value in values):
        raise UnreadableRecordsError
    return found


def _manifest_reader(schema: Schema) -> Reader:
    return resolve_reader(
        schema,
        MANIFEST_LIST_FILE_SCHEMAS[3],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    )


def puffin_files(manifests: Iterable[ManifestFile], io: StoreFileIO) -> set[str]:
    """Read the locations of the files that hold the vectors of manifests."""
    entries = (_OldEntries.read(one, io) for one in vector_manifests(manifests))
    return {path for one in entries for path in pc.unique(one.paths).to_pylist()}


_LISTS = DecodedFiles[tuple[ManifestFile, ...]](bytes_max=1 << 20)
_RECORDS = DecodedFiles[RawRecords](32 << 20, size_of=lambda raw: raw.content.nbytes)


@functools.lru_cache(maxsize=32)
def _entry_schema(partitions: StructType, version: FormatVersion) -> str:
    data_file = data_file_with_partition(partitions, version)
    return avro_schema(manifest_entry_schema_with_data_file(version, data_file), "manifest_entry")


def _encoded_manifest(manifest: ManifestFile, version: FormatVersion) -> bytes:
    """Return the record of a manifest in a list; most are those of the list before."""
    values = (manifest[place] for place in range(len(manifest)))
    key = (tuple(map(tuple, one)) if isinstance(one, list) else one for one in values)
    return _encoded_values(tuple(key), version)


@functools.lru_cache(maxsize=4 * MANIFESTS_MAX)
def _encoded_values(values: tuple[Any, ...], version: FormatVersion) -> bytes:
    parts = (
        [PartitionFieldSummary(*some) for some in one] if isinstance(one, tuple) else one
        for one in values
    )
    return _manifest_encoder(version)[1](ManifestFile(*parts))


@functools.cache
def _manifest_encoder(version: FormatVersion) -> tuple[str, Callable[[ManifestFile], bytes]]:
    """Return the schema of manifest lists, and the encoder of their records."""
    schema = MANIFEST_LIST_FILE_SCHEMAS[version]
    return avro_schema(schema, "manifest_file"), value_encoder(schema.as_struct())


@dataclass(kw_only=True)
class ManifestWriter:
    """Writes the manifests of one snapshot into the folder of a table."""

    folder: MetadataFolder
    spec: PartitionSpec
    schema: Schema
    snapshot_id: int
    sequence_number: int
    version: FormatVersion
    first_row_id: int
    """The id of the first new row; only in format 3."""
    entries_max: int
    """The most entries of one manifest."""
    next_row_id: int = field(init=False)
    written: list[str] = field(default_factory=list)
    """The locations of all files so far: without a commit they are left over."""
    _heads: dict[ManifestContent, AvroHead] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_row_id = self.first_row_id

    def live_paths(self, manifests: Iterable[ManifestFile]) -> set[str]:
        """Read the locations of all data files in manifests.

        Raises:
            UnreadableRecordsError: one of them is damaged, or another program has written it.
        """
        return {path for m in manifests for path in self._old_entries(m).paths.to_pylist()}

    def next_manifests(
        self, before: Sequence[ManifestFile], changes: Changes
    ) -> list[ManifestFile]:
        """Write the manifests that change, and return those of the new snapshot.

        Raises:
            UnreadableRecordsError: a manifest that changes is damaged, or another program has
                written it.
        """
        found = self._next(data_manifests(before), changes.replaced, changes.added)
        vectors, touched = vector_manifests(before), changes.touched
        stale: Collection[str] | None = None
        if touched is not None:
            stale = self._in_same_files(vectors, touched) if touched else ()
            touched = {*touched, *stale}
        return [*found, *self._next(vectors, stale, changes.vectors(touched), _DELETES)]

    def _in_same_files(
        self, manifests: Sequence[ManifestFile], touched: Collection[str]
    ) -> set[str]:
        """Return the data files whose vectors share a Puffin file with one that changes.

        pyiceberg reads all vectors of a Puffin file, also those that the snapshot does not name.
        """
        entries = [self._old_entries(one) for one in manifests]
        if not entries:
            return set()
        names = pa.concat_arrays([one.names for one in entries])
        paths = pa.concat_arrays([one.paths for one in entries])
        changed = paths.filter(pc.is_in(names, pa.array(list(touched), names.type)))
        return set(names.filter(pc.is_in(paths, changed)).to_pylist())

    def _next(
        self,
        before: Sequence[ManifestFile],
        replaced: Collection[str] | None,
        added: Iterable[Entries],
        content: ManifestContent = _DATA,
    ) -> list[ManifestFile]:
        found: list[ManifestFile] = []
        if replaced is not None:
            parts = self._split(before, replaced, found)
            changed = list(self._write_together(parts, content))
            found += changed
        for some in self._filled(added):
            found.append(self._write([self._added(one, content) for one in some], content))
        return found

    def _filled(self, added: Iterable[Entries]) -> Iterator[list[Entries]]:
        """Yield the entries of one manifest after those of another."""
        some: list[Entries] = []
        for one in added:
            if (
                some
                and sum(len(each.records) for each in some) + len(one.records) > self.entries_max
            ):
                yield some
                some = []
            some.append(one)
        if some:
            yield some

    def discard(self) -> None:
        """Remove what was written so far."""
        self.folder.delete(self.written)
        self.written.clear()
        self.next_row_id = self.first_row_id

    def _split(
        self,
        before: Sequence[ManifestFile],
        replaced: Collection[str],
        kept: list[ManifestFile],
    ) -> Iterator[_Part]:
        """Add the manifests that stay to ``kept``, and yield the entries of the others.

        The largest are read first: a file that is gone is most likely in one of them.
        """
        live = [m for m in before if m.has_added_files() or m.has_existing_files()]
        live.sort(key=lambda one: live_files([one]), reverse=True)
        small = [m for m in live if live_files([m]) < self.entries_max // 2]
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
            gone = pc.is_in(entries.names, wanted).to_numpy(zero_copy_only=False)
            num_gone = np.count_nonzero(gone)
            if not num_gone and not is_merged:
                kept.append(manifest)
                continue
            num_left -= num_gone
            if not is_other_spec:  # a table with another spec has no file of the old one
                rest = self._missing_fields(entries, manifest)
                yield entries.part(gone, self.snapshot_id, manifest.partitions or (), rest)

    def _old_entries(self, manifest: ManifestFile) -> _OldEntries:
        return _OldEntries.read(manifest, self._io)

    def _missing_fields(self, entries: _OldEntries, manifest: ManifestFile) -> Sequence[FieldBytes]:
        """Return the fields of format 3 for entries of format 2."""
        if self.version == DEFAULT_READ_VERSION or entries.raw.version != str(DEFAULT_READ_VERSION):
            return ()
        first = _first_row_id(manifest)
        if first is None:
            first = self._new_row_ids(int(entries.rows.sum()))
        return _row_fields(entries.first_row_ids(first))

    def _new_row_ids(self, num_rows: int) -> int:
        first = self.next_row_id
        self.next_row_id += num_rows
        return first

    def _added(self, entries: Entries, content: ManifestContent) -> _Part:
        head = PRESENT + PRESENT + varint(self.snapshot_id) + ABSENT + ABSENT
        num_files = len(entries.records)
        rest: Sequence[FieldBytes] = ()
        if content is _DATA and self.version != DEFAULT_READ_VERSION:
            first = self._new_row_ids(int(entries.rows.sum()))
            rest = _row_fields(first + np.cumsum(entries.rows) - entries.rows)
        return _Part(
            records=joined([head, entries.records, *rest], num_files),
            statuses=np.full(num_files, _ADDED),
            rows=entries.rows,
            sequence_numbers=np.full(num_files, self.sequence_number),
            places=[one + len(head) for one in entries.places],
            summaries=entries.summaries,
        )

    def _write_together(
        self, parts: Iterable[_Part], content: ManifestContent
    ) -> Iterator[ManifestFile]:
        some: list[_Part] = []
        for part in parts:
            for start in range(0, len(part), self.entries_max):
                one = part.slice(start, start + self.entries_max)
                if some and sum(map(len, some)) + len(one) > self.entries_max:
                    yield self._write(some, content)
                    some = []
                some.append(one)
        if some:
            yield self._write(some, content)

    def _head(self, content: ManifestContent) -> AvroHead:
        if content not in self._heads:
            metadata = {
                "schema": self.schema.model_dump_json(),
                "partition-spec": to_json(self.spec.fields).decode(),
                "partition-spec-id": str(self.spec.spec_id),
                "format-version": str(self.version),
                "content": "data" if content is _DATA else "deletes",
            }
            schema = _entry_schema(self.spec.partition_type(self.schema), self.version)
            self._heads[content] = AvroHead(schema=schema, metadata=metadata)
        return self._heads[content]

    def _write(self, parts: Sequence[_Part], content: ManifestContent) -> ManifestFile:
        records = pa.concat_arrays([part.records for part in parts])
        columns = zip(*(part.places for part in parts), strict=True)
        places = [np.concatenate(one) for one in columns]
        file = self._head(content).file(records, places)
        location = self.store_new("", file)
        _RECORDS.keep(file, RawRecords.of(records, places, str(self.version)))
        statuses = np.concatenate([part.statuses for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        live_numbers = np.concatenate([part.sequence_numbers for part in parts])
        live_numbers = live_numbers[statuses != _DELETED]

        has_row_ids = content is _DATA and self.version != DEFAULT_READ_VERSION

        def count(status: int) -> int:
            return int(np.count_nonzero(statuses == status))

        def num_rows(status: int) -> int:
            return int(rows[statuses == status].sum())

        return ManifestFile.from_args(
            _table_format_version=3,
            manifest_path=location,
            manifest_length=len(file),
            partition_spec_id=self.spec.spec_id,
            content=content,
            sequence_number=self.sequence_number,
            min_sequence_number=int(live_numbers.min(initial=self.sequence_number)),
            added_snapshot_id=self.snapshot_id,
            added_files_count=count(_ADDED),
            existing_files_count=count(_EXISTING),
            deleted_files_count=count(_DELETED),
            added_rows_count=num_rows(_ADDED),
            existing_rows_count=num_rows(_EXISTING),
            deleted_rows_count=num_rows(_DELETED),
            partitions=self._together([part.summaries for part in parts]),
            key_metadata=None,
            # Each file has the id of its first row, so the manifest gives none.
            first_row_id=self.next_row_id if has_row_ids else None,
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
        metadata = {
            "snapshot-id": str(self.snapshot_id),
            "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
            "sequence-number": str(self.sequence_number),
            "format-version": str(self.version),
        }
        if self.version != DEFAULT_READ_VERSION:
            metadata["first-row-id"] = str(self.first_row_id)
            manifests = [self._with_row_ids(one) for one in manifests]
        schema, _ = _manifest_encoder(self.version)
        encoded = [_encoded_manifest(one, self.version) for one in manifests]
        records = pa.array(encoded, pa.large_binary())
        file = AvroHead(schema=schema, metadata=metadata).file(records)
        location = self.store_new(f"snap-{self.snapshot_id}-", file)
        _LISTS.keep(file, tuple(manifests))
        return location

    def _with_row_ids(self, manifest: ManifestFile) -> ManifestFile:
        """Return a manifest whose data files have ids of rows, which those of format 2 lack."""
        if manifest.content is not _DATA or _first_row_id(manifest) is not None:
            return manifest
        found = ManifestFile(*(manifest[place] for place in range(len(manifest))))
        found[_FIRST_ROW_ID] = self._new_row_ids(_live_rows([manifest]))
        return found

    def store_new(self, prefix: str, content: bytes, suffix: str = "avro") -> str:
        """Write a new file of the snapshot and return its location."""
        location = self.folder.new_location(prefix, suffix)
        self.folder.write(location, content)
        self.written.append(location)
        return location

    @property
    def _io(self) -> StoreFileIO:
        return self.folder.io
