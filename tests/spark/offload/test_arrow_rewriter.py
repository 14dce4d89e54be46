"""The two ways to rewrite files without some rows answer alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload.rewrite import (
    SMALL_FILES_MIN,
    ArrowRewriter,
    RewriteOrder,
    Rewriter,
    Rewritten,
    SparkRewriter,
)
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.tables import lay_table
from tests.spark.local_workers import LocalWorkers

SCHEMA = pa.schema(
    [("id", pa.int64()), ("p", pa.string()), ("x", pa.float64()), ("s", pa.string())]
)


def rows(p: str | None, first: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "p": p, "x": float("nan") if n % 4 == 3 else n / 2, "s": f"text {n}"}
        for n in range(first, first + 10)
    ]


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    files = [rows("a b", 0), rows(None, 10), rows("c", 20)]
    return lay_table(tmp_path / "t", SCHEMA, files, partition_by=["p"])


def rewriter(kind: type, spark: SparkSession, log: TableLog) -> Rewriter:
    snapshot = log.snapshot()
    if kind is ArrowRewriter:
        return ArrowRewriter(spark=spark, store=log.store, config=snapshot.config)
    return SparkRewriter(spark=spark, store=log.store, snapshot=snapshot)


def orders(log: TableLog, *dropped: list[int]) -> list[RewriteOrder]:
    return [
        RewriteOrder(add=add, dropped=RowBitmap.of_rows(np.array(some, np.int64)))
        for add, some in zip(log.snapshot().files.adds(), dropped, strict=False)
    ]


def read(log: TableLog, done: Rewritten) -> list[tuple[str | None, int]]:
    root = Path(log.root_uri.removeprefix("file:"))
    found = []
    for add in done.adds:
        table = pq.read_table(root / add.path.replace("%20", " "), partitioning=None)
        found += [(add.partition_values["p"], n) for n in table["id"].to_pylist()]
    return sorted(found, key=repr)


@pytest.mark.parametrize("kind", [ArrowRewriter, SparkRewriter])
def test_rows_that_are_not_dropped_keep_their_partition(
    spark: SparkSession, log: TableLog, kind: type
) -> None:
    made = rewriter(kind, spark, log)
    done = made.rewrite(orders(log, [0, 9], [3]))
    assert isinstance(done, Rewritten)
    wanted = [("a b", n) for n in range(1, 9)] + [(None, n) for n in range(10, 20) if n != 13]
    assert read(log, done) == sorted(wanted, key=repr)
    assert done.num_rows == 17
    assert sum(json.loads(a.stats or "")["numRecords"] for a in done.adds) == 17
    root = Path(log.root_uri.removeprefix("file:"))
    made.discard()
    assert not [a for a in done.adds if (root / a.path.replace("%20", " ")).exists()]
    assert len(list(root.rglob("part-*.parquet"))) == 3


def test_a_new_file_lies_beside_the_old_one_and_is_described(
    spark: SparkSession, log: TableLog
) -> None:
    done = rewriter(ArrowRewriter, spark, log).rewrite(orders(log, [0], [1, 5, 9], [2]))
    assert isinstance(done, Rewritten)
    first, second, _ = sorted(done.adds, key=lambda a: a.path)
    assert first.path.startswith("p=None/part-")
    assert second.path.startswith("p=a%20b/part-")
    root = Path(log.root_uri.removeprefix("file:"))
    assert second.size_bytes == (root / second.path.replace("%20", " ")).stat().st_size
    # a NaN among x: no bounds, for it is greater than any number; where none is left, bounds
    assert json.loads(second.stats or "") == {
        "numRecords": 9,
        "minValues": {"id": 1, "s": "text 1"},
        "maxValues": {"id": 9, "s": "text 9"},
        "nullCount": {"id": 0, "x": 0, "s": 0},
    }
    assert json.loads(first.stats or "")["maxValues"]["x"] == 9.0


def test_a_file_that_loses_all_rows_has_no_successor(spark: SparkSession, log: TableLog) -> None:
    done = rewriter(ArrowRewriter, spark, log).rewrite(orders(log, list(range(10)), [0]))
    assert isinstance(done, Rewritten)
    assert len(done.adds) == 1
    assert done.num_rows == 9


def test_a_file_outside_of_the_table_gets_a_successor_inside(
    spark: SparkSession, log: TableLog, tmp_path: Path
) -> None:
    """As in a shallow clone: the other table's directory is not ours to write to."""
    (order, *_) = orders(log, [0])
    root = Path(log.root_uri.removeprefix("file:"))
    outside = tmp_path / "other" / "p=a b" / "part.parquet"
    outside.parent.mkdir(parents=True)
    (root / "p=a b" / "part-00000.parquet").rename(outside)
    moved = replace(order.add, path=f"file://{str(outside).replace(' ', '%20')}")
    done = rewriter(ArrowRewriter, spark, log).rewrite([replace(order, add=moved)])
    assert isinstance(done, Rewritten)
    (add,) = done.adds
    assert add.path.startswith("p=a%20b/part-")
    assert len(read(log, done)) == 9


