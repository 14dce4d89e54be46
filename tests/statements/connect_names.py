"""What `test_connect_names` asks of a Spark Connect session, run as a program of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError
from puredelta.spark.catalog.connect_entries import run_command
from tests.connect_session import Checks, Requests, answers_to, connect_builder
from tests.corpus.case import all_cases
from tests.corpus.connect_replay import replayed

DATABASE, OTHER = "connect_names", "more"
"""The current database and another one: the server's catalog is that of other tests, too."""
SAMPLE_EVERY = 90


def files(rows: Any) -> int:
    return len(rows.inputFiles())


def values(spark: SparkSession, text: str, **more: Any) -> list[Any]:
    return sorted(row[0] for row in spark.sql(text, **more).collect())


def texts(spark: SparkSession, _: Path) -> Any:
    """Names in every kind of query."""
    count = "SELECT count(*) FROM"
    return [
        values(spark, f"{count} t WHERE id < 50"),
        values(spark, f"{count} more.only JOIN t ON more.only.id = t.id WHERE more.only.id < 7"),
        values(spark, f"WITH t AS (SELECT id FROM t WHERE id < 9) {count} t"),
        values(spark, f"{count} t x WHERE id IN (SELECT y.id FROM more.t y WHERE y.id < 4)"),
        values(spark, f"{count} spark_catalog.{DATABASE}.t WHERE id < :n", args={"n": 5}),
        values(spark, f"{count} t WHERE id < ?", args=[5]),
        values(spark, f"{count} IDENTIFIER(:name)", args={"name": "more.t"}),
        values(spark, "FROM t SELECT count(*)"),
        len(values(spark, "TABLE t")),
        values(spark, f"{count} {{d}} d JOIN t USING (id)", d=spark.range(5)),
        values(spark, f"{count} t VERSION AS OF 0"),
        values(spark, "SELECT t.id FROM t WHERE id = 3 UNION SELECT id FROM more.t WHERE id = 2"),
        values(spark, f"{count} t WHERE s = 'FROM t' OR s = \"more.t\""),
    ]  # fmt: skip


def frames(spark: SparkSession, _: Path) -> Any:
    return [
        spark.table("t").count(),
        files(spark.table("more.t").where("id = 5")),
        files(spark.read.table("spark_catalog.more.t").where("id = 5")),
        files(spark.sql("SELECT * FROM t WHERE id < 50")),
        puredelta.DeltaTable.forName(spark, "t").toDF().where("id = 5").count(),
        spark.table("more.t").where("t.id = 5").count(),
    ]


def expressions(spark: SparkSession, _: Path) -> Any:
    """Subqueries in the text of frames; a frame keeps the version that it was made for."""
    spark.sql("CREATE TABLE few USING delta AS SELECT id FROM range(3)")
    numbers, maximum = spark.range(9), F.expr("(SELECT max(few.id) FROM few) + id")
    of_few = numbers.where("id IN (SELECT id FROM few WHERE id > 0)")
    once = numbers.where(F.expr("id = (SELECT count(*) FROM few)"))
    before = [of_few.count(), once.count()]
    spark.sql("INSERT INTO few VALUES (7)")
    found = [
        before,
        of_few.count(),
        once.count(),
        numbers.filter("id IN (SELECT id FROM few WHERE id > 0)").count(),
        numbers.selectExpr("(SELECT max(id) FROM few) AS m", "id").first()["m"],
        numbers.withColumn("m", maximum).where("m > 14").count(),
        numbers.alias("a").join(spark.range(9).alias("b"), F.expr(_EXISTS)).count(),
        numbers.where("id IN (SELECT id FROM few VERSION AS OF 0)").count(),
        numbers.where("id IN (WITH few AS (SELECT 1 AS id) SELECT id FROM few)").count(),
        spark.table("more.t").where("more.t.id = 5 AND spark_catalog.more.t.k = 5").count(),
        files(spark.table("more.t").where("spark_catalog.more.t.id = 5")),
        spark.table("few").select("connect_names.few.id").count(),
    ]
    condition = "id IN (SELECT id FROM range(3)) AND (SELECT count(*) FROM few) = 4"
    return [*found, numbers.where(condition).count()]


