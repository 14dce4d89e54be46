"""Settings of the session that a MERGE honours (S-01): what they change in table and history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.delta_conf import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING = "WHEN MATCHED AND s.id > 99 THEN DELETE"
INSERT = "WHEN NOT MATCHED THEN INSERT *"


@contextmanager
def session(spark: SparkSession, **settings: str) -> Iterator[None]:
    keys = {PREFIX + name.replace("__", "."): value for name, value in settings.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(key)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> TableLog:
    path = str(tmp_path / "table")
    puredelta.write(spark.sql("SELECT id, named_struct('a', 1, 'b', 2) s FROM range(2)"), path)
    return TableLog.open(path)


def merge(spark: SparkSession, log: TableLog, source: str, clauses: str) -> list[Any]:
    return puredelta.sql(
        spark, f"MERGE INTO delta.`{log.root_uri}` t USING ({source}) s ON t.id = s.id {clauses}"
    ).collect()


def test_commits_that_change_nothing_and_metrics(spark: SparkSession, log: TableLog) -> None:
    source = "SELECT id, NULL s FROM range(1, 4)"
    merge(spark, log, source, NOTHING)
    assert log.latest_version() == 0
    with session(spark, skipRecordingEmptyCommits="false"):
        merge(spark, log, source, NOTHING)
    newest = log.history(limit=1)[0]
    assert (newest.version, newest.commit_info.operation) == (1, "MERGE")
    assert newest.commit_info.operation_metrics["numTargetRowsCopied"] == "0"
    with session(spark, history__metricsEnabled="false", numRecordsValidation__enabled="false"):
        merge(spark, log, source, INSERT)
    assert log.history(limit=1)[0].commit_info.operation_metrics is None
    assert puredelta.read(spark, log.root_uri).count() == 4


def test_an_application_version_can_reset_itself(spark: SparkSession, log: TableLog) -> None:
    version = f"{PREFIX}write.txnVersion"
    application = {"write__txnAppId": "app", "write__txnVersion": "7"}
    with session(spark, **application, write__txnVersion__autoReset__enabled="true"):
        assert len(merge(spark, log, "SELECT 8L id, NULL s", INSERT)) == 1
        assert spark.conf.get(version, None) is None
        spark.conf.set(version, "7")
        assert merge(spark, log, "SELECT 9L id, NULL s", INSERT) == []
        assert spark.conf.get(version, None) is None
        spark.conf.set(version, "8")
        assert len(merge(spark, log, "SELECT 9L id, NULL s", NOTHING)) == 1  # counts as executed
    assert log.snapshot().set_transactions["app"].version == 8
    assert puredelta.read(spark, log.root_uri).count() == 3


def test_statistics(spark: SparkSession, log: TableLog) -> None:
    before = {add.path for add in log.snapshot().files.adds()}
    with session(spark, stats__collect="false", stats__skipping="false"):
        merge(spark, log, "SELECT 5L id, NULL s", INSERT)
    [new] = [add for add in log.snapshot().files.adds() if add.path not in before]
    assert new.stats == '{"numRecords":1,"minValues":{},"maxValues":{},"nullCount":{}}'


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "value", "expected"),
    [
        ({}, "CAST(NULL AS STRUCT<a: LONG, b: LONG>)", None),
        ({"merge__preserveNullSourceStructs": "false"},
         "CAST(NULL AS STRUCT<a: LONG, b: LONG>)", (None, None)),
        ({}, "named_struct('b', 20, 'a', 10)", (10, 20)),
        ({"resolveMergeUpdateStructsByName__enabled": "false"},
         "named_struct('b', 20, 'a', 10)", (20, 10)),
    ],
)  # fmt: skip
def test_structs(
    spark: SparkSession,
    log: TableLog,
    settings: dict[str, str],
    value: str,
    expected: tuple[int | None, ...] | None,
) -> None:
    """M-44, M-45."""
    with session(spark, **settings):
        merge(spark, log, f"SELECT 1L id, {value} s", "WHEN MATCHED THEN UPDATE SET s = s.s")
    [row] = puredelta.read(spark, log.root_uri).where("id = 1").collect()
    assert (None if row.s is None else tuple(row.s)) == expected


@pytest.mark.thorough
def test_a_star_that_expands_structs(spark: SparkSession, log: TableLog) -> None:
    """M-45: fields the source lacks keep their values in either mode."""
    source = "SELECT 1L id, CAST(NULL AS STRUCT<a: INT>) s"
    found = []
    for mode in ("true", "false"):
        settings = {"merge__preserveNullSourceStructs__updateStar": mode}
        with session(spark, schema__autoMerge__enabled="true", **settings):
            merge(spark, log, source, "WHEN MATCHED THEN UPDATE SET *")
        [row] = puredelta.read(spark, log.root_uri).where("id = 1").collect()
        found.append(tuple(row.s))
    assert found == [(None, 2), (None, 2)]
