"""Where workers may hold little, keys are looked up part by part, and it is the same merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.row_changes import positions
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload import key_lookup
from puredelta.spark.offload.key_lookup import KeyLookup, WorkerMemory
from puredelta.spark.session.fallback import NotApplicable
from tests.commands.merge.tables import (
    data_files,
    delete,
    delete_by_source,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
)

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
ROWS = [{"id": n, "v": 0} for n in range(200)]


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", SCHEMA, [ROWS[n : n + 50] for n in range(0, 200, 50)])


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[list[tuple[int, int]]], DataFrame]:
    """Lies in two files, in which it is read."""

    def make(rows: list[tuple[int, int]]) -> DataFrame:
        path = str(tmp_path / "source")
        spark.createDataFrame(rows, "id long, v long").repartition(2).write.parquet(path)
        return spark.read.parquet(path)

    return make


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """In how many parts each source was looked up, and whether workers refused."""
    seen: list[tuple[int, bool]] = []
    probe = positions.look_up_keys

    def watched(*args: Any, **options: Any) -> Any:
        answer = probe(*args, **options)
        (asked,) = (one for one in args if isinstance(one, KeyLookup))
        seen.append((asked.parts, isinstance(answer, NotApplicable)))
        return answer

    monkeypatch.setattr(positions, "look_up_keys", watched)
    return seen


@pytest.fixture(autouse=True)
def scarce_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    scarce = WorkerMemory(task_max=1024, parts_max=12)
    monkeypatch.setattr(WorkerMemory, "of", lambda _: scarce)


def test_rows_and_conditions(
    spark: SparkSession, log: TableLog, source: Any, probed: list[tuple[int, bool]]
) -> None:
    changed = [(n, n % 3) for n in range(10, 250, 3)]
    clauses = (delete("s.v = 0 AND t.v = 0"), update("s.v = 1"), insert("s.v < 2"))
    outcome = merge(spark, log, source(changed), "t.id = s.id", *clauses)
    ((parts, refused),) = probed
    assert 2 < parts <= 12
    assert not refused
    new = dict(changed)
    wanted = [
        {"id": row["id"], "v": 1 if new.get(row["id"]) == 1 else row["v"]}
        for row in ROWS
        if new.get(row["id"]) != 0
    ] + [{"id": n, "v": v} for n, v in changed if n >= len(ROWS) and v < 2]
    assert table_rows(spark, log) == sorted(wanted, key=repr)
    assert outcome.rows.source == len(changed)


def test_partners_in_several_parts_are_several(
    spark: SparkSession, log: TableLog, source: Any, probed: list[tuple[int, bool]], tmp_path: Path
) -> None:  # M-70
    before = data_files(tmp_path / "t")
    doubled = source([(n % 40, 1) for n in range(41)])
    with pytest.raises(InvalidRequestError, match="id = 0") as failure:
        merge(spark, log, doubled, "t.id = s.id", update(), insert())
    assert failure.value.code is ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW
    assert data_files(tmp_path / "t") == before
    assert [(parts > 1, refused) for parts, refused in probed] == [(True, False)]


def test_rows_without_a_partner_are_left_to_a_join(
    spark: SparkSession, log: TableLog, source: Any, probed: list[tuple[int, bool]]
) -> None:
    outcome = merge(
        spark,
        log,
        source([(n, 5) for n in range(60)]),
        "t.id = s.id",
        update(),
        delete_by_source(),
    )
    assert (outcome.rows.matched_updated, outcome.rows.by_source_deleted) == (60, 140)
    assert probed == []


def test_workers_of_a_cluster_may_hold_little(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    here = WorkerMemory.of(spark)
    assert (here.parts_max, here.all_max) == (1, here.task_max)
    monkeypatch.setattr(key_lookup, "_runs_here", lambda _: False)
    there = WorkerMemory.of(spark)
    assert there.task_max < here.task_max
    assert there.parts_max > 1
    assert there.tasks_max(there.task_max) is None