def test_many_small_files_become_few(spark: SparkSession, tmp_path: Path) -> None:
    files = [rows("a b" if n % 2 else "c", 10 * n) for n in range(2 * SMALL_FILES_MIN)]
    log = lay_table(tmp_path / "many", SCHEMA, files, partition_by=["p"])
    wanted = orders(log, *[[n % 10] for n in range(len(files))])
    done = rewriter(ArrowRewriter, spark, log).rewrite(wanted)
    assert isinstance(done, Rewritten)
    assert sorted(add.partition_values["p"] or "" for add in done.adds) == ["a b", "c"]
    slow = rewriter(SparkRewriter, spark, log).rewrite(wanted)
    assert isinstance(slow, Rewritten)
    assert read(log, done) == read(log, slow)
    assert done.num_rows == slow.num_rows == 9 * len(files)


def test_a_group_that_is_not_complete_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    files = [rows("c", 10 * n) for n in range(SMALL_FILES_MIN)]
    log = lay_table(tmp_path / "many", SCHEMA, files, partition_by=["p"])
    wanted = orders(log, *[[0, 77]] * SMALL_FILES_MIN)
    with pytest.raises(DeltaError, match="more has 160 rows, 32 were to be dropped and 144"):
        rewriter(ArrowRewriter, spark, log).rewrite(wanted)


def test_rows_the_file_does_not_have_are_an_error(spark: SparkSession, log: TableLog) -> None:
    with pytest.raises(DeltaError, match="has 10 rows, 2 were to be dropped and 9 stayed"):
        rewriter(ArrowRewriter, spark, log).rewrite(orders(log, [0, 77]))


def test_files_of_attempts_that_lost_are_deleted(log: TableLog) -> None:
    """W-9: a task that ran twice leaves two files; only the one that was returned stays."""
    session: Any = LocalWorkers(attempts=2)
    done = rewriter(ArrowRewriter, session, log).rewrite(orders(log, [0], [0], [0]))
    assert isinstance(done, Rewritten)
    root = Path(log.root_uri.removeprefix("file:"))
    assert len(list(root.rglob("part-*.parquet"))) == 6


def test_missing_storage_is_refused_and_leaves_nothing(spark: SparkSession, log: TableLog) -> None:
    wanted = orders(log, [0], [0])
    root = Path(log.root_uri.removeprefix("file:"))
    (root / wanted[1].add.path).unlink()
    answer = rewriter(ArrowRewriter, spark, log).rewrite(wanted)
    assert isinstance(answer, NotApplicable)
    assert "FileNotFoundError" in answer.reason
    assert len(list(root.rglob("part-*.parquet"))) == 2


def test_files_of_tasks_before_a_worker_failed_are_deleted(log: TableLog) -> None:
    session: Any = LocalWorkers(able_tasks=1)
    answer = rewriter(ArrowRewriter, session, log).rewrite(orders(log, [0], [0]))
    assert isinstance(answer, NotApplicable)
    root = Path(log.root_uri.removeprefix("file:"))
    assert len(list(root.rglob("part-*.parquet"))) == 3


def test_local_workers_are_the_drivers_own_python(
    spark: SparkSession, log: TableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PYSPARK_PYTHON Spark would run the first python3 of the PATH."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/usr/bin/no-such-python")
    done = rewriter(ArrowRewriter, spark, log).rewrite(orders(log, [0]))
    assert isinstance(done, Rewritten)
    assert spark.sparkContext.pythonExec == "/usr/bin/no-such-python"


def test_a_session_that_wants_no_workers_has_none(log: TableLog) -> None:
    session: Any = LocalWorkers()
    made = ArrowRewriter(
        spark=session,
        store=log.store,
        config=log.snapshot().config,
        settings=WorkerSettings(enabled=False),
    )
    answer = made.rewrite(orders(log, [0]))
    assert answer == NotApplicable(reason="spark.puredelta.workers.enabled is false")
