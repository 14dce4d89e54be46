"""Looking keys up in files, without Spark: the answer of a join, row by row."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark import probe_task
from puredelta.spark.probe_task import Probe, ProbedColumn, ProbeOrder, probe_files
from puredelta.spark.row_bitmap import RowBitmap, popcount

Rows = dict[str, list[Any]]


def probed(
    tmp_path: Path,
    targets: list[pa.Table],
    sources: list[pa.Table],
    columns: list[tuple[str, str, bool]],
    *,
    deleted: tuple[int, ...] = (),
    constants: tuple[tuple[str, Any], ...] = (),
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """Return (file, row, hits of its word) of both sides."""
    for kind, tables in (("target", targets), ("source", sources)):
        for n, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{kind}{n}.parquet", row_group_size=70)
    dropped = RowBitmap.of_rows(np.array(deleted, np.int64))
    orders = [
        ProbeOrder(
            ordinal=n,
            path=str(tmp_path / f"target{n}.parquet"),
            constants=constants,
            words=dropped.words.tobytes(),
            bits=dropped.bits.tobytes(),
        )
        for n in range(len(targets))
    ]
    probe = Probe(
        columns=tuple(ProbedColumn(*column) for column in columns),
        source_files=tuple(str(tmp_path / f"source{n}.parquet") for n in range(len(sources))),
    )
    refusal, found = probe_files(probe, orders)
    if refusal is not None:
        raise LookupError(refusal)
    sides: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]] = ([], [])
    for of_source, file, (words, bits, hits) in found:
        bitmap = RowBitmap(np.frombuffer(words, "<i8"), np.frombuffer(bits, "<u8"))
        by_word = dict(zip(bitmap.words.tolist(), np.frombuffer(hits, "<i8").tolist(), strict=True))
        assert (np.frombuffer(hits, "<i8") >= popcount(bitmap.bits)).all()
        sides[of_source].extend((file, row, by_word[row >> 6]) for row in bitmap.rows().tolist())
    return sides


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_a_join(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_task, "BATCH_ROWS", (50, 100, 10_000)[seed % 3])
    dice = random.Random(seed)
    kinds: list[list[Any]] = [
        [None, *range(8)],
        [None, "", "a", "ä", "b"],
        [None, Decimal("1.50"), Decimal("2.00")],
        [None, dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
    ]
    schema = pa.schema(
        [("k0", pa.int32()), ("k1", pa.string()), ("k2", pa.decimal128(7, 2)), ("k3", pa.date32())]
    )

    def table(rows: int) -> pa.Table:
        return pa.table(
            {
                name: [dice.choice(kinds[n]) for _ in range(rows)]
                for n, name in enumerate(schema.names)
            },
            schema=schema,
        )

    targets, sources = [table(150), table(90)], [table(40), table(30)]
    keys = dice.sample(range(4), dice.randint(1, 4))
    columns = [(f"k{n}", f"k{n}", dice.random() < 0.5) for n in keys]
    deleted = (3, 64, 65)

    def matches(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return all(
            one[t] == other[s] and (null_safe or one[t] is not None) for t, s, null_safe in columns
        )

    pairs = [
        ((f, r), (g, q))
        for f, target in enumerate(targets)
        for r, row in enumerate(target.to_pylist())
        if r not in deleted
        for g, source in enumerate(sources)
        for q, other in enumerate(source.to_pylist())
        if matches(row, other)
    ]
    for side, found in enumerate(probed(tmp_path, targets, sources, columns, deleted=deleted)):
        wanted = [pair[side] for pair in pairs]
        words = [(file, row >> 6) for file, row in wanted]
        assert found == [(f, r, words.count((f, r >> 6))) for f, r in sorted(set(wanted))]


def test_types_that_hold_the_same_values_are_one(tmp_path: Path) -> None:
    target = pa.table({"id": pa.array([1, 2, 300], pa.int16()), "t": pa.array(["x", "y", "z"])})
    source = pa.table(
        {"a": pa.array([300, 1], pa.int64()), "b": pa.array(["z", "x"], pa.large_string())}
    )
    columns = [("id", "a", False), ("t", "b", False)]
    assert [r for _, r, _ in probed(tmp_path, [target], [source], columns)[0]] == [0, 2]
    stored = target.set_column(1, "t", target["t"].cast(pa.binary()))
    assert [r for _, r, _ in probed(tmp_path, [stored], [source], columns)[0]] == [0, 2]


def test_files_of_other_types_are_looked_up_together(tmp_path: Path) -> None:
    texts = ["x", "y", "x"]
    targets = [
        pa.table({"id": pa.array([1, 2, 3], pa.int16()), "t": texts}),
        pa.table({"id": pa.array([3, 2, 1], pa.int64()), "t": texts}),
        pa.table({"t": texts}),
        pa.table({"id": pa.array([3, 3, 1], pa.int16()), "t": pa.array(texts).dictionary_encode()}),
        pa.table({"id": pa.array([3, 3, 1], pa.int16()), "t": pa.array(["y", "x", "x"])}),
    ]
    source = pa.table({"id": pa.array([3, None], pa.int64()), "t": ["x", "y"]})
    columns = [("id", "id", True), ("t", "t", False)]
    found, met = probed(tmp_path, targets, [source], columns)
    assert [(file, row) for file, row, _ in found] == [(0, 2), (1, 0), (2, 1), (3, 0), (4, 1)]
    assert [row for _, row, _ in met] == [0, 1]


def test_partition_values_come_from_the_log_and_absent_columns_are_null(tmp_path: Path) -> None:
    target = pa.table({"id": [1, 2, 3]})
    source = pa.table({"id": [2, 3], "p": ["a", "b"], "n": pa.array([None, 1], pa.int64())})
    columns = [("id", "id", False), ("p", "p", False)]
    found, met = probed(tmp_path, [target], [source], columns, constants=(("p", "a"),))
    assert [row for _, row, _ in found] == [1]
    assert [row for _, row, _ in met] == [0]
    only = [("p", "p", False)]
    found, met = probed(tmp_path, [target], [source], only, constants=(("p", "b"),))
    assert [row for _, row, _ in found] == [0, 1, 2]
    assert met == [(0, 1, 3)]
    for null_safe, wanted in ((True, [1]), (False, [])):
        columns = [("id", "id", False), ("added", "n", null_safe)]
        assert [r for _, r, _ in probed(tmp_path, [target], [source], columns)[0]] == wanted


def test_what_only_spark_can_compare_is_refused(tmp_path: Path) -> None:
    old = pa.table({"d": [dt.date(1500, 1, 1)], "ID": [1]})
    with pytest.raises(LookupError, match="1500"):
        probed(tmp_path, [old], [old], [("d", "d", False)])
    with pytest.raises(LookupError, match="otherwise"):
        probed(tmp_path, [old], [pa.table({"id": [1]})], [("id", "id", False)])
    missing = ProbeOrder(ordinal=0, path=str(tmp_path / "no"), constants=(), words=b"", bits=b"")
    source = Probe(
        columns=(ProbedColumn("d", "ID", null_safe=False),),
        source_files=(str(tmp_path / "source0.parquet"),),
    )
    pq.write_table(pa.table({"ID": [1]}), tmp_path / "source0.parquet")
    refusal, found = probe_files(source, [missing])
    assert refusal is not None
    assert "FileNotFoundError" in refusal
    assert found == []


def test_a_source_of_nulls_matches_nothing(tmp_path: Path) -> None:
    source = pa.table({"id": pa.array([None, None], pa.int64())})
    target = pa.table({"id": pa.array([1, None], pa.int64())})
    assert probed(tmp_path, [target], [source], [("id", "id", False)]) == ([], [])
    assert probed(tmp_path, [target], [source], [("id", "id", True)]) == (
        [(0, 1, 2)],
        [(0, 0, 2), (0, 1, 2)],
    )
