"""Statements on views and on storage that refuses access: each error names the next step."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.spark.session.pyspark_errors import unreadable_file
from puredelta.store.base import StorageError
from puredelta.store.local import LocalStore
from puredelta.tables import DeltaTable

VIEWS = ("plain", "global_temp.everywhere", "of_files", "stored", "stored_part", "stored_plain")
CHANGES = {
    "DELETE": "DELETE FROM {} WHERE id = 1",
    "UPDATE": "UPDATE {} SET v = 2 WHERE id = 1",
    "MERGE": "MERGE INTO {} t USING plain s ON t.id = s.id WHEN MATCHED THEN DELETE",
}


@pytest.fixture
def views(active: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    rows = active.range(5).selectExpr("id", "id AS v")
    rows.createOrReplaceTempView("plain")
    rows.createOrReplaceGlobalTempView("everywhere")
    rows.write.parquet(f"{tmp_path}/files")
    active.read.parquet(f"{tmp_path}/files").createOrReplaceTempView("of_files")
    active.sql(f"CREATE TABLE rows_of_view (id LONG, v LONG) USING delta LOCATION '{tmp_path}/t'")
    active.sql("CREATE VIEW stored AS SELECT * FROM rows_of_view")
    active.sql("CREATE VIEW stored_part AS SELECT * FROM rows_of_view WHERE id > 0")
    active.sql("CREATE VIEW stored_plain AS SELECT id, id AS v FROM range(3)")
    yield active
    for name in ("stored", "stored_part", "stored_plain"):
        active.sql(f"DROP VIEW {name}")
    active.sql("DROP TABLE rows_of_view")
    for name in ("plain", "of_files"):
        active.catalog.dropTempView(name)
    active.catalog.dropGlobalTempView("everywhere")


def test_a_view_that_is_no_table_is_no_target(views: SparkSession) -> None:
    """Spark's own answer to DELETE is INTERNAL_ERROR; it calls a Delta table unable to UPDATE."""
    for view in VIEWS:
        for operation, text in CHANGES.items():
            shows_delta = view in {"stored", "stored_part"}
            with pytest.raises(PySparkException) as caught:
                views.sql(text.format(view))
            if shows_delta or operation == "DELETE":
                assert isinstance(caught.value, DeltaError), (view, operation)
                assert caught.value.code is ErrorCode.UNSUPPORTED_SOURCE
                assert f"{operation} of {view} " in str(caught.value)
            else:
                assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"


