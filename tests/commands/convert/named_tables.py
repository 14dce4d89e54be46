"""What CONVERT of a table by its name must do in every catalog: run in memory and on Hive.

Each check gets an activated session whose current database is empty, and a directory.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.convert.convert_to_delta import ALREADY_DELTA, convert_to_delta
from puredelta.errors import (
    CatalogError,
    ConcurrentWriteException,
    DeltaError,
    InvalidRequestError,
    TableNotFoundError,
)
from puredelta.log.commit.commit_request import Phase
from puredelta.spark.jvm import catalog
from puredelta.spark.jvm.catalog import format_text, read_entry
from puredelta.spark.write.parquet_job import temporary_settings
from tests.commands.convert.directories import adds, contents, first_commit, write

DELTA = "spark.databricks.delta."
Check = Callable[[SparkSession, Path], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def make(spark: SparkSession, ddl: str, *inserts: str) -> None:
    spark.sql(ddl)
    for values in inserts:
        name = ddl.split()[2]
        spark.sql(f"INSERT INTO {name} VALUES {values}")


def table(spark: SparkSession, name: str) -> Any:
    return read_entry(spark, spark.catalog.currentDatabase(), name)


def place(spark: SparkSession, name: str) -> Path:
    return Path(table(spark, name).location.removeprefix("file:"))


def rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.sql(query).collect()), key=str)


def schema(root: Path) -> list[dict[str, Any]]:
    return list(json.loads(first_commit(root)["metaData"][0]["schemaString"])["fields"])


def refused(act: Callable[[], object], kind: type[Exception] = DeltaError) -> Any:
    with pytest.raises(kind) as raised:
        act()
    return raised.value


def error_class(act: Callable[[], object]) -> str:
    return str(refused(act).getErrorClass())


def convert(spark: SparkSession, text: str) -> Callable[[], object]:
    return lambda: spark.sql(f"CONVERT TO DELTA {text}")


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@check
def everything_the_catalog_says_is_kept(spark: SparkSession, _: Path) -> None:
    """C-34, C-60: columns, properties, comment, and what is left of the entry."""
    make(
        spark,
        "CREATE TABLE t (id BIGINT COMMENT 'the id', s STRING, c CHAR(5), v VARCHAR(7)) USING "
        "parquet COMMENT 'for sale' TBLPROPERTIES ('a' = 'b', 'delta.appendOnly' = 'true')",
        "(1, 'a', 'x', 'y')",
    )
    root = place(spark, "t")
    files = contents(root)
    assert spark.sql("CONVERT TO DELTA t").collect() == []
    commit = first_commit(root)
    database = spark.catalog.currentDatabase()
    assert commit["commitInfo"][0]["operationParameters"] == {
        "numFiles": 1,
        "partitionedBy": "[]",
        "collectStats": True,
        "catalogTable": f"`spark_catalog`.`{database}`.`t`",
        "sourceFormat": "parquet",
    }
    assert commit["metaData"][0]["configuration"] == {"a": "b", "delta.appendOnly": "true"}
    assert commit["metaData"][0]["description"] == "for sale"
    assert [(f["name"], f["type"], f["metadata"]) for f in schema(root)] == [
        ("id", "long", {"comment": "the id"}),
        ("s", "string", {}),
        ("c", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        ("v", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}),
    ]
    assert contents(root) == files  # C-61
    changed = table(spark, "t")
    assert (changed.provider, changed.properties, changed.comment) == ("delta", {}, "for sale")
    assert changed.columns.names == ["id", "s", "c", "v"]
    assert rows(spark, "SELECT * FROM t") == [(1, "a", "x    ", "y")]
    spark.sql("INSERT INTO t VALUES (2, 'b', 'y', 'z')")
    assert rows(spark, "SELECT id, c FROM t WHERE v = 'z'") == [(2, "y    ")]
    assert error_class(lambda: spark.sql("DELETE FROM t WHERE id = 1")) == (
        "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    )


@check
def partitions_come_from_the_catalog(spark: SparkSession, _: Path) -> None:
    """C-22: each partition from its own directory, and no other file."""
    make(
        spark,
        "CREATE TABLE p (id INT, day DATE, kind VARCHAR(3)) USING parquet "
        "PARTITIONED BY (day, kind)",
        "(1, DATE'2024-01-01', 'a/b'), (2, DATE'2024-01-02', NULL)",
    )
    root = place(spark, "p")
    write(root, "day=2024-01-03/kind=z/unknown.parquet", {"id": pa.array([9], pa.int32())})
    write(root, "day=2024-01-01/kind=a%2Fb/below/deep.parquet", {"id": [9]})
    spark.sql(
        f"ALTER TABLE p ADD PARTITION (day = DATE'2024-01-09', kind = 'q') LOCATION '{root}/odd 1'"
    )
    write(root, "odd 1/x.parquet", {"id": pa.array([5], pa.int32())})
    assert error_class(convert(spark, "p PARTITIONED BY (day DATE)")) == (
        "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
    )
    for wrong in ("kind VARCHAR(3), day DATE", "day DATE NOT NULL, kind VARCHAR(3)",
                  "day DATE, kind VARCHAR(4)"):  # fmt: skip
        assert error_class(convert(spark, f"p PARTITIONED BY ({wrong})")) == (
            "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
        )
    spark.sql("CONVERT TO DELTA p PARTITIONED BY (day DATE COMMENT 'x', kind VARCHAR(3))")
    found = adds(root).values()
    values = {add["partitionValues"]["day"]: add["partitionValues"]["kind"] for add in found}
    assert values == {"2024-01-01": "a/b", "2024-01-02": None, "2024-01-09": "q"}
    parameters = first_commit(root)["commitInfo"][0]["operationParameters"]
    assert parameters["partitionedBy"] == '["day","kind"]'
    assert rows(spark, "SELECT id, kind FROM p") == [(1, "a/b"), (2, None), (5, "q")]
    assert rows(spark, "SELECT id FROM p WHERE day = DATE'2024-01-09'") == [(5,)]
    spark.sql("ALTER TABLE p ADD COLUMNS (more STRING)")
    spark.sql("INSERT INTO p (id, day, kind, more) VALUES (7, DATE'2025-01-01', 'n', 'm')")
    assert rows(spark, "SELECT id, more FROM p WHERE kind = 'n'") == [(7, "m")]
    assert [f.name for f in spark.catalog.listColumns("p")].count("day") == 1


@check
def partitions_that_are_not_there(spark: SparkSession, root: Path) -> None:
    make(spark, "CREATE TABLE gone (id INT, p INT) USING parquet PARTITIONED BY (p)",
         "(1, 1), (2, 2)")  # fmt: skip
    shutil.rmtree(place(spark, "gone") / "p=2")
    spark.sql("CONVERT TO DELTA gone")
    assert rows(spark, "SELECT * FROM gone") == [(1, 1)]
    make(spark, "CREATE TABLE far (id INT, p INT) USING parquet PARTITIONED BY (p)", "(1, 1)")
    write(root, "elsewhere/x.parquet", {"id": pa.array([5], pa.int32())})
    spark.sql(f"ALTER TABLE far ADD PARTITION (p = 9) LOCATION '{root}/elsewhere'")
    error = refused(convert(spark, "far"), InvalidRequestError)
    assert "the partition p=9 of `spark_catalog`." in error.message
    assert f"base path file:{place(spark, 'far')}" in error.message
    assert (table(spark, "far").provider, rows(spark, "SELECT id FROM far")) == (
        "parquet", [(1,), (5,)])  # fmt: skip
    make(spark, f"CREATE TABLE none (id INT, p INT) USING parquet PARTITIONED BY (p) "
                f"LOCATION '{root}/none'")  # fmt: skip
    write(root, "none/p=1/x.parquet", {"id": pa.array([5], pa.int32())})
    assert error_class(convert(spark, "none")) == "DELTA_CONVERSION_NO_PARTITION_FOUND"
    with temporary_settings(spark, {f"{DELTA}convert.useCatalogPartitions": "false"}):
        spark.sql("CONVERT TO DELTA none")
    assert rows(spark, "SELECT * FROM none") == [(5, 1)]
    make(spark, "CREATE TABLE empty (id INT) USING parquet")
    assert error_class(convert(spark, "empty")) == "DELTA_EMPTY_DIRECTORY"


@check
def which_schema_counts(spark: SparkSession, root: Path) -> None:
    """C-34: the catalog's columns, or those of the files."""
    for name in ("catalog", "files"):
        make(spark, f"CREATE TABLE {name} (id BIGINT, extra INT) USING parquet "
                    f"LOCATION '{root}/{name}'")  # fmt: skip
        write(root, f"{name}/x.parquet", {"id": pa.array([1, 7], pa.int32()), "other": ["z", "y"]})
        write(root, f"{name}/below/x.parquet", {"id": pa.array([2], pa.int32())})
    spark.sql("CONVERT TO DELTA catalog")
    assert [(f["name"], f["type"]) for f in schema(root / "catalog")] == [
        ("id", "long"), ("extra", "integer")]  # fmt: skip
    [(path, add)] = adds(root / "catalog").items()
    assert path == "x.parquet"
    assert add["stats"]["nullCount"]["extra"] == 2
    assert rows(spark, "SELECT * FROM catalog WHERE id > 5") == [(7, None)]
    settings = {f"{DELTA}convert.useCatalogSchema": "false",
                f"{DELTA}convert.useCatalogPartitions": "false"}  # fmt: skip
    with temporary_settings(spark, settings):
        spark.sql("CONVERT TO DELTA files NO STATISTICS")
    assert [f["name"] for f in schema(root / "files")] == ["id", "other"]
    assert {a: b.get("stats") for a, b in adds(root / "files").items()} == {
        "below/x.parquet": None, "x.parquet": None}  # fmt: skip


