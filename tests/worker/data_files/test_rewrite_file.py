"""The copy of a file without some rows, without Spark: it is pyarrow only."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.rewrite_file import (
    REWRITE_TASKS,
    RewriteTask,
    merge_small,
    rewrite,
    rewrite_together,
)
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.wire import INT96, LIMITS, LIMITS_CODEC, Limits

ROWS = 1000
DROPPED = [0, 1, 63, 64, 500, 999]


ONE_BY_ONE = Limits(small_file_rows=0)


def order(source: Path, dropped: list[int], directory: Path | None = None) -> RewriteTask:
    bitmap = RowBitmap.of_rows(np.array(dropped, np.int64))
    return RewriteTask(
        ordinal=7,
        source=str(source),
        directory=str(directory or source.parent),
        name_prefix="part-job",
        words=bitmap.words.tobytes(),
        bits=bitmap.bits.tobytes(),
    )


def rewritten(task: RewriteTask, limits: Limits = LIMITS) -> FileAnswer:
    (answer,) = rewrite_together([task], limits)
    return answer


def kept(answer: FileAnswer, directory: Path) -> pa.Table:
    assert answer.name is not None
    return pq.read_table(directory / answer.name)


def without(table: pa.Table, dropped: list[int]) -> pa.Table:
    return table.take([n for n in range(table.num_rows) if n not in set(dropped)])


@pytest.fixture
def table() -> pa.Table:
    numbers = range(ROWS)
    instants = [
        dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=7 * n) for n in numbers
    ]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([None if n % 7 == 0 else f"t{n % 13}" for n in numbers]),
            "d9": pa.array([decimal.Decimal(n) / 4 for n in numbers], pa.decimal128(9, 2)),
            "d38": pa.array([decimal.Decimal(n) for n in numbers], pa.decimal128(38, 10)),
            "ts": pa.array(instants, pa.timestamp("us", "UTC")),
            "ntz": pa.array([n * 10**13 for n in numbers], pa.timestamp("us")),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
            "bytes": pa.array([bytes([n % 256]) for n in numbers]),
            "x": pa.array([float("nan") if n == 77 else n / 3 for n in numbers]),
            "y": pa.array([n / 3 for n in numbers], pa.float32()),
            "st": pa.array([{"a": float("nan"), "b": [n, None]} for n in numbers]),
            "m": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )


@pytest.mark.parametrize("group_rows", [ROWS, 300, 64])
def test_every_row_but_the_dropped_ones_stays(
    table: pa.Table, tmp_path: Path, group_rows: int
) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(table, source, row_group_size=group_rows)
    answer = rewritten(order(source, DROPPED))
    new, wanted = kept(answer, tmp_path), without(table, DROPPED)
    assert new.schema == wanted.schema
    assert repr(new.to_pylist()) == repr(wanted.to_pylist())  # NaN is not equal to itself
    assert (answer.physical_rows, answer.kept_rows) == (ROWS, ROWS - len(DROPPED))
    assert answer.name is not None
    written = tmp_path / answer.name
    assert answer.size_bytes == written.stat().st_size
    assert answer.nan_columns == (("st", "a"), ("x",))
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    assert footer.num_rows == answer.kept_rows
    assert footer.num_row_groups == pq.read_metadata(source).num_row_groups
    assert footer.row_group(0).column(0).statistics.min == 2


def test_nothing_is_written_when_no_row_stays(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(10)}), source)
    answer = rewritten(order(source, list(range(10))))
    assert (answer.name, answer.physical_rows, answer.kept_rows) == (None, 10, 0)
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


def test_a_row_group_that_loses_all_rows_vanishes(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(30)}), source, row_group_size=10)
    answer = rewritten(order(source, list(range(10, 20))))
    assert kept(answer, tmp_path)["id"].to_pylist() == [*range(10), *range(20, 30)]


def test_memory_is_bounded_by_cutting_huge_row_groups(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(10_000)}), source)
    answer = rewritten(order(source, [5000]), Limits(row_group_bytes=8000, read_rows=500))
    footer = pq.read_metadata(tmp_path / (answer.name or ""))
    assert footer.num_row_groups == 10
    assert kept(answer, tmp_path)["id"].to_pylist() == [n for n in range(10_000) if n != 5000]


def test_a_file_of_too_many_columns_for_a_worker_is_left_to_spark(tmp_path: Path) -> None:
    """All columns of a row group are open at once, each with a dictionary and a page."""
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({f"c{n}": np.arange(500) for n in range(30)}), source)
    enough = Limits(copy_bytes=Limits().row_bytes + 500_000)
    assert rewritten(order(source, [3]), enough).refusal is None
    little = Limits(copy_bytes=Limits().row_bytes + 50_000)
    refusal = rewritten(order(source, [3]), little).refusal
    assert refusal is not None
    assert "30 columns" in refusal


def test_properties_of_the_old_file_live_on(tmp_path: Path) -> None:
    ids = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "4"})
    schema = pa.schema(
        [ids, pa.field("plain", pa.string())],
        metadata={"org.apache.spark.sql.parquet.row.metadata": "{}"},
    )
    table = pa.table([[n % 10 for n in range(100)], [f"v{n}" for n in range(100)]], schema=schema)
    source = tmp_path / "old.parquet"
    pq.write_table(table, source, compression="zstd", use_dictionary=["id"], write_page_index=True)
    answer = rewritten(order(source, [3]))
    assert answer.name is not None
    assert answer.name.endswith(".c000.zstd.parquet")
    file = pq.ParquetFile(tmp_path / answer.name)
    assert file.metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"] == b"{}"
    assert file.schema_arrow.field("id").metadata[b"PARQUET:field_id"] == b"4"
    chunks = [file.metadata.row_group(0).column(n) for n in range(2)]
    assert [c.compression for c in chunks] == ["ZSTD", "ZSTD"]
    assert ["RLE_DICTIONARY" in c.encodings for c in chunks] == [True, False]
    assert chunks[0].has_column_index


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        (Limits(), None),
        (Limits(needs_columns=("p",), needs_ids=("id", "list", "unknown")), None),
        (Limits(needs_columns=("q",)), "does not hold the partition column q"),
        (Limits(needs_ids=("p",)), "no field id for p"),
        (Limits(needs_ids=("map",)), "no field id for map.value"),
        (Limits(needs_ids=("struct",)), "no field id for struct.x"),
    ],
)
def test_a_copy_has_what_the_table_asks_of_files(
    tmp_path: Path, limits: Limits, refusal: str | None
) -> None:
    def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, name != "key", {"PARQUET:field_id": str(number)})

    long = pa.int64()
    schema = pa.schema(
        [
            field("id", long, 1),
            pa.field("p", long),
            field("list", pa.list_(field("element", long, 3)), 2),
            field("map", pa.map_(field("key", long, 5), pa.field("value", long)), 4),
            field("struct", pa.struct([pa.field("x", long)]), 6),
        ]
    )
    rows = [{"id": n, "p": 1, "list": [n], "map": [(n, n)], "struct": {"x": n}} for n in range(4)]
    source = tmp_path / "old.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), source)
    for copies in (1, 20):  # small files are decoded together
        answer = rewrite_together([order(source, [3])] * copies, limits)[0]
        assert (answer.refusal is None) == (refusal is None)
        assert refusal is None or refusal in str(answer.refusal)
    if answer.name is not None:
        new = pq.read_schema(tmp_path / answer.name)
        assert new.field("list").type.value_field.metadata == {b"PARQUET:field_id": b"3"}
        assert new.names == schema.names


def test_int96_with_ids_is_not_copied(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    at = pa.field("at", pa.timestamp("us", "UTC"), metadata={"PARQUET:field_id": "1"})
    times = [dt.datetime(2024, 1, n, tzinfo=dt.timezone.utc) for n in range(1, 5)]
    table = pa.table([times], pa.schema([at]))
    pq.write_table(table, source, use_deprecated_int96_timestamps=True)
    assert rewritten(order(source, [3])).refusal is None
    refusal = rewritten(order(source, [3]), Limits(needs_ids=("at",))).refusal
    assert "96 bits" in str(refusal)


def test_int96_becomes_an_instant_in_microseconds(tmp_path: Path) -> None:
    instants = [dt.datetime(y, 1, 2, 3, 4, 5, 6, dt.timezone.utc) for y in (1969, 2024)]
    naive = [instant.replace(tzinfo=None) for instant in instants]
    table = pa.table(
        {
            "ts": pa.array(naive, pa.timestamp("ns")),
            "nested": pa.array([{"ts": t} for t in naive], pa.struct({"ts": pa.timestamp("ns")})),
        }
    )
    source = tmp_path / "old.parquet"
    pq.write_table(table, source, use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(source).schema.column(0).physical_type == "INT96"
    answer = rewritten(order(source, [0]))
    new = kept(answer, tmp_path)
    assert new.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert new["ts"].to_pylist() == [instants[1]]
    assert new["nested"].to_pylist() == [{"ts": instants[1]}]


def test_what_does_not_survive_arrow_is_refused_and_nothing_written(tmp_path: Path) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(
        pa.table({"ts": pa.array([0], pa.timestamp("ns"))}).replace_schema_metadata(
            {"org.apache.spark.legacyINT96": ""}
        ),
        source,
        use_deprecated_int96_timestamps=True,
    )
    answer = rewritten(order(source, [0]))
    assert "hybrid calendar" in (answer.refusal or "")
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


def test_storage_out_of_reach_is_refused(tmp_path: Path) -> None:
    absent = rewritten(order(tmp_path / "absent.parquet", [0]))
    assert "absent.parquet: FileNotFoundError" in (absent.refusal or "")
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(10)}), source)
    nowhere = rewritten(order(source, [0], directory=tmp_path / "nowhere"))
    assert (nowhere.refusal or "").startswith("FileNotFoundError")


def test_a_failed_copy_removes_its_file_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": range(10)}), source)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        rewritten(order(source, [0]))
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


def test_a_file_that_arrow_cannot_read_is_refused(tmp_path: Path) -> None:
    """Spark copies it, or says what is wrong with it."""
    source = tmp_path / "old.parquet"
    source.write_bytes(b"PAR1 is no Parquet file")
    assert rewritten(order(source, [0])).refusal
    pq.write_table(pa.table({"id": range(10_000)}), source)
    damaged, half = bytearray(source.read_bytes()), source.stat().st_size // 2
    damaged[half : half + 10_000] = bytes(10_000)
    source.write_bytes(damaged)
    assert rewritten(order(source, [0])).refusal
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


def tracking(source: Path, dropped: list[int], *, base: int | None) -> RewriteTask:
    return replace(
        order(source, dropped),
        row_id_column="_id",
        base_row_id=base,
        version_column="_version",
        default_version=5,
    )


@pytest.mark.parametrize("group_rows", [ROWS, 64])
def test_rows_write_down_what_the_log_said_of_them(tmp_path: Path, group_rows: int) -> None:
    """M-110: a second copy does not write over what the first one noted."""
    old, other = tmp_path / "old.parquet", tmp_path / "other"
    pq.write_table(pa.table({"id": range(ROWS)}), old, row_group_size=group_rows)
    first = kept(rewritten(tracking(old, DROPPED, base=10_000)), tmp_path)
    stays = [n for n in range(ROWS) if n not in DROPPED]
    assert first.column_names == ["id", "_id", "_version"]
    assert first["_id"].to_pylist() == [10_000 + n for n in stays]
    assert set(first["_version"].to_pylist()) == {5}

    other.mkdir()
    known = [None if n % 2 else n for n in range(len(stays))]
    pq.write_table(first.set_column(1, "_id", pa.array(known, pa.int64())), other / "new.parquet")
    again = rewritten(tracking(other / "new.parquet", [3], base=70_000))
    ids = kept(again, other)["_id"].to_pylist()
    wanted = [70_000 + n if n % 2 else n for n in range(len(stays))]
    assert ids == [*wanted[:3], *wanted[4:]]


def test_without_a_base_there_is_no_id_to_note(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "old.parquet")
    new = kept(rewritten(tracking(tmp_path / "old.parquet", [0], base=None)), tmp_path)
    assert new.to_pylist() == [{"id": 2, "_id": None, "_version": 5}]


def test_alike_files_become_one(tmp_path: Path) -> None:
    """One after the other, without the dropped rows, in one row group."""
    tables = [pa.table({"id": range(n, n + 5), "s": ["a"] * 5}) for n in (0, 10, 20, 30)]
    tables[2] = tables[2].drop_columns(["s"])
    for n, one in enumerate(tables):
        pq.write_table(one, tmp_path / f"{n}.parquet", row_group_size=2)
    new = tmp_path / "new"
    new.mkdir()
    orders = [
        replace(order(tmp_path / f"{n}.parquet", [n], new), ordinal=n, group=9) for n in range(4)
    ]
    first, second, third = rewrite_together(orders)
    assert [(a.ordinal, a.others) for a in (first, second, third)] == [(0, (1,)), (2, ()), (3, ())]
    assert kept(first, new)["id"].to_pylist() == [1, 2, 3, 4, 10, 12, 13, 14]
    assert (first.physical_rows, first.kept_rows) == (10, 8)
    assert kept(second, new).equals(without(tables[2], [2]))
    assert kept(third, new).equals(without(tables[3], [3]))
    assert pq.read_metadata(new / str(first.name)).num_row_groups == 1
    apart = [replace(one, group=None) for one in orders]
    assert [len(sent(some)) for some in (orders, apart)] == [3, 4]


def sent(tasks: list[RewriteTask]) -> list[FileAnswer]:
    """Carry tasks out as a worker does that gets tuples."""
    message = (LIMITS_CODEC.encode(LIMITS), [REWRITE_TASKS.encode(task) for task in tasks])
    return [FILE_ANSWERS.decode(fields) for fields in rewrite(message)]


def alike(one: FileAnswer, other: FileAnswer) -> bool:
    """Compare all but what two files always differ in."""
    return replace(one, name=other.name, modified_ms=other.modified_ms) == other


KINDS: dict[str, pa.Array] = {
    "flag": pa.array([n % 3 == 0 for n in range(50)]),
    "small": pa.array(range(50), pa.int8()),
    "money": pa.array([decimal.Decimal(n) / 100 for n in range(50)], pa.decimal128(20, 2)),
    "real": pa.array([float("nan"), None, *(n / 7 for n in range(48))]),
    "text": pa.array([None if n % 9 == 0 else f"text {n % 5}" for n in range(50)]),
    "large": pa.array([f"text {n}" for n in range(50)], pa.large_string()),
    "category": pa.array([f"text {n % 3}" for n in range(50)]).dictionary_encode(),
    "time": pa.array(range(50), pa.timestamp("us", "Europe/Berlin")),
    "zoneless": pa.array(range(50), pa.timestamp("us")),
    "day": pa.array(range(50), pa.date32()),
    "span": pa.array(range(50), pa.duration("us")),
    "bytes": pa.array([bytes([n]) for n in range(50)], pa.binary(1)),
}
NESTED = {"list": pa.array([[n] * (n % 3) for n in range(50)]), **KINDS}


@pytest.mark.parametrize("columns", [KINDS, NESTED], ids=["flat", "nested"])
@pytest.mark.parametrize("codec", ["snappy", "none", "zstd"])
@pytest.mark.parametrize("metadata", [{b"org.apache.spark.version": b"4.0"}, None], ids=str)
def test_files_decoded_as_one_become_what_they_become_one_by_one(
    tmp_path: Path,
    opened: list[object],
    columns: dict[str, pa.Array],
    codec: str,
    metadata: dict[bytes, bytes] | None,
) -> None:
    field = pa.field("id", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": b"7"})
    schema = pa.schema([field], metadata)
    for name, column in columns.items():
        schema = schema.append(pa.field(name, column.type))
    orders = []
    for n in range(20):
        count = 50 - n
        ids = pa.array(range(100 * n, 100 * n + count))
        cut = [column.slice(0, count) for column in columns.values()]
        path = tmp_path / f"{n}.parquet"
        rows = pa.table([ids, *cut], schema=schema)
        pq.write_table(rows, path, compression=codec, store_schema=metadata is not None)
        orders.append(replace(order(path, [*range(n % 4)]), ordinal=n))
    (merged,) = rewrite_together(orders)
    assert len(opened) == (4 if columns is KINDS else 20)
    (one_by_one,) = rewrite_together(orders, ONE_BY_ONE)
    assert merged.kept_rows == sum(50 - n - n % 4 for n in range(20))
    assert alike(merged, one_by_one)
    contents = [(tmp_path / str(one.name)).read_bytes() for one in (merged, one_by_one)]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("unlike_one", [0, 1])
@pytest.mark.parametrize(
    "options",
    [{"compression": "gzip"}, {"store_schema": False}, {"row_group_size": 2}],
    ids=lambda options: next(iter(options)),
)
def test_files_that_differ_are_not_decoded_as_one(
    tmp_path: Path, options: dict[str, Any], unlike_one: int
) -> None:
    table = pa.table({"id": range(9), "text": ["a"] * 9})
    for n in range(3):
        unlike = n == unlike_one
        pq.write_table(table, tmp_path / f"{n}.parquet", **(options if unlike else {}))
    orders = [replace(order(tmp_path / f"{n}.parquet", [n]), ordinal=n) for n in range(3)]
    assert merge_small(orders, LIMITS) is None
    for one, other in zip(
        rewrite_together(orders), rewrite_together(orders, ONE_BY_ONE), strict=True
    ):
        assert alike(one, other)
        assert kept(one, tmp_path).equals(kept(other, tmp_path))


def test_many_rows_have_the_dictionaries_that_few_did_not_need(tmp_path: Path) -> None:
    """A small file has one for any column; for all together one of amounts saves nothing."""
    for n in range(40):
        numbers = range(100 * n, 100 * n + 100)
        one = pa.table({"amount": numbers, "kind": [number % 70 for number in numbers]})
        pq.write_table(one, tmp_path / f"{n}.parquet")
    paths = [tmp_path / f"{n}.parquet" for n in range(40)]
    (apart, *_) = [rewritten(order(path, [0])) for path in paths]
    (together,) = rewrite_together([order(path, [0]) for path in paths])
    encodings = [
        ["RLE_DICTIONARY" in footer.row_group(0).column(n).encodings for n in range(2)]
        for footer in (
            pq.read_metadata(path)
            for path in (paths[0], tmp_path / str(apart.name), tmp_path / str(together.name))
        )
    ]
    assert encodings == [[True, True], [False, False], [False, True]]


def test_a_group_with_an_unreadable_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "0.parquet")
    (tmp_path / "1.parquet").write_bytes(b"no Parquet")
    new = tmp_path / "new"
    new.mkdir()
    (answer,) = rewrite_together([order(tmp_path / f"{n}.parquet", [0], new) for n in range(2)])
    assert answer.refusal is not None
    assert list(new.iterdir()) == []


def test_rows_of_a_group_keep_their_ids(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.parquet" for n in range(2)]
    for path in paths:
        pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    (answer,) = rewrite_together([tracking(p, [1], base=100 * n) for n, p in enumerate(paths)])
    assert kept(answer, tmp_path)["_id"].to_pylist() == [0, 2, 100, 102]


@pytest.mark.parametrize(
    ("kind", "described", "reason"),
    [
        ("UNKNOWN", '{"Type": "Geometry", "crs": "EPSG:3857"}', "logical type UNKNOWN"),
        ("UNDEFINED", '{"Type": "Undefined"}', "logical type UNDEFINED"),
        ("UNKNOWN", '{"Type": "Null"}', None),
    ],
)
def test_a_type_that_this_arrow_only_half_knows_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    described: str,
    reason: str | None,
) -> None:
    source = tmp_path / "old.parquet"
    pq.write_table(pa.table({"g": [b"1", b"2"]}), source)
    logical = SimpleNamespace(type=kind, to_json=lambda: described)
    leaf = SimpleNamespace(path="g", physical_type="BYTE_ARRAY", logical_type=logical)
    monkeypatch.setattr(OpenFile, "leaves", lambda _: [leaf])
    refusal = rewritten(order(source, [0])).refusal
    assert (refusal is None) if reason is None else reason in (refusal or "")


@pytest.mark.parametrize("num_files", [1, 20])
def test_int96_is_left_to_spark_where_settings_of_the_session_move_it(
    tmp_path: Path, num_files: int
) -> None:
    """A lone file and a group of small ones; with nested columns, too."""
    limits = replace(LIMITS, only_spark=(INT96,))
    stamps = pa.array([10**18] * 3, pa.timestamp("ns"))
    for column in (stamps, pa.StructArray.from_arrays([stamps], ["t"])):
        tasks = []
        for n in range(num_files):
            source = tmp_path / f"{n}.parquet"
            table = pa.table({"id": [1, 2, 3], "c": column})
            pq.write_table(table, source, use_deprecated_int96_timestamps=True)
            tasks.append(replace(order(source, [0]), ordinal=n, group=0))
        (answer,) = rewrite_together(tasks, limits)
        assert "INT96" in (answer.refusal or "")
        assert rewrite_together(tasks)[0].refusal is None
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), plain)
    assert rewritten(order(plain, [0]), limits).refusal is None
