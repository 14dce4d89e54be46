"""What a user does after a fault: looks at the catalog, tries again, and runs VACUUM."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.vacuum import vacuum
from puredelta.errors import InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.catalog.catalog_entries import find_table
from puredelta.store.local import LocalStore
from simulation.sweep.injection import Killed
from simulation.sweep.judge import State, rubbish, state_of
from simulation.sweep.subject import Subject

_TASKS_END_WITHIN_S = 60.0
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def catalog_rules(
    spark: SparkSession, subject: Subject, now: State, failed: BaseException | None
) -> list[str]:
    """Return what is wrong with the entry of a table.

    Who is killed may leave the entry of a managed table before there is one: DROP removes it.
    """
    if subject.table is None:
        return []
    there = spark.catalog.tableExists(subject.table)
    is_allowed = subject.is_managed and isinstance(failed, Killed)
    if there and now.version < 0 and is_delta(spark, subject.table) and not is_allowed:
        return [f"the catalog has a table without a log ({failed!r:.200})"]
    if failed is None and not (there and is_delta(spark, subject.table)):
        return ["acknowledged, and the catalog has no table"]
    return []


def is_delta(spark: SparkSession, table: str) -> bool:
    """Return whether the entry of a name is that of a Delta table."""
    return find_table(spark, table.split(".")) is not None


def use_again(
    spark: SparkSession, subject: Subject, root: Path, now: State, after: State
) -> list[str]:
    """Use the table again: a creation is repeated, then VACUUM takes what is left.

    CREATE TABLE refuses a place with files, as delta-spark does, and Spark's catalog one with a
    directory: after a kill somebody has to remove what lies there. A conversion whose entry was
    not changed is finished by another one, and so is the dropping of a feature.
    """
    store = LocalStore(root / "table")
    if now.version < 0:
        _create_again(spark, subject, root)
        now = state_of(store)
        if now.rows != after.rows:
            return ["a second try makes another table"]
    elif subject.table is not None:
        found = _name_again(spark, subject, subject.table, root)
        if found or state_of(store).rows != after.rows:
            return [*found, "the table has other rows under its name"]
        now = state_of(store)
    log = TableLog(store)
    if subject.drops in now.features:
        subject.run(spark, str(root))
        then = state_of(store)
        if then.rows != now.rows or then.features != after.features:
            return ["a second try makes another table"]
    _let_tasks_end(spark)
    spark.conf.set(_RETENTION_CHECK, "false")
    try:
        vacuum(spark, log, retention_hours=0)
    finally:
        spark.conf.unset(_RETENTION_CHECK)
    found = rubbish(store, log.snapshot())
    if state_of(store).rows != now.rows:
        return ["VACUUM changed rows"]
    return [f"VACUUM leaves {found[:3]}"] if found else []


def _let_tasks_end(spark: SparkSession) -> None:
    """Wait for tasks of a job that failed: what they write after a VACUUM is the next one's."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()  # noqa: SLF001
    until = time.monotonic() + _TASKS_END_WITHIN_S
    while time.monotonic() < until:
        if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            break
        time.sleep(0.05)
    time.sleep(0.002)


def _create_again(spark: SparkSession, subject: Subject, root: Path) -> None:
    if subject.is_managed:
        spark.sql(f"DROP TABLE IF EXISTS {subject.table}")
    try:
        subject.run(spark, str(root))
    except (InvalidRequestError, AnalysisException, SparkRuntimeException):
        shutil.rmtree(root / "table")
        subject.run(spark, str(root))


def _name_again(spark: SparkSession, subject: Subject, table: str, root: Path) -> list[str]:
    """Give a table its name if somebody was killed between the two."""
    if not spark.catalog.tableExists(table):
        puredelta.sql(spark, f"CREATE TABLE {table} USING delta LOCATION '{root}/table'")
    elif not is_delta(spark, table):
        subject.run(spark, str(root))
    return [] if is_delta(spark, table) else [f"{table} is no Delta table in the catalog"]
