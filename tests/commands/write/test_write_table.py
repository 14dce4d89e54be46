"""Writes by the DataFrame-level entry: create, append, overwrite, and everything refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.api import read, write
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import (
    ConcurrentWriteException,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    MetadataChangedException,
    UnsupportedError,
)
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.store.registry import open_store
from tests.faults import Meddling, at_first
from tests.log.tables import Client


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "a table")


def rows_of(spark, path, **options) -> list[dict]:
    found = [row.asDict(recursive=True) for row in read(spark, path, **options).collect()]
    return sorted(found, key=lambda row: json.dumps(row, default=str, sort_keys=True))


def snapshot(path):
    return TableLog.open(path).snapshot()


def commit_info(path, version=None):
    return TableLog.open(path).history(limit=1)[0].commit_info


def files_on_disk(tmp_path) -> set[str]:
    return {
        str(p.relative_to(tmp_path))
        for p in tmp_path.rglob("*")
        if p.is_file() and "_delta_log" not in p.parts and not p.name.startswith(".")
    }


def refused(code: ErrorCode, *args, **options) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        write(*args, **options)
    assert caught.value.code is code
    return caught.value


BASE = "select 1 a, 'x' b, named_struct('p', 1, 'q', 2) c"


def create(spark, path, sql=BASE, **options):
    return write(spark.sql(sql), path, mode="append", **options)


# --- the history a write leaves -------------------------------------------------------------


@pytest.mark.smoke
def test_create_append_overwrite_in_the_history(spark, path):
    rows = spark.range(3).selectExpr("id", "cast(id % 2 as string) p")
    assert write(rows, path).version == 0
    assert write(rows, path, mode="append", options={"userMetadata": "hi"}).version == 1
    outcome = write(rows, path, mode="overwrite")
    assert (outcome.version, outcome.num_rows, outcome.num_removed_files) == (2, 3, 4)
    newest, appended, created = (entry.commit_info for entry in TableLog.open(path).history())
    assert [i.operation for i in (created, appended, newest)] == ["WRITE"] * 3
    assert created.operation_parameters == {"mode": "ErrorIfExists", "partitionBy": "[]"}
    assert appended.operation_parameters == {"mode": "Append", "partitionBy": "[]"}
    assert newest.operation_parameters == {"mode": "Overwrite", "partitionBy": "[]"}
    assert [i.is_blind_append for i in (created, appended, newest)] == [True, True, False]
    assert appended.user_metadata == "hi"
    assert set(created.operation_metrics) == {"numFiles", "numOutputRows", "numOutputBytes"}
    assert newest.operation_metrics["numRemovedFiles"] == "4"
    assert newest.operation_metrics["numOutputRows"] == "3"
    assert rows_of(spark, path) == [
        {"id": 0, "p": "0"},
        {"id": 1, "p": "1"},
        {"id": 2, "p": "0"},
    ]
    assert len(rows_of(spark, path, version=1)) == 6


def test_a_new_table_has_what_its_schema_needs(spark, path):
    rows = spark.sql("select 1 a, timestamp_ntz'2020-01-01 00:00:00' t")
    with pytest.raises(InvalidRequestError, match="apendOnly") as error:
        write(rows, path, properties={"delta.apendOnly": "true"})
    assert error.value.code is ErrorCode.UNKNOWN_CONFIGURATION
    write(rows, path, name="n", description="d", properties={"Delta.AppendOnly": "true"})
    table = snapshot(path)
    assert (table.protocol.min_reader_version, table.protocol.min_writer_version) == (3, 7)
    assert "timestampNtz" in table.protocol.reader_features
    assert (table.metadata.name, table.metadata.description) == ("n", "d")
    assert table.config.properties.append_only
    refused(ErrorCode.CANNOT_MODIFY_APPEND_ONLY, rows, path, mode="overwrite")
    assert write(rows, path, mode="append").version == 1


def test_session_defaults_and_delta_options_are_properties_of_a_new_table(spark, path):
    key = "spark.databricks.delta.properties.defaults.checkpointInterval"
    spark.conf.set(key, "7")
    try:
        create(spark, path, options={"delta.dataSkippingNumIndexedCols": 1})
    finally:
        spark.conf.unset(key)
    assert snapshot(path).metadata.configuration == {
        "delta.checkpointInterval": "7",
        "delta.dataSkippingNumIndexedCols": "1",
    }
    (add,) = snapshot(path).files.adds()
    assert json.loads(add.stats)["minValues"] == {"a": 1}


def test_comments_stay_and_the_machinery_of_another_table_does_not(spark, path):
    metadata = {"comment": "hi", "delta.columnMapping.id": 7, "delta.identity.start": 1}
    rows = spark.range(1).select(F.col("id").alias("id", metadata=metadata))
    write(rows, path)
    (field,) = snapshot(path).config.schema.fields
    assert field.metadata == {"comment": "hi"}
    assert field.nullable


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore", "errorifexists"])
def test_every_mode_creates(spark, path, mode):
    outcome = write(spark.range(2), path, mode=mode)
    assert (outcome.version, outcome.num_rows) == (0, 2)


def test_error_and_ignore_leave_a_table_alone(spark, path):
    create(spark, path)
    error = refused(ErrorCode.TABLE_ALREADY_EXISTS, spark.range(1), path)
    assert path in error.message
    assert write(spark.range(1), path, mode="ignore").version is None
    assert snapshot(path).version == 0


# --- no rows --------------------------------------------------------------------------------


def test_m83_no_rows_make_no_file(spark, path, tmp_path):
    empty = spark.range(0).toDF("a")
    assert write(empty, path).version == 0
    assert snapshot(path).files.num_records() == 0
    assert len(snapshot(path).files) == 0
    assert files_on_disk(tmp_path) == set()
    assert write(empty, path, mode="append").version is None, "an empty append commits nothing"
    write(spark.range(1).toDF("a"), path, mode="append")
    assert write(empty, path, mode="overwrite").num_removed_files == 1
    assert rows_of(spark, path) == []


def test_a_frame_without_columns_is_refused(spark, path):
    refused(ErrorCode.EMPTY_DATA, spark.range(1).select(), path)


# --- schema enforcement ---------------------------------------------------------------------


def test_columns_go_by_name_at_every_level(spark, path):
    create(spark, path)
    create(spark, path, "select named_struct('Q', 7, 'P', 8) C, 'y' B")
    create(spark, path, "select 2 a, named_struct('q', 9) c")
    create(spark, path, "select 3S a, null b")
    assert rows_of(spark, path) == [
        {"a": 1, "b": "x", "c": {"p": 1, "q": 2}},
        {"a": 2, "b": None, "c": {"p": None, "q": 9}},
        {"a": 3, "b": None, "c": None},
        {"a": None, "b": "y", "c": {"p": 8, "q": 7}},
    ]


def test_structs_inside_arrays_and_maps_go_by_name_too(spark, path):
    sql = "select array(named_struct('x', 1, 'y', 2)) a, map('k', named_struct('x', 1, 'y', 2)) m"
    create(spark, path, sql)
    create(
        spark,
        path,
        "select array(named_struct('y', 2, 'x', 1)) a, map('k', named_struct('y', 2)) m",
    )
    first, second = rows_of(spark, path)
    assert first["a"] == second["a"] == [{"x": 1, "y": 2}]
    assert [r["m"]["k"] for r in (first, second)] == [{"x": 1, "y": 2}, {"x": None, "y": 2}]


def test_a_table_knows_no_case_even_if_the_session_does(spark, path):
    create(spark, path)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        create(spark, path, "select 2 A, named_struct('Q', 9, 'P', 8) c")
        refused(ErrorCode.DUPLICATE_COLUMNS_FOUND, spark.sql("select 1 a, 2 A"), path + "2")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert rows_of(spark, path)[1] == {"a": 2, "b": None, "c": {"p": 8, "q": 9}}


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("select 1 a, 'x' b, 5 z", "z"),
        ("select 1 a, named_struct('p', 1, 'r', 3) c", "c.r"),
    ],
)
def test_columns_the_table_lacks_are_refused(spark, path, sql, column):
    create(spark, path)
    for mode in ("append", "overwrite"):
        error = refused(ErrorCode.SCHEMA_MISMATCH, spark.sql(sql), path, mode=mode)
        assert "A schema mismatch detected when writing to the Delta table" in error.message
        assert f": {column}.\n" in error.message
        assert "mergeSchema" in error.message
    ignored = {"overwriteSchema": "true"}  # has no meaning for an append
    refused(ErrorCode.SCHEMA_MISMATCH, spark.sql(sql), path, mode="append", options=ignored)
    assert snapshot(path).version == 0


@pytest.mark.parametrize("value", ["1L", "'1'", "1.5D", "true", "1.0BD", "array(1)"])
def test_other_types_are_never_cast(spark, path, value):
    """As delta-spark's DataFrame writer: no implicit casts but between byte, short and int."""
    create(spark, path)
    for options in ({}, {"mergeSchema": True}):
        rows = spark.sql(f"select {value} a")
        error = refused(
            ErrorCode.FAILED_TO_MERGE_FIELDS, rows, path, mode="append", options=options
        )
        assert "'a'" in error.message
        assert "int" in error.message


