"""Deletion vectors in exports: format 3, Puffin files, and the ids of rows."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyiceberg")
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)

from puredelta import iceberg
from puredelta.iceberg import manifests, storage
from puredelta.iceberg.avro import RawRecords, UnreadableRecordsError
from puredelta.iceberg.entry import export_log
from puredelta.iceberg.storage import DecodedFiles, MetadataFolder, StoreFileIO
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate, read_vector, write_vectors
from puredelta.log.files.file_table import remove_file
from puredelta.protocol.actions.actions import Action, Add
from puredelta.protocol.schema.types import DATE, LONG, STRING, StructType
from tests.deletion_vectors import encode_inline
from tests.filled_table import SmallTable, column
from tests.iceberg.tables import (
    StaticTable,
    delta_rows,
    duckdb_rows,
    exported_versions,
    iceberg_rows,
)

_FIRST_ROW_ID = 16
IDS = StructType((column("id", LONG), column("p", STRING)))


def new_table(root: Path, schema: StructType = IDS, **rest: Any) -> SmallTable:
    return SmallTable(root, schema, delta__enableDeletionVectors="true", **rest)


def active(table: SmallTable) -> list[Add]:
    return sorted(table.log.snapshot().files.adds(), key=lambda add: add.path)


def marked(table: SmallTable, add: Add, rows: Collection[int]) -> list[Action]:
    """Return the actions that delete rows of a file, beside those that are deleted already."""
    known: set[int] = set()
    if add.deletion_vector is not None:
        old = read_vector(add.deletion_vector, table.log.root_uri, store=table.log.store)
        known = set(old.tolist())
    positions = np.array(sorted(known | set(rows)), np.uint64)
    update = DeletionVectorUpdate(file=add, rows=positions)
    written = write_vectors([update], store=table.log.store, config=table.config)
    return [remove_file(add, deleted_ms=1), *written.adds]


def delete(table: SmallTable, place: int, *rows: int) -> None:
    table.commit(*marked(table, active(table)[place], rows))


def restore(table: SmallTable, version: int) -> None:
    """Commit the files of an earlier version."""
    wanted = {
        (a.path, a.deletion_vector): a for a in table.log.snapshot(version=version).files.adds()
    }
    present = {(a.path, a.deletion_vector): a for a in active(table)}
    table.commit(
        *(remove_file(add, deleted_ms=1) for key, add in present.items() if key not in wanted),
        *(add for key, add in wanted.items() if key not in present),
    )


def check(table: SmallTable) -> dict[str, Any]:
    """Export, compare the rows of every exported version, and return the metadata."""
    exported = iceberg.export(table.root)
    versions = exported_versions(exported.metadata_location)
    assert exported.version in versions
    for version, snapshot_id in versions.items():
        found = iceberg_rows(exported.metadata_location, snapshot_id)
        assert found == delta_rows(table, version), version
    metadata: dict[str, Any] = json.loads(
        Path(exported.metadata_location.removeprefix("file://")).read_text()
    )
    if metadata["format-version"] == 3:
        check_lineage(table, metadata)
    return metadata


def entries(table: SmallTable, snapshot: Any) -> list[tuple[Any, Any, ManifestEntry]]:
    """Return the entries of a snapshot with all fields of format 3, and their manifests."""
    io = StoreFileIO(table.log.store)
    found = []
    for manifest in snapshot.manifests(io):
        with AvroFile[ManifestEntry](
            io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[3],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus},
        ) as file:
            found += [(manifest, file.header.meta, entry) for entry in file]
    return found


def check_lineage(table: SmallTable, metadata: dict[str, Any]) -> None:
    """A file keeps the ids of its rows while it is there, and no other file has one of them."""
    found = StaticTable.from_metadata(str(table.root / "_iceberg"))
    before: dict[str, int] = {}
    ranges: set[tuple[int, int]] = set()
    next_id = 0
    for one in metadata["snapshots"]:
        if "first-row-id" not in one:
            continue
        assert one["first-row-id"] >= next_id  # snapshots between may have expired
        next_id = one["first-row-id"] + one["added-rows"]
        now: dict[str, int] = {}
        for manifest, header, entry in entries(table, found.snapshot_by_id(one["snapshot-id"])):
            is_data = manifest.content is ManifestContent.DATA
            is_live = entry.status is not ManifestEntryStatus.DELETED
            if is_data and is_live and header["format-version"] == "3":
                path, first = entry.data_file.file_path, entry.data_file[_FIRST_ROW_ID]
                now[path] = first
                assert before.get(path, first) == first
                ranges.add((first, first + entry.data_file.record_count))
        before = now
    assert metadata["next-row-id"] == next_id
    ends = [0, *(end for _, end in sorted(ranges))]
    firsts = [*(first for first, _ in sorted(ranges)), next_id]
    assert all(end <= first for end, first in zip(ends, firsts, strict=True))


def test_first_vector_upgrades_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append([{"id": n} for n in range(5)])
    table.append([{"id": n} for n in range(5, 10)])
    assert check(table)["format-version"] == 2
    delete(table, 0, 1, 3)
    metadata = check(table)
    assert metadata["format-version"] == 3
    assert metadata["next-row-id"] == 10
    assert metadata["snapshots"][-1]["summary"]["operation"] == "delete"
    assert metadata["snapshots"][-1]["summary"]["total-position-deletes"] == "2"
    delete(table, 0, 0)
    delete(table, 1, 4)
    table.append([{"id": 11}])
    check(table)
    table.commit(*table.removes())
    metadata = check(table)
    assert metadata["format-version"] == 3
    assert metadata["snapshots"][-1]["summary"]["total-delete-files"] == "0"


def test_table_without_vectors_stays_in_format_2(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append([{"id": 1}, {"id": 2}])
    delete(table, 0, 1)
    table.replace_all([{"id": 1}])
    assert check(table)["format-version"] == 2


def test_inline_vector(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    added = table.append([{"id": n} for n in range(5)])
    vector = encode_inline(np.array([0, 4], np.uint64))
    stats = str(added.stats).replace('"tightBounds":true', '"tightBounds":false')
    table.commit(*table.removes(), replace(added, deletion_vector=vector, stats=stats))
    check(table)
    assert len(iceberg_rows(str(tmp_path / "_iceberg"))) == 3


def test_restored_vectors(tmp_path: Path) -> None:
    """Vectors that shrink or are gone, whose old blobs would delete too many rows."""
    table = new_table(tmp_path)
    for start in (0, 10):
        table.append([{"id": start + n} for n in range(10)])
    table.commit(*marked(table, active(table)[0], {1}), *marked(table, active(table)[1], {1}))
    check(table)
    table.commit(*marked(table, active(table)[0], {2}), *marked(table, active(table)[1], {3}))
    check(table)
    first, second = active(table)
    older = {a.path: a for a in table.log.snapshot(version=3).files.adds()}
    table.commit(remove_file(first, deleted_ms=1), older[first.path])
    check(table)
    table.commit(remove_file(second, deleted_ms=1))
    check(table)
    restore(table, 2)
    check(table)
    restore(table, 3)
    check(table)
    restore(table, 4)
    check(table)


def test_vectors_in_partitions_under_column_mapping(tmp_path: Path) -> None:
    schema = StructType(
        (column("id", LONG, 1, "c1"), column("p", STRING, 2, "c2"), column("d", DATE, 3, "c3"))
    )
    table = new_table(tmp_path, schema, partitioned_by=("p",), delta__columnMapping__mode="name")
    for value in ("a b", "ä", None):
        table.append([{"id": n, "p": value} for n in range(4)])
        check(table)
    for place in range(3):
        delete(table, place, place)
    check(table)
    renamed = StructType((column("key", LONG, 1, "c1"), *schema.fields[1:]))
    table.change(renamed)
    delete(table, 1, 0)
    check(table)
    found = StaticTable.from_metadata(str(tmp_path / "_iceberg"))
    assert found.scan(row_filter="p = 'ä'").to_arrow()["key"].to_pylist() == [2, 3]


def test_versions_between_exports_and_lost_commits(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append([{"id": 10 * number + n} for n in range(5)])
    delete(table, 0, 0)
    check(table)
    for _ in range(2):
        delete(table, 0, 1)
        delete(table, 1, 2)
        restore(table, 4)
    check(table)
    while (newest := table.log.snapshot().version) % 10:
        delete(table, newest % 3, newest % 5)
    for version in range(newest - 6, newest):
        (table.root / f"_delta_log/{version:020d}.json").unlink()
    exported = iceberg.export(table.root)
    assert iceberg_rows(exported.metadata_location) == delta_rows(table)


def puffins(table: SmallTable) -> set[str]:
    return {path.name for path in (table.root / "_iceberg/metadata").glob("*.puffin")}


def named_puffins(table: SmallTable) -> set[str]:
    found = StaticTable.from_metadata(str(table.root / "_iceberg"))
    return {
        entry.data_file.file_path.rpartition("/")[2]
        for snapshot in found.snapshots()
        for manifest, _, entry in entries(table, snapshot)
        if manifest.content is ManifestContent.DELETES
        and entry.status is not ManifestEntryStatus.DELETED
    }


def test_puffin_files_expire(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for start in (0, 10):
        table.append([{"id": start + n} for n in range(10)])
    for number in range(4):
        delete(table, number % 2, number)
        check(table)
    assert len(puffins(table)) == 4
    assert puffins(table) == named_puffins(table)
    export_log(table.log, expire_before_ms=1 << 60)
    assert puffins(table) == named_puffins(table)
    assert len(exported_versions(str(tmp_path / "_iceberg"))) == 1
    assert len(puffins(table)) in {1, 2}
    check(table)
    table.commit(*table.removes())
    check(table)
    export_log(table.log, expire_before_ms=1 << 60)
    assert puffins(table) == set()


def test_append_reads_no_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a commit that changes no vector does not grow with their number."""
    table = new_table(tmp_path)
    table.append([{"id": 1}, {"id": 2}])
    delete(table, 0, 1)
    check(table)
    table.append([{"id": 3}])
    with monkeypatch.context() as patched:
        for name in ("_OldEntries.read", "ManifestFile.fetch_manifest_entry"):
            patched.setattr(f"puredelta.iceberg.manifests.{name}", pytest.fail)
        iceberg.export(table.root)
    check(table)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_decoded_files_equal_those_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """An export continues with what the export before has written, without reading it."""
    chosen = random.Random(seed)
    monkeypatch.setattr("puredelta.iceberg.manifests.MANIFESTS_MAX", 3)
    kept = (storage._METADATA, manifests._LISTS, manifests._RECORDS)
    for one in kept:
        monkeypatch.setattr(one, "_bytes_max", 1 << 20)
    schema = StructType((column("id", LONG), column("p", STRING)))
    table = SmallTable(tmp_path, schema, partitioned_by=("p",), delta__enableDeletionVectors="true")
    for number in range(8):
        table.append([{"id": number, "p": f"{number % 3}"} for number in range(number + 1)])
        if number and chosen.random() < 0.5:
            table.commit(chosen.choice(table.removes()))
        if number == 4 and seed % 2:
            table.commit(*marked(table, chosen.choice(active(table)), [0]))
        before = [len(one._kept) for one in kept[:2]]
        with monkeypatch.context() as patched:
            if number:
                for name in ("storage._decoded_metadata", "manifests._decoded_list"):
                    patched.setattr(f"puredelta.iceberg.{name}", pytest.fail)
                patched.setattr(RawRecords, "read", pytest.fail)
            iceberg.export(table.root)
        after = [len(one._kept) for one in kept[:2]]
        assert all(old < new for old, new in zip(before, after, strict=True)), (before, after)
    for content, (metadata, _) in storage._METADATA._kept.items():
        assert metadata == storage._decoded_metadata(content)
    for content, (listed, _) in manifests._LISTS._kept.items():
        assert [repr(one) for one in listed] == [
            repr(one) for one in manifests._decoded_list(content)
        ]
    for content, (records, _) in manifests._RECORDS._kept.items():
        read = RawRecords.read(content)
        assert (records.version, len(records.places)) == (read.version, len(read.places))
        numbers = [records.starts, records.ends, *records.places]
        others = [read.starts, read.ends, *read.places]
        for found, other in zip(numbers, others, strict=True):
            assert found.tolist() == other.tolist()
        assert records.content.tobytes() == read.content.tobytes()
    for one in kept:
        one._kept.clear()
    check(table)


