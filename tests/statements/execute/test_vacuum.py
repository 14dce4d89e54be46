"""VACUUM as text: where files are looked for."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import puredelta

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def test_lite_and_an_inventory(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for _ in range(2):
        puredelta.write(spark.range(0, 4, 1, 1), path, mode="overwrite")
    Path(path, "orphan.parquet").write_text("x")
    inventory = (
        "SELECT concat('file:', path) path, length, false isDir, 0L modificationTime FROM VALUES "
        f"('{path}/orphan.parquet', 1L), ('{path}/_delta_log/{0:020}.json', 1L) AS t(path, length)"
    )
    spark.conf.set(CHECK, "false")
    try:
        found = puredelta.sql(
            spark, f"VACUUM delta.`{path}` USING INVENTORY ({inventory}) RETAIN 0 HOURS DRY RUN"
        ).collect()
        assert [row.path for row in found] == [f"file:{path}/orphan.parquet"]
        lite = puredelta.sql(spark, f"VACUUM delta.`{path}` LITE RETAIN 0 HOURS").collect()
        assert [row.path for row in lite] == [f"file:{path}"]
    finally:
        spark.conf.unset(CHECK)
    left = sorted(file.name for file in Path(path).rglob("*.parquet"))
    assert len(left) == 2  # the file in use, and the orphan, which no commit names
    assert puredelta.read(spark, path).count() == 4