def test_a_wider_integer_needs_merge_schema(spark, path):
    create(spark, path, "select 1S a")
    wide = spark.sql("select 70000 a")
    refused(ErrorCode.SCHEMA_MISMATCH, wide, path, mode="append")
    write(wide, path, mode="append", options={"mergeSchema": True})
    assert rows_of(spark, path) == [{"a": 1}, {"a": 70000}]


@pytest.mark.smoke
def test_merge_schema_adds_columns_at_the_end(spark, path):
    create(spark, path, partition_by=["b"])
    rows = spark.sql("select 9 z, 2 a, 'x' b, named_struct('r', 3) c")
    write(rows, path, mode="append", options={"MERGESCHEMA": "true"})
    assert snapshot(path).config.schema.names == ("a", "b", "c", "z")
    assert commit_info(path).operation_parameters["canMergeSchema"] is True
    assert snapshot(path).metadata.partition_columns == ("b",)
    old, new = rows_of(spark, path)
    assert old == {"a": 1, "b": "x", "c": {"p": 1, "q": 2, "r": None}, "z": None}
    assert new == {"a": 2, "b": "x", "c": {"p": None, "q": None, "r": 3}, "z": 9}


def test_auto_merge_of_the_session(spark, path):
    create(spark, path)
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        create(spark, path, "select 1 a, 5 z")
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert snapshot(path).config.schema.names == ("a", "b", "c", "z")


