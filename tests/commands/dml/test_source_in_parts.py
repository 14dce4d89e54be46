"""Where workers may hold little, keys are looked up part by part, and it is the same merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.search import look_up
from puredelta.commands.dml.search_plan import SearchPlan
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.source import StatementContext
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.spark.offload.workers import WorkerMemory, WorkerSettings
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.tables import (
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


class Lookups(list[tuple[int, bool]]):
    """In how many parts each source was looked up, and whether workers refused."""

    def __call__(self, context: StatementContext, plan: SearchPlan, lookup: KeyLookup) -> Any:
        answer = look_up(context, plan, lookup)
        self.append((lookup.parts, isinstance(answer, NotApplicable)))
        return answer


@pytest.fixture
def lookups() -> Lookups:
    return Lookups()


def scarce(settings: ExecutionSettings) -> ExecutionSettings:
    return replace(
        settings, workers=WorkerSettings(memory=WorkerMemory(task_max=1024, parts_max=12))
    )


def test_rows_and_conditions(
    spark: SparkSession, log: TableLog, source: Any, lookups: Lookups
) -> None:
    changed = [(n, n % 3) for n in range(10, 250, 3)]
    clauses = (delete("s.v = 0 AND t.v = 0"), update("s.v = 1"), insert("s.v < 2"))
    outcome = merge(
        spark, log, source(changed), "t.id = s.id", *clauses, change=scarce, look_up=lookups
    )
    ((parts, refused),) = lookups
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


@pytest.mark.thorough
def test_partners_in_several_parts_are_several(
    spark: SparkSession, log: TableLog, source: Any, lookups: Lookups, tmp_path: Path
) -> None:  # M-70
    before = data_files(tmp_path / "t")
    doubled = source([(n % 40, 1) for n in range(41)])
    with pytest.raises(InvalidRequestError, match="id = 0") as failure:
        merge(
            spark,
            log,
            doubled,
            "t.id = s.id",
            update(),
            insert(),
            change=scarce,
            look_up=lookups,
        )
    assert failure.value.code is ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW
    assert data_files(tmp_path / "t") == before
    assert [(parts > 1, refused) for parts, refused in lookups] == [(True, False)]


def test_rows_without_a_partner_are_left_to_a_join(
    spark: SparkSession, log: TableLog, source: Any, lookups: Lookups
) -> None:
    outcome = merge(
        spark,
        log,
        source([(n, 5) for n in range(60)]),
        "t.id = s.id",
        update(),
        delete_by_source(),
        change=scarce,
        look_up=lookups,
    )
    assert (outcome.rows.matched_updated, outcome.rows.by_source_deleted) == (60, 140)
    assert lookups == []


def test_workers_of_a_cluster_may_hold_little() -> None:
    here, there = WorkerMemory.of("local[4]"), WorkerMemory.of("spark://head:7077")
    assert (here.parts_max, here.all_max) == (1, here.task_max)
    assert there.task_max < here.task_max
    assert there.parts_max > 1
    assert there.tasks_max(there.task_max) is None
