"""A write that is tried says what the write then does, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta import Report, last_report
from puredelta.commands.statement.parts import ReportState
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, UnsupportedError
from tests.commands.write.tried_writes import WRITES, Write

SCHEMA = "id INT, part STRING"
OLD = [(1, "a"), (2, "a"), (3, "b"), (4, "b")]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def files_below(path: Path) -> list[str]:
    return sorted(f"{at}/{name}" for at, _, names in os.walk(path) for name in names)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions, a constraint, and the change data feed."""
    path = tmp_path_factory.mktemp("tried") / "t"
    properties = {"delta.enableChangeDataFeed": "true", "delta.constraints.positive": "id > 0"}
    rows = frame(spark, OLD)
    puredelta.write(rows, path, partition_by="part", properties=properties)
    return path


@pytest.mark.sampled(2)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_what_is_tried_is_what_is_done(spark: SparkSession, table: Path, write: Write) -> None:
    before, rows = files_below(table), frame(spark, write.rows)
    version = puredelta.DeltaTable.forPath(spark, str(table)).history(1).collect()[0].version
    tried = puredelta.dry_run_write(rows, table, mode=write.mode, options=write.options)
    assert files_below(table) == before
    assert (tried.state, tried.read_version) == (ReportState.DRY_RUN, version)
    preview = None
    if write.has_preview:
        preview = puredelta.preview_write(rows, table, options=write.options).drop("_clause")
        assert files_below(table) == before
    outcome = puredelta.write(rows, table, mode=write.mode, options=write.options)
    done = outcome.report
    assert done is not None
    assert done is last_report()
    assert (done.state, done.committed_version) == (ReportState.EXECUTED, outcome.version)
    require_alike(tried, done)
    assert done.rows is not None
    assert (done.rows.inserted, done.rows.deleted) == (write.inserted, write.deleted)
    assert done.files is not None
    assert done.files.added == outcome.num_files
    if preview is not None:
        feed = puredelta.read_changes(spark, table, starting_version=version + 1)
        assert sorted(map(tuple, preview.collect())) == sorted(
            map(tuple, feed.select(*preview.columns).collect())
        )


def require_alike(tried: Report, done: Report) -> None:
    """Compare all that a dry run knows; ``None`` is what only the write tells."""
    assert tried.statement == done.statement
    assert tried.rows is not None
    assert done.rows is not None
    assert tried.files is not None
    assert done.files is not None
    for name in ("inserted", "deleted"):
        assert getattr(tried.rows, name) in {None, getattr(done.rows, name)}, name
    for name in ("removed", "removed_bytes", "rewritten", "rewritten_bytes"):
        assert getattr(tried.files, name) in {None, getattr(done.files, name)}, name
    assert {d.path for d in tried.decisions} <= {d.path for d in done.decisions}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("row", "mode", "where", "code"),
    [
        ((-1, "a"), "append", None, ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES),
        ((9, "a"), "error", None, ErrorCode.TABLE_ALREADY_EXISTS),
        ((9, "b"), "overwrite", "part = 'a'", ErrorCode.REPLACE_WHERE_MISMATCH),
        ((9, "b"), "overwrite", "id < 5", ErrorCode.REPLACE_WHERE_MISMATCH),
    ],
)
def test_what_would_be_refused_is_refused(
    spark: SparkSession,
    table: Path,
    *,
    row: tuple[int, str],
    mode: str,
    where: str | None,
    code: ErrorCode,
) -> None:
    before, options = files_below(table), {} if where is None else {"replaceWhere": where}
    with pytest.raises(InvalidRequestError) as caught:
        puredelta.dry_run_write(frame(spark, [row]), table, mode=mode, options=options)
    assert caught.value.code is code
    assert files_below(table) == before


def test_what_does_nothing(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    rows = frame(spark, [(5, "a")])
    assert "nothing would happen" in str(puredelta.dry_run_write(rows, table, mode="ignore"))
    assert puredelta.write(rows, table, mode="ignore").report is None
    created = puredelta.dry_run_write(rows, tmp_path / "new")
    assert created.rows is not None
    assert (created.read_version, created.rows.inserted) == (None, 1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("options", [{}, {"replaceWhere": "id < 5"}], ids=["whole", "no table"])
def test_only_replace_where_has_a_preview(
    spark: SparkSession, table: Path, tmp_path: Path, options: dict[str, str]
) -> None:
    path = tmp_path / "new" if options else table
    with pytest.raises(UnsupportedError, match="Only a write with replaceWhere has a preview"):
        puredelta.preview_write(frame(spark, [(1, "a")]), path, options=options)
    assert not (tmp_path / "new").exists()


def test_a_conversion_leaves_its_report(spark: SparkSession, tmp_path: Path) -> None:
    source = f"parquet.`{tmp_path}/p`"
    frame(spark, OLD).write.partitionBy("part").parquet(f"{tmp_path}/p")
    statement = f"CONVERT TO DELTA {source} PARTITIONED BY (part STRING)"
    tried = puredelta.dry_run(spark, statement)
    puredelta.sql(spark, statement)
    done = last_report()
    assert done is not None
    assert (done.statement, done.committed_version) == ("CONVERT", 0)
    assert (done.rows, done.files) == (tried.rows, tried.files)
    assert [stage.name for stage in done.stages] == ["footers", "commit"]
    puredelta.sql(spark, statement)  # it is a Delta table by now
    assert last_report() is done


def test_a_write_that_fails_leaves_the_report_before(spark: SparkSession, table: Path) -> None:
    done = puredelta.write(frame(spark, [(6, "a")]), table, mode="append").report
    with pytest.raises(DeltaError):
        puredelta.write(frame(spark, [(-6, "a")]), table, mode="append")
    assert last_report() is done