def test_new_features_are_not_added_to_an_old_table_unasked(spark, path):
    create(spark, path)
    rows = spark.sql("select 1 a, timestamp_ntz'2020-01-01 00:00:00' t")
    with pytest.raises(InvalidRequestError, match="timestampNtz") as caught:
        write(rows, path, mode="append", options={"mergeSchema": True})
    assert caught.value.code is ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT


def test_overwrite_schema_replaces_columns_and_partitioning(spark, path):
    create(spark, path, partition_by=["b"])
    rows = spark.sql("select 'text' a, 2 z")
    write(rows, path, mode="overwrite", options={"overwriteSchema": True}, partition_by="z")
    table = snapshot(path)
    assert table.config.schema.names == ("a", "z")
    assert table.metadata.partition_columns == ("z",)
    assert commit_info(path).operation_parameters == {
        "mode": "Overwrite",
        "partitionBy": '["z"]',
        "canOverwriteSchema": True,
    }
    assert rows_of(spark, path) == [{"a": "text", "z": 2}]
    write(rows, path, mode="overwrite", options={"overwriteSchema": True})
    assert snapshot(path).metadata.partition_columns == (), (
        "as the reference: none named, none kept"
    )
    assert rows_of(spark, path, version=0) == [{"a": 1, "b": "x", "c": {"p": 1, "q": 2}}]


def test_overwrite_keeps_schema_and_partitioning(spark, path):
    create(spark, path, partition_by=["b"])
    write(spark.sql("select 'y' b"), path, mode="overwrite")
    assert snapshot(path).metadata.partition_columns == ("b",)
    assert rows_of(spark, path) == [{"a": None, "b": "y", "c": None}]


def test_a_table_may_be_overwritten_with_itself(spark, path):
    write(spark.range(5), path)
    write(read(spark, path).filter("id > 1"), path, mode="overwrite")
    assert [r["id"] for r in rows_of(spark, path)] == [2, 3, 4]


