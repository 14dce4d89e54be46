"""Forty everyday statements, as a program that prints what each of them did.

``python -m tests.reference.everyday delta`` runs them through delta-spark, with ``puredelta``
through an activated session of stock PySpark. Nothing else differs: the import of
``DeltaTable`` and how the session is made.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.reference.session_start import started_in_turn

_TABLES = ("orders", "customers", "totals", "events", "copies", "old", "files", "shallow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What a statement has at hand."""

    spark: SparkSession
    tables: Any
    """The module with ``DeltaTable``."""
    root: str

    def table(self, name: str) -> Any:
        """The table of a name through the API."""
        return self.tables.DeltaTable.forName(self.spark, name)

    def orders(self, *rows: tuple[Any, ...]) -> DataFrame:
        """New orders."""
        return self.spark.createDataFrame(
            list(rows), "id BIGINT, customer STRING, amount DECIMAL(10,2), day DATE"
        )

    def where(self, name: str) -> str:
        """How a table is called in SQL: by name, or by path if it has none."""
        return f"delta.`{self.root}/{name}`" if name in {"files", "shallow"} else name


Statement = Callable[[Shop], Any]


def sql(text: str) -> Statement:
    """One statement of SQL text; ``ROOT`` is the directory of tables without a name."""
    return lambda shop: shop.spark.sql(text.replace("ROOT", shop.root))


def order(key: int, customer: str, cents: int, day: int) -> tuple[Any, ...]:
    """A row of the orders, of a day in January."""
    return key, customer, Decimal(cents).scaleb(-2), date(2025, 1, day)


