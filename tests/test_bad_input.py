"""Bad input through the front doors: the message names the culprit, the table stays as it was."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import puredelta
from puredelta.errors import (
    ConflictError,
    CorruptTableError,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
)
from puredelta.store.local import LocalStore
from puredelta.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def everything_below(path: Path) -> dict[str, int]:
    """Every file under the table with its size: what a failed command must leave alone."""
    return {str(f.relative_to(path)): f.stat().st_size for f in path.rglob("*") if f.is_file()}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    path = tmp_path / "table"
    rows = spark.range(10).selectExpr("id", "concat('v', id) v", "cast(id % 2 AS int) p")
    puredelta.write(
        rows, str(path), partition_by=["p"], properties={"delta.constraints.small": "id < 1000"}
    )
    return path


def unchanged(table: Path, act: Callable[[], Any]) -> pytest.ExceptionInfo[DeltaError]:
    """Run what must fail; every file under the table must be as before."""
    before = everything_below(table)
    with pytest.raises(DeltaError) as caught:
        act()
    assert everything_below(table) == before
    return caught


# --- reading and converting -----------------------------------------------------------------


def test_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="nowhere"):
        puredelta.read(spark, str(tmp_path / "nowhere"))
    with pytest.raises(TableNotFoundError, match="nowhere doesn't exist"):
        DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}/nowhere`")


def parquet_directory(path: Path) -> Path:
    for part in ("a=1", "a=2"):
        (path / part).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1, 2]}), path / part / "data.parquet")
    return path


@pytest.mark.parametrize(
    "content", [b"not Parquet at all", b"PAR1 a footer that is torn PAR1"], ids=["text", "torn"]
)
def test_a_file_that_is_no_parquet(spark: SparkSession, tmp_path: Path, content: bytes) -> None:
    path = parquet_directory(tmp_path / "directory")
    (path / "a=2" / "culprit.parquet").write_bytes(content)
    caught = unchanged(path, lambda: convert(spark, path, "a INT"))
    assert caught.value.code is ErrorCode.FAILED_READ_FILE_FOOTER
    assert "culprit.parquet" in str(caught.value)


def convert(spark: SparkSession, path: Path, partitions: str | None = None) -> DeltaTable:
    return DeltaTable.convertToDelta(spark, f"parquet.`{path}`", partitions)


@pytest.mark.parametrize(
    ("partitions", "code", "named"),
    [
        (None, ErrorCode.UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME, "a"),
        ("b INT", ErrorCode.UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME, "b"),
        ("a INT, b INT", ErrorCode.UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME, "b"),
        ("a DATE", ErrorCode.FAILED_CAST_PARTITION_VALUE, "1"),
    ],
)
def test_partitions_that_do_not_fit(
    spark: SparkSession, tmp_path: Path, partitions: str | None, code: ErrorCode, named: str
) -> None:
    path = parquet_directory(tmp_path / "directory")
    caught = unchanged(path, lambda: convert(spark, path, partitions))
    assert caught.value.code is code
    assert named in caught.value.message


# --- merging --------------------------------------------------------------------------------


def merge(spark: SparkSession, table: Path, source: str = "SELECT 1L id, 'new' v, 1 p") -> Any:
    target = DeltaTable.forPath(spark, str(table)).alias("t")
    return target.merge(spark.sql(source).alias("s"), "t.id = s.id")


@pytest.mark.parametrize(
    ("clause", "where"),
    [
        (lambda m: m.whenMatchedUpdate("nope > 1", set={"v": "s.v"}), "UPDATE condition"),
        (lambda m: m.whenMatchedUpdate(set={"v": "nope"}), "UPDATE clause"),
        (lambda m: m.whenMatchedUpdate(set={"nope": "s.v"}), "UPDATE clause"),
        (lambda m: m.whenMatchedDelete("nope > 1"), "DELETE condition"),
        (lambda m: m.whenNotMatchedInsertAll("nope > 1"), "INSERT condition"),
        (lambda m: m.whenNotMatchedInsert(values={"id": "nope"}), "INSERT clause"),
        (lambda m: m.whenNotMatchedInsert(values={"nope": "s.v"}), "INSERT clause"),
        (lambda m: m.whenNotMatchedBySourceUpdate("nope > 1", set={"v": "'x'"}), "UPDATE cond"),
        (lambda m: m.whenNotMatchedBySourceUpdate(set={"v": "nope"}), "UPDATE clause"),
        (lambda m: m.whenNotMatchedBySourceDelete("nope > 1"), "DELETE condition"),
    ],
)
def test_a_column_nobody_has(
    spark: SparkSession, table: Path, clause: Callable[[Any], Any], where: str
) -> None:
    """M-21: the message names the column, the clause and what there is."""
    caught = unchanged(table, lambda: clause(merge(spark, table)).execute())
    assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION
    assert "nope" in caught.value.message
    assert where in caught.value.message


def test_a_column_of_on_that_nobody_has(spark: SparkSession, table: Path) -> None:
    target = DeltaTable.forPath(spark, str(table)).alias("t")
    source = spark.sql("SELECT 1L id").alias("s")
    caught = unchanged(
        table, lambda: target.merge(source, "t.id = s.nope").whenMatchedDelete().execute()
    )
    assert "search condition" in caught.value.message
    assert "nope" in caught.value.message


def test_ambiguous_match(spark: SparkSession, table: Path) -> None:
    """M-76, and the keys: the reference names none."""
    source = "SELECT id, v, p FROM VALUES (3L, 'x', 1), (3L, 'y', 1), (4L, 'z', 0) AS s(id, v, p)"
    caught = unchanged(table, lambda: merge(spark, table, source).whenMatchedUpdateAll().execute())
    assert caught.value.code is ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW
    assert "3" in caught.value.message


def test_a_value_that_breaks_a_check(spark: SparkSession, table: Path) -> None:
    """M-104: the row is shown."""
    source = "SELECT 4000L id, 'too big' v, 1 p"
    caught = unchanged(
        table, lambda: merge(spark, table, source).whenNotMatchedInsertAll().execute()
    )
    assert caught.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
    assert "small" in caught.value.message
    assert "4000" in caught.value.message


def test_a_schema_that_does_not_fit(spark: SparkSession, table: Path) -> None:
    rows = spark.sql("SELECT 1L id, 'a' v, 1 p, 2 surplus")
    caught = unchanged(table, lambda: puredelta.write(rows, str(table), mode="append"))
    assert isinstance(caught.value, InvalidRequestError)
    assert "surplus" in caught.value.message
    assert "mergeSchema" in caught.value.message


# --- storage and rivals ---------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_commit_that_cannot_be_stored(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Disk full or permission denied at the last step: no data file stays behind."""
    monkeypatch.setattr(LocalStore, "put_if_absent", raises(OSError(number, "no room", "file")))
    before = everything_below(table)
    with pytest.raises(OSError, match="no room"):
        merge(spark, table).whenMatchedUpdateAll().execute()
    assert everything_below(table) == before