# --- what a table's schema may be -----------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "partition_by", "code"),
    [
        ("select 1 a, 2 A, 3 b", [], ErrorCode.DUPLICATE_COLUMNS_FOUND),
        ("select named_struct('x', 1, 'X', 2) a", [], ErrorCode.DUPLICATE_COLUMNS_FOUND),
        ("select 1 `a b`, 2 `c,d`", [], ErrorCode.INVALID_CHARACTERS_IN_COLUMN_NAMES),
        ("select 1 a, 2 b", ["a", "b"], ErrorCode.ALL_COLUMNS_PARTITIONED),
        ("select 1 a, 2 b", ["zz"], ErrorCode.PARTITION_COLUMN_NOT_FOUND),
        ("select 1 a, 2 b", ["a", "a"], ErrorCode.DUPLICATE_COLUMNS_FOUND),
        ("select 1 a, array(2) b", ["b"], ErrorCode.INVALID_PARTITION_COLUMN_TYPE),
    ],
)
def test_x07_schemas_that_no_table_has(spark, path, sql, partition_by, code):
    refused(code, spark.sql(sql), path, partition_by=partition_by)
    assert not Path(path).exists()


def test_partition_columns_are_the_tables(spark, path):
    create(spark, path, "select 1 a, 2 b, 3 c", partition_by=["C", "a"])
    assert snapshot(path).metadata.partition_columns == ("c", "a")
    rows = spark.sql("select 4 A, 5 B, 6 C")
    write(rows, path, mode="append", partition_by=["c", "A"])
    for wrong in (["a", "c"], ["c"], ["b"]):
        for mode in ("append", "overwrite"):
            error = refused(ErrorCode.SCHEMA_MISMATCH, rows, path, mode=mode, partition_by=wrong)
            assert "Table: [`c`, `a`]" in error.message
    assert rows_of(spark, path) == [{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": 6}]


def test_void_columns_are_kept_out_of_files(spark, path):
    create(spark, path, "select 1 a, null v")
    assert rows_of(spark, path) == [{"a": 1, "v": None}]
    (add,) = snapshot(path).files.adds()
    assert json.loads(add.stats)["nullCount"] == {"a": 0, "v": 1}


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("select 1 a, interval '1' day i", "i: interval day"),
        ("select 1 a, array(named_struct('y', interval '1' month)) s", "s.element.y: interval"),
    ],
)
def test_types_that_no_table_has(spark, path, sql, column):
    error = refused(ErrorCode.UNSUPPORTED_DATA_TYPES, spark.sql(sql), path)
    assert column in error.message
    assert not Path(path).exists()


def test_reserved_names_are_refused(spark, path):
    with pytest.raises(InvalidRequestError, match="__puredelta_"):
        write(spark.range(1).toDF("__puredelta_x"), path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mergeschemas": True}, "mergeschemas"),
        ({"mergeSchema": "yes"}, "'yes'"),
    ],
)
def test_options_that_do_not_exist(spark, path, options, message):
    error = refused(ErrorCode.INVALID_WRITE_OPTION, spark.range(1), path, options=options)
    assert message in error.message
    refused(ErrorCode.INVALID_WRITE_OPTION, spark.range(1), path, mode="upsert")


# --- constraints ----------------------------------------------------------------------------


def constrained(path, *, schema, configuration=None, protocol=(1, 3), features=None, partitions=()):
    """Create an empty table as another engine would."""
    reader, writer = protocol
    listed = None if features is None else frozenset(features)
    log = TableLog.open(path)
    Client(log, None).commit(
        [
            Metadata(
                id="t",
                schema_string=schema.json(),
                partition_columns=partitions,
                configuration=configuration or {},
            ),
            Protocol(min_reader_version=reader, min_writer_version=writer, writer_features=listed),
        ],
        Operation(name="CREATE TABLE"),
    )


