"""ALTER TABLE on the log alone; what the reference commits for the same is in tests/reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.alter.change import cluster_table_by
from puredelta.commands.alter.columns import (
    ColumnEdit,
    NewColumn,
    Unset,
    add_table_columns,
    change_table_columns,
    drop_table_columns,
    rename_table_column,
)
from puredelta.commands.alter.constraints import drop_check_constraint
from puredelta.commands.alter.properties import set_table_properties, unset_table_properties
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.schema.schema_edit import After, End
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.types import (
    INTEGER,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from tests.commands.sessions import FakeSession
from tests.faults import MemoryStore
from tests.log.tables import add, create_table, feature_protocol

SPARK: Any = FakeSession()
POINT = StructType((StructField("x", INTEGER), StructField("y", STRING)))
SCHEMA = StructType(
    (
        StructField("a", INTEGER, nullable=False),
        StructField("b", STRING, True, {"comment": "old"}),
        StructField("s", POINT),
        StructField("l", ArrayType(POINT)),
        StructField("m", MapType(STRING, INTEGER)),
        StructField("p", INTEGER),
    )
)
MAPPED = {"delta.columnMapping.mode": "name"}


def table(*files: Any, **rest: Any) -> TableLog:
    return create_table(MemoryStore(), *files, schema=SCHEMA, partitioned_by=("p",), **rest)


def mapped(**properties: str) -> TableLog:
    log = table()
    set_table_properties(SPARK, log, {**MAPPED, **properties})
    return log


def last(log: TableLog) -> CommitInfo:
    info = log.history(limit=1)[0].commit_info
    assert info is not None
    return info


def names(log: TableLog) -> tuple[str, ...]:
    return log.snapshot().config.schema.names


# --- properties -----------------------------------------------------------------------------


def test_properties_come_and_go() -> None:
    log = table()
    set_table_properties(SPARK, log, {"mine": "1", "delta.appendonly": "true", "comment": "new"})
    assert last(log).operation_parameters["properties"] == (
        '{"mine":"1","delta.appendOnly":"true","comment":"new"}'
    )
    assert log.snapshot().metadata.configuration == {"mine": "1", "delta.appendOnly": "true"}
    assert log.snapshot().metadata.description == "new"
    unset_table_properties(SPARK, log, ["delta.APPENDONLY", "comment", "nope"])
    assert last(log).operation_parameters == {
        "properties": '["delta.appendOnly","comment","nope"]',
        "ifExists": True,
    }
    assert log.snapshot().metadata.configuration == {"mine": "1"}
    assert log.snapshot().metadata.description is None
    with pytest.raises(DeltaError) as error:
        unset_table_properties(SPARK, log, ["nope"], if_exists=False)
    assert error.value.code is ErrorCode.UNSET_NON_EXISTENT_PROPERTY


def test_features_and_versions_change_the_protocol_alone() -> None:
    log = table()
    set_table_properties(
        SPARK, log, {"delta.feature.deletionVectors": "supported", "delta.minWriterVersion": "3"}
    )
    snapshot = log.snapshot()
    assert snapshot.metadata.configuration == {}
    assert snapshot.config.supported_features == {
        *("appendOnly", "checkConstraints", "deletionVectors", "invariants")
    }
    set_table_properties(SPARK, log, {"delta.enableChangeDataFeed": "true"})
    assert log.snapshot().config.is_active("changeDataFeed")


def test_mapping_starts_from_the_names_there_are() -> None:
    log = mapped()
    config = log.snapshot().config
    assert config.physical_path(("s", "x")) == ("s", "x")
    assert config.properties.column_mapping_max_id == 10
    with pytest.raises(DeltaError) as error:
        set_table_properties(SPARK, log, {"delta.columnMapping.mode": "id"})
    assert error.value.code is ErrorCode.UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE


def test_rows_there_are_get_ids_before_rows_are_tracked() -> None:
    log = table(add("x.parquet", {"p": "1"}), add("y.parquet", {"p": "2"}))
    set_table_properties(SPARK, log, {"delta.enableRowTracking": "true"})
    operations = [e.commit_info.operation for e in log.history() if e.commit_info]
    assert operations == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL", "WRITE"]
    assert {f.path: f.base_row_id for f in log.snapshot().files.adds()} == {
        "x.parquet": 0,
        "y.parquet": 10,
    }
    assert last(log).tags is not None
    assert last(log).tags["rowTrackingEnablementOnly"] == "true"
    assert "delta.rowTracking.materializedRowIdColumnName" in log.snapshot().metadata.configuration


def test_ids_are_not_given_out_while_that_is_suspended() -> None:
    log = table(
        add("x.parquet", {"p": "1"}),
        protocol=feature_protocol("rowTracking", "domainMetadata"),
        delta__rowTrackingSuspended="true",
    )
    for properties in (
        {"delta.enableRowTracking": "true"},
        {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "false"},
    ):
        with pytest.raises(DeltaError) as error:
            set_table_properties(SPARK, log, properties)
        assert error.value.code is ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION
    assert log.latest_version() == 0


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"delta.constraints.c": "a > 0"}, ErrorCode.ADD_CONSTRAINTS),
        ({"location": "/x"}, ErrorCode.CANNOT_CHANGE_LOCATION),
        ({"provider": "parquet"}, ErrorCode.CANNOT_CHANGE_PROVIDER),
        (
            {"delta.feature.clustering": "supported"},
            ErrorCode.ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE,
        ),
        ({"delta.bogus": "1"}, ErrorCode.UNKNOWN_CONFIGURATION),
        ({"delta.dataSkippingStatsColumns": "zz"}, ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA),
    ],
)
def test_what_cannot_be_set_is_refused(properties: dict[str, str], code: ErrorCode) -> None:
    log = table()
    with pytest.raises(DeltaError) as error:
        set_table_properties(SPARK, log, properties)
    assert error.value.code is code
    assert log.latest_version() == 0


# --- columns --------------------------------------------------------------------------------


def test_columns_are_added_anywhere() -> None:
    log = table()
    add_table_columns(
        SPARK,
        log,
        [
            NewColumn(field=T.StructField("c", T.CharType(3), metadata={"comment": "cc"})),
            NewColumn(field=T.StructField("z", T.LongType()), parent=("s",), place=After("x")),
            NewColumn(
                field=T.StructField("w", T.StringType()),
                parent=("l", "element"),
                place=End.FIRST,
            ),
        ],
    )
    config = log.snapshot().config
    assert simple_string(config.schema) == (
        "struct<a:int,b:string,s:struct<x:int,z:bigint,y:string>,"
        "l:array<struct<w:string,x:int,y:string>>,m:map<string,int>,p:int,c:string>"
    )
    recorded = json.loads(last(log).operation_parameters["columns"])
    assert recorded[0]["column"]["type"] == "char(3)"
    assert [c.get("position") for c in recorded] == [None, "AFTER x", "FIRST"]
    assert recorded[1]["column"]["name"] == "s.z"


def test_added_columns_are_mapped_like_the_others() -> None:
    log = mapped()
    add_table_columns(SPARK, log, [NewColumn(field=T.StructField("n", T.LongType()))])
    config = log.snapshot().config
    assert config.physical_name("n").startswith("col-")
    assert config.properties.column_mapping_max_id == 11


@pytest.mark.parametrize(
    ("field", "code"),
    [
        (T.StructField("n", T.LongType(), nullable=False), ErrorCode.OPERATION_NOT_ALLOWED),
        (
            T.StructField("n", T.StructType([T.StructField("x", T.LongType(), nullable=False)])),
            ErrorCode.OPERATION_NOT_ALLOWED,
        ),
        (
            T.StructField("n", T.LongType(), metadata={"CURRENT_DEFAULT": "1"}),
            ErrorCode.WRONG_COLUMN_DEFAULTS_ADD_COLUMN,
        ),
        (T.StructField("A", T.LongType()), ErrorCode.FIELD_ALREADY_EXISTS),
        (T.StructField("x y", T.LongType()), ErrorCode.INVALID_CHARACTERS_IN_COLUMN_NAMES),
        (T.StructField("n", T.TimestampNTZType()), ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT),
        (T.StructField("n", T.DayTimeIntervalType()), ErrorCode.UNSUPPORTED_DATA_TYPES),
    ],
)
def test_columns_that_cannot_be_added(field: T.StructField, code: ErrorCode) -> None:
    log = table()
    with pytest.raises(DeltaError) as error:
        add_table_columns(SPARK, log, [NewColumn(field=field)])
    assert error.value.code is code


def test_a_type_that_needs_a_feature_comes_with_the_statement_that_adds_it() -> None:
    field = NewColumn(field=T.StructField("n", T.TimestampNTZType()))
    with pytest.raises(DeltaError) as error:
        add_table_columns(SPARK, table(), [field])
    way = "ALTER TABLE ... SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')"
    assert way in str(error.value)


def test_columns_are_renamed_and_dropped_where_they_are_mapped() -> None:
    log = mapped(**{"delta.dataSkippingStatsColumns": "a,s"})
    rename_table_column(SPARK, log, ("S", "x"), "xx")
    assert last(log).operation_parameters == {"oldColumnPath": "s.x", "newColumnPath": "s.xx"}
    rename_table_column(SPARK, log, ("p",), "pp")
    rename_table_column(SPARK, log, ("a",), "a b")
    config = log.snapshot().config
    assert config.partition_columns == ("pp",)
    assert config.physical_path(("s", "xx")) == ("s", "x")
    assert config.metadata.configuration["delta.dataSkippingStatsColumns"] == "`a b`,s"
    drop_table_columns(SPARK, log, [("s", "xx"), ("a b",)])
    assert names(log) == ("b", "s", "l", "m", "pp")
    assert last(log).operation_parameters == {"columns": '["s.xx","a b"]'}
    assert log.snapshot().metadata.configuration["delta.dataSkippingStatsColumns"] == "s"
    assert drop_table_columns(SPARK, log, [("nope",)], if_exists=True) is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda t: drop_table_columns(SPARK, t, [("p",)]),
            ErrorCode.UNSUPPORTED_DROP_PARTITION_COLUMN,
        ),
        (lambda t: drop_table_columns(SPARK, t, [("nope",)]), ErrorCode.UNRESOLVED_COLUMN),
        (lambda t: rename_table_column(SPARK, t, ("a",), "B"), ErrorCode.FIELD_ALREADY_EXISTS),
        (
            lambda t: rename_table_column(SPARK, t, ("nope",), "n"),
            ErrorCode.UNRESOLVED_COLUMN,
        ),
    ],
)
def test_mapped_columns_that_stay(change: Callable[[TableLog], Any], code: ErrorCode) -> None:
    with pytest.raises(DeltaError) as error:
        change(mapped())
    assert error.value.code is code


def test_columns_without_mapping_keep_their_names() -> None:
    with pytest.raises(DeltaError) as error:
        rename_table_column(SPARK, table(), ("a",), "n")
    assert error.value.code is ErrorCode.UNSUPPORTED_RENAME_COLUMN
    with pytest.raises(DeltaError) as error:
        drop_table_columns(SPARK, table(), [("a",)])
    assert error.value.code is ErrorCode.UNSUPPORTED_DROP_COLUMN


@pytest.mark.parametrize(
    "rule",
    [
        "a <> 'x' -- it's\n AND b <> 'a' -- it's",
        "a <> 'x' /* it's */ AND b <> 'a' /* it's */",
        "a <> 'x' /* /* ' */ ' */ AND b <> 'a'",
        r"a <> r'\' AND b <> r'\'",
        "a <> 'x' /* /* ' */ ` */ AND `b` <> 'a'",
    ],
)
def test_rules_are_read_with_comments_and_raw_text(rule: str) -> None:
    for key, value in {
        "delta__constraints__c": rule,
        "delta__constraints__d": f"coalesce(({rule}), true)",
    }.items():
        log = table(protocol=feature_protocol("checkConstraints", readers=()), **{key: value})
        set_table_properties(SPARK, log, MAPPED)
        with pytest.raises(DeltaError) as error:
            drop_table_columns(SPARK, log, [("b",)])
        assert error.value.code is ErrorCode.CONSTRAINT_DEPENDENT_COLUMN_CHANGE
        with pytest.raises(DeltaError) as error:
            rename_table_column(SPARK, log, ("b",), "n")
        assert error.value.code is ErrorCode.CONSTRAINT_DEPENDENT_COLUMN_CHANGE


def test_rules_keep_their_columns() -> None:
    log = table(
        protocol=feature_protocol("checkConstraints", readers=()),
        delta__constraints__c="s.x > 0 AND b <> 'a'",
    )
    set_table_properties(SPARK, log, MAPPED)
    for path in (("s", "x"), ("s",), ("b",)):
        with pytest.raises(DeltaError) as error:
            drop_table_columns(SPARK, log, [path])
        assert error.value.code is ErrorCode.CONSTRAINT_DEPENDENT_COLUMN_CHANGE
    rename_table_column(SPARK, log, ("a",), "n")
    drop_check_constraint(SPARK, log, "C")
    assert last(log).operation_parameters == {
        "name": "C",
        "expr": "s.x > 0 AND b <> 'a'",
        "existed": "true",
    }
    drop_table_columns(SPARK, log, [("s", "x")])
    with pytest.raises(DeltaError) as error:
        drop_check_constraint(SPARK, log, "c")
    assert error.value.code is ErrorCode.CONSTRAINT_DOES_NOT_EXIST
    drop_check_constraint(SPARK, log, "c", if_exists=True)
    assert last(log).operation_parameters == {"name": "c", "existed": "false"}


def test_one_column_is_changed_in_place() -> None:
    log = table()
    change_table_columns(SPARK, log, [(("A",), ColumnEdit(comment="new", nullable=True))])
    recorded = json.loads(last(log).operation_parameters["column"])
    assert recorded == {
        "name": "a",
        "type": "integer",
        "nullable": True,
        "metadata": {"comment": "new"},
    }
    change_table_columns(SPARK, log, [(("a",), ColumnEdit(place=After("b")))])
    assert names(log)[:2] == ("b", "a")
    assert last(log).operation_parameters["position"] == "AFTER b"
    change_table_columns(SPARK, log, [(("s", "y"), ColumnEdit(place=End.FIRST))])
    assert simple_string(log.snapshot().config.schema.fields[2].type) == "struct<y:string,x:int>"


def test_types_become_wider_where_that_is_enabled() -> None:
    log = table()
    widen = ColumnEdit(data_type=T.LongType())
    with pytest.raises(DeltaError) as error:
        change_table_columns(SPARK, log, [(("a",), widen)])
    assert error.value.code is ErrorCode.UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP
    set_table_properties(SPARK, log, {"delta.enableTypeWidening": "true"})
    change_table_columns(SPARK, log, [(("a",), widen)])
    change_table_columns(SPARK, log, [(("m", "value"), widen)])
    fields = {f.name: f for f in log.snapshot().config.schema.fields}
    assert fields["a"].metadata["delta.typeChanges"] == [{"toType": "long", "fromType": "integer"}]
    assert fields["m"].metadata["delta.typeChanges"] == [
        {"toType": "long", "fromType": "integer", "fieldPath": "value"}
    ]
    assert json.loads(last(log).operation_parameters["column"])["name"] == "m.value"
    with pytest.raises(DeltaError):
        change_table_columns(SPARK, log, [(("a",), ColumnEdit(data_type=T.IntegerType()))])


def test_defaults_need_their_feature(spark: SparkSession) -> None:
    log = table()
    with pytest.raises(DeltaError) as error:
        change_table_columns(spark, log, [(("b",), ColumnEdit(default="'x'"))])
    assert error.value.code is ErrorCode.WRONG_COLUMN_DEFAULTS_FEATURE_NOT_ENABLED
    set_table_properties(spark, log, {"delta.feature.allowColumnDefaults": "supported"})
    change_table_columns(spark, log, [(("b",), ColumnEdit(default="'x'"))])
    assert log.snapshot().config.schema.fields[1].metadata["CURRENT_DEFAULT"] == "'x'"
    change_table_columns(spark, log, [(("b",), ColumnEdit(default=Unset.DEFAULT))])
    assert "CURRENT_DEFAULT" not in log.snapshot().config.schema.fields[1].metadata


def test_several_columns_change_in_one_commit() -> None:
    log = table()
    edits = [(("b",), ColumnEdit(comment="1")), (("s", "x"), ColumnEdit(comment="2"))]
    assert change_table_columns(SPARK, log, edits) == 1
    info = log.history()[0].commit_info
    assert info is not None
    assert info.operation == "CHANGE COLUMNS"
    columns = json.loads(info.operation_parameters["columns"])
    assert [column["name"] for column in columns] == ["b", "s.x"]


@pytest.mark.parametrize(
    ("path", "edit", "code"),
    [
        (("b",), ColumnEdit(nullable=False), ErrorCode.UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP),
        (("l", "element"), ColumnEdit(comment="x"), ErrorCode.UNSUPPORTED_COMMENT_MAP_ARRAY),
        (("nope",), ColumnEdit(comment="x"), ErrorCode.UNRESOLVED_COLUMN),
        (("b",), ColumnEdit(place=After("nope")), ErrorCode.FIELD_NOT_FOUND),
        (
            ("s",),
            ColumnEdit(data_type=T.StructType([T.StructField("x", T.LongType())])),
            ErrorCode.UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP,
        ),
    ],
)
def test_changes_that_are_none(path: tuple[str, ...], edit: ColumnEdit, code: ErrorCode) -> None:
    with pytest.raises(DeltaError) as error:
        change_table_columns(SPARK, table(), [(path, edit)])
    assert error.value.code is code


# --- clustering -----------------------------------------------------------------------------


def test_clustering_columns_change() -> None:
    log = create_table(MemoryStore(), schema=SCHEMA)
    assert cluster_table_by(SPARK, log, ()) is None
    cluster_table_by(SPARK, log, [("A",), ("s", "x")])
    assert last(log).operation_parameters == {
        "oldClusteringColumns": "",
        "newClusteringColumns": "a,s.x",
    }
    set_table_properties(SPARK, log, MAPPED)
    with pytest.raises(DeltaError) as error:
        drop_table_columns(SPARK, log, [("s",)])
    assert error.value.code is ErrorCode.UNSUPPORTED_DROP_CLUSTERING_COLUMN
    cluster_table_by(SPARK, log, ())
    assert last(log).operation_parameters["oldClusteringColumns"] == "a,s.x"
    drop_table_columns(SPARK, log, [("s",)])
    with pytest.raises(DeltaError) as error:
        cluster_table_by(SPARK, table(), [("a",)])
    assert error.value.code is ErrorCode.ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE
