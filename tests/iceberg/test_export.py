"""Rows of exported versions as pyiceberg reads them, beside this library's own rows."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")
from puredelta import iceberg
from puredelta.iceberg.avro import RawRecords
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from tests.filled_table import SmallTable, column
from tests.iceberg.tables import (
    StaticTable,
    delta_rows,
    duckdb_rows,
    exported_versions,
    iceberg_rows,
)

UTC = dt.timezone.utc
OLD = dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC).replace(tzinfo=None)
# pyiceberg reads doubles of manifests as floats, and NULL arrays of structs as empty ones.
VALUES: dict[str, tuple[DataType, list[Any]]] = {
    "byte": (BYTE, [-128, 0, 127]),
    "short": (SHORT, [-32768, 32767]),
    "integer": (INTEGER, [-(1 << 31), 0, (1 << 31) - 1]),
    "long": (LONG, [-(1 << 63), (1 << 63) - 1]),
    "float": (FLOAT, [-0.0, 1.5, -3.25]),
    "double": (DOUBLE, [0.5, -1024.25]),
    "boolean": (BOOLEAN, [True, False]),
    "string": (STRING, ["a", "ä b/c%=", "\U0001f600 " * 20, "x" * 100]),
    "binary": (BINARY, [b"a", b"xyz"]),
    "date": (DATE, [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "timestamp": (
        TIMESTAMP,
        [
            dt.datetime(1, 1, 2, tzinfo=UTC),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (TIMESTAMP_NTZ, [OLD, OLD.replace(year=9999)]),
    "decimal": (DecimalType(10, 2), [Decimal("-1.50"), Decimal("12345678.90")]),
    "wide": (DecimalType(38, 18), [Decimal("-0.000000000000000001"), Decimal("7e18")]),
}  # fmt: skip
ALL_TYPES = StructType(
    (column("id", LONG), *(column(f"c {name}", kind) for name, (kind, _) in VALUES.items()))
)


def all_types(number: int) -> dict[str, Any]:
    row = {f"c {name}": values[number % len(values)] for name, (_, values) in VALUES.items()}
    return {"id": number, **row}


def check(table: SmallTable) -> None:
    """Export, and compare the rows of every exported version."""
    exported = iceberg.export(table.root)
    location = exported.metadata_location
    versions = exported_versions(location)
    assert exported.version in versions
    for version, snapshot_id in versions.items():
        assert iceberg_rows(location, snapshot_id) == delta_rows(table, version), version


def test_types_and_nulls(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "my table", ALL_TYPES)
    check(table)
    table.append([all_types(n) for n in range(5)])
    check(table)
    table.append([{"id": 7}])
    table.append([{"id": 8}, all_types(9), {}])
    check(table)
    assert len(exported_versions(str(table.root / "_iceberg"))) == 3


@pytest.mark.parametrize("name", VALUES)
def test_partition_of_each_type(tmp_path: Path, name: str) -> None:
    kind, values = VALUES[name]
    schema = StructType((column("id", LONG), column("p x", kind)))
    table = SmallTable(tmp_path, schema, partitioned_by=("p x",))
    for number, value in enumerate([*values, None]):
        table.append([{"id": number, "p x": value}])
        check(table)
    table.commit(table.removes()[0])
    check(table)


def test_bounds_skip_no_row(tmp_path: Path) -> None:
    """Conditions read the same rows with bounds as without."""
    table = SmallTable(tmp_path, ALL_TYPES)
    for number in range(6):
        table.append([all_types(number), all_types(number + 1)])
    location = iceberg.export(table.root).metadata_location
    everything = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    for name in ("c long", "c boolean", "c string", "c date", "c timestamp", "c decimal", "c byte"):
        for value in {row[name] for row in everything}:
            text = value.isoformat() if isinstance(value, dt.date) else value
            shown = repr(text) if isinstance(text, str) else str(text)
            found = StaticTable.from_metadata(location).scan(row_filter=f'"{name}" = {shown}')
            wanted = sorted(row["id"] for row in everything if row[name] == value)
            assert sorted(found.to_arrow()["id"].to_pylist()) == wanted, (name, value)


def test_nan_and_zeros(tmp_path: Path) -> None:
    schema = StructType((column("id", LONG), column("x", DOUBLE), column("y", FLOAT)))
    table = SmallTable(tmp_path, schema)
    table.append([{"id": 1, "x": math.nan, "y": 0.0}, {"id": 2, "x": 1.0, "y": -0.0}])
    table.append([{"id": 3, "x": 0.0, "y": math.inf}])
    check(table)
    files = StaticTable.from_metadata(str(tmp_path / "_iceberg")).inspect.files().to_pylist()
    for file in files:
        for _, bound in [*(file["lower_bounds"] or ()), *(file["upper_bounds"] or ())]:
            assert bound not in {b"\x00\x00\x00\x00\x00\x00\xf8\x7f", b"\x00\x00\xc0\x7f"}


def test_nested_columns(tmp_path: Path) -> None:
    inner = StructType((column("x", INTEGER), column("d", DATE)))
    schema = StructType(
        (
            column("id", LONG),
            column("s", inner),
            column("a", ArrayType(inner)),
            column("m", MapType(STRING, ArrayType(INTEGER))),
            column("l", ArrayType(INTEGER)),
        )
    )
    table = SmallTable(tmp_path, schema)
    first = {"id": 1, "s": {"x": 1, "d": dt.date(2020, 1, 1)}, "a": [{"x": 2}, None]}
    second = {"id": 3, "s": {"x": None}, "a": [], "l": [1, None]}
    table.append(
        [
            {**first, "m": [("k", [1])]},
            {"id": 2, "s": None, "a": [], "m": None},
            {**second, "m": [("k", None), ("l", [None])]},
        ]
    )
    check(table)
    wider = StructType((*inner.fields, column("new", STRING)))
    table.change(
        StructType(
            (schema.fields[0], column("s", wider), *schema.fields[2:], column("more", DOUBLE))
        )
    )
    table.append([{"id": 4, "s": {"x": 1, "new": "n"}, "a": [], "more": 0.5}])
    check(table)


def test_renamed_dropped_and_added_columns(tmp_path: Path) -> None:
    schema = StructType(
        (
            column("id", LONG, 1),
            column("a", STRING, 2, "col-2"),
            column("s", StructType((column("x", INTEGER, 4, "col-4"),)), 3),
        )
    )
    table = SmallTable(tmp_path, schema, delta__columnMapping__mode="name")
    table.append([{"id": 1, "a": "one", "s": {"x": 5}}])
    check(table)
    table.change(
        StructType(
            (
                column("key", LONG, 1, "id"),
                column("s", StructType((column("y", INTEGER, 4, "col-4"),)), 3),
                column("a", INTEGER, 5, "col-5"),
            )
        )
    )
    table.append([{"key": 2, "s": {"y": 6}, "a": 7}])
    check(table)
    assert len(exported_versions(str(tmp_path / "_iceberg"))) == 2


def test_mapping_enabled_later(tmp_path: Path) -> None:
    schema = StructType((column("id", LONG), column("a", STRING)))
    table = SmallTable(tmp_path, schema)
    table.append([{"id": 1, "a": "x"}])
    check(table)
    mapped = StructType((column("id", LONG, 1), column("b", STRING, 2, "a")))
    table.change(mapped, delta__columnMapping__mode="name")
    table.append([{"id": 2, "b": "y"}])
    check(table)
    assert len(exported_versions(str(tmp_path / "_iceberg"))) == 2


def test_mapping_with_other_ids_begins_again(tmp_path: Path) -> None:
    """Files have the ids of the table: earlier exports, which had others, are dropped."""
    table = SmallTable(tmp_path, StructType((column("id", LONG), column("a", STRING))))
    table.append([{"id": 1, "a": "x"}])
    check(table)
    mapped = StructType((column("id", LONG, 2), column("a", STRING, 1)))
    table.change(mapped, delta__columnMapping__mode="name")
    table.append([{"id": 2, "a": "y"}])
    check(table)
    assert list(exported_versions(str(tmp_path / "_iceberg"))) == [3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BYTE, INTEGER),
        (INTEGER, LONG),
        (SHORT, LONG),
        (FLOAT, DOUBLE),
        (DecimalType(5, 2), DecimalType(12, 2)),
    ],
)
def test_widened_types(tmp_path: Path, before: DataType, after: DataType) -> None:
    value = Decimal("1.25") if isinstance(before, DecimalType) else 7
    old = StructType((column("id", LONG), column("x", before)))
    table = SmallTable(tmp_path, old, delta__enableTypeWidening="true")
    table.append([{"id": 1, "x": value}])
    check(table)
    table.change(StructType((column("id", LONG), widened("x", before, after))))
    table.append([{"id": 2, "x": value}, {"id": 3}])
    check(table)


def widened(name: str, before: DataType, after: DataType) -> Any:
    def text(kind: DataType) -> str:
        if isinstance(kind, DecimalType):
            return f"decimal({kind.precision},{kind.scale})"
        return getattr(kind, "name", "")

    return column(
        name, after, **{TYPE_CHANGES: [{"fromType": text(before), "toType": text(after)}]}
    )


def test_replaced_rows_and_partitions(tmp_path: Path) -> None:
    schema = StructType((column("id", LONG), column("p", STRING)))
    table = SmallTable(tmp_path, schema, partitioned_by=("p",))
    table.append([{"id": 1, "p": "x"}])
    table.append([{"id": 2, "p": "y"}])
    check(table)
    table.replace_all([{"id": 3, "p": "z"}])
    check(table)
    # Another column partitions the table; every file is replaced.
    gone = table.removes()
    table.metadata = table.metadata.__class__(
        id=table.metadata.id,
        schema_string=table.metadata.schema_string,
        partition_columns=("id",),
    )
    table.commit(table.metadata, *gone)
    table.append([{"id": 4, "p": "z"}])
    check(table)
    table.commit(*table.removes())
    check(table)


def test_files_without_statistics(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    table.append([{"id": 1}, {"id": 2}], stats=False)
    check(table)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_hidden_columns_of_row_tracking(tmp_path: Path, mode: str) -> None:
    """Rewritten files keep row ids in columns that the table does not show."""
    number = None if mode == "none" else 1
    schema = StructType(
        (
            column("id", LONG, number),
            column("p", STRING, number and 2),
            column("x", LONG, number and 3),
        )
    )
    table = SmallTable(
        tmp_path,
        schema,
        partitioned_by=("p",),
        delta__columnMapping__mode=mode,
        delta__rowTracking__materializedRowIdColumnName="_row-id",
        delta__rowTracking__materializedRowCommitVersionColumnName="_row-version",
    )
    added = table.file([{"id": 1, "p": "a", "x": 7}])
    path = tmp_path / "part 0.parquet"
    content = pq.read_table(path)
    for place, name in ((0, "_row-id"), (2, "_row-version")):
        content = content.add_column(place, name, pa.array([5], pa.int64()))
    pq.write_table(content, path)
    table.commit(replace(added, size_bytes=path.stat().st_size))
    check(table)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_hidden_columns_of_changes(tmp_path: Path, mode: str) -> None:
    """Data files of a table with change data feed have them before the columns of partitions."""
    number = None if mode == "none" else 1
    schema = StructType((column("id", LONG, number), column("x", LONG, number and 2)))
    table = SmallTable(tmp_path, schema, delta__columnMapping__mode=mode)
    table.append([{"id": 0, "x": 6}])
    check(table)
    added = table.file([{"id": 1, "x": 7}])
    path = tmp_path / "part 1.parquet"
    content = pq.read_table(path)
    for name, kind in (("__is_cdc", pa.bool_()), ("_change_type", pa.string())):
        content = content.add_column(1, name, pa.nulls(1, kind))
    pq.write_table(content, path)
    table.commit(replace(added, size_bytes=path.stat().st_size))
    check(table)
    wider = StructType((*schema.fields, column("new", LONG, number and 3)))
    table.change(wider)
    table.append([{"id": 2, "new": 8}])
    check(table)
    found = StaticTable.from_metadata(str(tmp_path / "_iceberg"))
    assert [one.field_id for one in found.schema().fields] == [1, 2, 3]
    assert len(found.snapshots()) == 3


def test_file_that_is_added_again(tmp_path: Path) -> None:
    """A commit may describe a file again without a removal."""
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    added = table.append([{"id": 1}])
    check(table)
    table.commit(added)
    check(table)
    assert len(iceberg_rows(str(tmp_path / "_iceberg"))) == 1


def test_versions_between_exports(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    for number in range(4):
        table.append([{"id": number}])
    check(table)
    for number in range(4, 9):
        table.append([{"id": number}])
        if number % 2:
            table.commit(table.removes()[0])
    check(table)
    while (newest := table.log.snapshot().version) % 10:
        table.append([{"id": 20 + newest}])
        if newest % 3:
            table.commit(table.removes()[0])
    for version in range(newest - 6, newest):
        (table.root / f"_delta_log/{version:020d}.json").unlink()
    exported = iceberg.export(table.root)
    assert exported.version == newest
    assert len(exported_versions(exported.metadata_location)) == 3
    assert iceberg_rows(exported.metadata_location) == delta_rows(table)


@pytest.mark.thorough
def test_many_small_manifests_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.iceberg.manifests.MANIFESTS_MAX", 4)
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    counts = []
    for number in range(14):
        table.append([{"id": number}])
        check(table)
        found = StaticTable.from_metadata(str(tmp_path / "_iceberg"))
        counts.append(len(found.inspect.manifests()))
    assert max(counts) <= 6
    assert min(counts[6:]) < max(counts)


@pytest.mark.parametrize("before", [10_000, 3])
def test_a_removed_file_costs_a_manifest_of_few_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Also where an older version of this library has written all entries into one."""
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    for number in range(11):
        table.append([{"id": number}])
    sizes = "puredelta.iceberg.exporting.entries_max"
    monkeypatch.setattr(sizes, lambda _: before)
    check(table)
    monkeypatch.setattr(sizes, lambda _: 3)
    table.commit(table.removes()[5])
    check(table)
    found = StaticTable.from_metadata(str(tmp_path / "_iceberg")).inspect.manifests().to_pylist()
    names = ("added", "existing", "deleted")
    counts = [sum(one[f"{name}_data_files_count"] for name in names) for one in found]
    assert max(counts) <= 3
    assert sum(one["deleted_data_files_count"] for one in found) == 1
    assert sum(counts) == 11


