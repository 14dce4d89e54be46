"""Statements, ``spark.catalog`` and short names in a Unity catalog of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError, InvalidRequestError, UnsupportedError
from puredelta.spark.write.parquet_job import temporary_settings
from tests.servers.unity import Table, UnityServer, unity_server

PREFIX = "spark.sql.catalog.main"
SETTINGS = {PREFIX: "io.unitycatalog.spark.UCSingleCatalog"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path_factory.mktemp('unity')}") as running:
        yield running


@pytest.fixture(scope="module")
def base(spark: SparkSession, server: UnityServer) -> Iterator[SparkSession]:
    """An activated session with a table in each catalog."""
    for key, value in {**SETTINGS, f"{PREFIX}.uri": server.url}.items():
        spark.conf.set(key, value)
    puredelta.activate(spark)
    try:
        spark.sql("CREATE TABLE main.sales.orders (id BIGINT, note STRING)")
        spark.sql("INSERT INTO main.sales.orders VALUES (1, 'a'), (2, 'b')")
        spark.sql("CREATE OR REPLACE TABLE near (id BIGINT, note STRING) USING delta")
        spark.sql("INSERT INTO near VALUES (1, 'z'), (7, 'y')")
        yield spark
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
        spark.sql("DROP TABLE IF EXISTS near")
        puredelta.deactivate()
        for key in (PREFIX, f"{PREFIX}.uri"):
            spark.conf.unset(key)


@pytest.fixture
def main(base: SparkSession) -> Iterator[SparkSession]:
    """The session, whose current catalog is Spark's."""
    base.catalog.setCurrentCatalog("spark_catalog")
    yield base
    base.catalog.setCurrentCatalog("spark_catalog")


@pytest.fixture
def inside(main: SparkSession) -> SparkSession:
    """The session, whose current schema is ``main.sales``."""
    main.sql("USE main.sales")
    return main


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


ORDERS = [(1, "a"), (2, "b")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("statements", "catalog", "schema"),
    [
        (["USE main.sales"], "main", "sales"),
        (["USE CATALOG main"], "main", "default"),
        (["SET CATALOG 'main'", "USE SCHEMA sales"], "main", "sales"),
        (["USE main", "USE sales"], "main", "sales"),
        (["USE main.sales", "USE spark_catalog.default"], "spark_catalog", "default"),
        (["USE main.sales", "SET CATALOG spark_catalog"], "spark_catalog", "default"),
        (["USE main.sales", "USE CATALOG spark_catalog"], "spark_catalog", "default"),
    ],
)
def test_the_current_namespace(
    main: SparkSession, statements: list[str], catalog: str, schema: str
) -> None:
    for text in statements:
        main.sql(text)
    assert main.catalog.currentCatalog() == catalog
    assert main.catalog.currentDatabase() == schema
    assert rows(main.sql("SHOW CURRENT NAMESPACE")) == [(catalog, schema)]
    assert rows(main.sql("SELECT current_catalog(), current_schema()")) == [(catalog, schema)]


@pytest.mark.parametrize("text", ["USE nothing", "USE main.nothing", "USE spark_catalog.nothing"])
def test_a_missing_schema_leaves_the_current_one(inside: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException) as failed:
        inside.sql(text)
    assert failed.value.getCondition() == "SCHEMA_NOT_FOUND"
    assert inside.catalog.currentDatabase() == "sales"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders",
        "SELECT * FROM sales.orders",
        "SELECT orders.id, sales.orders.note FROM sales.orders",
        "TABLE orders",
        "SELECT id, note FROM orders o JOIN sales.orders USING (id, note)",
        "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM orders)",
        "WITH o AS (SELECT * FROM orders), orders AS (SELECT 9) SELECT * FROM o",
        "SELECT orders.id, note FROM range(1) r, orders",
        "SELECT * FROM orders VERSION AS OF 1",
        "SELECT * FROM (SELECT * FROM orders)",
        "SELECT * FROM IDENTIFIER('orders')",
        "FROM orders SELECT *",
    ],
)
def test_short_names_in_queries(inside: SparkSession, query: str) -> None:
    assert rows(inside.sql(query)) == ORDERS


