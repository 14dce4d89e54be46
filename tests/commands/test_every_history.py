"""What the session says of commits reaches the history of every operation, as in delta-spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.log.commit.row_places import ROW_ORDER_TAG
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.tables import DeltaTable

Run: TypeAlias = str | Callable[[SparkSession, str], object]

PREFIX = "spark.databricks.delta."
COLUMNS = "(id BIGINT, p INT, v STRING) USING delta"
EMPTY = f"CREATE TABLE {{t}} {COLUMNS}"
MAPPED = f"{EMPTY} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
TRACKED = f"{EMPTY} TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
ROWS = "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 1, 'b')"
PRESERVED = "delta.rowTracking.preserved"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Statements that make a table, the one that is tested, and the commits it makes."""

    before: tuple[Run, ...] = ()
    run: Run
    operations: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of the last commit."""


def convert(spark: SparkSession, path: str) -> None:
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")


def parquet(spark: SparkSession, path: str) -> None:
    spark.range(2).write.parquet(path)


def append(spark: SparkSession, path: str) -> None:
    rows = spark.sql("SELECT 9L AS id, 9 AS p, 'z' AS v")
    puredelta.write(rows, path, mode="append")


def replace_where(spark: SparkSession, path: str) -> None:
    rows = spark.sql("SELECT 1L AS id, 9 AS p, 'z' AS v")
    puredelta.write(rows, path, mode="overwrite", options={"replaceWhere": "id = 1"})


def add_feature(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).addFeatureSupport("deletionVectors")


def upgrade(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).upgradeTableProtocol(1, 3)


def shallow_clone(spark: SparkSession, path: str) -> None:
    puredelta.sql(spark, f"CREATE TABLE delta.`{path}` {COLUMNS}".replace(path, f"{path}-source"))
    puredelta.sql(spark, f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{path}-source`")


def stream(spark: SparkSession, path: str) -> None:
    puredelta.write(spark.range(1), f"{path}-source")
    puredelta.activate(spark)
    try:
        rows = spark.readStream.format("delta").load(f"{path}-source")
        writer = rows.writeStream.format("delta").option("checkpointLocation", f"{path}-checkpoint")
        writer.trigger(availableNow=True).start(path).awaitTermination()
    finally:
        puredelta.deactivate()


CASES = {
    "create": Case(run=EMPTY, operations=("CREATE TABLE",)),
    "create as select": Case(
        run="CREATE TABLE {t} USING delta AS SELECT 1 AS id",
        operations=("CREATE TABLE AS SELECT",),
    ),
    "replace": Case(
        before=(EMPTY,), run=f"REPLACE TABLE {{t}} {COLUMNS}", operations=("REPLACE TABLE",)
    ),
    "replace as select": Case(
        before=(EMPTY,),
        run="CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id",
        operations=("CREATE OR REPLACE TABLE AS SELECT",),
    ),
    "insert": Case(before=(EMPTY,), run=ROWS, operations=("WRITE",)),
    "write": Case(before=(EMPTY,), run=append, operations=("WRITE",)),
    "replaceWhere": Case(before=(EMPTY, ROWS), run=replace_where, operations=("WRITE",)),
    "stream": Case(run=stream, operations=("STREAMING UPDATE",)),
    "merge": Case(
        before=(EMPTY, ROWS),
        run="MERGE INTO {t} t USING (SELECT 1 AS i) s ON id = i WHEN MATCHED THEN DELETE",
        operations=("MERGE",),
    ),
    "update": Case(
        before=(EMPTY, ROWS), run="UPDATE {t} SET v = 'u' WHERE id = 1", operations=("UPDATE",)
    ),
    "update of tracked rows": Case(
        before=(TRACKED, ROWS),
        run="UPDATE {t} SET v = 'u' WHERE id = 1",
        operations=("UPDATE",),
        tags={PRESERVED: "true"},
    ),
    "delete": Case(
        before=(EMPTY, ROWS), run="DELETE FROM {t} WHERE id = 1", operations=("DELETE",)
    ),
    "truncate": Case(before=(EMPTY,), run="TRUNCATE TABLE {t}", operations=("TRUNCATE",)),
    "optimize": Case(before=(EMPTY, ROWS, ROWS), run="OPTIMIZE {t}", operations=("OPTIMIZE",)),
    "optimize of tracked rows": Case(
        before=(TRACKED, ROWS, ROWS),
        run="OPTIMIZE {t}",
        operations=("OPTIMIZE",),
        tags={PRESERVED: "true"},
    ),
    "auto compaction": Case(
        before=(
            f"{EMPTY} TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')",
            f"SET {PREFIX}autoCompact.minNumFiles = 2",
            ROWS,
        ),
        run=ROWS,
        operations=("WRITE", "OPTIMIZE"),
    ),
    "vacuum": Case(before=(EMPTY,), run="VACUUM {t}", operations=("VACUUM START", "VACUUM END")),
    "restore": Case(
        before=(EMPTY, ROWS), run="RESTORE {t} TO VERSION AS OF 0", operations=("RESTORE",)
    ),
    "clone": Case(run=shallow_clone, operations=("CLONE",)),
    "convert": Case(before=(parquet,), run=convert, operations=("CONVERT",)),
    "set property": Case(
        before=(EMPTY,),
        run="ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
        operations=("SET TBLPROPERTIES",),
    ),
    "unset property": Case(
        before=(EMPTY,),
        run="ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('a')",
        operations=("UNSET TBLPROPERTIES",),
    ),
    "row tracking": Case(
        before=(EMPTY, ROWS),
        run="ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        operations=("UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"),
        tags={"rowTrackingEnablementOnly": "true", PRESERVED: "true"},
    ),
    "add columns": Case(
        before=(EMPTY,), run="ALTER TABLE {t} ADD COLUMNS (x INT)", operations=("ADD COLUMNS",)
    ),
    "change column": Case(
        before=(EMPTY,),
        run="ALTER TABLE {t} ALTER COLUMN v COMMENT 'c'",
        operations=("CHANGE COLUMN",),
    ),
    "rename column": Case(
        before=(MAPPED,),
        run="ALTER TABLE {t} RENAME COLUMN v TO w",
        operations=("RENAME COLUMN",),
    ),
    "drop column": Case(
        before=(MAPPED,), run="ALTER TABLE {t} DROP COLUMN v", operations=("DROP COLUMNS",)
    ),
    "replace columns": Case(
        before=(EMPTY,),
        run="ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, p INT, v STRING, w STRING)",
        operations=("REPLACE COLUMNS",),
    ),
    "add constraint": Case(
        before=(EMPTY,),
        run="ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)",
        operations=("ADD CONSTRAINT",),
    ),
    "drop constraint": Case(
        before=(EMPTY, "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)"),
        run="ALTER TABLE {t} DROP CONSTRAINT c",
        operations=("DROP CONSTRAINT",),
    ),
    "cluster by": Case(
        before=(EMPTY,), run="ALTER TABLE {t} CLUSTER BY (id)", operations=("CLUSTER BY",)
    ),
    "sync identity": Case(
        before=("CREATE TABLE {t} (g BIGINT GENERATED BY DEFAULT AS IDENTITY, i INT) USING delta",),
        run="ALTER TABLE {t} ALTER COLUMN g SYNC IDENTITY",
        operations=("CHANGE COLUMN",),
    ),
    "add feature": Case(before=(EMPTY,), run=add_feature, operations=("SET TBLPROPERTIES",)),
    "upgrade protocol": Case(before=(EMPTY,), run=upgrade, operations=("SET TBLPROPERTIES",)),
    "drop feature of writers": Case(
        before=(f"{EMPTY} TBLPROPERTIES ('delta.feature.checkConstraints' = 'supported')",),
        run="ALTER TABLE {t} DROP FEATURE checkConstraints",
        operations=("DROP FEATURE",),
    ),
    "drop feature of readers": Case(
        before=(f"{EMPTY} TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = 'supported')",),
        run="ALTER TABLE {t} DROP FEATURE vacuumProtocolCheck",
        operations=("Empty Commit", "Empty Commit", "Empty Commit", "DROP FEATURE"),
    ),
    "drop row tracking": Case(
        before=(TRACKED, ROWS),
        run="ALTER TABLE {t} DROP FEATURE rowTracking",
        operations=("SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"),
    ),
}
ALWAYS_MEASURED = {"RESTORE", "CLONE", "CONVERT"}


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    keys = {f"{PREFIX}{name.replace('__', '.')}": value for name, value in values.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(key)


def execute(spark: SparkSession, run: Run, path: str) -> None:
    if callable(run):
        run(spark, path)
    else:
        puredelta.sql(spark, run.format(t=f"delta.`{path}`"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_commit_says_what_the_session_wants(
    spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    path = str(tmp_path / "t")
    try:
        for run in case.before:
            execute(spark, run, path)
        known = TableLog.open(path).latest_version()
        told = {"commitInfo__userMetadata": "why", "history__metricsEnabled": "false"}
        with settings(spark, **told):
            execute(spark, case.run, path)
    finally:
        spark.conf.unset(f"{PREFIX}autoCompact.minNumFiles")
    infos = commits_since(path, -1 if known is None else known)
    assert tuple(info.operation for info in infos) == case.operations
    assert {info.user_metadata for info in infos} == {"why"}
    assert {info.engine_info for info in infos} == {
        f"Apache-Spark/{spark.version} puredelta/{puredelta.__version__}"
    }
    for info in infos:
        measured = info.operation_metrics is not None
        assert measured is (info.operation in ALWAYS_MEASURED), info.operation
    tags = {k: v for k, v in (infos[-1].tags or {}).items() if k != ROW_ORDER_TAG}
    assert tags == case.tags


def commits_since(path: str, version: int) -> list[CommitInfo]:
    commits = TableLog.open(path).commits_after(version)
    return [next(a for a in c.actions if isinstance(a, CommitInfo)) for c in commits]


def test_the_option_of_a_write_wins(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with settings(spark, commitInfo__userMetadata="session"):
        puredelta.write(spark.range(1), path, options={"userMetadata": "option"})
        puredelta.write(spark.range(1), path, mode="append")
    assert [info.user_metadata for info in commits_since(path, -1)] == ["option", "session"]