@check
def nothing_is_read_without_statistics(spark: SparkSession, root: Path) -> None:
    make(spark, f"CREATE TABLE odd (id INT) USING parquet LOCATION '{root}/odd'")
    (root / "odd").mkdir(exist_ok=True)
    (root / "odd" / "broken").write_text("no footer")
    assert error_class(convert(spark, "odd")) == "DELTA_FAILED_READ_FILE_FOOTER"
    spark.sql("CONVERT TO DELTA odd NO STATISTICS")
    assert list(adds(root / "odd")) == ["broken"]


@check
def defaults_of_columns(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE d (id INT, s STRING DEFAULT 'x') USING parquet", "(1, 'a')")
    spark.sql("CONVERT TO DELTA d")
    spark.sql("INSERT INTO d (id) VALUES (2)")
    assert rows(spark, "SELECT * FROM d") == [(1, "a"), (2, "x")]
    make(spark, "CREATE TABLE late (id INT) USING parquet", "(1)")
    spark.sql("ALTER TABLE late ADD COLUMN s STRING DEFAULT 'x'")
    for statistics in ("", "NO STATISTICS"):
        error = refused(convert(spark, f"late {statistics}"), InvalidRequestError)
        assert "The column s was added to the table with the default 'x'" in error.message
    spark.sql("ALTER TABLE late ADD COLUMN n STRING")
    assert rows(spark, "SELECT * FROM late") == [(1, "x", None)]


@check
def names_in_every_spelling(spark: SparkSession, _: Path) -> None:
    database = spark.catalog.currentDatabase()
    make(spark, "CREATE TABLE MyTable (Id INT, Part INT) USING parquet PARTITIONED BY (Part)",
         "(1, 1)")  # fmt: skip
    spark.sql(f"CONVERT TO DELTA spark_catalog.{database.upper()}.MYTABLE")
    assert rows(spark, "SELECT Id, Part FROM mytable WHERE Part = 1") == [(1, 1)]
    spark.sql("ALTER TABLE MyTable ADD COLUMNS (x INT)")
    assert spark.table("MYTABLE").columns == ["Id", "Part", "x"]
    make(spark, "CREATE TABLE two (id INT) USING parquet", "(1)")
    made = puredelta.DeltaTable.convertToDelta(spark, f"`{database}` . `two`")
    assert made.toDF().collect() == [(1,)]
    assert made.history().first()["operation"] == "CONVERT"


@check
def what_cannot_be_converted(spark: SparkSession, root: Path) -> None:
    database = spark.catalog.currentDatabase()
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW tv AS SELECT 1 AS a")
    spark.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW gv AS SELECT 1 AS a")
    spark.sql("CREATE VIEW pv AS SELECT 1 AS a")
    spark.sql("CREATE TABLE texts (a INT) USING csv")
    for name in ("tv", "global_temp.gv", "nope", f"{database}.nope", "nodb.nope",
                 f"spark_catalog.{database}.nope"):  # fmt: skip
        assert refused(convert(spark, name), TableNotFoundError).getErrorClass() == (
            "TABLE_OR_VIEW_NOT_FOUND"
        ), name
    error = refused(convert(spark, "pv"))
    assert "`Converting a view to a Delta table` is not supported" in error.message
    assert error.getErrorClass() == "DELTA_OPERATION_NOT_ALLOWED_DETAIL"
    error = refused(convert(spark, f"{database}.texts"))
    assert error.getErrorClass() == "DELTA_CONVERT_NON_PARQUET_TABLE"
    assert f"trying to convert a csv source: `{database}`.`texts`" in error.message
    for name in ("cat.db.t", "a.b.c.d"):
        assert error_class(convert(spark, name)) == "REQUIRES_SINGLE_PART_NAMESPACE"
    assert error_class(convert(spark, "parquet.`rel/t`")) == "PATH_NOT_FOUND"
    spark.sql("DROP VIEW tv")
    spark.catalog.dropGlobalTempView("gv")


@check
def what_is_delta_already_is_left_alone(spark: SparkSession, _: Path) -> None:
    spark.sql("CREATE TABLE d (a INT) USING delta")
    before = format_text(spark, spark.catalog.currentDatabase(), "d")
    result = convert_to_delta(spark, "d", "x INT", collect_stats=False)
    assert (result.message, result.version, result.already_delta) == (ALREADY_DELTA, None, True)
    assert puredelta.DeltaTable.convertToDelta(spark, "d").toDF().columns == ["a"]
    assert format_text(spark, spark.catalog.currentDatabase(), "d") == before


@check
def a_log_that_is_there_is_taken_over(spark: SparkSession, root: Path) -> None:
    """C-08: the entry follows a log that is there already."""
    for name in ("plain", "more", "other"):
        properties = "" if name == "plain" else "TBLPROPERTIES ('x' = '1')"
        make(spark, f"CREATE TABLE {name} (a INT) USING parquet LOCATION '{root}/{name}' "
                    f"{properties}", "(1)")  # fmt: skip
        spark.sql(f"CONVERT TO DELTA parquet.`{root}/{name}`")
    spark.sql("CONVERT TO DELTA plain")
    assert table(spark, "plain").provider == "delta"
    assert rows(spark, "SELECT a FROM plain") == [(1,)]
    assert spark.sql("DESCRIBE HISTORY plain").count() == 1
    spark.sql("CONVERT TO DELTA more")
    newest = spark.sql("DESCRIBE HISTORY more").first()
    assert (newest["version"], newest["operation"]) == (1, "CONVERT")
    assert newest["operationParameters"]["numFiles"] == "0"
    assert newest["operationParameters"]["collectStats"] == "false"
    assert rows(spark, "SHOW TBLPROPERTIES more") == [
        ("delta.minReaderVersion", "1"), ("delta.minWriterVersion", "2"), ("x", "1")]  # fmt: skip
    spark.sql(f"ALTER TABLE delta.`{root}/other` SET TBLPROPERTIES ('x' = '2')")
    error = refused(convert(spark, "other"))
    assert error.getErrorClass() == "DELTA_CONVERT_METASTORE_METADATA_MISMATCH"
    assert "Table properties in catalog: [x=1]\nDelta configuration: [x=2]" in error.message
    assert table(spark, "other").provider == "parquet"
    with temporary_settings(spark, {f"{DELTA}convert.metadataCheck.enabled": "false"}):
        spark.sql("CONVERT TO DELTA other")
    assert ("x", "1") in rows(spark, "SHOW TBLPROPERTIES other")
    assert table(spark, "other").provider == "delta"


@check
def a_catalog_that_refuses_is_asked_again(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT, p INT) USING parquet PARTITIONED BY (p) "
                "TBLPROPERTIES ('k' = 'v')", "(1, 1)")  # fmt: skip

    def down(*_: object, **__: object) -> None:
        raise Py4JError("the metastore is down")

    with replaced(catalog, "make_delta", down):
        error = refused(convert(spark, "t"), CatalogError)
    assert "the metastore is down" in error.message
    assert table(spark, "t").provider == "parquet"
    assert rows(spark, "SELECT * FROM t") == [(1, 1)]
    spark.sql("INSERT INTO t VALUES (2, 1)")  # by name: files that the log does not know
    error = refused(convert(spark, "t"), InvalidRequestError)
    assert "1 Parquet file(s) have been written to it since" in error.message
    undone = puredelta.undo_convert(spark, "t")
    assert undone.name is None
    assert not (place(spark, "t") / "_delta_log").exists()
    with replaced(catalog, "make_delta", down):
        refused(convert(spark, "t"), CatalogError)
    spark.sql("CONVERT TO DELTA t")
    assert table(spark, "t").provider == "delta"
    assert spark.sql("DESCRIBE HISTORY t").count() == 1
    assert rows(spark, "SELECT * FROM t") == [(1, 1), (2, 1)]