def raises(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_data_files_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    """The table root is a file: no directory can be made for the job."""
    (tmp_path / "occupied").write_text("here first")
    with pytest.raises((DeltaError, OSError), match="occupied"):
        puredelta.write(spark.range(3), str(tmp_path / "occupied" / "table"))
    assert (tmp_path / "occupied").read_text() == "here first"


def test_a_rival_wins_between_read_and_commit(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-03: the loser says who won; the table holds the winner's rows and nothing of the loser."""
    original = LocalStore.put_if_absent
    rivals = []

    def rival_first(store: LocalStore, path: str, content: bytes) -> Any:
        if not rivals and path.endswith(f"{1:020d}.json"):
            rivals.append(path)
            merge(spark, table, "SELECT 1L id, 'rival' v, 1 p").whenMatchedUpdateAll().execute()
        return original(store, path, content)

    monkeypatch.setattr(LocalStore, "put_if_absent", rival_first)
    with pytest.raises(ConflictError, match="version 1") as caught:
        merge(spark, table).whenMatchedUpdateAll().execute()
    assert caught.value.code in (
        ErrorCode.CONCURRENT_APPEND,
        ErrorCode.CONCURRENT_DELETE_READ,
        ErrorCode.CONCURRENT_DELETE_DELETE,
    )
    rows = {r.id: r.v for r in puredelta.read(spark, str(table)).collect()}
    assert rows[1] == "rival"
    assert len(rows) == 10
    referenced = {Path(f).name for f in puredelta.read(spark, str(table)).inputFiles()}
    data_files = {f.name for f in table.rglob("*.parquet")}
    old = {Path(f).name for f in puredelta.read(spark, str(table), version=0).inputFiles()}
    assert data_files == referenced | old


def test_a_damaged_log(spark: SparkSession, table: Path) -> None:
    commit = table / "_delta_log" / f"{0:020d}.json"
    commit.write_text(commit.read_text() + "{not json\n")
    with pytest.raises(CorruptTableError, match=r"00000000000000000000\.json"):
        puredelta.read(spark, str(table))
