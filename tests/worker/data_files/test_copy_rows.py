"""Rows of several files brought together in one, without Spark."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.worker.data_files.copy_rows import (
    COPY_ORDERS,
    CopyOrder,
    RowGroups,
    by_partition,
    copy,
    copy_source_rows,
)
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer, MaskedBatch, coalesced
from puredelta.worker.read_rows import OnlySparkError
from puredelta.worker.wire import LIMITS, Limits

KINDS = {
    "i": pa.int32(),
    "s": pa.string(),
    "d": pa.decimal128(7, 2),
    "f": pa.float64(),
    "t": pa.timestamp("us", "UTC"),
}


def rows_of(
    path: Path, marked: tuple[int, ...], groups: tuple[int, ...], first_row: int
) -> RowGroups:
    rows = RowBitmap.of_rows(np.array(marked, np.int64))
    return RowGroups(
        path=str(path),
        groups=groups,
        first_row=first_row,
        words=rows.words.astype("<i8").tobytes(),
        bits=rows.bits.astype("<u8").tobytes(),
    )


def order_of(
    tmp_path: Path,
    *sources: RowGroups,
    include: bool = True,
    columns: dict[str, pa.DataType] | None = None,
    limits: Limits = LIMITS,
) -> CopyOrder:
    return CopyOrder(
        ordinal=3,
        sources=sources,
        include=include,
        columns=tuple((name, f"new_{name}", kind) for name, kind in (columns or KINDS).items()),
        directory=str(tmp_path / "new"),
        name_prefix="part-00003",
        codec="snappy",
        limits=limits,
    )


def copied(order: CopyOrder) -> FileAnswer:
    (answer,) = copy_source_rows(order)
    return answer


def written(tmp_path: Path, answer: FileAnswer) -> pa.Table:
    assert answer.refusal is None
    assert answer.name is not None
    assert answer.name.startswith("part-00003-")
    assert answer.name.endswith(".snappy.parquet")
    path = tmp_path / "new" / answer.name
    assert path.stat().st_size == answer.size_bytes
    table = pq.read_table(path)
    assert table.num_rows == answer.kept_rows
    assert pq.read_metadata(pa.BufferReader(answer.footer)).num_rows == answer.kept_rows
    return table


def table(dice: random.Random, count: int) -> pa.Table:
    def values(*some: Any) -> list[Any]:
        return [dice.choice([None, *some]) for _ in range(count)]

    at = dt.datetime(2020, 5, 17, 12, 30, 1, 5, tzinfo=dt.timezone.utc)
    return pa.table(
        {
            "unread": values(1),
            "t": pa.array(values(at), KINDS["t"]),
            "i": pa.array(values(1, 2, 3), KINDS["i"]),
            "s": pa.array(values("", "a", "ä"), KINDS["s"]),
            "d": pa.array(values(Decimal("1.50"), Decimal("-2.00")), KINDS["d"]),
            "f": pa.array(values(1.5, float("inf")), KINDS["f"]),
        }
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("include", [True, False])
def test_chosen_rows_keep_order_and_values(tmp_path: Path, seed: int, *, include: bool) -> None:
    limits = Limits(read_rows=(7, 64, 1000)[seed % 3], row_group_bytes=(500, 1 << 27)[seed % 2])
    dice = random.Random(seed)
    tables, sources, expected = [table(dice, 200), table(dice, 90)], [], []
    for n, one in enumerate(tables):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(one, path, row_group_size=50, use_deprecated_int96_timestamps=n == 1)
        marked = tuple(sorted(dice.sample(range(one.num_rows), 40)))
        groups = (1, 2) if n == 0 else (0, 1)
        first_row = 50 * groups[0]
        sources.append(rows_of(path, marked, groups, first_row))
        read = range(first_row, min(first_row + 100, one.num_rows))
        chosen = [r for r in read if (r in marked) is include]
        expected.append(one.take(chosen).select(list(KINDS)))
    answer = copied(order_of(tmp_path, *sources, include=include, limits=limits))
    names = [f"new_{name}" for name in KINDS]
    assert written(tmp_path, answer).equals(pa.concat_tables(expected).rename_columns(names))
    assert answer.nan_columns == ()


def test_few_rows_of_many_files_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column's rows of all files lie together: a writer pays for every piece."""
    sources = []
    for n in range(50):
        pq.write_table(table(random.Random(n), 20), tmp_path / f"{n}.parquet")
        sources.append(rows_of(tmp_path / f"{n}.parquet", (n % 20,), (0,), 0))
    chunks: list[int] = []
    write = pq.ParquetWriter.write_table

    def counted(self: pq.ParquetWriter, rows: pa.Table, *args: Any, **options: Any) -> None:
        chunks.extend(column.num_chunks for column in rows.columns)
        write(self, rows, *args, **options)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", counted)
    assert copied(order_of(tmp_path, *sources)).kept_rows == 50
    assert set(chunks) == {1}