@check
def who_is_killed_leaves_the_old_table_or_the_new_one(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT) USING parquet", "(1)")

    class Killed(BaseException):
        pass

    for phase in Phase:

        def die(reached: Phase, phase: Phase = phase) -> None:
            if reached is phase:
                raise Killed

        with suppress(Killed):
            convert_to_delta(spark, "t", on_phase=die)
        assert rows(spark, "SELECT * FROM t") == [(1,)], phase
        spark.sql("CONVERT TO DELTA t")
        assert table(spark, "t").provider == "delta", phase
        assert rows(spark, "SELECT * FROM t") == [(1,)], phase
        puredelta.undo_convert(spark, "t")
        assert table(spark, "t").provider == "parquet", phase


@check
def what_moves_meanwhile_stops_the_conversion(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT) USING parquet", "(1)", "(2)")
    root = place(spark, "t")
    moves: dict[str, Callable[[], object]] = {
        "is new": lambda: write(root, "new.parquet", {"id": pa.array([3], pa.int32())}),
        "has changed": lambda: write(root, "new.parquet", {"id": pa.array([3, 4], pa.int32())}),
        "is gone": (root / "new.parquet").unlink,
    }
    module = sys.modules["puredelta.commands.convert.convert_to_delta"]
    plan = module.plan_conversion
    for word, move in moves.items():

        def moved(*given: Any, move: Callable[[], object] = move, **named: Any) -> Any:
            planned = plan(*given, **named)
            move()
            return planned

        with replaced(module, "plan_conversion", moved):
            error = refused(convert(spark, "t"), ConcurrentWriteException)
        assert f"new.parquet {word}" in error.message
        assert not (root / "_delta_log").exists()

    def altered(*given: Any, **named: Any) -> Any:
        planned = plan(*given, **named)
        spark.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
        return planned

    with replaced(module, "plan_conversion", altered):
        error = refused(convert(spark, "t"), ConcurrentWriteException)
    assert "was changed while the table was converted" in error.message
    assert not (root / "_delta_log").exists()