_EXISTS = "a.id = b.id AND EXISTS (SELECT 1 FROM few WHERE few.id = a.id)"


def functions(spark: SparkSession, _: Path) -> Any:
    """SQL functions that read tables, in queries, frames, views and statements."""
    spark.sql("CREATE TABLE f USING delta AS SELECT id FROM range(3)")
    for text in _FUNCTIONS:
        spark.sql(text)
    asked = spark.sql("SELECT counted(1), plain(1), more.other()")
    found = [asked.columns, [list(row) for row in asked.collect()]]
    spark.sql("INSERT INTO f SELECT counted(0) + 4")
    spark.sql("CREATE TABLE filled USING delta AS SELECT listed.q FROM listed()")
    spark.sql(
        "MERGE INTO f USING (SELECT q FROM listed() WHERE q >= counted(0)) s ON f.id = s.q "
        "WHEN MATCHED THEN UPDATE SET id = s.q + plain(4)"
    )
    return [
        *found,
        values(spark, "SELECT q FROM listed() l WHERE l.q > 1"),
        values(spark, "SELECT id FROM f WHERE id < counted(0)"),
        spark.table("filled").count(),
        spark.range(9).where("id = counted(0)").count(),
        spark.range(1).select(F.call_function("counted", F.col("id") + 2)).first()[0],
    ]


def nested_functions(spark: SparkSession, _: Path) -> Any:
    """A function that calls another one beside an aggregate, in a view and alone."""
    spark.sql(
        "CREATE FUNCTION nested() RETURNS BIGINT RETURN (SELECT sum(q) + counted(0) FROM listed())"
    )
    spark.sql("CREATE VIEW called AS SELECT nested() AS n")
    return [values(spark, "SELECT n FROM called"), values(spark, "SELECT nested()")]


_COUNTED = "(SELECT count(*) FROM f WHERE id >= x)"
_FUNCTIONS = (
    "CREATE FUNCTION counted(x BIGINT COMMENT 'its') RETURNS BIGINT RETURN " + _COUNTED,
    "CREATE FUNCTION listed() RETURNS TABLE (q BIGINT, `a b` STRING) RETURN SELECT id, 'x' FROM f",
    "CREATE FUNCTION plain(x BIGINT) RETURNS BIGINT RETURN x + 1",
    "CREATE FUNCTION more.other() RETURNS BIGINT RETURN (SELECT count(*) FROM more.only)",
)


def views(spark: SparkSession, directory: Path) -> Any:
    """Views show the present rows; a temporary view hides a table until it is dropped."""
    spark.sql("CREATE OR REPLACE TEMP VIEW temporary AS SELECT id FROM t WHERE id < 8")
    names = ("stored", "above", "renamed", "temporary")
    before = [spark.table(name).count() for name in names]
    columns = spark.table("renamed").columns
    one_more = spark.range(-1, 0).selectExpr("id", "1L AS k", "'x' AS s")
    puredelta.write(one_more, str(directory.parent / "t"), mode="append")
    after = [spark.table(name).count() for name in names]
    numbers = values(spark, "SELECT n FROM above")
    spark.range(3).createOrReplaceTempView("t")
    hidden = [spark.table("t").count(), *values(spark, "SELECT count(*) FROM t")]
    spark.catalog.dropTempView("t")
    shown = spark.table("t").count()
    puredelta.DeltaTable.forPath(spark, str(directory.parent / "t")).delete("id = -1")
    return [before, columns, after, numbers, hidden, shown]