@pytest.mark.parametrize(("rows", "size"), [(8, 1 << 20), (1 << 20, 300)])
def test_coalesced_batches_are_bounded(rows: int, size: int) -> None:
    limits = Limits(coalesced_rows=rows, coalesced_bytes=size)
    some = [pa.record_batch({"n": [n, n]}) for n in range(50)]
    found = list(coalesced(map(MaskedBatch, some), limits=limits))
    assert pa.Table.from_batches(found) == pa.Table.from_batches(some)
    assert 3 <= len(found) <= 50 / 3
    assert list(coalesced([])) == []


@pytest.mark.parametrize("rows", [1, 10, 1 << 20])
def test_only_kept_rows_are_coalesced(rows: int) -> None:
    """Whether a batch is filtered alone or with others; some have no mask, some keep nothing."""
    limits = Limits(coalesced_rows=rows)
    chance = random.Random(5)
    batches, due = [], []
    for n in range(40):
        numbers = list(range(10 * n, 10 * n + chance.randrange(1, 10)))
        share = (0.0, 0.5, 1.0)[n % 3]
        mask = None if n % 4 == 0 else np.array([chance.random() < share for _ in numbers])
        batches.append(MaskedBatch(pa.record_batch({"n": numbers}), mask))
        due += (
            numbers if mask is None else [k for k, kept in zip(numbers, mask, strict=True) if kept]
        )
    found = list(coalesced(batches, limits=limits))
    assert [k for batch in found for k in batch["n"].to_pylist()] == due
    nothing = [MaskedBatch(one.batch, np.zeros(len(one.batch), bool)) for one in batches]
    assert sum(batch.num_rows for batch in coalesced(nothing, limits=limits)) == 0


def test_no_row_makes_no_file(tmp_path: Path) -> None:
    pq.write_table(table(random.Random(1), 10), tmp_path / "0.parquet")
    answer = copied(order_of(tmp_path, rows_of(tmp_path / "0.parquet", (), (0,), 0)))
    assert (answer.name, answer.kept_rows, answer.refusal) == (None, 0, None)
    assert list((tmp_path / "new").iterdir()) == []


LIST = pa.list_(pa.int64())
NEST = pa.struct([("at", pa.timestamp("us", "UTC")), ("many", pa.list_(pa.int32()))])
TAGS = pa.map_(pa.string(), pa.struct([("d", pa.decimal128(7, 2))]))
NESTED = {"n": NEST, "m": TAGS, "l": pa.list_(pa.list_(pa.float64()))}


@pytest.mark.parametrize("include", [True, False])
def test_nested_columns_keep_their_values(tmp_path: Path, *, include: bool) -> None:
    at = dt.datetime(2020, 5, 17, tzinfo=dt.timezone.utc)
    rows = {
        "n": [None, {"at": at, "many": [1, None]}, {"at": None, "many": None}, {"many": []}] * 9,
        "m": [[("a", {"d": Decimal("1.50")}), ("b", None)], None, [], [("ä", {"d": None})]] * 9,
        "l": [[[1.5], None, []], [], None, [[float("inf"), None]]] * 9,
    }
    one = pa.table({name: pa.array(rows[name], kind) for name, kind in NESTED.items()})
    sources = []
    for n, int96 in enumerate((False, True)):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(one, path, row_group_size=10, use_deprecated_int96_timestamps=int96)
        sources.append(rows_of(path, (10, 13, 17, 21, 29), (1, 2), 10))
    answer = copied(order_of(tmp_path, *sources, include=include, columns=NESTED))
    kept = [n for n in range(10, 30) if (n in (10, 13, 17, 21, 29)) is include]
    expected = pa.concat_tables([one.take(kept)] * 2)
    assert written(tmp_path, answer).to_pylist() == [
        {f"new_{name}": value for name, value in row.items()} for row in expected.to_pylist()
    ]
    stored = pq.read_schema(tmp_path / "new" / str(answer.name))
    assert stored.field("new_n").type.field("at").type == pa.timestamp("us", "UTC")


