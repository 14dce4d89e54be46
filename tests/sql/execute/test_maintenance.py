"""DESCRIBE HISTORY and DETAIL, VACUUM and RESTORE as SQL text, on tables at a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, sql, write
from puredelta.errors import TableNotFoundError
from puredelta.sql.execute.run import run_ours

NO_SESSION: Any = None


def test_statements_on_a_path(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    write(spark.range(4), path)
    write(spark.range(2), path, mode="overwrite")
    assert sql(spark, f"SELECT * FROM delta.`{path}@v1`").count() == 2
    history = sql(spark, f"DESCRIBE HISTORY '{path}'")
    assert [row["version"] for row in history.collect()] == [1, 0]
    assert sql(spark, f"desc history {table} limit 1;").first()["version"] == 1
    assert sql(spark, f"DESC DETAIL {table}").first()["numFiles"] >= 1
    [counts] = sql(spark, f"RESTORE TABLE {table} TO VERSION AS OF :v", args={"v": 0}).collect()
    assert counts["num_restored_files"] >= 1
    assert read(spark, path).count() == 4
    assert sql(spark, f"RESTORE {table} TO VERSION AS OF 2").count() == 0
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        planned = sql(spark, f"VACUUM {table} RETAIN 0 HOURS DRY RUN").collect()
        assert planned
        done = sql(spark, f"VACUUM {table} RETAIN 0 HOURS").collect()
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert [row["path"].removeprefix("file:") for row in done] == [path]
    assert not any(Path(row["path"].removeprefix("file:")).exists() for row in planned)
    assert read(spark, path).count() == 4
    with pytest.raises(TableNotFoundError, match="not a Delta table"):
        sql(spark, "VACUUM '/no/such/table'")
    assert sql(spark, f"DROP TABLE {table}").count() == 0
    assert sql(spark, "DROP TABLE IF EXISTS delta.`/no/such/table`").count() == 0
    assert read(spark, path).count() == 4


@pytest.mark.parametrize(
    "text",
    [
        "OPTIMIZE {} ZORDER BY (a)",
        "GENERATE symlink_format_manifest FOR TABLE {}",
        "ALTER TABLE {} DROP FEATURE x",
        "DROP TABLE {}",
        "CREATE TABLE delta.`/other` SHALLOW CLONE {}",
    ],
)
def test_there_is_no_table(text: str) -> None:
    with pytest.raises(TableNotFoundError, match=r"not a Delta table|cannot be found"):
        run_ours(NO_SESSION, text.format("delta.`file:/no/such`"))