@check
def a_conversion_can_be_undone(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT, q CHAR(2) COMMENT 'kind', p INT) USING parquet "
                "PARTITIONED BY (p) COMMENT 'c' TBLPROPERTIES ('k' = 'v')",
         "(1, 'a', 1), (2, 'b', 2)")  # fmt: skip
    database = spark.catalog.currentDatabase()
    before, root = format_text(spark, database, "t"), place(spark, "t")
    old, files = table(spark, "t"), contents(root)
    for name in ("t", f"delta.`{root}`"):
        spark.sql("CONVERT TO DELTA t")
        undone = puredelta.undo_convert(spark, name)
        assert undone.name == f"`spark_catalog`.`{database}`.`t`"
        assert format_text(spark, database, "t") == before
        assert table(spark, "t") == old
        assert contents(root) == files
        assert not (root / "_delta_log").exists()
        assert rows(spark, "SELECT * FROM t") == [(1, "a ", 1), (2, "b ", 2)]
        spark.sql("INSERT OVERWRITE t PARTITION (p = 1) VALUES (1, 'a')")
        files = contents(root)
    spark.sql("CONVERT TO DELTA t")
    spark.sql("DELETE FROM t WHERE id = 1")
    error = refused(lambda: puredelta.undo_convert(spark, "t"), InvalidRequestError)
    assert "it has been written since: its version is 1" in error.message
    assert rows(spark, "SELECT * FROM t") == [(2, "b ", 2)]