def qualifiers(spark: SparkSession, _: Path) -> Any:
    """Columns of a target under its whole name, however short the statement names it."""
    for text in (
        "CREATE TABLE more.whole (id INT, v INT) USING delta",
        "INSERT INTO more.whole VALUES (1, 1), (2, 2), (3, 3)",
        (
            "MERGE INTO more.whole USING (SELECT 1 AS id, 5 AS v) s ON {0}.id = s.id "
            "WHEN MATCHED THEN UPDATE SET {0}.v = {0}.v + more.whole.v + s.v"
        ),
        "UPDATE more.whole SET {0}.v = {0}.v + 1 WHERE {0}.id = 2",
        "DELETE FROM more.whole WHERE {0}.id = 3 AND whole.v = 3",
    ):
        spark.sql(text.format("spark_catalog.more.whole"))
    table = puredelta.DeltaTable.forName(spark, "more.whole")
    table.update("spark_catalog.more.whole.id = 1", {"v": "more.whole.v + whole.v"})
    return shown(table.toDF())


def others(spark: SparkSession, _: Path) -> Any:
    """Tables of another format, and errors."""
    spark.sql("CREATE TABLE other USING parquet AS SELECT 1 AS a")
    wrong = ("SELECT * FROM missing", "SELECT missing FROM t", "SELECT * FROM t WHER id")
    refused = [condition_of(spark, text) for text in wrong]
    return [values(spark, "SELECT a FROM other"), spark.table("other").count(), refused]


def condition_of(spark: SparkSession, text: str) -> str:
    try:
        spark.sql(text)
    except (PySparkException, DeltaError) as error:
        return (error.getCondition() or "").partition(".")[0]
    return "none"


def made_again(spark: SparkSession, directory: Path) -> Any:
    """A table that is dropped and made again at another place is looked up again."""
    paths = [str(directory / name) for name in "ab"]
    counts = []
    for n, path in enumerate(paths):
        puredelta.write(spark.range(n + 1), path)
        run_command(spark, "DROP TABLE IF EXISTS again")
        run_command(spark, f"CREATE TABLE again (id BIGINT) USING delta LOCATION '{path}'")
        counts.append([spark.table("again").count(), *values(spark, "SELECT count(*) FROM again")])
    return counts


def databases(spark: SparkSession, _: Path) -> Any:
    """A name of one part is that of the current database."""
    spark.catalog.setCurrentDatabase("more")
    try:
        in_db = spark.table("only").count()
    finally:
        spark.catalog.setCurrentDatabase(DATABASE)
    try:
        spark.table("only").count()
    except PySparkException as error:
        return [in_db, error.getCondition()]
    return [in_db, "found"]


