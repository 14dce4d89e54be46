"""Tables of Unity catalogs through an activated Spark Connect session, as a program of its own.

The answers are one JSON object on the last line: what each question returned, or its error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.catalogs.tokens import variable_of
from puredelta.errors import DeltaError
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.servers.unity import UnityServer, unity_server

TOKEN = "dapi-0123456789abcdef"
ORDERS, PARTS, COPY, SECOND = (
    "main.sales.orders",
    "other.sales.parts",
    "main.sales.copy",
    "main.sales.second",
)
Questions = list[Callable[[], Any]]


def main(directory: Path) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    with two_catalogs(spark, directory) as server:
        answers = {
            questions.__name__: [_answer(one) for one in questions(spark, server)]
            for questions in (
                definition,
                queries,
                writers,
                changes,
                versions,
                views,
                namespaces,
                listings,
                refusals,
            )
        }
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


def catalog_names(spark: SparkSession, directory: Path) -> Any:
    """Answer a sample of the questions: one statement of each kind, and a MERGE of two catalogs."""
    with two_catalogs(spark, directory) as server:
        frame = spark.range(3).selectExpr("id", "'a' AS note")
        asked = [
            lambda: frame.write.format("delta").saveAsTable(ORDERS),
            lambda: spark.sql(f"CREATE TABLE {PARTS} AS SELECT 2L AS id, 'x' AS note"),
            lambda: spark.sql(
                f"MERGE INTO {ORDERS} t USING {PARTS} s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ),
            lambda: spark.table(ORDERS),
            lambda: server.tables["main", "sales", "orders"].latest,
            lambda: spark.sql("USE main.sales"),
            lambda: spark.sql("CREATE TEMPORARY VIEW seen_orders AS SELECT note FROM orders"),
            lambda: spark.sql("DELETE FROM orders WHERE id < 2"),
            lambda: spark.sql("SELECT * FROM seen_orders"),
            lambda: spark.sql("USE spark_catalog.default"),
            lambda: spark.sql("DROP VIEW seen_orders"),
        ]
        return [_answer(one) for one in asked]


@contextmanager
def two_catalogs(spark: SparkSession, directory: Path) -> Iterator[UnityServer]:
    """Yield the stand-in of the catalog ``main``; the session knows another one, too.

    Spark does not tell a client a setting with a token, so the token is in the environment.
    """
    with (
        unity_server(f"file:{directory}/main", tokens={TOKEN}) as server,
        unity_server(f"file:{directory}/other") as other,
    ):
        other.schemas = {("other", "sales"): None}
        os.environ[variable_of("main")] = TOKEN
        settings = {
            "spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog",
            "spark.sql.catalog.main.uri": server.url,
            "spark.puredelta.catalog.other.uri": other.url,
        }
        with temporary_settings(spark, settings):
            puredelta.activate(spark)
            try:
                yield server
            finally:
                puredelta.deactivate()
                del os.environ[variable_of("main")]


def _answer(question: Callable[[], Any]) -> Any:
    try:
        found = question()
        if isinstance(found, DataFrame):
            return sorted(list(map(str, row)) for row in found.collect())
    except (DeltaError, PySparkException) as error:
        return error.getCondition()
    except Exception as error:  # noqa: BLE001 - the test shows which
        return f"{type(error).__name__}: {error}"[:500]
    return found


def definition(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for tables that are made, changed and dropped."""
    sql, known = spark.sql, server.tables
    return [
        lambda: sql(f"CREATE TABLE {ORDERS} (id BIGINT, note STRING)"),
        lambda: known["main", "sales", "orders"].properties["delta.columnMapping.mode"],
        lambda: sql(f"INSERT INTO {ORDERS} VALUES (1, 'a'), (2, 'b')"),
        lambda: sql(f"INSERT INTO {ORDERS} SELECT id + 1, 'c' FROM {ORDERS} WHERE id = 2"),
        lambda: sql(f"ALTER TABLE {ORDERS} ADD COLUMNS (more INT)"),
        lambda: [field["name"] for field in known["main", "sales", "orders"].fields],
        lambda: sql(f"CREATE TABLE {PARTS} AS SELECT 1L AS id, 'x' AS name"),
        lambda: sql(f"CREATE OR REPLACE TABLE {COPY} AS SELECT id, note FROM {ORDERS}"),
        lambda: sql("CREATE TABLE main.sales.gone AS SELECT 1 AS id"),
        lambda: sql("DROP TABLE main.sales.gone"),
        lambda: sorted(name[2] for name in known),
    ]