@pytest.mark.thorough
def test_short_names_in_calls(inside: SparkSession, tmp_path: Path) -> None:
    assert rows(inside.table("orders")) == ORDERS
    assert rows(inside.read.table("sales.orders")) == ORDERS
    inside.sql("CREATE TABLE copied AS SELECT * FROM orders")
    inside.sql("INSERT INTO copied SELECT id + 10, note FROM orders")
    inside.sql("UPDATE copied SET note = 'x' WHERE id > 10")
    inside.sql(
        "MERGE INTO copied t USING orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'm'"
    )
    inside.sql("DELETE FROM copied WHERE id = 12")
    inside.range(1).selectExpr("id", "'n' AS note").write.mode("append").saveAsTable("copied")
    expected = [(0, "n"), (1, "m"), (2, "m"), (11, "x")]
    assert rows(inside.sql("SELECT * FROM main.sales.copied")) == expected
    assert puredelta.DeltaTable.forName(inside, "copied").toDF().count() == 4
    inside.sql("CREATE TEMPORARY VIEW near AS SELECT 5 AS id")
    assert rows(inside.sql("SELECT * FROM near")) == [(5,)], "temporary views come first"
    inside.sql("DROP VIEW near")
    query = (
        inside.readStream.table("orders")
        .writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .toTable("streamed")
    )
    query.awaitTermination()
    assert rows(inside.table("streamed")) == ORDERS
    for name in ("copied", "streamed"):
        inside.sql(f"DROP TABLE {name}")
    assert [row.name for row in inside.catalog.listTables()] == ["orders"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM near",
        "INSERT INTO near VALUES (1, 'a')",
        "ANALYZE TABLE near COMPUTE STATISTICS",
        "REFRESH TABLE near",
        "CREATE TABLE near USING parquet AS SELECT 1 AS id",
        "CREATE VIEW seen AS SELECT 1 AS id",
        "DROP VIEW near",
        "CREATE FUNCTION f AS 'x'",
        "DROP TABLE near",
    ],
)
def test_short_names_never_mean_sparks_own(inside: SparkSession, text: str) -> None:
    with pytest.raises(DeltaError):
        inside.sql(text)
    assert rows(inside.sql("SELECT * FROM spark_catalog.default.near")) == [(1, "z"), (7, "y")]


def test_listings(main: SparkSession, server: UnityServer) -> None:
    assert rows(main.sql("SHOW CATALOGS")) == [("main",), ("spark_catalog",)]
    assert rows(main.sql("SHOW CATALOGS LIKE 'm*'")) == [("main",)]
    assert ("default",) in rows(main.sql("SHOW SCHEMAS"))
    assert rows(main.sql("SHOW SCHEMAS IN main")) == [("sales",)]
    main.sql("CREATE SCHEMA main.more COMMENT 'c' WITH DBPROPERTIES ('a' = 'b')")
    main.sql("CREATE SCHEMA IF NOT EXISTS main.more")
    with pytest.raises(PySparkException) as failed:
        main.sql("CREATE DATABASE main.more")
    assert failed.value.getCondition() == "SCHEMA_ALREADY_EXISTS"
    said = dict(rows(main.sql("DESCRIBE SCHEMA EXTENDED main.more")))
    assert (said["Namespace Name"], said["Comment"], said["Properties"]) == (
        "more",
        "c",
        "((a,b))",
    )
    main.sql("CREATE TABLE main.more.t (id INT)")
    with pytest.raises(DeltaError, match="with tables"):
        main.sql("DROP SCHEMA main.more")
    main.sql("DROP SCHEMA main.more CASCADE")
    main.sql("DROP SCHEMA IF EXISTS main.more")
    with pytest.raises(PySparkException) as failed:
        main.sql("SHOW TABLES IN main.more")
    assert failed.value.getCondition() == "SCHEMA_NOT_FOUND"
    assert rows(main.sql("SHOW TABLES IN main.sales")) == [("sales", "orders", False)]
    assert list(server.schemas) == [("main", "sales")]


