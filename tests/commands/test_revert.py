"""REVERT of one commit: rows go back where no later commit has touched their files."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.revert import plan_revert, revert_commit
from puredelta.errors import (
    ConcurrentWriteException,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
)
from puredelta.inspection.described import first_rows
from puredelta.log.files.file_table import remove_file
from puredelta.protocol.actions.actions import AddChangeFile
from puredelta.protocol.schema.types import INTEGER, LONG, STRING, StructField, StructType
from tests.commands.sessions import FakeSession
from tests.filled_table import SmallTable
from tests.inspection.damaged import change_feed_step, delete_rows_step, healthy

SESSION: Any = FakeSession()
SCHEMA = StructType((StructField("id", LONG), StructField("s", STRING)))


def ids(table: SmallTable, version: int | None = None) -> list[int]:
    rows = first_rows(table.log.snapshot(version=version), 1 << 30)
    return sorted(rows["id"].to_pylist())


def three(root: Path, **properties: str) -> SmallTable:
    table = SmallTable(root, SCHEMA, **properties)
    for number in range(1, 4):
        table.append([{"id": number}])
    return table


def test_append_in_the_middle_is_undone(tmp_path: Path) -> None:
    table = three(tmp_path)
    planned = plan_revert(SESSION, table.log, 2)
    assert (planned.version, planned.num_removed_rows) == (None, 1)
    assert ids(table) == [1, 2, 3]
    outcome = revert_commit(SESSION, table.log, 2)
    assert (outcome.version, outcome.num_removed_files, outcome.num_restored_files) == (4, 1, 0)
    assert ids(table) == [1, 3]
    info = table.log.history(limit=1)[0].commit_info
    assert info is not None
    assert (info.operation, info.operation_parameters) == ("REVERT", {"version": 2})
    assert (info.operation_metrics or {})["numRemovedFiles"] == "1"


def test_revert_of_a_revert(tmp_path: Path) -> None:
    table = three(tmp_path)
    revert_commit(SESSION, table.log, 2)
    revert_commit(SESSION, table.log, 4)
    assert ids(table) == [1, 2, 3]


def test_removed_rows_come_back(tmp_path: Path) -> None:
    table = three(tmp_path)
    table.commit(*table.removes(), table.file([{"id": 9}]))
    table.append([{"id": 10}])
    revert_commit(SESSION, table.log, 4)
    assert ids(table) == [1, 2, 3, 10]


def test_deletion_vector_is_undone(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, SCHEMA, delta__enableDeletionVectors="true")
    table.append([{"id": 1}, {"id": 2}, {"id": 3}])
    delete_rows_step(table, random.Random(1), 0)
    left = ids(table)
    assert len(left) == 2
    table.append([{"id": 9}])
    revert_commit(SESSION, table.log, 2)
    assert ids(table) == [1, 2, 3, 9]
    delete_rows_step(table, random.Random(2), 0)
    with pytest.raises(DeltaError):
        revert_commit(SESSION, table.log, 2)


def test_conflict_names_the_later_commit(tmp_path: Path) -> None:
    table = three(tmp_path)
    file = next(iter(table.log.snapshot(version=1).files.adds()))
    table.commit(remove_file(file), table.file([{"id": 7}]))
    table.append([{"id": 8}])
    before = table.log.snapshot().version
    with pytest.raises(ConcurrentWriteException, match=r"version 4 \(WRITE\)") as caught:
        revert_commit(SESSION, table.log, 1)
    assert caught.value.code is ErrorCode.CONCURRENT_WRITE
    assert "Revert version 4 first" in str(caught.value)
    assert table.log.snapshot().version == before
    revert_commit(SESSION, table.log, 4)
    revert_commit(SESSION, table.log, 1)
    assert ids(table) == [2, 3, 8]


@pytest.mark.parametrize("version", [-1, 0, 4, 99])
def test_versions_that_are_none(tmp_path: Path, version: int) -> None:
    table = three(tmp_path)
    with pytest.raises(InvalidRequestError, match="Versions 1 to 3"):
        revert_commit(SESSION, table.log, version)


def test_commit_without_files(tmp_path: Path) -> None:
    table = three(tmp_path)
    table.change(note="1")
    with pytest.raises(InvalidRequestError, match="ALTER TABLE"):
        revert_commit(SESSION, table.log, 4)


def test_version_that_is_cleaned_up(tmp_path: Path) -> None:
    table = three(tmp_path, delta__checkpointInterval="2")
    for version in range(2):
        (tmp_path / f"_delta_log/{version:020d}.json").unlink()
    with pytest.raises(TableNotFoundError):
        revert_commit(SESSION, table.log, 1)


def test_files_that_vacuum_deleted(tmp_path: Path) -> None:
    table = three(tmp_path)
    table.commit(*table.removes())
    next(tmp_path.glob("*.parquet")).unlink()
    with pytest.raises(InvalidRequestError) as caught:
        revert_commit(SESSION, table.log, 4)
    assert caught.value.code is ErrorCode.FILE_NOT_FOUND


@pytest.mark.parametrize(
    ("schema", "properties", "text"),
    [
        (StructType((StructField("id", INTEGER), SCHEMA.fields[1])), {}, "id has another type"),
        (
            StructType((StructField("id", LONG, nullable=False), SCHEMA.fields[1])),
            {},
            "id is NOT NULL since",
        ),
        (
            StructType((*SCHEMA.fields, StructField("x", LONG, nullable=False))),
            {},
            "x is new and NOT NULL",
        ),
        (None, {"delta__constraints__low": "id < 2"}, "the constraint low is new"),
    ],
)
def test_rows_that_would_not_fit(
    tmp_path: Path, schema: StructType | None, properties: dict[str, str], text: str
) -> None:
    table = three(tmp_path)
    table.commit(*table.removes())
    table.metadata = replace(table.metadata)
    table.change(schema, **properties)
    with pytest.raises(InvalidRequestError, match=text) as caught:
        revert_commit(SESSION, table.log, 4)
    assert "Versions that changed the table since: 5" in str(caught.value)


def test_append_only_tables_keep_their_rows(tmp_path: Path) -> None:
    table = three(tmp_path, delta__appendOnly="true")
    with pytest.raises(DeltaError, match="append"):
        revert_commit(SESSION, table.log, 2)


def test_change_files_are_reversed(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, SCHEMA, delta__enableChangeDataFeed="true")
    table.append([{"id": 1}, {"id": 2}])
    change_feed_step(table, random.Random(1), 0)
    table.append([{"id": 5}])
    version = revert_commit(SESSION, table.log, 2).version
    (commit,) = table.log.commits_after((version or 0) - 1)
    (reverse,) = [a for a in commit.actions if isinstance(a, AddChangeFile)]
    (forward,) = [
        a for c in table.log.commits_after(1, through=2) for a in c.actions
        if isinstance(a, AddChangeFile)
    ]  # fmt: skip
    names = {"insert": "delete", "delete": "insert"}
    kinds = [
        pq.read_table(tmp_path / file.path)["_change_type"].to_pylist()
        for file in (forward, reverse)
    ]
    assert [names[kind] for kind in kinds[0]] == kinds[1]
    assert reverse.size_bytes == (tmp_path / reverse.path).stat().st_size


def test_feed_without_the_old_change_files(tmp_path: Path) -> None:
    """Readers take the rows of the files that are added and removed."""
    table = SmallTable(tmp_path, SCHEMA, delta__enableChangeDataFeed="true")
    table.append([{"id": 1}, {"id": 2}])
    change_feed_step(table, random.Random(1), 0)
    for file in (tmp_path / "_change_data").iterdir():
        file.unlink()
    revert_commit(SESSION, table.log, 2)
    assert ids(table) == [1, 2]
    assert not list((tmp_path / "_change_data").iterdir())


def test_random_histories_go_back(tmp_path: Path) -> None:
    """The newest commit of any history can be reverted: the rows are those before it."""
    reverted = 0
    for seed in range(25):
        table = healthy(tmp_path / str(seed), seed, steps=7)
        newest = table.log.snapshot().version
        before = ids(table, newest - 1)
        try:
            revert_commit(SESSION, table.log, newest)
        except InvalidRequestError:
            continue
        assert ids(table) == before, seed
        reverted += 1
    assert reverted >= 15


@pytest.mark.thorough
def test_feed_and_rows_with_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    feed = {"delta.enableChangeDataFeed": "true"}
    puredelta.write(spark.range(10).selectExpr("id", "'a' AS s"), path, properties=feed)
    puredelta.sql(spark, f"UPDATE delta.`{path}` SET s = 'b' WHERE id < 3")
    puredelta.write(spark.range(20, 22).selectExpr("id", "'c' AS s"), path, mode="append")
    outcome = puredelta.revert(spark, path, 1)
    assert outcome.version == 3
    rows = {(r.id, r.s) for r in puredelta.read(spark, path).collect()}
    assert rows == {*((n, "a") for n in range(10)), (20, "c"), (21, "c")}
    changes = puredelta.read_changes(spark, path, starting_version=3)
    found = sorted((r.id, r.s, r._change_type) for r in changes.collect())
    assert found == sorted(
        (n, s, kind)
        for n in range(3)
        for s, kind in (("b", "update_preimage"), ("a", "update_postimage"))
    )