def queries(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for rows by name, of one catalog and of two."""
    del server
    sql, orders = spark.sql, spark.table(ORDERS)
    return [
        lambda: orders.select("id", "note"),
        lambda: sql(f"SELECT o.note, {ORDERS}.id FROM {ORDERS} JOIN {ORDERS} o USING (id)"),
        lambda: sql(f"SELECT p.name, o.id FROM {ORDERS} o JOIN {PARTS} p ON p.id = o.id"),
        lambda: sql("WITH b AS (SELECT * FROM `main`.`sales`.`orders`) SELECT max(id) FROM b"),
        lambda: sql(f"SELECT id FROM {ORDERS} WHERE id = :n", {"n": 2}),
        lambda: sql("SELECT id FROM {t} JOIN " + f"{ORDERS} USING (id)", t=orders),
        lambda: orders.createOrReplaceTempView("seen"),
        lambda: sql(f"SELECT count(*) FROM seen JOIN {PARTS} USING (id)"),
        lambda: sql(f"EXPLAIN SELECT * FROM {ORDERS}").count(),
        lambda: sql(f"SELECT max(id) FROM {ORDERS} WHERE id IN (SELECT id FROM {PARTS})"),
    ]


def writers(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for rows that are written by name."""
    del server
    frame, name = spark.range(3).selectExpr("id", "id * 2 AS twice"), "main.sales.written"
    built = DeltaTable.create(spark).tableName("main.sales.built").addColumn("id", "BIGINT")
    return [
        lambda: frame.write.format("delta").saveAsTable(name),
        lambda: frame.write.mode("append").saveAsTable(name),
        lambda: frame.write.insertInto(name),
        lambda: frame.writeTo(name).append(),
        lambda: spark.table(name).count(),
        lambda: frame.write.format("delta").mode("overwrite").saveAsTable(name),
        lambda: frame.write.format("delta").saveAsTable(name),
        lambda: frame.writeTo(SECOND).using("delta").create(),
        lambda: frame.writeTo(SECOND).using("delta").createOrReplace(),
        lambda: spark.table(SECOND).count(),
        lambda: frame.writeTo(SECOND).overwritePartitions(),
        lambda: frame.selectExpr("id").writeTo("other.sales.far").create(),
        lambda: spark.table("other.sales.far").count(),
        lambda: built.execute().toDF().count(),
    ]


def changes(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for changed rows, also with both sides of a MERGE in different catalogs."""
    del server
    sql, orders = spark.sql, DeltaTable.forName(spark, ORDERS)
    on_ids = "ON parts.id = orders.id"
    return [
        lambda: sql(f"UPDATE {ORDERS} SET note = 'B' WHERE id = 2"),
        lambda: sql(f"DELETE FROM {ORDERS} WHERE id = 3"),
        lambda: sql(f"UPDATE {ORDERS} SET note = (SELECT max(name) FROM {PARTS}) WHERE id = 1"),
        lambda: orders.update("id = 2", {"note": "'C'"}),
        lambda: orders.delete("id = 100"),
        lambda: sql(
            f"MERGE INTO {ORDERS} t USING (SELECT id, name FROM {PARTS} UNION ALL SELECT 9, 'z') s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = s.name || '!' "
            "WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, s.name)"
        ),
        lambda: sql(
            f"MERGE INTO {PARTS} USING {ORDERS} {on_ids} WHEN MATCHED THEN UPDATE SET "
            "name = orders.note WHEN NOT MATCHED THEN INSERT (id, name) "
            "VALUES (orders.id, orders.note)"
        ),
        lambda: (
            orders.alias("t")
            .merge(spark.table(PARTS).alias("s"), "t.id = s.id")
            .whenMatchedUpdate(set={"note": "s.name || '?'"})
            .execute()
        ),
        lambda: spark.table(ORDERS).select("id", "note"),
        lambda: spark.table(PARTS),
    ]


def versions(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for versions, and for what a table says of itself."""
    del server
    sql = spark.sql
    return [
        lambda: sql(f"SELECT id FROM {ORDERS} VERSION AS OF 1"),
        lambda: spark.read.option("versionAsOf", 1).table(ORDERS).count(),
        lambda: [row["operation"] for row in sql(f"DESCRIBE HISTORY {ORDERS}").collect()][-2:],
        lambda: sql(f"DESCRIBE DETAIL {ORDERS}").collect()[0]["name"],
        lambda: sql(f"DESCRIBE {COPY}").collect()[0]["col_name"],
        lambda: sql(f"OPTIMIZE {COPY}"),
        lambda: sql(f"SHOW TBLPROPERTIES {COPY} ('delta.columnMapping.mode')"),
    ]


def views(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for temporary views of present rows."""
    del server
    sql = spark.sql
    make = "CREATE OR REPLACE TEMPORARY VIEW"
    merge = f"MERGE INTO {COPY} t USING shown s ON t.id = s.number"
    return [
        lambda: sql(f"{make} shown (number, words) AS SELECT o.id, o.note FROM {ORDERS} o"),
        lambda: sql("SELECT number, shown.words FROM shown WHERE number < 3"),
        lambda: sql(f"INSERT INTO {ORDERS} (id, note) VALUES (50, 'new')"),
        lambda: sql("SELECT max(number) FROM shown"),
        lambda: spark.table("shown").count(),
        lambda: sql(f"{make} above AS SELECT words FROM shown WHERE number = 50"),
        lambda: sql("SELECT * FROM above JOIN shown USING (words)"),
        lambda: sql(f"{merge} WHEN MATCHED THEN UPDATE SET note = s.words"),
        lambda: sql(f"UPDATE {ORDERS} SET note = (SELECT max(words) FROM shown) WHERE id = 50"),
        lambda: sql("SELECT count(*) FROM above"),
        lambda: sql("DESCRIBE shown").count(),
        lambda: [row["viewName"] for row in sql("SHOW VIEWS").collect() if row["isTemporary"]][:2],
        lambda: sql(f"CREATE TEMPORARY VIEW shown AS SELECT id FROM {ORDERS}"),
        lambda: spark.catalog.dropTempView("above"),
        lambda: sql("DROP VIEW shown"),
        lambda: sql("SELECT * FROM shown"),
        lambda: sql(f"{make} old AS SELECT id FROM {ORDERS} VERSION AS OF 1"),
        lambda: sql("SELECT count(*) FROM old"),
        lambda: sql(f"CACHE TABLE kept AS SELECT id FROM {ORDERS}"),
        lambda: sql("SELECT count(*) FROM kept"),
    ]


def namespaces(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for names of less than three parts."""
    del server
    sql, catalog = spark.sql, spark.catalog
    frame = spark.range(2).selectExpr("id")
    return [
        lambda: sql("USE CATALOG main"),
        lambda: sql("SELECT current_catalog(), current_schema()"),
        lambda: sql("SELECT count(*) FROM sales.copy WHERE sales.copy.id > 0"),
        lambda: sql("USE main.sales"),
        lambda: (catalog.currentCatalog(), catalog.currentDatabase()),
        lambda: sql("SHOW CURRENT NAMESPACE"),
        lambda: sql("SELECT count(*) FROM copy JOIN sales.copy AS other USING (id)"),
        lambda: spark.table("copy").count(),
        lambda: frame.write.format("delta").saveAsTable("brief"),
        lambda: sql("INSERT INTO brief SELECT id + 2 FROM brief"),
        lambda: sql("UPDATE brief SET id = 9 WHERE id = 3"),
        lambda: sql("MERGE INTO brief t USING copy s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        lambda: sql("SELECT * FROM brief"),
        lambda: frame.writeTo("brief").append(),
        lambda: DeltaTable.forName(spark, "brief").toDF().count(),
        lambda: sql("CREATE OR REPLACE TEMPORARY VIEW brief_view AS SELECT brief.id FROM brief"),
        lambda: sql("CREATE TEMPORARY VIEW brief AS SELECT id + 1000 AS id FROM brief"),
        lambda: sql("SELECT max(id) FROM brief"),
        lambda: sql("SELECT max(id) FROM brief_view"),
        lambda: sql("DROP VIEW brief"),
        lambda: catalog.tableExists("brief"),
        lambda: sql("SELECT * FROM near_nothing"),
        lambda: sql("SELECT id FROM range(1)"),
        lambda: [row.name for row in catalog.listTables(pattern="b*") if not row.isTemporary],
        lambda: [row.name for row in catalog.listDatabases()],
        lambda: sql("DROP TABLE brief"),
        lambda: sql("USE spark_catalog.default"),
        catalog.currentCatalog,
        lambda: sql("SELECT max(id) FROM brief_view"),
        lambda: catalog.setCurrentCatalog("main"),
        lambda: catalog.setCurrentDatabase("sales"),
        lambda: sql("SELECT count(*) FROM copy"),
        lambda: catalog.setCurrentCatalog("spark_catalog"),
        lambda: sql("SELECT count(*) FROM copy"),
    ]


def listings(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for names."""
    del server
    sql, catalog = spark.sql, spark.catalog
    return [
        lambda: sql("SHOW TABLES IN main.sales LIKE 'o*'"),
        lambda: sql("SHOW SCHEMAS IN main"),
        lambda: catalog.tableExists(ORDERS),
        lambda: catalog.tableExists("main.sales.nothing"),
        lambda: catalog.tableExists("copy", "main.sales"),
        lambda: sql("CREATE TABLE main.sales.`dotted.name` AS SELECT 1 AS id"),
        lambda: catalog.tableExists("main.sales.`dotted.name`"),
        lambda: catalog.tableExists("main.sales.dotted.name"),
        lambda: spark.table("main.sales.`dotted.name`").count(),
        lambda: sql("DROP TABLE main.sales.`dotted.name`"),
        lambda: sql("SHOW CATALOGS"),
        lambda: [row.name for row in catalog.listCatalogs()],
        lambda: catalog.databaseExists("main.sales"),
        lambda: catalog.databaseExists("main.nothing"),
        lambda: catalog.getDatabase("main.sales").catalog,
        lambda: [row.name for row in catalog.listTables("main.sales", "o*")],
        lambda: catalog.refreshTable(ORDERS),
        lambda: catalog.cacheTable(COPY),
        lambda: catalog.isCached(COPY),
        lambda: catalog.uncacheTable(COPY),
        lambda: catalog.isCached(COPY),
        lambda: sql(f"CACHE TABLE {COPY}"),
        lambda: sql(f"UNCACHE TABLE {COPY}"),
        lambda: [column.name for column in catalog.listColumns(COPY)],
        lambda: catalog.getTable(ORDERS).name,
        lambda: sql(f"ALTER TABLE {COPY} RENAME TO main.sales.copied"),
        lambda: spark.table("main.sales.copied").count(),
    ]


def refusals(spark: SparkSession, server: UnityServer) -> Questions:
    """Ask for what is not there, or is not possible over Connect."""
    sql = spark.sql
    return [
        lambda: sql("SELECT * FROM main.sales.missing"),
        lambda: spark.table("main.sales.missing"),
        lambda: sql("INSERT INTO main.sales.missing VALUES (1)"),
        lambda: sql("DELETE FROM main.nowhere.missing"),
        lambda: sql("CREATE TABLE main.nothing.orders (id INT)"),
        lambda: sql(f"CREATE GLOBAL TEMP VIEW named AS SELECT id FROM {ORDERS}"),
        lambda: sql(f"CREATE VIEW named AS SELECT id FROM {ORDERS}"),
        lambda: sql("CREATE VIEW main.sales.named AS SELECT 1 AS id"),
        lambda: sql("USE main.nothing"),
        lambda: server.tokens.clear() or server.tokens.add("another"),
        lambda: sql(f"DELETE FROM {ORDERS}"),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