@pytest.mark.smoke
def test_constraints_guard_every_way_in(spark, path, tmp_path):
    schema = T.StructType(
        [T.StructField("a", T.IntegerType(), nullable=False), T.StructField("b", T.IntegerType())]
    )
    constrained(path, schema=schema, configuration={"delta.constraints.pos": "b > 0"})
    for mode in ("append", "overwrite"):
        error = refused(
            ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES, spark.sql("select 1 a, -2 b"), path, mode=mode
        )
        assert error.message == (
            "CHECK constraint pos (b > 0) violated by row with values:\n - b : -2"
        )
        refused(
            ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
            spark.sql("select cast(null as int) a, 1 b"),
            path,
            mode=mode,
        )
        missing = refused(
            ErrorCode.MISSING_NOT_NULL_COLUMN_VALUE, spark.sql("select 1 b"), path, mode=mode
        )
        assert "Column a" in missing.message
    assert snapshot(path).version == 0
    assert files_on_disk(tmp_path) == set()
    write(spark.sql("select 1 a, 2 b"), path, mode="append")
    assert rows_of(spark, path) == [{"a": 1, "b": 2}]


def test_m108_an_empty_partition_value_is_null_and_judged_as_such(spark, path):
    schema = T.StructType(
        [T.StructField("p", T.StringType(), nullable=False), T.StructField("v", T.IntegerType())]
    )
    constrained(path, schema=schema, partitions=("p",))
    refused(
        ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED, spark.sql("select '' p, 1 v"), path, mode="append"
    )


def test_m106_char_is_padded(spark, path):
    schema = T.StructType(
        [T.StructField("c", T.StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})]
    )
    constrained(path, schema=schema)
    write(spark.sql("select 'a' c union all select null"), path, mode="append")
    assert rows_of(spark, path) == [{"c": "a  "}, {"c": None}]
    refused(ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT, spark.sql("select 'abcd' c"), path, mode="append")


def test_tables_that_cannot_be_written_are_refused_before_any_job(spark, path, tmp_path):
    schema = T.StructType([T.StructField("a", T.IntegerType())])
    constrained(path, schema=schema, protocol=(1, 7), features=["invariants"], configuration={})
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["futureFeature"]}
    commit = json.dumps({"protocol": features})
    store = TableLog.open(path).store
    store.put_if_absent("_delta_log/00000000000000000001.json", commit.encode())
    with pytest.raises(UnsupportedError, match="futureFeature"):
        write(spark.sql("select 1 a"), path, mode="append")
    assert files_on_disk(tmp_path) == set()


# --- failures -------------------------------------------------------------------------------


def test_a_failing_job_changes_nothing(spark, path, tmp_path):
    create(spark, path)
    before = files_on_disk(tmp_path)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        create(spark, path, "select cast(1 / id as int) a from range(3)")
    assert files_on_disk(tmp_path) == before
    assert snapshot(path).version == 0


def test_storage_that_refuses_is_named_and_nothing_is_left(spark, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises((DeltaError, OSError)):
        write(spark.range(1), str(tmp_path / "file" / "table"))
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_rival_that_wins_leaves_no_trace_of_the_loser(spark, path, tmp_path):
    create(spark, path)
    merging = WriteRequest(mode=SaveMode.APPEND, options={"mergeSchema": True})
    rival = partial(write_table, spark.sql("select 1 a, 7 z"), TableLog.open(path), merging)
    store = Meddling(open_store(path), before=at_first("put_if_absent", rival))
    with pytest.raises(MetadataChangedException):
        write_table(spark.sql("select 1 a, 8 y"), TableLog(store), merging)
    assert snapshot(path).version == 1
    assert snapshot(path).config.schema.names == ("a", "b", "c", "z")
    adds = {a.path for a in snapshot(path).files.adds()}
    assert len(adds) == len(files_on_disk(tmp_path / "a table"))


def test_two_creations_cannot_both_win(spark, path, tmp_path):
    rival = partial(write, spark.range(1), path)
    store = Meddling(open_store(path), before=at_first("put_if_absent", rival))
    with pytest.raises(ConcurrentWriteException):
        write_table(spark.range(2), TableLog(store))
    assert rows_of(spark, path) == [{"id": 0}]
    assert len(files_on_disk(tmp_path)) == 1


def test_an_interrupt_after_the_commit_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    store = Meddling(open_store(str(tmp_path / "t")), after=at_first("put_if_absent", interrupt))
    with pytest.raises(KeyboardInterrupt):
        write_table(spark.range(3), TableLog(store))
    assert read(spark, tmp_path / "t").count() == 3
