"""UPDATE and DELETE on tables with a change data feed, deletion vectors and row ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import DeleteSpec, UpdateSpec
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import AddChangeFile
from tests.commands.dml.features import (
    FEED,
    TRACKING,
    VECTORS,
    changes_of,
    is_explained,
    make_table,
    rows_of,
    tracked_rows,
)
from tests.commands.dml.tables import assigned
from tests.commands.dml.tables import execute_spec as execute

ROWS = [(1, "a", "x"), (2, "b", "x"), (3, "c", "x")], [(4, "d", "y"), (5, "e", "y")]


def update(condition: str | None, **values: str) -> UpdateSpec:
    return UpdateSpec(assignments=assigned(values), condition=condition)  # type: ignore[arg-type]


def has_change_files(log: TableLog, version: int) -> bool:
    [winner] = log.commits_after(version - 1)
    return any(isinstance(action, AddChangeFile) for action in winner.actions)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("vectors", [{}, VECTORS], ids=["copied", "hidden"])
def test_the_feed(spark: SparkSession, tmp_path: Path, vectors: Mapping[str, str]) -> None:
    log = make_table(
        spark, tmp_path / "t", *ROWS, properties={**FEED, **vectors}, partition_by=["p"]
    )
    assert execute(spark, log, update("k = 2", v="upper(v)", p="'y'")).version == 1
    assert changes_of(spark, log, 1) == {
        (2, "b", "x", "update_preimage"): 1,
        (2, "B", "y", "update_postimage"): 1,
    }
    assert has_change_files(log, 1)
    assert execute(spark, log, DeleteSpec(condition="v = 'a'")).version == 2
    assert changes_of(spark, log, 2) == {(1, "a", "x", "delete"): 1}
    assert has_change_files(log, 2) == (not vectors)  # readers compare deletion vectors
    assert execute(spark, log, DeleteSpec(condition="p = 'y'")).affected == 3
    assert not has_change_files(log, 3)
    for version in (1, 2, 3):
        assert is_explained(spark, log, version)
    assert rows_of(spark, log) == {(3, "c", "x"): 1}


@pytest.mark.thorough
def test_deletion_vectors(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    log = make_table(spark, tmp_path / "t", *ROWS, properties=VECTORS)
    first = {add.path for add in log.snapshot().files.adds()}
    deleted = execute(spark, log, DeleteSpec(condition="k = 2"))
    assert {add.path for add in log.snapshot().files.adds()} == first
    assert deleted.metrics["numDeletionVectorsAdded"] == 1
    assert deleted.metrics["numRemovedFiles"] == deleted.metrics["numCopiedRows"] == 0
    updated = execute(spark, log, update("k IN (1, 4)", v="'new'"))
    assert updated.metrics["numDeletionVectorsAdded"] == 2
    assert updated.metrics["numDeletionVectorsUpdated"] == 1
    assert (updated.metrics["numRemovedFiles"], updated.metrics["numCopiedRows"]) == (2, 0)
    conf("spark.databricks.delta.delete.deletionVectors.persistent", "false")
    assert execute(spark, log, DeleteSpec(condition="k = 5")).metrics["numRemovedFiles"] == 1
    assert rows_of(spark, log) == {(1, "new", "x"): 1, (3, "c", "x"): 1, (4, "new", "y"): 1}
    gone = execute(spark, log, DeleteSpec())
    assert (gone.affected, gone.metrics["numDeletionVectorsRemoved"]) == (3, 1)


def test_m_110_row_ids(spark: SparkSession, tmp_path: Path) -> None:
    log = make_table(spark, tmp_path / "t", *ROWS, properties=TRACKING)
    before = tracked_rows(spark, log)
    execute(spark, log, update("k = 2", v="'new'"))
    execute(spark, log, DeleteSpec(condition="k = 4"))
    after = tracked_rows(spark, log)
    assert {k: row_id for k, (row_id, _) in after.items()} == {
        k: row_id for k, (row_id, _) in before.items() if k != 4
    }
    assert {k for k, (_, version) in after.items() if version == 1} == {2}