def test_a_rule_is_for_tables_only(views: SparkSession, tmp_path: Path) -> None:
    for text in ("ADD CONSTRAINT c CHECK (id > 0)", "DROP CONSTRAINT IF EXISTS c"):
        for view in VIEWS:
            with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
                views.sql(f"ALTER TABLE {view} {text}")
        for name in ("parquet", "csv"):
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
                views.sql(f"ALTER TABLE {name}.`{tmp_path}/files` {text}")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("OPTIMIZE {}", "OPTIMIZE"),
        ("VACUUM {}", "VACUUM"),
        ("EXPLAIN VACUUM {}", "VACUUM"),
        ("REORG TABLE {} APPLY (PURGE)", "REORG"),
        ("DESCRIBE HISTORY {}", "DESCRIBE HISTORY"),
        ("DESCRIBE DETAIL {}", "DESCRIBE DETAIL"),
        ("GENERATE symlink_format_manifest FOR TABLE {}", "GENERATE"),
        ("ALTER TABLE {} DROP FEATURE deletionVectors", "ALTER TABLE ... DROP FEATURE"),
        (
            "ALTER TABLE {} ALTER COLUMN id SYNC IDENTITY",
            "ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY",
        ),
    ],
)
def test_a_command_of_delta_is_for_tables_only(
    views: SparkSession, text: str, operation: str
) -> None:
    for view in ("plain", "stored", "stored_plain", "global_temp.everywhere"):
        with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW") as caught:
            views.sql(text.format(view))
        assert f"'{operation}' expects a table but {view} is a view" in str(caught.value)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        views.sql(text.format("no_such_name"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("RESTORE TABLE {} TO VERSION AS OF 0", "DELTA_ONLY_OPERATION"),
        ("SELECT * FROM table_changes('{}', 0)", "DELTA_TABLE_ONLY_OPERATION"),
        ("CREATE TABLE copied SHALLOW CLONE {}", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
    ],
)
def test_a_view_has_no_versions(views: SparkSession, text: str, condition: str) -> None:
    for view in ("plain", "stored", "stored_plain", "global_temp.everywhere"):
        with pytest.raises(PySparkException, match=view) as caught:
            views.sql(text.format(view))
        assert caught.value.getCondition() == condition


@pytest.mark.thorough
def test_views_as_targets_of_a_frame(views: SparkSession, tmp_path: Path) -> None:
    """A view of a whole table is that table, and others are refused as in SQL text."""
    rows = views.range(3).selectExpr("id", "id AS v")
    rows.write.format("delta").mode("append").save(f"{tmp_path}/t")
    shown = {
        "whole": "SELECT v, id FROM rows_of_view",
        "some": "SELECT * FROM rows_of_view WHERE id > 0",
        "fewer": "SELECT id FROM rows_of_view",
        "limited": "SELECT * FROM rows_of_view LIMIT 1",
    }
    found = {}
    for name, query in shown.items():
        views.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")
        try:
            merge = views.range(1).alias("s").mergeInto(name, F.expr(f"{name}.id = s.id"))
            merge.whenMatched().delete().merge()
        except DeltaError as error:
            found[name] = error.code
        views.catalog.dropTempView(name)
    assert found == {
        "some": ErrorCode.UNEXPECTED_PARTIAL_SCAN,
        "fewer": ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
        "limited": ErrorCode.UNSUPPORTED_SOURCE,
    }
    assert views.table("rows_of_view").count() == 2


INSERTS: dict[str, Callable[[SparkSession, str], object]] = {
    "INSERT": lambda spark, name: spark.sql(f"INSERT INTO {name} VALUES (7, 7)"),
    "columns": lambda spark, name: spark.sql(f"INSERT INTO {name} (v, id) VALUES (7, 7)"),
    "OVERWRITE": lambda spark, name: spark.sql(f"INSERT OVERWRITE {name} VALUES (7, 7)"),
    "insertInto": lambda spark, name: spark.sql("SELECT 7L, 7L").write.insertInto(name),
    "overwrite": lambda spark, name: spark.sql("SELECT 7L, 7L").write.insertInto(name, True),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", INSERTS)
def test_rows_that_are_inserted_into_a_view_of_a_frame_are_not_lost(
    active: SparkSession, tmp_path: Path, how: str
) -> None:
    """Spark wrote them to a directory that no table has, and said nothing."""
    path, insert = f"{tmp_path}/t", INSERTS[how]
    active.sql("SELECT 1L AS id, 1L AS v").write.format("delta").save(path)
    rows = active.read.format("delta").load(path)
    rows.createOrReplaceTempView("frame")
    rows.createOrReplaceGlobalTempView("frame")
    expected = [(1, 1), (7, 7)] if how in {"INSERT", "columns", "insertInto"} else [(7, 7)]
    for name in ("frame", "global_temp.frame"):
        insert(active, name)
        found = active.read.format("delta").load(path).distinct().collect()
        assert sorted(map(tuple, found)) == expected
    old = active.read.format("delta").option("versionAsOf", 0).load(path)
    old.createOrReplaceTempView("frame")
    with pytest.raises(DeltaError) as caught:
        insert(active, "frame")
    assert caught.value.code is ErrorCode.FAILED_SCAN_WITH_HISTORICAL_VERSION
    active.sql(f"CREATE OR REPLACE TEMP VIEW frame AS SELECT * FROM delta.`{path}`")
    with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
        insert(active, "frame")
    active.catalog.dropTempView("frame")
    active.catalog.dropGlobalTempView("frame")


FRAMES: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "changes": lambda _, changes: changes,
    "columns of changes": lambda _, changes: changes.select("id", "v"),
    "some changes": lambda _, changes: changes.where("_change_type = 'insert'"),
    "some rows": lambda rows, _: rows.where("id > 0"),
    "other case": lambda rows, _: rows.select("ID", "V"),
    "hint": lambda rows, _: rows.hint("broadcast"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("io", ["spark", "arrow"])
def test_rows_that_are_inserted_into_a_view_of_another_frame_are_refused(
    active: SparkSession, tmp_path: Path, io: str
) -> None:
    path = tmp_path / "t"
    active.conf.set("spark.puredelta.io", io)
    rows = active.sql("SELECT 1L AS id, 1L AS v")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(path))
    before = list(path.rglob("*.parquet"))
    reader = active.read.format("delta")
    changes = reader.options(readChangeFeed="true", startingVersion="0").load(str(path))
    for name, made in FRAMES.items():
        made(active.read.format("delta").load(str(path)), changes).createOrReplaceTempView("frame")
        values = [5, 5, "insert", 9, None] if name in {"changes", "some changes"} else [7, 7]
        new = active.createDataFrame([tuple(values)], active.table("frame").schema)
        for overwrite in (False, True):
            with pytest.raises(AnalysisException, match=r"INSERT|TABLE_OPERATION"):
                new.write.insertInto("frame", overwrite)
        assert list(path.rglob("*.parquet")) == before, name
    active.catalog.dropTempView("frame")
    active.conf.unset("spark.puredelta.io")


@pytest.mark.thorough
def test_a_table_is_saved_whose_name_a_temporary_view_has_too(active: SparkSession) -> None:
    """The second call ended with PYTHON_DATA_SOURCE_ERROR: the view hid the table."""
    active.range(3).createOrReplaceTempView("shadowed")
    try:
        for mode, count in (("append", 1), ("append", 2), ("overwrite", 1)):
            active.range(1).write.format("delta").mode(mode).saveAsTable("shadowed")
            assert active.table("default.shadowed").count() == count
        assert active.table("shadowed").count() == 3
    finally:
        active.catalog.dropTempView("shadowed")
        active.sql("DROP TABLE default.shadowed")


@pytest.mark.thorough
def test_without_activation_spark_refuses_to_insert_into_a_view(
    spark: SparkSession, tmp_path: Path
) -> None:
    puredelta.write(spark.sql("SELECT 1L AS id, 1L AS v"), tmp_path / "t")
    puredelta.read(spark, tmp_path / "t").createOrReplaceTempView("frame")
    for insert in INSERTS.values():
        with pytest.raises(AnalysisException, match="single path"):
            insert(spark, "frame")
    assert puredelta.read(spark, tmp_path / "t").count() == 1
    spark.catalog.dropTempView("frame")


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_a_view_whose_columns_have_other_case_is_its_table(
    views: SparkSession, tmp_path: Path, sensitive: str
) -> None:
    """They were computed columns, so the statement was refused."""
    views.range(3).selectExpr("id", "id AS v").write.format("delta").mode("append").save(
        f"{tmp_path}/t"
    )
    views.sql("CREATE OR REPLACE TEMP VIEW spelled AS SELECT ID, V FROM rows_of_view")
    views.conf.set("spark.sql.caseSensitive", sensitive)
    try:
        if sensitive == "true":
            with pytest.raises((AnalysisException, DeltaError)):
                views.sql("DELETE FROM spelled WHERE id = 1")
            assert views.table("rows_of_view").count() == 3
        else:
            views.sql("DELETE FROM spelled WHERE Id = 1")
            views.sql("UPDATE spelled SET V = 7 WHERE ID = 2")
            merge = "MERGE INTO spelled t USING (SELECT 0L ID, 9L V UNION SELECT 8L, 8L) s "
            merge += "ON t.ID = s.ID WHEN MATCHED THEN UPDATE SET V = s.V WHEN NOT MATCHED THEN "
            views.sql(f"{merge} INSERT *")
            found = sorted(map(tuple, views.table("rows_of_view").collect()))
            assert found == [(0, 9), (2, 7), (8, 8)]
    finally:
        views.conf.unset("spark.sql.caseSensitive")
        views.catalog.dropTempView("spelled")


@pytest.mark.thorough
def test_a_view_of_a_view_of_a_name_shows_the_table(views: SparkSession) -> None:
    """The name of the inner view was looked up in the catalog alone."""
    views.sql("INSERT INTO rows_of_view VALUES (1, 1), (2, 2)")
    views.sql("CREATE OR REPLACE TEMP VIEW inner_view AS SELECT * FROM rows_of_view")
    views.sql("CREATE OR REPLACE TEMP VIEW outer_view AS SELECT * FROM inner_view")
    assert views.table("outer_view").count() == 2
    views.sql("DELETE FROM outer_view WHERE id = 1")
    assert views.sql("SELECT * FROM outer_view").collect() == [(2, 2)]
    for name in ("inner_view", "outer_view"):
        views.catalog.dropTempView(name)


def test_replace_where_has_no_subquery(views: SparkSession) -> None:
    for where in ("id IN (SELECT 1)", "id = (SELECT 1)", "EXISTS (SELECT 1) AND id = 1"):
        with pytest.raises(AnalysisException, match="OVERWRITE_BY_SUBQUERY"):
            views.sql(f"INSERT INTO rows_of_view REPLACE WHERE {where} SELECT 1L, 2L")


@pytest.mark.thorough
def test_tables_of_other_formats_get_the_answer_of_spark(views: SparkSession) -> None:
    views.sql("CREATE TABLE others (id LONG, v LONG) USING parquet")
    try:
        for text in CHANGES.values():
            with pytest.raises(PySparkException) as caught:
                views.sql(text.format("others"))
            assert caught.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
            assert not isinstance(caught.value, DeltaError)
    finally:
        views.sql("DROP TABLE others")


READS: dict[str, Callable[[SparkSession, str], object]] = {
    "load": lambda spark, path: spark.read.format("delta").load(path),
    "SELECT": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`"),
    "stream": lambda spark, path: spark.readStream.format("delta").load(path),
    "forPath": DeltaTable.forPath,
    "history": lambda spark, path: spark.sql(f"DESCRIBE HISTORY delta.`{path}`"),
    "api": puredelta.read,
}
WRITES: dict[str, Callable[[SparkSession, str], object]] = {
    "append": lambda spark, path: spark.range(1).write.format("delta").mode("append").save(path),
    "api": lambda spark, path: puredelta.write(spark.range(1), path, mode="append"),
    "DELETE": lambda spark, path: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1"),
    "UPDATE": lambda spark, path: DeltaTable.forPath(spark, path).update("id = 1", {"id": "9"}),
    "MERGE": lambda spark, path: spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT id FROM range(3)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE"
    ),
    "OPTIMIZE": lambda spark, path: spark.sql(f"OPTIMIZE delta.`{path}`"),
    "properties": lambda spark, path: spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('a' = 'b')"
    ),
    "constraint": lambda spark, path: spark.sql(
        f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (id >= 0)"
    ),
    "GENERATE": lambda spark, path: spark.sql(
        f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`"
    ),
}


def _refuse(
    monkeypatch: pytest.MonkeyPatch,
    *methods: str,
    failure: Callable[..., OSError] = PermissionError,
) -> None:
    """Let the local store refuse some of its methods, as a directory without the right does."""
    number = errno.EACCES if failure is PermissionError else errno.ENOSPC

    def refuse(store: LocalStore, path: str, *_: object, **__: object) -> object:
        raise failure(number, os.strerror(number), f"{store.root_uri}/{path}")

    for name in methods:
        monkeypatch.setattr(LocalStore, name, refuse)


@pytest.fixture
def table(active: SparkSession, tmp_path: Path) -> str:
    path = f"{tmp_path}/t"
    for first in (0, 5):
        rows = active.range(first, first + 5).coalesce(1)
        rows.write.format("delta").mode("append").save(path)
    return path


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", READS)
def test_a_log_that_may_not_be_read(
    active: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _refuse(monkeypatch, "list_from", "read", "read_end", "open")
    with pytest.raises(DeltaError, match=r"_delta_log.*Permission denied") as caught:
        READS[name](active, table)
    assert caught.value.code is ErrorCode.STORAGE_ACCESS_DENIED
    assert isinstance(caught.value, PermissionError)
    assert "Grant" in str(caught.value)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", WRITES)
def test_a_log_that_may_not_be_written(
    active: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as refused:
        _refuse(refused, "put_if_absent", "put_parts_if_absent", "put")
        with pytest.raises(DeltaError, match=r"Permission denied.*[Gg]rant") as caught:
            WRITES[name](active, table)
        assert caught.value.code in {ErrorCode.STORAGE_ACCESS_DENIED, ErrorCode.WRITE_FAILED}
    assert active.read.format("delta").load(table).count() == 10


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["append", "DELETE", "properties", "constraint"])
def test_a_disk_that_is_full(
    active: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with monkeypatch.context() as full:
        _refuse(full, "put_if_absent", "put_parts_if_absent", "put", failure=StorageError)
        with pytest.raises(DeltaError, match=r"No space left on device") as caught:
            WRITES[name](active, table)
    assert caught.value.code is ErrorCode.STORAGE_FAILED
    assert isinstance(caught.value, StorageError)
    assert "look at the history" in str(caught.value)
    assert active.read.format("delta").load(table).count() == 10


def test_a_data_file_that_may_not_be_read_is_named(
    active: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark says of such a file that it does not exist, and nothing of the reason."""
    data = next(Path(table).rglob("*.parquet"))
    held = data.read_bytes()
    data.unlink()
    with pytest.raises(DeltaError, match="is not there") as gone:
        active.read.format("delta").load(table).collect()
    assert gone.value.code is ErrorCode.FAILED_READ_FILE_NOT_EXIST
    cause = gone.value.__cause__
    assert isinstance(cause, Exception)
    data.write_bytes(held)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    found = unreadable_file(cause, lambda: True)
    assert found is not None
    assert found.code is ErrorCode.FAILED_READ_FILE
    assert "(permission denied)" in str(found)
    assert data.name in str(found)
