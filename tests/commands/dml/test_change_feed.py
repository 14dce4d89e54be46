"""Change rows that a statement writes (M-120 to M-129)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.errors import InvalidRequestError
from puredelta.protocol.actions.actions import Add, AddChangeFile
from puredelta.protocol.actions.operations import Operation
from tests.commands.dml.features import (
    FEED,
    MAPPED,
    actions_of,
    changes_of,
    make_table,
    rows_of,
    source,
)
from tests.commands.dml.tables import data_files, delete, insert, merge, update
from tests.log.tables import Client

A, B = "a", "b"


@pytest.mark.smoke
def test_every_change_is_recorded_once_and_with_the_values_of_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-121, M-122: also values that are different whenever they are computed."""
    old = [(1, "x", A), (2, "x", B), (3, "x", A)]
    log = make_table(spark, tmp_path, old[:2], old[2:], properties=FEED, partition_by=["p"])
    outcome = merge(
        spark,
        log,
        source(spark, (2, "y", A), (3, "y", A), (4, "y", B)),
        "t.k = s.k",
        delete("t.k = 3"),
        update(v="uuid()", p="s.p"),
        insert(k="s.k", v="uuid()", p="s.p"),
    )
    after = {row[0]: row for row in rows_of(spark, log)}
    assert changes_of(spark, log, 1) == {
        (2, "x", B, "update_preimage"): 1,
        (*after[2], "update_postimage"): 1,
        (3, "x", A, "delete"): 1,
        (*after[4], "insert"): 1,
    }
    changes = actions_of(log, 1, AddChangeFile)
    assert outcome.metrics["numTargetChangeFilesAdded"] == len(changes) == 2
    assert outcome.metrics["numOutputRows"] == 2  # M-127: 3 is alone in its file, 1 in its own
    for change in changes:
        directory, name = change.path.rsplit("/", 1)
        assert directory.startswith("_change_data/")
        assert directory.endswith(f"/p={change.partition_values['p']}")
        assert name.startswith("cdc-")
        assert pq.read_schema(tmp_path / change.path).names == ["k", "v", "_change_type"]
    for add in actions_of(log, 1, Add):
        assert add.path.split("/")[1:-1] == [f"p={add.partition_values['p']}"]
    assert data_files(tmp_path) >= {change.path for change in changes}
    assert not [path for path in data_files(tmp_path) if "puredelta" in path]


def test_a_merge_that_changes_no_row_of_the_table_writes_no_change_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-124: its inserts are the rows of the files it adds."""
    log = make_table(spark, tmp_path, [(1, "x", A)], properties=FEED)
    merge(
        spark,
        log,
        source(spark, (1, "y", A), (2, "y", A)),
        "t.k = s.k",
        update("t.v = 'nobody'", v="s.v"),
        insert(),
    )
    assert actions_of(log, 1, AddChangeFile) == []
    assert changes_of(spark, log, 1) == {(2, "y", A, "insert"): 1}


@pytest.mark.thorough
def test_a_row_that_several_source_rows_delete_is_one_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-128, under physical names: M-109."""
    log = make_table(spark, tmp_path, [(1, "x", A), (2, "x", A)], properties={**FEED, **MAPPED})
    merge(spark, log, source(spark, (1, "y", A), (1, "z", A)), "t.k = s.k", delete())
    assert changes_of(spark, log, 1) == {(1, "x", A, "delete"): 1}
    (change,) = actions_of(log, 1, AddChangeFile)
    names = pq.read_schema(tmp_path / change.path).names
    assert names[-1] == "_change_type"
    assert all(name.startswith("col-") for name in names[:-1])


def test_only_new_rows_are_held_to_constraints(spark: SparkSession, tmp_path: Path) -> None:
    """The row before an update may break a rule that came later; a failure leaves nothing."""
    log = make_table(spark, tmp_path, [(1, "long", A)], properties=FEED)
    metadata = log.snapshot().metadata
    ruled = {**metadata.configuration, "delta.constraints.short": "length(v) < 3"}
    Client(log, log.snapshot()).commit(
        [replace(metadata, configuration=ruled)], Operation(name="ADD CONSTRAINT")
    )
    before = data_files(tmp_path)
    with pytest.raises(InvalidRequestError):
        merge(spark, log, source(spark, (1, "longer", A)), "t.k = s.k", update(v="s.v"))
    assert data_files(tmp_path) == before
    merge(spark, log, source(spark, (1, "y", A)), "t.k = s.k", update(v="s.v"))
    assert changes_of(spark, log, 2) == {
        (1, "long", A, "update_preimage"): 1,
        (1, "y", A, "update_postimage"): 1,
    }


@pytest.mark.thorough
def test_a_row_before_an_update_has_the_columns_of_the_table_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-126, and the change file holds the new column."""
    log = make_table(spark, tmp_path, [(1, "x", A), (2, "x", A)], properties=FEED)
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        rows = source(spark, (1, "y", A)).selectExpr("*", "7 AS extra")
        merge(spark, log, rows, "t.k = s.k", update())
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert changes_of(spark, log, 1) == {
        (1, "x", A, None, "update_preimage"): 1,
        (1, "y", A, 7, "update_postimage"): 1,
    }


def test_columns_of_the_feed_cannot_become_columns_of_its_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = make_table(spark, tmp_path, [(1, "x", A)], properties=FEED)
    before = data_files(tmp_path)
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        rows = source(spark, (1, "y", A)).selectExpr("*", "'z' AS _change_type")
        with pytest.raises(InvalidRequestError) as caught:
            merge(spark, log, rows, "t.k = s.k", update())
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert caught.value.getCondition() == "RESERVED_CDC_COLUMNS_ON_WRITE"
    assert data_files(tmp_path) == before