def test_nan_is_reported(tmp_path: Path) -> None:
    pq.write_table(pa.table({"f": [1.0, float("nan")]}), tmp_path / "0.parquet")
    order = order_of(
        tmp_path, rows_of(tmp_path / "0.parquet", (1,), (0,), 0), columns={"f": pa.float64()}
    )
    assert copied(order).nan_columns == (("new_f",),)


@pytest.mark.parametrize(
    ("stored", "kind", "reason"),
    [
        (pa.array([1], pa.int64()), pa.int32(), "stored as int64"),
        (pa.array([b"x"]), pa.string(), "stored as binary"),
        (pa.array([Decimal("1.5")], pa.decimal128(9, 2)), pa.decimal128(7, 2), "stored as decimal"),
        (pa.array([-60_000], pa.int32()).cast(pa.date32()), pa.date32(), "days from 1970"),
        (pa.array([1], pa.int64()), None, "no column"),
        (pa.array([{"a": 1, "b": 2}]), pa.struct([("b", pa.int64()), ("a", pa.int64())]), "stored"),
        (pa.array([{"a": 1}]), pa.struct([("a", pa.int32())]), "stored as struct"),
        (pa.array([{"a": 1}]), pa.struct([("a", pa.int64()), ("b", pa.int64())]), "stored"),
        (pa.array([{"A": 1}]), pa.struct([("a", pa.int64())]), "stored as struct"),
        (pa.array([[1]]), pa.struct([("list", pa.struct([("element", pa.int64())]))]), "which is"),
        (pa.array([1]), pa.list_(pa.int64()), "stored as int64"),
        (
            pa.array([[dt.date(1500, 1, 1)]], pa.list_(pa.date32())),
            pa.list_(pa.date32()),
            "days from 1970",
        ),
    ],
)
def test_what_spark_might_read_otherwise_is_refused(
    tmp_path: Path, stored: pa.Array, kind: pa.DataType | None, reason: str
) -> None:
    pq.write_table(pa.table({"c" if kind else "C": stored}), tmp_path / "0.parquet")
    rows = rows_of(tmp_path / "0.parquet", (0,), (0,), 0)
    answer = copied(order_of(tmp_path, rows, columns={"c": kind or pa.int64()}))
    assert answer.refusal is not None
    assert reason in answer.refusal
    assert list((tmp_path / "new").iterdir()) == []


def test_lists_without_all_levels_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({"c": [[1, 2]]}), path, use_compliant_nested_type=False)
    answer = copied(order_of(tmp_path, rows_of(path, (0,), (0,), 0), columns={"c": LIST}))
    assert answer.refusal is not None
    assert "stored as list<" in answer.refusal


def test_a_file_out_of_reach_is_refused(tmp_path: Path) -> None:
    answer = copied(order_of(tmp_path, rows_of(tmp_path / "gone", (0,), (0,), 0)))
    assert answer.refusal is not None
    assert "FileNotFoundError" in answer.refusal


def test_a_source_that_arrow_cannot_read_is_refused(tmp_path: Path) -> None:
    """Spark reads it, or says what is wrong with it."""
    (tmp_path / "0.parquet").write_bytes(b"PAR1 is no Parquet file")
    path = tmp_path / "1.parquet"
    pq.write_table(table(random.Random(1), 1000), path, compression="snappy")
    damaged = bytearray(path.read_bytes())
    damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
    path.write_bytes(damaged)
    for n in range(2):
        rows = rows_of(tmp_path / f"{n}.parquet", (0,), (0,), 0)
        answer = copied(order_of(tmp_path, rows, include=False))
        assert answer.refusal is not None
        assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left"), pa.ArrowInvalid("No space left")]
)
def test_a_failed_write_removes_its_file_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise failure

    pq.write_table(table(random.Random(1), 10), tmp_path / "0.parquet")
    rows = rows_of(tmp_path / "0.parquet", (0,), (0,), 0)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(type(failure), match="No space left"):
        copied(order_of(tmp_path, rows))
    assert list((tmp_path / "new").iterdir()) == []


PARTS = {"p": pa.int32(), "q": pa.string()}