def test_decoded_files_have_a_limit() -> None:
    some = DecodedFiles[int](bytes_max=100, size_of=lambda found: 49 if found == 1 else 0)
    asked: list[bytes] = []

    def decode(content: bytes) -> int:
        asked.append(content)
        return len(content)

    assert [some.of(content, decode) for content in (b"a" * 40, b"b" * 40, b"a" * 40)] == [40] * 3
    some.keep(b"c", 1)  # in place of the oldest
    assert [some.of(content, decode) for content in (b"a" * 40, b"c")] == [40, 1]
    assert some.of(b"b" * 40, decode) == 40
    assert [content[:1] for content in asked] == [b"a", b"b", b"b"]
    some.keep(b"d" * 101, 101)
    assert some._kept == {}


def test_lost_race_leaves_no_puffin_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path)
    table.append([{"id": 1}, {"id": 2}])
    delete(table, 0, 1)
    with monkeypatch.context() as patched:
        patched.setattr(MetadataFolder, "put_metadata", lambda *_: False)
        with pytest.raises(Exception, match="UNIVERSAL_FORMAT"):
            iceberg.export(table.root)
    assert puffins(table) == set()
    check(table)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(6))
def test_random_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Few vectors share a Puffin file, and few manifests stay apart."""
    monkeypatch.setattr("puredelta.iceberg.data_files.PUFFIN_VECTORS_MAX", 2)
    monkeypatch.setattr("puredelta.iceberg.manifests.MANIFESTS_MAX", 3)
    chosen = random.Random(seed)
    is_partitioned = bool(seed % 2)
    table = new_table(tmp_path, partitioned_by=("p",) if is_partitioned else ())
    number = 0
    for _ in range(25):
        files = active(table)
        match chosen.randrange(7):
            case 0 | 1 if files:
                some = chosen.sample(files, chosen.randint(1, len(files)))
                actions = [a for f in some for a in marked(table, f, {chosen.randrange(8)})]
                table.commit(*actions)
            case 2 if files:
                some = chosen.sample(files, chosen.randint(1, len(files)))
                merged = [{"id": -number - n, "p": "m"} for n in range(8)]
                table.commit(*(remove_file(f, deleted_ms=1) for f in some), table.file(merged))
            case 3:
                restore(table, chosen.randrange(1, table.log.snapshot().version + 1))
            case _:
                rows = [{"id": number + n, "p": f"p{number % 3}"} for n in range(8)]
                table.append(rows)
                number += 8
        if chosen.randrange(3):
            iceberg.export(table.root)
    check(table)
    assert puffins(table) == named_puffins(table)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
def test_exports_go_on_after_damage(tmp_path: Path, seed: int) -> None:
    """An export that reads a damaged file begins again from the log."""
    chosen = random.Random(seed)
    table = new_table(tmp_path, partitioned_by=("p",))
    for number in range(3):
        table.append([{"id": 10 * number + n, "p": "a"} for n in range(5)])
    delete(table, 0, 1)
    iceberg.export(table.root)
    for number in range(3, 33):
        damage(chosen, *(tmp_path / "_iceberg/metadata").glob("*.*"))
        match chosen.randrange(3):
            case 0:
                table.append([{"id": 10 * number + n, "p": "b"} for n in range(5)])
            case 1 if some := [n for n, a in enumerate(active(table)) if not a.deletion_vector]:
                delete(table, chosen.choice(some), 0, chosen.randrange(5))
            case _:
                table.commit(remove_file(chosen.choice(active(table)), deleted_ms=1))
                table.append([{"id": 10 * number + n, "p": "a"} for n in range(5)])
        assert iceberg.export(table.root).version == table.log.snapshot().version
    shutil.rmtree(tmp_path / "_iceberg")
    check(table)


@pytest.mark.parametrize("damaged", ["snap-*", "[!s]*.avro"])
def test_damaged_files_are_written_again(tmp_path: Path, damaged: str) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append([{"id": 10 * number + n} for n in range(5)])
        delete(table, 0, number)
        iceberg.export(table.root)
    for file in (tmp_path / "_iceberg/metadata").glob(damaged):
        file.write_bytes(file.read_bytes()[:-40])
    delete(table, 0, 4)
    table.commit(remove_file(active(table)[1], deleted_ms=1))
    exported = iceberg.export(table.root)
    assert iceberg_rows(exported.metadata_location) == delta_rows(table)


@pytest.mark.parametrize("name", ["a\0b", 300 * "x", "_iceberg"])
def test_names_of_damaged_metadata_are_no_errors_of_the_store(tmp_path: Path, name: str) -> None:
    table = new_table(tmp_path)
    table.append([{"id": 1}])
    iceberg.export(table.root)
    with pytest.raises(UnreadableRecordsError):
        manifests.listed_manifests(f"file://{tmp_path}/{name}", StoreFileIO(table.log.store))


def damage(chosen: random.Random, *files: Path) -> None:
    """Cut a file, flip a bit of it, or overwrite bytes of it; the newest metadata stays."""
    some = sorted(file for file in files if file.suffix in {".avro", ".puffin"})
    for file in chosen.sample(some, min(2, len(some))):
        content = bytearray(file.read_bytes())
        place = chosen.randrange(len(content)) if content else 0
        match chosen.randrange(3):
            case 0:
                del content[place:]
            case 1 if content:
                content[place] ^= 1 << chosen.randrange(8)
            case _:
                content[place : place + 8] = chosen.randbytes(8)
        file.write_bytes(content)


def test_duckdb_applies_vectors(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for start in (0, 10):
        table.append([{"id": start + n} for n in range(10)])
    delete(table, 0, 1, 2)
    delete(table, 1, 3)
    exported = iceberg.export(table.root)
    assert duckdb_rows(table.root, exported.snapshot_id) == delta_rows(table)