@check
def frames_and_caches_follow(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT) USING parquet", "(1)")
    spark.sql("CACHE TABLE t")
    assert spark.table("t").count() == 1
    spark.sql("CONVERT TO DELTA t")
    spark.sql("INSERT INTO t VALUES (2)")
    assert rows(spark, "SELECT * FROM t") == [(1,), (2,)]


@check
def buckets_are_forgotten(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE b (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS",
         "(1), (2)")  # fmt: skip
    database = spark.catalog.currentDatabase()
    before = format_text(spark, database, "b")
    spark.sql("CONVERT TO DELTA b")
    spark.sql("INSERT INTO b VALUES (3)")
    assert rows(spark, "SELECT a.id FROM b a JOIN b c ON a.id = c.id") == [(1,), (2,), (3,)]
    spark.sql("DROP TABLE b")
    make(spark, "CREATE TABLE b (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS",
         "(1), (2)")  # fmt: skip
    spark.sql("CONVERT TO DELTA b")
    puredelta.undo_convert(spark, "b")
    assert json.loads(format_text(spark, database, "b")) == json.loads(before)


@check
def a_streaming_sink_by_its_name(spark: SparkSession, root: Path) -> None:
    make(spark, f"CREATE TABLE s (id BIGINT) USING parquet LOCATION '{root}/s'")
    write(root, "source/x.parquet", {"id": [1]})
    stream = spark.readStream.schema("id BIGINT").parquet(f"{root}/source").writeStream
    stream.format("parquet").option("checkpointLocation", f"{root}/cp").trigger(
        availableNow=True
    ).start(f"{root}/s").awaitTermination()
    write(root, "s/uncommitted.parquet", {"id": [9]})
    spark.sql("CONVERT TO DELTA s")
    assert rows(spark, "SELECT * FROM s") == [(1,)]


@check
def a_view_of_the_old_table_shows_the_new_one(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT) USING parquet", "(1)")
    spark.sql("CREATE VIEW v AS SELECT id + 1 AS n FROM t")
    spark.sql("CONVERT TO DELTA t")
    spark.sql("INSERT INTO t VALUES (5)")
    assert rows(spark, "SELECT * FROM v") == [(2,), (6,)]
    with pytest.raises((DeltaError, AnalysisException)):
        spark.sql("CONVERT TO DELTA v")


@check
def a_dry_run_writes_nothing(spark: SparkSession, _: Path) -> None:
    make(spark, "CREATE TABLE t (id INT, p INT) USING parquet PARTITIONED BY (p)", "(1, 1), (2, 2)")
    root = place(spark, "t")
    found = dict(rows(spark, "CONVERT TO DELTA t DRY RUN"))
    assert (found["files"], found["rows"], found["partitions"]) == ("2", "2", "2")
    assert found["partitioned by"] == "p"
    assert not (root / "_delta_log").exists()
    found = dict(rows(spark, "CONVERT TO DELTA t NO STATISTICS DRY RUN"))
    assert (found["rows"], found["no bounds of id"]) == ("not read", "none were asked for")
    assert table(spark, "t").provider == "parquet"
    refused(convert(spark, "t DRY RUN PARTITIONED BY (p INT)"), Exception)
