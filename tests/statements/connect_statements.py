"""Definitions and changes by path as SQL text, which a Connect session can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.api import sql, write
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog


def statements(spark: SparkSession, directory: Path) -> Any:
    """Change a table, copy it, empty it; then the error classes of what cannot be."""
    path, name = str(directory / "t"), f"delta.`{directory}/t`"
    write(spark.sql("SELECT id, 1 AS p FROM range(3)"), path, partition_by="p")
    for text in (
        "ALTER TABLE {t} ADD COLUMNS (s STRUCT<x: DECIMAL(5, 2)> COMMENT 'it' FIRST)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 1 + 1",
        "ALTER TABLE {t} ADD CONSTRAINT c CHECK (id < 100)",
        "CREATE TABLE {c} SHALLOW CLONE {t}",
        "CREATE TABLE {l} LIKE {t}",
        "GENERATE symlink_format_manifest FOR TABLE {t}",
        "TRUNCATE TABLE {t}",
        "COMMENT ON TABLE {t} IS 'empty'",
    ):
        sql(spark, _filled(text, directory))
    operations = [entry.commit_info.operation for entry in TableLog.open(path).history()]
    refused: list[Callable[[], Any]] = [
        lambda: sql(spark, f"ALTER TABLE {name} ALTER COLUMN id SET DEFAULT nope"),
        lambda: sql(spark, f"ALTER TABLE {name} ADD COLUMN"),
        lambda: sql(spark, f"CREATE TABLE {name} (a INT) USING delta"),
        lambda: sql(spark, f"CREATE TABLE named SHALLOW CLONE {name}"),
    ]
    return [
        operations,
        [list(row) for row in sql(spark, f"DESCRIBE {name}").collect()],
        [row[0] for row in sql(spark, f"SHOW COLUMNS IN delta.`{directory}/l`").collect()],
        sql(spark, f"SELECT * FROM delta.`{directory}/c`").count(),
        [_error_class(call) for call in refused],
    ]


def _filled(text: str, directory: Path) -> str:
    return text.format(**{name: f"delta.`{directory}/{name}`" for name in "tcl"})


def _error_class(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except (DeltaError, PySparkException) as error:
        return error.getCondition()
    return "nothing"