STATEMENTS: list[tuple[str, Statement]] = [
    (
        "create",
        sql(
            "CREATE TABLE orders (id BIGINT NOT NULL, customer STRING COMMENT 'who', amount "
            "DECIMAL(10,2), day DATE) USING delta PARTITIONED BY (day) COMMENT 'all of them' "
            "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        ),
    ),
    (
        "insert values",
        sql(
            "INSERT INTO orders VALUES (1, 'ann', 10.5, DATE'2025-01-01'), "
            "(2, 'bob', 20, DATE'2025-01-01'), (3, 'cid', 30, DATE'2025-01-02')"
        ),
    ),
    (
        "insert some columns",
        sql("INSERT INTO orders (day, id) VALUES (DATE'2025-01-02', 4)"),
    ),
    (
        "saveAsTable append",
        lambda s: (
            s.orders(order(5, "eve", 5000, 3))
            .write.format("delta")
            .mode("append")
            .saveAsTable("orders")
        ),
    ),
    ("insertInto", lambda s: s.orders(order(6, "fay", 6000, 3)).write.insertInto("orders")),
    ("writeTo append", lambda s: s.orders(order(7, "gil", 7000, 3)).writeTo("orders").append()),
    (
        "create as select",
        sql("CREATE TABLE customers USING delta AS SELECT DISTINCT customer AS name FROM orders"),
    ),
    (
        "save to a path",
        lambda s: s.spark.range(4).write.format("delta").save(f"{s.root}/files"),
    ),
    (
        "join names, paths and a subquery",
        sql(
            "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.name "
            "JOIN delta.`ROOT/files` f ON f.id = o.id "
            "WHERE o.amount > (SELECT min(amount) FROM orders)"
        ),
    ),
    (
        "merge as text",
        sql(
            "MERGE INTO orders t USING (SELECT 3L AS id, 33.3 AS amount UNION ALL SELECT 8, 80) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount "
            "WHEN NOT MATCHED THEN INSERT (id, amount, day) VALUES "
            "(s.id, s.amount, DATE'2025-01-04')"
        ),
    ),
    (
        "merge through the API",
        lambda s: (
            s.table("orders")
            .alias("t")
            .merge(
                s.orders(order(1, "ann", 1111, 1), order(9, "ida", 900, 4)).alias("s"),
                "t.id = s.id",
            )
            .whenMatchedUpdateAll("s.amount > t.amount")
            .whenNotMatchedInsertAll()
            .whenNotMatchedBySourceDelete("t.id = 4")
            .execute()
        ),
    ),
    (
        "mergeInto of PySpark",
        lambda s: (
            s.orders(order(2, "bob", 2222, 1))
            .alias("s")
            .mergeInto("orders", F.expr("orders.id = s.id"))
            .whenMatched()
            .update({"amount": F.col("s.amount")})
            .whenNotMatched()
            .insertAll()
            .merge()
        ),
    ),
    ("update", sql("UPDATE orders SET customer = upper(customer) WHERE id < 3")),
    (
        "update through the API",
        lambda s: s.table("orders").update("id = 5", {"amount": F.expr("amount + 1")}),
    ),
    ("delete", sql("DELETE FROM orders WHERE id = 6")),
    ("delete through the API", lambda s: s.table("orders").delete(F.col("id") == 7)),
    (
        "replaceWhere",
        lambda s: (
            s.orders(order(10, "jim", 100, 4), order(11, "kit", 110, 4))
            .write.format("delta")
            .mode("overwrite")
            .option("replaceWhere", "day = '2025-01-04'")
            .saveAsTable("orders")
        ),
    ),
    (
        "overwritePartitions",
        lambda s: s.orders(order(12, "lea", 120, 3)).writeTo("orders").overwritePartitions(),
    ),
    (
        "overwrite a condition",
        lambda s: s.orders(order(3, "cid", 3, 2)).writeTo("orders").overwrite(F.col("id") == 3),
    ),
    (
        "a new column by mergeSchema",
        lambda s: (
            s.orders(order(13, "mia", 130, 5))
            .withColumn("gift", F.lit(1))
            .write.format("delta")
            .mode("append")
            .option("mergeSchema", True)
            .saveAsTable("orders")
        ),
    ),
    ("add a column", sql("ALTER TABLE orders ADD COLUMNS (note STRING COMMENT 'n' AFTER id)")),
    (
        "set a property",
        sql("ALTER TABLE orders SET TBLPROPERTIES ('delta.logRetentionDuration' = '60 days')"),
    ),
    ("add a constraint", sql("ALTER TABLE orders ADD CONSTRAINT positive CHECK (id > 0)")),
    ("break it", lambda s: s.spark.sql("INSERT INTO orders (id) VALUES (-1)")),
    ("drop it", sql("ALTER TABLE orders DROP CONSTRAINT positive")),
    ("an older version", sql("SELECT id, amount FROM orders VERSION AS OF 3")),
    (
        "an older version through the reader",
        lambda s: s.spark.read.format("delta").option("versionAsOf", 2).table("orders"),
    ),
    (
        "the changes",
        lambda s: (
            s.spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", 9)
            .option("endingVersion", 12)
            .table("orders")
            .drop("_commit_timestamp")
        ),
    ),
    (
        "history",
        lambda s: s.spark.sql("DESCRIBE HISTORY orders LIMIT 5").select("version", "operation"),
    ),
    (
        "detail",
        lambda s: (
            s.table("orders").detail().select("format", "name", "description", "partitionColumns")
        ),
    ),
    ("restore", lambda s: [s.spark.sql("RESTORE TABLE orders TO VERSION AS OF 6")]),
    ("optimize", lambda s: s.spark.sql("OPTIMIZE orders").select("metrics.numFilesAdded")),
    ("vacuum", lambda s: s.table("orders").vacuum()),
    (
        "replace as select",
        sql(
            "CREATE OR REPLACE TABLE totals USING delta AS "
            "SELECT day, sum(amount) AS total FROM orders GROUP BY day"
        ),
    ),
    (
        "writeTo createOrReplace",
        lambda s: (
            s.spark.table("orders")
            .groupBy("customer")
            .count()
            .writeTo("totals")
            .using("delta")
            .createOrReplace()
        ),
    ),
    (
        "build a table with a generated column",
        lambda s: (
            s.tables.DeltaTable.createIfNotExists(s.spark)
            .tableName("events")
            .addColumn("at", "TIMESTAMP")
            .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
            .partitionedBy("day")
            .property("delta.appendOnly", "true")
            .execute()
        ),
    ),
    (
        "fill it",
        sql("INSERT INTO events (at) VALUES (TIMESTAMP'2025-01-01 12:00:00')"),
    ),
    (
        "convert",
        lambda s: (
            s.spark.range(3).write.parquet(f"{s.root}/plain"),
            s.spark.sql(f"CONVERT TO DELTA parquet.`{s.root}/plain`"),
            s.spark.sql(f"CREATE TABLE old USING delta LOCATION '{s.root}/plain'"),
        ),
    ),
    (
        "clone",
        lambda s: [
            s.spark.sql(
                f"CREATE TABLE delta.`{s.root}/shallow` SHALLOW CLONE delta.`{s.root}/files`"
            )
        ],
    ),
    (
        "overwrite table and columns",
        lambda s: (
            s.spark.sql("SELECT 1 AS one")
            .write.format("delta")
            .mode("overwrite")
            .option("overwriteSchema", "true")
            .saveAsTable("customers")
        ),
    ),
]


def main(engine: str) -> None:
    """Run every statement and print the rows it returned and the tables it changed."""
    with tempfile.TemporaryDirectory() as root:
        spark = make_session(engine, root)
        tables = importlib.import_module(f"{engine}.tables")
        shop = Shop(spark=spark, tables=tables, root=root)
        versions: dict[str, int] = {}
        for label, statement in STATEMENTS:
            lines = _answer(statement, shop)
            for name in _TABLES:
                lines += _news(shop, name, versions)
            told = [f"# {label}", *(f"> {line.replace(root, 'ROOT')}" for line in lines)]
            sys.stdout.write("".join(f"{line}\n" for line in told))
        spark.stop()


def make_session(engine: str, root: str) -> SparkSession:
    """Stock PySpark with one of the two."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1500m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={root} -Duser.timezone=UTC")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", f"{root}/warehouse")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    if engine == "delta":
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        builder = builder.config(
            "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
        ).config("spark.sql.catalog.spark_catalog", catalog)
    package = importlib.import_module(engine)
    spark = started_in_turn(package.configure_spark_with_delta_pip(builder))
    spark.sparkContext.setLogLevel("OFF")
    if engine == "puredelta":
        package.activate(spark)
    return spark


def _answer(statement: Statement, shop: Shop) -> list[str]:
    try:
        given = statement(shop)
        return rows_shown(given) if isinstance(given, DataFrame) else []
    except Exception as error:  # noqa: BLE001 - either implementation's own
        found = re.search(r"\[([A-Z][A-Z0-9_]+)", str(error))
        return [f"error {found[1] if found else type(error).__name__}"]


def _news(shop: Shop, name: str, versions: dict[str, int]) -> list[str]:
    """Describe a table if its version is another than before."""
    where = shop.where(name)
    try:
        newest = shop.spark.sql(f"DESCRIBE HISTORY {where} LIMIT 1").first()
    except Exception:  # noqa: BLE001 - not there yet
        return []
    if newest is None or versions.get(name) == newest["version"]:
        return []
    versions[name] = newest["version"]
    rows = shop.spark.sql(f"SELECT * FROM {where}")
    kinds = rows.schema.simpleString()
    return [f"{name}: {newest['version']} {newest['operation']} {kinds}", *rows_shown(rows)]


def rows_shown(rows: DataFrame) -> list[str]:
    """The rows in a fixed order."""
    return [f"  {row}" for row in sorted(str(tuple(row)) for row in rows.collect())]


if __name__ == "__main__":
    main(sys.argv[1])