STATEMENTS = (
    (
        "CREATE TABLE made (id BIGINT NOT NULL, v INT DEFAULT 5, "
        "w INT GENERATED ALWAYS AS (v * 2), p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    ),
    "ALTER TABLE made ADD CONSTRAINT small CHECK (id < 100)",
    "INSERT INTO made (id, p) VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO made (p, v, id) SELECT 'b', 7, 3",
    "INSERT OVERWRITE made PARTITION (p = 'a') (id, v) VALUES (4, 1)",
    "INSERT INTO made REPLACE WHERE p = 'b' SELECT 9L, 9, 18, 'b'",
    "UPDATE made SET v = 2 WHERE id = 4",
    "INSERT INTO made (id, p) VALUES (100, 'c')",
    "CREATE TABLE copied USING delta AS SELECT id, w FROM made",
    "DELETE FROM copied WHERE id = 9",
    "DROP TABLE made",
)


def statements(spark: SparkSession, _: Path) -> Any:
    """Tables that are defined, filled, changed and dropped as text."""
    found: list[Any] = []
    for text in STATEMENTS:
        found.append(condition_of(spark, text))
        if text.startswith(("INSERT", "UPDATE")):
            found.append(sorted(list(row) for row in spark.table("made").collect()))
    return [*found, [list(row) for row in spark.table("copied").collect()]]


def requests(spark: SparkSession, _: Path) -> Any:
    """Of a known name the log tells whether it has changed: no request for the name."""
    spark.table("t")
    found = []
    for query in (
        lambda: spark.table("t").where("id = 5").collect(),
        lambda: spark.sql("SELECT k FROM t WHERE id = 5").collect(),
    ):
        with Requests(spark) as counted:
            query()
        found.append([counted["ExecutePlan"], counted["AnalyzePlan"]])
    return found


def fixed_views(spark: SparkSession, directory: Path) -> Any:
    """Temporary views of versions; views as targets; what a view cannot be over."""
    version = "(SELECT * FROM fv VERSION AS OF 1)"
    texts = (
        "CREATE TABLE fv (id BIGINT, v INT) USING delta",
        "INSERT INTO fv VALUES (1, 1), (2, 2)",
        "CREATE TEMP VIEW old (a, b) AS SELECT * FROM fv VERSION AS OF 1 WHERE id > 1",
        "CREATE TEMP VIEW old AS SELECT * FROM fv VERSION AS OF 1",
        "CREATE OR REPLACE TEMP VIEW whole AS SELECT v, id FROM fv f",
        "CREATE TEMP VIEW part AS SELECT * FROM fv WHERE id > 1",
        "CREATE TEMP VIEW above AS SELECT * FROM whole",
        "CREATE TEMP VIEW joined AS SELECT id, v FROM above JOIN frame d USING (id)",
        "INSERT INTO fv VALUES (3, 3)",
        "UPDATE whole SET v = 9 WHERE id = 2",
        (
            "MERGE INTO above a USING (SELECT 2L AS b) s ON a.id = b "
            "WHEN MATCHED THEN UPDATE SET v = b + 40"
        ),
        "DELETE FROM part",
        "DELETE FROM old",
        f"CREATE TEMP VIEW now AS SELECT * FROM delta.`{directory.parent / 't'}`",
        f"CREATE TEMP VIEW mixed AS SELECT fv.id FROM fv JOIN {version} o USING (id)",
        f"CREATE VIEW kept AS SELECT * FROM {version}",
    )
    spark.range(3, 9).createOrReplaceTempView("frame")
    found = [condition_of(spark, text) for text in texts]
    names = ("fv", "old", "whole", "above", "joined")
    rows = [[list(row) for row in spark.table(name).collect()] for name in names]
    return [found, *map(sorted, rows)]


def metadata(spark: SparkSession, _: Path) -> Any:
    """``_metadata`` of files, and of rows where the table tracks them; no star shows it."""
    for text in (
        (
            "CREATE TABLE ids (id BIGINT) USING delta "
            "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        ),
        "INSERT INTO ids SELECT id FROM range(0, 5, 1, 1)",
        "DELETE FROM ids WHERE id = 1",
    ):
        spark.sql(text)
    ids = spark.table("ids")
    both = ids.alias("a").join(ids.alias("b"), F.col("a._metadata.row_id") == F.col("b.id") + 1)
    return [
        values(spark, "SELECT * FROM ids WHERE _metadata.row_id > 2"),
        shown(spark.sql("SELECT *, _metadata.row_id AS r FROM ids AS x WHERE x.id < 3")),
        shown(spark.sql("WITH c AS (FROM ids SELECT *, _metadata.row_id r) SELECT * FROM c")),
        values(spark, "SELECT max(_metadata.row_commit_version) FROM ids VERSION AS OF 1"),
        shown(ids.where("_metadata.row_id = 3")),
        shown(ids.select("id", "_metadata.row_index").where("id = 4")),
        shown(both.select("b.*", "a._metadata.row_id")),
        ids.where("id > 99").select("_metadata", "_metadata.row_id").columns,
        ids.where("_metadata.row_id > 3").union(ids).distinct().count(),
        values(spark, "SELECT count(DISTINCT _metadata.file_name) FROM more.t"),
        shown(spark.sql("SELECT a.*, a._metadata.row_index FROM t a JOIN t b USING (id)").limit(0)),
        spark.table("t").where("id = 5000").select("_metadata.file_name").count(),
    ]


def shown(rows: DataFrame) -> list[list[Any]]:
    return sorted(list(row) for row in rows.collect())


def mapped_by_id(spark: SparkSession, directory: Path) -> Any:
    """Columns by their field ids: under the names of the table in a file, or under others."""
    place = directory / "mapped"
    for text in (
        (
            f"CREATE TABLE mapped (id BIGINT, s STRUCT<x: INT>, v BIGINT) USING delta LOCATION "
            f"'{place}' TBLPROPERTIES ('delta.columnMapping.mode' = 'id')"
        ),
        "INSERT INTO mapped SELECT 1, struct(7), 10",
        "ALTER TABLE mapped RENAME COLUMN v TO w",
        "INSERT INTO mapped SELECT 2, struct(8), 20",
        "UPDATE mapped SET w = 30 WHERE id = 2",
    ):
        spark.sql(text)
    found = [shown(spark.sql("SELECT w, id, s.x FROM mapped WHERE w > 5"))]
    [uri] = spark.table("mapped").where("id = 1").inputFiles()
    _exchange_names(place / uri.rpartition("mapped/")[2], place / "_delta_log")
    return [*found, shown(spark.sql("SELECT w, id, s.x FROM mapped WHERE w > 5"))]


def _exchange_names(path: Path, log: Path) -> None:
    """Write the first and the last column of a file under each other's names, with their ids."""
    size = path.stat().st_size
    rows = pq.read_table(path)
    first, *inner, last = rows.schema
    fields = [first.with_name(last.name), *inner, last.with_name(first.name)]
    pq.write_table(pa.Table.from_arrays(rows.columns, schema=pa.schema(fields)), path)
    for commit in log.glob("*.json"):
        text = commit.read_text().replace(f'"size":{size}', f'"size":{path.stat().st_size}')
        commit.write_text(text)
    for known in log.glob("*.crc"):
        known.unlink()


def scripts(spark: SparkSession, _: Path) -> Any:
    """Scripts that change or make Delta tables are refused before the server makes an entry."""
    texts = (
        "BEGIN CREATE TABLE scripted (a INT) USING delta; END",
        "BEGIN SELECT 1; CREATE TABLE scripted LIKE t; END",
        "BEGIN INSERT INTO t SELECT * FROM t; END",
        "BEGIN SELECT max(id) FROM t; END",
    )
    return [*(condition_of(spark, text) for text in texts), spark.catalog.tableExists("scripted")]


def recorded(spark: SparkSession, directory: Path) -> Any:
    """Some of the recorded statements, by name; those that came out otherwise."""
    return replayed(spark, directory, all_cases()[::SAMPLE_EVERY])


def required_columns(spark: SparkSession, directory: Path) -> Any:
    """NOT NULL is shown as in a classic session: of columns, and of what comes of them."""
    path = directory / "required"
    spark.sql(
        "CREATE TABLE required (id BIGINT NOT NULL, p STRING NOT NULL, s STRUCT<a: INT NOT NULL>) "
        f"USING delta PARTITIONED BY (p) LOCATION '{path}' "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(
        "INSERT INTO required VALUES (1, 'x', named_struct('a', 1)), (2, 'y', named_struct('a', 2))"
    )
    spark.sql("CREATE VIEW of_required AS SELECT id, p FROM required")
    rows = spark.table("required")
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    frames = (
        rows,
        spark.read.format("delta").load(str(path)),
        spark.sql("SELECT * FROM required"),
        spark.sql("SELECT s.a, id FROM required VERSION AS OF 1 WHERE id > 5"),
        spark.table("of_required"),
        feed.table("required").select("id", "p", "_change_type"),
        rows.selectExpr("id + 1 AS x", "upper(p) AS y", "s.a"),
        spark.range(3).join(rows.select("id", "p"), "id", "left"),
    )
    shown = [["?" if field.nullable else "!" for field in frame.schema] for frame in frames]
    found = [
        spark.sql("SELECT p, count(*) FROM required GROUP BY p ORDER BY p").collect(),
        spark.sql("SELECT id FROM required WHERE id IS NULL").collect(),
        spark.sql("SELECT coalesce(id, 5) FROM required WHERE id > 1").collect(),
    ]
    return [list(map("".join, shown)), [[list(row) for row in rows] for rows in found]]


def changed_tables(spark: SparkSession, directory: Path) -> Any:
    """Views over tables that got columns after them, or that have more than their entries."""
    place = str(directory / "wide")
    for text in (
        f"CREATE TABLE wide (id BIGINT, v INT) USING delta LOCATION '{place}'",
        "INSERT INTO wide VALUES (1, 10)",
        "CREATE VIEW every_column AS SELECT * FROM wide",
        "CREATE VIEW other_names (a, b) AS SELECT * FROM wide",
        "CREATE TEMP VIEW of_session AS SELECT * FROM wide",
        "ALTER TABLE wide ADD COLUMNS (w INT FIRST)",
        "INSERT INTO wide VALUES (5, 2, 20)",
    ):
        spark.sql(text)
    run_command(spark, f"CREATE TABLE narrow (none INT) USING delta LOCATION '{place}'")
    spark.sql("CREATE TEMP VIEW of_narrow AS SELECT * FROM narrow")
    names = ("every_column", "other_names", "of_session", "of_narrow")
    found = [[spark.table(name).columns, shown(spark.table(name).fillna(0))] for name in names]
    spark.sql("UPDATE of_narrow SET v = 11 WHERE id = 1")
    return [*found, shown(spark.table("wide").where("id = 1"))]


CHECKS: Checks = (
    texts,
    frames,
    expressions,
    functions,
    nested_functions,
    views,
    changed_tables,
    qualifiers,
    others,
    made_again,
    databases,
    statements,
    fixed_views,
    metadata,
    mapped_by_id,
    scripts,
    recorded,
    required_columns,
    requests,
)
AMOUNTS = {
    "sample": (
        texts,
        views,
        others,
        made_again,
        statements,
        requests,
        required_columns,
    ),
    "every": CHECKS,
}


def prepare(spark: SparkSession, directory: Path) -> None:
    """Make a table of ten files, its entries, and views over them."""
    path = str(directory / "t")
    rows = spark.range(0, 1000, 1, 10).selectExpr("id", "id % 7 AS k", "string(id) AS s")
    puredelta.write(rows, path)
    for database in (OTHER, DATABASE):
        spark.sql(f"CREATE DATABASE {database}")
    spark.catalog.setCurrentDatabase(DATABASE)
    for name in ("t", "more.t", "more.only"):
        columns = "id BIGINT, k BIGINT, s STRING"
        run_command(spark, f"CREATE TABLE {name} ({columns}) USING delta LOCATION '{path}'")
    spark.sql("CREATE VIEW stored AS SELECT id, k FROM t WHERE k = 1")
    spark.sql("CREATE VIEW above AS SELECT count(*) AS n FROM stored")
    spark.sql("CREATE VIEW renamed (a, b) AS SELECT id, k FROM more.t")


def answers(spark: SparkSession, directory: Path, amount: str) -> dict[str, Any]:
    prepare(spark, directory)
    assert puredelta.activate(spark)
    found = answers_to(AMOUNTS[amount], spark, directory=directory)
    puredelta.deactivate()
    for database in (OTHER, DATABASE):
        spark.sql(f"DROP DATABASE {database} CASCADE")
    return found


if __name__ == "__main__":
    session = connect_builder().getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    found_answers = answers(session, Path(sys.argv[1]), sys.argv[2])
    session.stop()
    print(json.dumps(found_answers))  # noqa: T201 - the answer
