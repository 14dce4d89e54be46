"""Deletion vectors that a statement writes instead of copies (M-129 to M-138)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import ConflictError
from puredelta.log.commit.commit_request import Phase
from puredelta.log.files.row_counts import logical_rows
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, AddChangeFile, Remove
from puredelta.tables import DeltaTable
from tests.commands.dml.features import (
    FEED,
    VECTORS,
    actions_of,
    is_explained,
    make_table,
    rows_of,
    source,
)
from tests.commands.dml.tables import (
    data_files,
    delete,
    delete_by_source,
    insert,
    merge,
    update,
)

A, B = "a", "b"
OLD = [(n, "x", A if n < 5 else B) for n in range(10)]


@pytest.mark.smoke
def test_changed_rows_are_hidden_and_nothing_is_copied(spark: SparkSession, tmp_path: Path) -> None:
    log = make_table(spark, tmp_path, OLD[:5], OLD[5:], properties={**VECTORS, **FEED})
    outcome = merge(
        spark,
        log,
        source(spark, (1, "y", A), (2, "y", A), (99, "y", B)),
        "t.k = s.k",
        delete("s.k = 2"),
        update(v="s.v"),
        insert(),
    )
    expected = [row for row in OLD if row[0] not in {1, 2}] + [(1, "y", A), (99, "y", B)]
    assert rows_of(spark, log) == dict.fromkeys(expected, 1)
    assert is_explained(spark, log, 1)  # M-129
    assert actions_of(log, 1, AddChangeFile)
    (remove,) = actions_of(log, 1, Remove)
    adds = {add.path: add for add in actions_of(log, 1, Add)}
    kept = adds.pop(remove.path)
    assert remove.deletion_vector is None
    assert kept.deletion_vector.cardinality == 2
    assert json.loads(kept.stats)["tightBounds"] is False
    assert logical_rows(kept) == 3
    assert sum(json.loads(add.stats)["numRecords"] for add in adds.values()) == 2
    counted = {name: n for name, n in outcome.metrics.items() if n and "Time" not in name}
    assert counted == {
        "numSourceRows": 3,
        "numTargetRowsInserted": 1,
        "numTargetRowsUpdated": 1,
        "numTargetRowsMatchedUpdated": 1,
        "numTargetRowsDeleted": 1,
        "numTargetRowsMatchedDeleted": 1,
        "numOutputRows": 2,
        "numTargetBytesAdded": sum(add.size_bytes for add in adds.values()),
        "numTargetFilesAdded": len(adds),
        "numTargetChangeFilesAdded": len(actions_of(log, 1, AddChangeFile)),
        "numTargetDeletionVectorsAdded": 1,
    }


@pytest.mark.thorough
def test_a_vector_grows_until_the_file_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    """M-131, M-132: positions count the rows that are hidden already."""
    log = make_table(spark, tmp_path, OLD, properties=VECTORS)
    merge(spark, log, source(spark, (1, "", A)), "t.k = s.k", delete())
    second = merge(spark, log, source(spark, (2, "", A)), "t.k = s.k", delete())
    (kept,) = actions_of(log, 2, Add)
    (remove,) = actions_of(log, 2, Remove)
    assert (remove.deletion_vector.cardinality, kept.deletion_vector.cardinality) == (1, 2)
    named = [f"numTargetDeletionVectors{word}" for word in ("Added", "Removed", "Updated")]
    assert [second.metrics[name] for name in named] == [1, 1, 1]
    assert second.metrics["numTargetFilesRemoved"] == 0
    third = merge(spark, log, source(spark), "t.k = s.k", delete_by_source())
    assert actions_of(log, 3, Add) == []  # M-133
    assert [third.metrics[name] for name in named] == [0, 1, 0]
    assert third.metrics["numTargetFilesRemoved"] == 1
    assert rows_of(spark, log) == {}


@pytest.mark.thorough
def test_a_session_may_do_without(spark: SparkSession, tmp_path: Path) -> None:
    """M-130, M-138: the vector that is there is honoured, and gone after the copy."""
    log = make_table(spark, tmp_path, OLD, properties=VECTORS)
    merge(spark, log, source(spark, (1, "", A)), "t.k = s.k", delete())
    key = "spark.databricks.delta.merge.deletionVectors.persistent"
    spark.conf.set(key, "false")
    try:
        outcome = merge(spark, log, source(spark, (2, "", A)), "t.k = s.k", delete())
    finally:
        spark.conf.unset(key)
    (add,) = actions_of(log, 2, Add)
    assert add.deletion_vector is None
    assert outcome.metrics["numTargetRowsCopied"] == 8
    assert rows_of(spark, log) == dict.fromkeys([r for r in OLD if r[0] not in {1, 2}], 1)


def _rival(spark: SparkSession, log: TableLog, key: int) -> Callable[[Phase], None]:
    """Another MERGE deletes a row once ours has written its files."""
    left = [key]

    def on_phase(phase: Phase) -> None:
        if phase is Phase.STAGED and left:
            merge(spark, log, source(spark, (left.pop(), "", A)), "t.k = s.k", delete())

    return on_phase


def test_two_that_hide_different_rows_of_one_file_both_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    """X-27a: the vector of the second has the rows of both."""
    log = make_table(spark, tmp_path, OLD, properties=VECTORS)
    rival = _rival(spark, log, 1)
    outcome = merge(spark, log, source(spark, (2, "", A)), "t.k = s.k", delete(), on_phase=rival)
    assert outcome.version == 2
    assert outcome.metrics["numTargetRowsDeleted"] == 1
    assert rows_of(spark, log) == dict.fromkeys([r for r in OLD if r[0] not in {1, 2}], 1)


@pytest.mark.parametrize("clauses", [(delete(),), (delete(), insert())], ids=["same row", "insert"])
def test_two_that_could_meet_cannot_both_commit(
    spark: SparkSession, tmp_path: Path, clauses: tuple[Any, ...]
) -> None:
    """The same row, or rows that are inserted because another was not there; a vector file goes."""
    log = make_table(spark, tmp_path, OLD, properties=VECTORS)
    mine = 1 if len(clauses) == 1 else 2
    with pytest.raises(ConflictError):
        merge(
            spark,
            log,
            source(spark, (mine, "", A)),
            "t.k = s.k",
            *clauses,
            on_phase=_rival(spark, log, 1),
        )
    assert len({path for path in data_files(tmp_path) if path.endswith(".bin")}) == 1
    assert rows_of(spark, log) == dict.fromkeys([r for r in OLD if r[0] != 1], 1)


@pytest.fixture(scope="module")
def wide_rows() -> tuple[list[tuple], list[tuple]]:
    """Two files of rows that no encoding makes small: 13 MB each."""
    noise = random.Random(7)

    def file(first: int) -> list[tuple]:
        return [(n, noise.randbytes(15_000).hex(), A) for n in range(first, first + 900)]

    return file(0), file(900)


def keys(spark: SparkSession, *rows: range) -> DataFrame:
    found = [number for part in rows for number in part]
    return spark.createDataFrame(pa.table({"k": pa.array(found, pa.int32())}))


@pytest.mark.thorough
def test_a_file_that_is_mostly_dead_is_copied_and_others_are_not(
    spark: SparkSession, tmp_path: Path, wide_rows: tuple[list[tuple], list[tuple]]
) -> None:
    mostly, barely = wide_rows
    log = make_table(spark, tmp_path, mostly, barely, properties=VECTORS)
    gone = keys(spark, range(700), range(900, 910))
    outcome = merge(spark, log, gone, "t.k = s.k", delete())
    (copied,) = (a for a in actions_of(log, 1, Add) if a.deletion_vector is None)
    (hidden,) = (a for a in actions_of(log, 1, Add) if a.deletion_vector is not None)
    assert logical_rows(copied) == 200
    assert hidden.deletion_vector.cardinality == 10
    assert {remove.path for remove in actions_of(log, 1, Remove)} > {hidden.path}
    assert rows_of(spark, log) == dict.fromkeys([*mostly[700:], *barely[10:]], 1)
    names = ("RowsCopied", "RowsDeleted", "FilesRemoved", "FilesAdded", "DeletionVectorsAdded")
    assert [outcome.metrics[f"numTarget{name}"] for name in names] == [200, 710, 1, 1, 1]


@pytest.mark.thorough
def test_the_feed_of_a_delete_is_told_by_vectors_alone(
    spark: SparkSession, tmp_path: Path, wide_rows: tuple[list[tuple], list[tuple]]
) -> None:
    """A copy would read as if every row had gone and some had come back."""
    mostly, _ = wide_rows
    log = make_table(spark, tmp_path, mostly, properties={**VECTORS, **FEED})
    DeltaTable.forPath(spark, str(tmp_path)).delete("k < 700")
    (hidden,) = actions_of(log, 1, Add)
    assert hidden.deletion_vector.cardinality == 700
    assert actions_of(log, 1, AddChangeFile) == []
    assert is_explained(spark, log, 1)