def test_methods_of_the_catalog(main: SparkSession) -> None:
    catalog = main.catalog
    assert [row.name for row in catalog.listCatalogs()] == ["spark_catalog", "main"]
    assert [row.name for row in catalog.listTables("main.sales")] == ["orders"]
    assert catalog.listTables("main.sales", "x*") == []
    columns = catalog.listColumns("main.sales.orders")
    assert [(row.name, row.dataType) for row in columns] == [("id", "bigint"), ("note", "string")]
    assert catalog.getTable("main.sales.orders").tableType == "MANAGED"
    assert catalog.tableExists("main.sales.orders")
    assert catalog.tableExists("orders", "main.sales")
    assert not catalog.tableExists("main.sales.nothing")
    assert catalog.databaseExists("main.sales")
    assert not catalog.databaseExists("main.nothing")
    assert catalog.getDatabase("main.sales").catalog == "main"
    catalog.refreshTable("main.sales.orders")
    catalog.cacheTable("main.sales.orders")
    assert catalog.isCached("main.sales.orders")
    main.sql("UNCACHE TABLE main.sales.orders")
    assert not catalog.isCached("main.sales.orders")
    main.sql("CACHE TABLE main.sales.orders")
    assert catalog.isCached("main.sales.orders")
    catalog.uncacheTable("main.sales.orders")
    catalog.setCurrentCatalog("main")
    catalog.setCurrentDatabase("sales")
    assert [row.name for row in catalog.listDatabases()] == ["sales"]
    assert catalog.tableExists("orders")


def test_copies_and_new_names(main: SparkSession, server: UnityServer) -> None:
    if main.version.startswith("4.0."):
        pytest.skip("LIKE takes names of two parts on Spark 4.0")
    main.sql("CREATE TABLE main.sales.liked LIKE main.sales.orders")
    assert server.tables["main", "sales", "liked"].id != server.tables["main", "sales", "orders"].id
    main.sql("CREATE TABLE liked_here LIKE main.sales.orders")
    main.sql("INSERT INTO liked_here SELECT * FROM main.sales.orders")
    main.sql("DROP TABLE liked_here")
    main.sql("ALTER TABLE main.sales.liked RENAME TO main.sales.second")
    main.sql("ALTER TABLE main.sales.second RENAME TO third")
    with pytest.raises(PySparkException, match="already exists"):
        main.sql("ALTER TABLE main.sales.third RENAME TO orders")
    with pytest.raises(UnsupportedError, match="where it is"):
        main.sql("ALTER TABLE main.sales.third RENAME TO main.other.third")
    main.sql("INSERT INTO main.sales.third SELECT * FROM main.sales.orders")
    main.sql("DROP TABLE main.sales.third")
    for text in ("main.sales.c SHALLOW CLONE near", "c SHALLOW CLONE main.sales.orders"):
        with pytest.raises(UnsupportedError):
            main.sql(f"CREATE TABLE {text}")


def test_views_show_the_present_rows(main: SparkSession) -> None:
    main.sql("CREATE TABLE main.sales.grown AS SELECT 1 AS id")
    main.sql("CREATE TEMPORARY VIEW passing AS SELECT id FROM main.sales.grown")
    main.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW everywhere AS TABLE main.sales.grown")
    main.sql("CREATE VIEW kept AS SELECT id FROM main.sales.grown")
    main.sql("INSERT INTO main.sales.grown VALUES (2)")
    try:
        for name in ("passing", "global_temp.everywhere", "kept", "spark_catalog.default.kept"):
            assert rows(main.sql(f"SELECT * FROM {name}")) == [(1,), (2,)], name
        assert rows(main.table("kept")) == [(1,), (2,)]
        with pytest.raises(UnsupportedError, match="cannot be stored"):
            main.sql("CREATE VIEW main.sales.v AS SELECT 1 AS id")
    finally:
        main.sql("DROP VIEW kept")
        main.sql("DROP VIEW passing")
        main.sql("DROP VIEW global_temp.everywhere")
        main.sql("DROP TABLE main.sales.grown")