def make_recreated(table: SmallTable, other: Callable[[], SmallTable]) -> None:
    for file in (table.root / "_delta_log").iterdir():
        file.unlink()
    (table.root / "_delta_log").rmdir()
    fresh = other()
    fresh.append([{"id": 99}])
    check(fresh)


def test_table_that_is_made_again(tmp_path: Path) -> None:
    schema = StructType((column("id", LONG),))
    table = SmallTable(tmp_path, schema)
    for number in range(3):
        table.append([{"id": number}])
    check(table)
    make_recreated(table, lambda: SmallTable(tmp_path, schema))
    assert list(exported_versions(str(tmp_path / "_iceberg"))) == [1]


def entries(root: Path) -> list[tuple[str, str, int | None, int | None, int | None]]:
    """Return name, status, snapshot and sequence numbers of all entries."""
    found = StaticTable.from_metadata(str(root / "_iceberg"))
    current = found.current_snapshot()
    assert current is not None
    return [
        (
            e.data_file.file_path.rpartition("/")[2],
            e.status.name,
            e.snapshot_id,
            e.sequence_number,
            e.file_sequence_number,
        )
        for manifest in current.manifests(found.io)
        for e in manifest.fetch_manifest_entry(found.io, discard_deleted=False)
    ]


def test_entries_of_a_manifest_that_is_written_again(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, StructType((column("id", LONG), column("p", STRING))),
                       partitioned_by=("p",))  # fmt: skip
    table.commit(*(table.file([{"id": n, "p": f"p{n}"}]) for n in range(3)))
    first = iceberg.export(table.root).snapshot_id
    added = table.append([{"id": 3, "p": "q"}])
    second = iceberg.export(table.root).snapshot_id
    gone = table.removes()[1]
    table.commit(gone)
    third = iceberg.export(table.root).snapshot_id
    names = [f"part {n}.parquet" for n in range(3)]
    assert [name.rpartition("/")[2] for name in (gone.path, added.path)] == [
        "part%201.parquet",
        "part%203.parquet",
    ]
    assert entries(tmp_path) == [
        ("part 3.parquet", "ADDED", second, 2, 2),
        (names[0], "EXISTING", first, 1, 1),
        (names[1], "DELETED", third, 1, 1),
        (names[2], "EXISTING", first, 1, 1),
    ]
    table.commit(table.removes()[0])
    fourth = iceberg.export(table.root).snapshot_id
    assert sorted(entries(tmp_path)) == [
        (names[0], "DELETED", fourth, 1, 1),
        (names[2], "EXISTING", first, 1, 1),
        ("part 3.parquet", "ADDED", second, 2, 2),
    ]


