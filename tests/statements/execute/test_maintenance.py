"""DESCRIBE HISTORY and DETAIL, VACUUM and RESTORE as SQL text, on tables at a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, sql, write
from puredelta.errors import ErrorCode, TableNotFoundError, UnsupportedError
from puredelta.statements.execute.dispatch import run_ours

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


@pytest.mark.parametrize("provider", ["parquet", "Iceberg", "json"])
def test_a_clone_of_another_format_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    spark.range(3).write.parquet(str(tmp_path / "p"))
    source, target = f"{provider}.`{tmp_path}/p`", f"delta.`{tmp_path}/c`"
    with pytest.raises(UnsupportedError, match=f"format is {provider.lower()}:") as refused:
        sql(spark, f"CREATE TABLE {target} SHALLOW CLONE {source}")
    assert refused.value.code is ErrorCode.CLONE_UNSUPPORTED_SOURCE
    assert refused.value.getSqlState() == "0AKDC"
    assert ("CONVERT TO DELTA" in str(refused.value)) is (provider != "json")
    assert not (tmp_path / "c").exists()


def test_a_clone_of_a_catalog_table_of_another_format_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE of_parquet (id INT) USING parquet LOCATION '{tmp_path}/p'")
    try:
        with pytest.raises(UnsupportedError, match="CONVERT TO DELTA of_parquet") as refused:
            sql(spark, f"CREATE TABLE delta.`{tmp_path}/c` SHALLOW CLONE of_parquet")
    finally:
        spark.sql("DROP TABLE of_parquet")
    assert refused.value.code is ErrorCode.CLONE_UNSUPPORTED_SOURCE


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
