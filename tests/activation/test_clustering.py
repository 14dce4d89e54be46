"""``clusterBy`` of every writer makes a clustered table, and is compared with one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import puredelta
from puredelta.activation.captured_options import CapturedOptions, clustering_paths
from puredelta.errors import InvalidRequestError
from puredelta.tables import DeltaTable


@pytest.fixture
def database(active: SparkSession) -> Iterator[SparkSession]:
    active.sql("CREATE DATABASE IF NOT EXISTS clustered")
    active.sql("USE clustered")
    yield active
    active.sql("USE default")
    active.sql("DROP DATABASE clustered CASCADE")


def _clustering(spark: SparkSession, path: str) -> list[str]:
    detail = DeltaTable.forPath(spark, path).detail().first()
    assert detail is not None
    return list(detail.clusteringColumns)


def test_names_of_clustering_columns_have_parts() -> None:
    captured = CapturedOptions(cluster_by=("a", "st.`x.y`"))
    assert clustering_paths(captured) == (("a",), ("st", "x.y"))


def test_save_makes_a_clustered_table(active: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = active.range(20).selectExpr("id", "id % 3 AS k", "named_struct('x', id) AS st")
    rows.write.format("delta").option("delta.appendOnly", "false").clusterBy("k", "st.x").save(path)
    assert _clustering(active, path) == ["k", "st.x"]
    again = rows.write.format("delta").clusterBy("K", "st.x")
    again.mode("append").save(path)
    again.mode("ignore").save(path)
    assert puredelta.read(active, path).count() == 40
    other = rows.write.format("delta").clusterBy("id")
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidRequestError, match="do not match") as raised:
            other.mode(mode).save(path)
        assert raised.value.code.name == "CLUSTERING_COLUMNS_MISMATCH"
    other.mode("overwrite").option("overwriteSchema", "true").save(path)
    assert _clustering(active, path) == ["id"]
    assert puredelta.read(active, path).count() == 20
    plain = rows.write.format("delta").mode("append")
    plain.save(path)
    assert _clustering(active, path) == ["id"]
    table = f"delta.`{path}`"
    active.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('clusterByAuto' = 'true')")
    active.sql(f"ALTER TABLE {table} CLUSTER BY NONE")
    shown = {row.key: row.value for row in active.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert (shown["clusteringColumns"], shown["clusterByAuto"]) == ("[]", "true")


def test_a_clustered_table_has_no_partitions(active: SparkSession, tmp_path: Path) -> None:
    rows = active.range(5).selectExpr("id", "id AS k").write.format("delta")
    with pytest.raises(AnalysisException, match="PARTITIONED BY"):
        rows.clusterBy("k").partitionBy("id").save(str(tmp_path / "t"))
    with pytest.raises(InvalidRequestError):
        active.range(5).write.format("delta").clusterBy("nope").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


@pytest.mark.thorough
def test_tables_of_the_catalog_are_clustered(database: SparkSession, tmp_path: Path) -> None:
    spark = database
    rows = spark.range(9).selectExpr("id", "id % 3 AS k")
    rows.write.format("delta").clusterBy(["k"]).saveAsTable("c")
    path = DeltaTable.forName(spark, "c").detail().first().location  # type: ignore[union-attr]
    assert _clustering(spark, path) == ["k"]
    rows.write.format("delta").clusterBy("k").mode("append").saveAsTable("c")
    with pytest.raises(InvalidRequestError, match="do not match"):
        rows.write.format("delta").clusterBy("id").mode("append").saveAsTable("c")
    rows.write.format("delta").clusterBy("id").mode("overwrite").saveAsTable("c")
    assert _clustering(spark, path) == ["id"]
    assert spark.table("c").count() == 9
    by_path = f"delta.`{tmp_path}/p`"
    rows.write.format("delta").clusterBy("k").saveAsTable(by_path)
    assert _clustering(spark, f"{tmp_path}/p") == ["k"]


@pytest.mark.thorough
def test_a_stream_makes_a_clustered_table(active: SparkSession, tmp_path: Path) -> None:
    source, target = f"{tmp_path}/s", f"{tmp_path}/t"
    puredelta.write(active.range(6).selectExpr("id", "id % 2 AS k"), source)
    stream = active.readStream.format("delta").load(source)
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{tmp_path}/c")
    writer.clusterBy("k").trigger(availableNow=True).start(target).awaitTermination()
    assert _clustering(active, target) == ["k"]
    assert puredelta.read(active, target).count() == 6
    with pytest.raises(InvalidRequestError, match="do not match"):
        writer.clusterBy("id").start(target)