def test_manifests_of_an_older_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests that do not say where their entries are stay, until one of their files goes."""
    table = SmallTable(tmp_path, StructType((column("id", LONG),)))
    with monkeypatch.context() as patched:
        patched.setattr("puredelta.iceberg.avro._RECORDS_KEY", "nothing")
        table.append([{"id": 1}])
        table.append([{"id": 2}])
        check(table)
    table.append([{"id": 3}])
    check(table)
    assert len(entries(tmp_path)) == 3
    table.commit(table.removes()[0])
    check(table)
    assert [status for _, status, *_ in entries(tmp_path)] == ["ADDED", "ADDED"]
    unnamed = set((tmp_path / "_iceberg/metadata").glob("*-*.avro"))
    found = StaticTable.from_metadata(str(tmp_path / "_iceberg"))
    for one in found.snapshots():
        named = [one.manifest_list, *(m.manifest_path for m in one.manifests(found.io))]
        unnamed -= {Path(name.removeprefix("file://")) for name in named}
    assert not unnamed


def test_doubles_of_partitions_stay_exact(tmp_path: Path) -> None:
    """Manifests that are written again keep the bytes: pyiceberg reads a double as a float."""
    schema = StructType((column("id", LONG), column("p", DOUBLE)))
    table = SmallTable(tmp_path, schema, partitioned_by=("p",))
    for number in range(3):
        table.append([{"id": number, "p": 0.1}])
        iceberg.export(table.root)
    table.commit(table.removes()[0])
    iceberg.export(table.root)
    contents = [path.read_bytes() for path in (tmp_path / "_iceberg/metadata").glob("*-*.avro")]
    raws = [RawRecords.read(content) for content in contents if b"puredelta.records" in content]
    assert sum(bytes(raw.content).count(struct.pack("<d", 0.1)) for raw in raws) >= 4


def test_duckdb_reads_equal_rows(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "types", ALL_TYPES, partitioned_by=("c string",))
    for number in range(4):
        table.append([all_types(number), {**all_types(number), "id": None}])
    table.commit(table.removes()[0])
    exported = iceberg.export(table.root)
    assert duckdb_rows(table.root, exported.snapshot_id) == delta_rows(table)
