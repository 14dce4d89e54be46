"""A session with Hive's metastore in a process of its own: it asks everything at once.

``hive_checks DIRECTORY sample|every``: the metastore is Derby in that directory. The last line of
output is JSON: what failed, by the name of the check.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.jvm.catalog import format_text
from tests.activation.name_checks import NAME_CHECKS
from tests.commands.convert.directories import adds, first_commit
from tests.commands.convert.named_tables import (
    CHECKS,
    check,
    convert,
    error_class,
    make,
    place,
    rows,
    table,
)


def session(root: Path) -> SparkSession:
    """Start a session whose catalog is Hive's."""
    java = f"-Dderby.system.home={root} -Duser.timezone=UTC"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(root / "warehouse"))
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            f"jdbc:derby:;databaseName={root}/metastore;create=true",
        )
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


@check
def tables_of_hive(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE h (id INT, s STRING COMMENT 'c', c CHAR(3)) STORED AS PARQUET "
                "TBLPROPERTIES ('k' = 'v')", "(1, 'a', 'x')")  # fmt: skip
    spark.sql("CONVERT TO DELTA h")
    entry = table(spark, "h")
    assert (entry.provider, entry.serde is None or "parquet" not in entry.serde.lower()) == (
        "delta", True)  # fmt: skip
    assert first_commit(place(spark, "h"))["metaData"][0]["configuration"] == {"k": "v"}
    spark.sql("INSERT INTO h VALUES (2, 'b', 'y')")
    assert rows(spark, "SELECT * FROM h") == [(1, "a", "x  "), (2, "b", "y  ")]
    make(spark, "CREATE TABLE p (Id INT) PARTITIONED BY (Q STRING, d DATE) STORED AS PARQUET",
         "(1, 'a', DATE'2024-01-01')")  # fmt: skip
    spark.sql("CONVERT TO DELTA p PARTITIONED BY (q STRING, d DATE)")
    [add] = adds(place(spark, "p")).values()
    assert add["partitionValues"] == {"Q": "a", "d": "2024-01-01"}
    spark.sql("ALTER TABLE p ADD COLUMNS (more INT)")
    assert rows(spark, "SELECT * FROM p WHERE q = 'a'") == [(1, "a", date(2024, 1, 1), None)]
    for kind in ("ORC", "TEXTFILE"):
        make(spark, f"CREATE TABLE {kind} (id INT) STORED AS {kind}")
        assert error_class(convert(spark, kind)) == "DELTA_CONVERT_NON_PARQUET_TABLE"


@check
def a_table_of_hive_is_itself_again(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE h (id INT) PARTITIONED BY (q STRING) STORED AS PARQUET "
                "TBLPROPERTIES ('k' = 'v')", "(1, 'a')")  # fmt: skip
    database = spark.catalog.currentDatabase()
    before = json.loads(format_text(spark, database, "h"))
    spark.sql("CONVERT TO DELTA h")
    puredelta.undo_convert(spark, "h")
    after = json.loads(format_text(spark, database, "h"))
    for state in (before, after):
        state["properties"].pop("transient_lastDdlTime")  # of the last change of the entry
    assert after == before
    spark.sql("INSERT INTO h VALUES (2, 'b')")
    assert rows(spark, "SELECT * FROM h") == [(1, "a"), (2, "b")]
    assert rows(spark, "SHOW PARTITIONS h") == [("q=a",), ("q=b",)]


EVERY = CHECKS | NAME_CHECKS
SAMPLE = (
    tables_of_hive.__name__,
    a_table_of_hive_is_itself_again.__name__,
    "partitions_come_from_the_catalog",
)
"""What depends most on how Hive stores an entry."""


def main(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Run checks, each in a database of its own."""
    spark = session(root)
    assert puredelta.activate(spark)
    failed = {}
    for name in names:
        spark.sql(f"CREATE DATABASE db_{name}")
        spark.catalog.setCurrentDatabase(f"db_{name}")
        directory = root / name
        directory.mkdir()
        try:
            EVERY[name](spark, directory)
        except BaseException:  # noqa: BLE001 - told to the process that asks
            failed[name] = traceback.format_exc()[:4000]
        spark.catalog.setCurrentDatabase("default")
    return failed


if __name__ == "__main__":
    asked = SAMPLE if sys.argv[2] == "sample" else tuple(EVERY)
    print(json.dumps({"checks": asked, "failed": main(Path(sys.argv[1]), asked)}))  # noqa: T201
