"""Tables of a Glue Data Catalog by name, in an activated session; moto has the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto")

PREFIX = "spark.puredelta.catalog.lake"


@pytest.fixture
def glue(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    settings = {
        f"{PREFIX}.type": "glue",
        f"{PREFIX}.region": "us-east-1",
        f"{PREFIX}.local_files": "true",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    puredelta.activate(spark)
    try:
        with moto.mock_aws():
            client = boto3.client("glue", region_name="us-east-1")
            place = {"Name": "sales", "LocationUri": f"file:{tmp_path}/sales"}
            client.create_database(DatabaseInput=place)
            yield client
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
        puredelta.deactivate()
        for key in settings:
            spark.conf.unset(key)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def columns(client: Any, name: str = "orders") -> list[tuple[str, str]]:
    row = client.get_table(DatabaseName="sales", Name=name)["Table"]
    return [(one["Name"], one["Type"]) for one in row["StorageDescriptor"]["Columns"]]


def test_a_table_from_creation_to_drop(spark: SparkSession, glue: Any, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE lake.sales.orders (id BIGINT, note STRING) PARTITIONED BY (note)")
    assert (tmp_path / "sales" / "orders" / "_delta_log").exists()
    assert columns(glue) == [("id", "bigint"), ("note", "string")]
    spark.sql("INSERT INTO lake.sales.orders VALUES (1, 'a'), (2, 'b')")
    spark.sql("UPDATE lake.sales.orders SET note = 'c' WHERE id = 2")
    assert rows(spark.table("lake.sales.orders")) == [(1, "a"), (2, "c")]
    spark.sql("ALTER TABLE lake.sales.orders ADD COLUMNS (amount DECIMAL(10, 2))")
    assert columns(glue)[-1] == ("amount", "decimal(10,2)")
    wider = spark.range(5, 6).selectExpr("id", "'d' AS note", "1.5BD AS amount", "true AS open")
    wider.write.option("mergeSchema", "true").mode("append").saveAsTable("lake.sales.orders")
    assert columns(glue)[-1] == ("open", "boolean")
    spark.sql("USE lake.sales")
    assert spark.sql("SELECT count(*) FROM orders").first() == (3,)
    assert spark.sql("SELECT count(*) FROM sales.orders VERSION AS OF 0").first() == (0,)
    assert rows(spark.sql("SHOW TABLES")) == [("sales", "orders", False)]
    spark.sql("CREATE OR REPLACE TABLE orders AS SELECT 'x' AS name")
    assert columns(glue) == [("name", "string")]
    spark.sql("RESTORE TABLE orders TO VERSION AS OF 1")
    assert columns(glue) == [("id", "bigint"), ("note", "string")]
    spark.sql("OPTIMIZE orders")
    spark.sql("DROP TABLE orders")
    assert (tmp_path / "sales" / "orders" / "_delta_log").exists(), "the files stay"
    with pytest.raises(DeltaError):
        spark.table("lake.sales.orders")
    place = tmp_path / "sales" / "orders"
    spark.sql(f"CREATE TABLE lake.sales.again USING delta LOCATION '{place}'")
    assert rows(spark.table("lake.sales.again")) == [(1, "a"), (2, "b")]


def test_an_entry_that_cannot_follow_is_a_warning(
    spark: SparkSession, glue: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    spark.sql("CREATE TABLE lake.sales.orders (id BIGINT)")
    monkeypatch.setattr(
        "puredelta.catalogs.glue.GlueCatalog.follow", lambda *_: (_ for _ in ()).throw(OSError())
    )
    spark.sql("ALTER TABLE lake.sales.orders ADD COLUMNS (note STRING)")
    assert "update of the catalog entry" in caplog.text
    assert spark.table("lake.sales.orders").columns == ["id", "note"]


def test_drop_table_keeps_a_view(spark: SparkSession, glue: Any) -> None:
    view = {"Name": "seen", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "SELECT 1"}
    glue.create_table(DatabaseName="sales", TableInput=view)
    for statement in ("DROP TABLE lake.sales.seen", "DROP TABLE IF EXISTS lake.sales.seen"):
        with pytest.raises(DeltaError, match="EXPECT_TABLE_NOT_VIEW"):
            spark.sql(statement)
    assert glue.get_table(DatabaseName="sales", Name="seen")
    spark.sql("DROP TABLE IF EXISTS lake.sales.missing")