def parted(tmp_path: Path, rows: pa.Table) -> CopyOrder:
    pq.write_table(rows, tmp_path / "0.parquet", row_group_size=64)
    groups = tuple(range(-(-rows.num_rows // 64)))
    order = order_of(
        tmp_path,
        rows_of(tmp_path / "0.parquet", (), groups, 0),
        include=False,
        columns={"i": pa.int32(), **PARTS},
    )
    return dataclasses.replace(order, num_partition_columns=len(PARTS))


@pytest.mark.parametrize("seed", range(3))
def test_a_file_per_partition(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    rows = [(n, dice.choice([None, -1, 20]), dice.choice([None, "", "a b"])) for n in range(200)]
    columns = dict(zip(["i", "p", "q"], zip(*rows, strict=True), strict=True))
    every = pa.table(columns, schema=pa.schema({"i": pa.int32(), **PARTS}))
    answers = copy_source_rows(parted(tmp_path, every))
    found: dict[tuple[str | None, ...], list[int]] = {}
    for answer in answers:
        assert answer.name is not None
        path = tmp_path / "new" / answer.name
        stored = pq.ParquetFile(path).read()
        assert stored.column_names == ["new_i"]
        assert stored.num_rows == answer.kept_rows
        hive = ["__HIVE_DEFAULT_PARTITION__" if v is None else v for v in answer.partition]
        assert path.parent == tmp_path / "new" / f"new_p={hive[0]}" / f"new_q={hive[1]}"
        values = stored["new_i"].to_pylist()
        assert values == sorted(values)
        found[answer.partition] = sorted(found.get(answer.partition, []) + values)
    expected: dict[tuple[str | None, ...], list[int]] = {}
    for n, p, q in rows:
        expected.setdefault((None if p is None else str(p), q or None), []).append(n)
    assert found == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (True, "true"),
        (dt.date(2020, 1, 2), "2020-01-02"),
        ("x-1.5_y z", "x-1.5_y z"),
        ("a/b", None),
        (" a", None),
        ("a=b", None),
        ("__HIVE_DEFAULT_PARTITION__", None),
        ("ä", None),
        (1.5, None),
        (dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), None),
        (b"x", None),
    ],
)
def test_only_plain_partitions_are_named(value: Any, text: str | None) -> None:
    rows = pa.table({"i": [1], "p": [value]})
    if text is None:
        with pytest.raises(OnlySparkError, match="named by Spark"):
            list(by_partition(rows, 1))
    else:
        ((values, stored),) = by_partition(rows, 1)
        assert (values, stored.to_pylist()) == ((text,), [{"i": 1}])


def test_partitions_of_too_many_rows_are_left_to_spark(tmp_path: Path) -> None:
    rows = pa.table({"i": pa.array(range(100), pa.int32()), "p": [1] * 100, "q": ["a"] * 100})
    order = parted(tmp_path, rows.cast(pa.schema({"i": pa.int32(), **PARTS})))
    few = dataclasses.replace(order, limits=Limits(partitioned_bytes=100))
    assert copied(few).refusal == "too many rows to distribute over partitions"
    assert not (tmp_path / "new").exists()


def test_an_order_is_the_same_in_a_worker(tmp_path: Path) -> None:
    rows = pa.table({"i": pa.array([1, 2], pa.int32()), "p": [1, 2], "q": ["a", "b"]})
    order = parted(tmp_path, rows.cast(pa.schema({"i": pa.int32(), **PARTS})))
    fields = COPY_ORDERS.encode(order)
    assert COPY_ORDERS.decode(fields) == order
    answers = [FILE_ANSWERS.decode(answer) for answer in copy(fields)]
    assert [answer.partition for answer in answers] == [("1", "a"), ("2", "b")]


def test_threads_decode_the_same_rows_and_are_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of Spark has one thread, and other statements use it after this one."""
    path = tmp_path / "0.parquet"
    rows = table(random.Random(3), 5_000)
    pq.write_table(rows, path, row_group_size=1_000)
    counts: list[int] = []
    given = pa.set_cpu_count
    monkeypatch.setattr(pa, "set_cpu_count", lambda count: (counts.append(count), given(count)))
    cores = pa.cpu_count()
    given(1)
    try:
        limits = Limits(decoding_threads=3, read_rows=700)
        source = rows_of(path, (), (0, 2, 3), 0)
        order = order_of(tmp_path, source, include=False, limits=limits)
        (fields,) = copy(COPY_ORDERS.encode(order))
        assert counts == [3, 1]
        assert pa.cpu_count() == 1
    finally:
        given(cores)
    found = written(tmp_path, FILE_ANSWERS.decode(fields)).rename_columns(list(KINDS))
    assert found.equals(pa.concat_tables([rows[:1_000], rows[2_000:4_000]]).select(list(KINDS)))
