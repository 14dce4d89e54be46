"""DROP FEATURE in the sweep: commands of several commits, which a second call finishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import ErrorCode, InvalidRequestError
from simulation.sweep.subject import Subject, age, small_rows, small_table, statement

_ALTER = "ALTER TABLE delta.`{root}/table`"
_TAKE_VECTORS = f"{_ALTER} DROP FEATURE deletionVectors TRUNCATE HISTORY"


def _mapped(spark: SparkSession, root: Path) -> None:
    """Make a table whose files have other names, and deleted rows, inside."""
    settings = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    path = str(root / "table")
    rows = small_rows(spark, 0, 22).withColumnRenamed("v", "w")
    puredelta.write(rows, path, properties=settings)
    statement(f"{_ALTER} RENAME COLUMN w TO v")(spark, str(root))
    statement("DELETE FROM delta.`{root}/table` WHERE id > 19")(spark, str(root))
    puredelta.write(small_rows(spark, 20, 30), path, mode="append")


def _widened(spark: SparkSession, root: Path) -> None:
    """Make a table of which some files have a narrower type."""
    path = str(root / "table")
    rows = small_rows(spark, 0, 20).selectExpr("cast(id AS int) AS id", "v")
    puredelta.write(rows, path, properties={"delta.enableTypeWidening": "true"})
    statement(f"{_ALTER} ALTER COLUMN id TYPE BIGINT")(spark, str(root))
    puredelta.write(small_rows(spark, 20, 30), path, mode="append")


def _with_vectors(spark: SparkSession, root: Path) -> None:
    small_table(delta__enableDeletionVectors="true")(spark, root)
    statement("DELETE FROM delta.`{root}/table` WHERE id % 7 = 3")(spark, str(root))


def _expired(prepare: Callable[[SparkSession, Path], None], drop: str) -> Subject:
    """Return the last of the calls that drop a feature with TRUNCATE HISTORY."""

    def make(spark: SparkSession, root: Path) -> None:
        prepare(spark, root)
        _until_history_expires(drop)(spark, str(root))
        age(root / "table" / "_delta_log")

    feature = drop.split()[-3]
    return Subject(prepare=make, run=statement(drop), drops=feature)


def _until_history_expires(drop: str) -> Callable[[SparkSession, str], None]:
    """Return the first call, which ends by saying that older versions use the feature."""

    def run(spark: SparkSession, root: str) -> None:
        try:
            statement(drop)(spark, root)
        except InvalidRequestError as error:
            if error.code is not ErrorCode.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD:
                raise

    return run


DROPS: Mapping[str, Subject] = {
    "drop mapping": Subject(
        prepare=_mapped,
        run=statement(f"{_ALTER} DROP FEATURE columnMapping"),
        drops="columnMapping",
    ),
    "drop widening": Subject(
        prepare=_widened, run=statement(f"{_ALTER} DROP FEATURE typeWidening"), drops="typeWidening"
    ),
    "take vectors": Subject(prepare=_with_vectors, run=_until_history_expires(_TAKE_VECTORS)),
    "truncate history": _expired(_with_vectors, _TAKE_VECTORS),
}