@pytest.mark.thorough
def test_sides_from_different_catalogs(main: SparkSession) -> None:
    main.sql("CREATE TABLE main.sales.sides AS SELECT * FROM main.sales.orders")
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    main.sql(f"MERGE INTO main.sales.sides t USING near s ON t.id = s.id {clauses}")
    assert rows(main.table("main.sales.sides")) == [(1, "z"), (2, "b"), (7, "y")]
    main.sql("CREATE OR REPLACE TABLE here USING delta AS SELECT 2 AS id, 'h' AS note")
    main.sql(f"MERGE INTO here USING main.sales.sides ON here.id = main.sales.sides.id {clauses}")
    assert rows(main.table("here")) == [(1, "z"), (2, "b"), (7, "y")]
    main.sql("ALTER TABLE main.sales.sides SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    main.sql("DELETE FROM main.sales.sides WHERE id = 7")
    changes = main.sql("SELECT id, _change_type FROM table_changes('main.sales.sides', 3)")
    assert rows(changes) == [(7, "delete")]
    main.sql("DROP TABLE here")
    main.sql("DROP TABLE main.sales.sides")


def test_tables_of_other_formats(main: SparkSession, server: UnityServer, tmp_path: Path) -> None:
    main.range(3).write.parquet(str(tmp_path / "p"))
    server.tables["main", "sales", "p"] = Table(
        id="1",
        kind="EXTERNAL",
        location=f"file:{tmp_path}/p",
        fields=[{"name": "id", "type": "long"}],
        properties={},
        format="PARQUET",
    )
    server.tables["main", "sales", "v"] = Table(
        id="2", kind="VIEW", location="file:/x", fields=[], properties={}, format=""
    )
    try:
        assert rows(main.sql("SELECT id FROM main.sales.p WHERE id > 0")) == [(1,), (2,)]
        assert main.table("main.sales.p").count() == 3
        refused: list[Callable[[], Any]] = [
            lambda: main.sql("INSERT INTO main.sales.p VALUES (1)"),
            lambda: main.table("main.sales.v"),
            lambda: main.sql("CONVERT TO DELTA main.sales.v"),
            lambda: main.range(1).write.format("parquet").saveAsTable("main.sales.q"),
            lambda: main.sql("CREATE TABLE main.sales.q (id INT) USING csv"),
        ]
        for call in refused:
            with pytest.raises(DeltaError, match=r"main\.sales\.|main answered"):
                call()
        main.sql("CONVERT TO DELTA main.sales.p")
        assert server.tables["main", "sales", "p"].format == "DELTA"
        main.sql("INSERT INTO main.sales.p VALUES (9)")
        assert rows(main.table("main.sales.p")) == [(0,), (1,), (2,), (9,)]
    finally:
        del server.tables["main", "sales", "v"]
        del server.tables["main", "sales", "p"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        "REFRESH TABLE main.sales.orders",
        "ANALYZE TABLE main.sales.orders COMPUTE STATISTICS",
        "CREATE FUNCTION main.sales.f AS 'x'",
        "SHOW VIEWS IN main.sales",
        "COMMENT ON SCHEMA main.sales IS 'x'",
        "BEGIN SELECT count(*) FROM main.sales.orders; END",
    ],
)
def test_statements_of_spark_are_refused_by_name(main: SparkSession, text: str) -> None:
    if text.startswith("BEGIN") and main.version.startswith("4.0."):
        pytest.skip("Spark 4.0 runs no scripts unless a setting allows them")
    with pytest.raises(UnsupportedError, match=r"catalog main") as refused:
        main.sql(text)
    assert "Py4J" not in str(refused.value)


@pytest.mark.thorough
def test_functions_are_those_of_spark(main: SparkSession) -> None:
    assert main.catalog.functionExists("upper")
    for call in (
        lambda: main.catalog.functionExists("main.sales.f"),
        lambda: main.catalog.getFunction("main.sales.f"),
        lambda: main.catalog.listFunctions("main.sales"),
    ):
        with pytest.raises(UnsupportedError, match="catalog main"):
            call()


def test_the_session_catalog_is_never_another_one(spark: SparkSession) -> None:
    with temporary_settings(spark, {"spark.puredelta.catalog.spark_catalog.uri": "http://x"}):
        with pytest.raises(InvalidRequestError, match="always Spark's own catalog"):
            puredelta.activate(spark)
        assert puredelta.sql(spark, "SELECT 1 AS one").first() == (1,)


@pytest.mark.thorough
def test_a_stored_view_needs_whole_names(inside: SparkSession) -> None:
    for query in (
        "SELECT * FROM orders",
        "SELECT * FROM sales.orders",
        "SELECT 1 AS n WHERE EXISTS (SELECT * FROM orders)",
    ):
        with pytest.raises(UnsupportedError, match="with all three parts"):
            inside.sql(f"CREATE VIEW spark_catalog.default.stored AS {query}")
    text = "WITH q AS (SELECT * FROM main.sales.orders) SELECT * FROM q"
    inside.sql(f"CREATE VIEW spark_catalog.default.stored AS {text}")
    try:
        assert inside.table("spark_catalog.default.stored").count() == 2
    finally:
        inside.sql("DROP VIEW spark_catalog.default.stored")
