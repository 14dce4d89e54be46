"""CREATE and REPLACE of tables at a location, through the builders of ``DeltaTable``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import puredelta
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable, DeltaTableBuilder, IdentityGenerator

Builder = DeltaTableBuilder[DeltaTable]


def builder(spark: SparkSession, path: Path, *, how: str = "create") -> Builder:
    made: Builder = getattr(DeltaTable, how)(spark)
    return made.location(str(path))


def test_a_definition_becomes_the_first_commit(spark: SparkSession, tmp_path: Path) -> None:
    table = (
        builder(spark, tmp_path / "t")
        .addColumn("id", "BIGINT", generatedByDefaultAs=IdentityGenerator(5, -2))
        .addColumn("at", T.TimestampType(), nullable=False, comment="when")
        .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        .addColumns(T.StructType([T.StructField("code", T.CharType(3))]))
        .partitionedBy("DAY")
        .property("delta.appendonly", "true")
        .comment("events")
        .execute()
    )
    snapshot = TableLog.open(str(tmp_path / "t")).snapshot()
    fields = {f.name: f for f in snapshot.config.schema.fields}
    assert fields["id"].metadata["delta.identity.start"] == 5
    assert not fields["at"].nullable
    assert fields["code"].metadata == {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
    assert snapshot.config.partition_columns == ("day",)
    assert snapshot.metadata.configuration == {"delta.appendOnly": "true"}
    assert snapshot.metadata.description == "events"
    assert snapshot.config.supported_features == {
        *("appendOnly", "generatedColumns", "identityColumns", "invariants")
    }
    assert table.toDF().columns == ["id", "at", "day", "code"]
    assert table.history().collect()[0]["operation"] == "CREATE TABLE"


def test_clustering_and_mapping_go_together(spark: SparkSession, tmp_path: Path) -> None:
    table = (
        builder(spark, tmp_path / "t")
        .addColumn("a", "INT")
        .addColumn("s", "STRUCT<x: INT>")
        .clusterBy("s.x", "a")
        .property("delta.columnMapping.mode", "name")
        .execute()
    )
    assert table.detail().collect()[0]["clusteringColumns"] == ["s.x", "a"]


def test_a_replacement_drops_rows_and_keeps_features(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    puredelta.write(spark.range(3), path, properties={"delta.enableRowTracking": "true"})
    before = TableLog.open(str(path)).snapshot().metadata
    builder(spark, path, how="replace").addColumn("z", "INT").execute()
    after = TableLog.open(str(path)).snapshot()
    assert len(after.files) == 0
    assert after.config.schema.names == ("z",)
    assert after.metadata.configuration == before.configuration
    assert after.metadata.id != before.id
    assert puredelta.read(spark, path, version=0).count() == 3


def test_a_replacement_keeps_settings_and_counts_ids_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    staying = {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"}
    first = builder(spark, path).property("delta.columnMapping.mode", "name")
    for key, value in staying.items():
        first = first.property(key, value)
    first.property("mine", "1").addColumn("a", "INT").addColumn("b", "INT").execute()
    again = builder(spark, path, how="replace").property("delta.columnMapping.mode", "name")
    again.property("delta.checkpointPolicy", "classic").addColumn("z", "INT").execute()
    after = TableLog.open(str(path)).snapshot()
    assert after.metadata.configuration == {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "3",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointPolicy": "classic",
    }
    assert after.config.schema.fields[0].metadata["delta.columnMapping.id"] == 3


def test_columns_of_a_schema_keep_what_does_not_steer_a_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    metadata = {"comment": "c", "mine": 1, "CURRENT_DEFAULT": "1", "delta.columnMapping.id": 4}
    schema = T.StructType([T.StructField("a", T.IntegerType(), True, metadata)])
    builder(spark, tmp_path / "t").addColumns(schema).execute()
    (field,) = TableLog.open(str(tmp_path / "t")).snapshot().config.schema.fields
    assert field.metadata == {"comment": "c", "mine": 1}


def test_what_is_there_decides(spark: SparkSession, tmp_path: Path) -> None:
    """As the reference: OR REPLACE of a table at a path only checks that it is the same."""
    path = tmp_path / "t"
    builder(spark, path).addColumn("a", "INT").execute()
    builder(spark, path, how="createIfNotExists").addColumn("b", "INT").execute()
    builder(spark, path, how="createOrReplace").addColumn("a", "INT").execute()
    assert TableLog.open(str(path)).latest_version() == 0
    with pytest.raises(DeltaError) as error:
        builder(spark, path, how="createOrReplace").addColumn("a", "BIGINT").execute()
    assert error.value.code is ErrorCode.CREATE_TABLE_SCHEME_MISMATCH
    with pytest.raises(DeltaError) as error:
        builder(spark, path).addColumn("a", "INT").execute()
    assert error.value.code is ErrorCode.TABLE_OR_VIEW_ALREADY_EXISTS
    with pytest.raises(DeltaError) as error:
        builder(spark, tmp_path / "none", how="replace").addColumn("a", "INT").execute()
    assert error.value.code is ErrorCode.TABLE_OR_VIEW_NOT_FOUND


@pytest.mark.parametrize(
    ("define", "code"),
    [
        (
            lambda b: b.addColumn("a", "INT").addColumn("g", "STRING", generatedAlwaysAs="a + 1"),
            ErrorCode.GENERATED_COLUMNS_EXPR_TYPE_MISMATCH,
        ),
        (
            lambda b: b.addColumn("a", "INT").addColumn("g", "INT", generatedAlwaysAs="b + 1"),
            ErrorCode.INVALID_GENERATED_COLUMN_REFERENCES,
        ),
        (
            lambda b: b.addColumn("a", "INT").addColumn("g", "DOUBLE", generatedAlwaysAs="rand()"),
            ErrorCode.NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
        ),
        (
            lambda b: b.addColumn("a", "INT").addColumn("g", "INT", generatedAlwaysAs="max(a)"),
            ErrorCode.AGGREGATE_IN_GENERATED_COLUMN,
        ),
        (
            lambda b: b.addColumn("a", "INT", generatedAlwaysAs=IdentityGenerator()),
            ErrorCode.IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE,
        ),
        (
            lambda b: b.addColumn("a", "ARRAY<STRUCT<x: INT NOT NULL>>"),
            ErrorCode.NESTED_NOT_NULL_CONSTRAINT,
        ),
        (
            lambda b: b.addColumn("a", "INT").clusterBy("a").partitionedBy("a"),
            ErrorCode.ALL_COLUMNS_PARTITIONED,
        ),
        (
            lambda b: b.addColumn("a", "INT").property("delta.feature.clustering", "supported"),
            ErrorCode.CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE,
        ),
    ],
)
def test_a_definition_that_cannot_be_is_refused(
    spark: SparkSession, tmp_path: Path, define: Callable[[Builder], Builder], code: ErrorCode
) -> None:
    with pytest.raises(DeltaError) as error:
        define(builder(spark, tmp_path / "t")).execute()
    assert error.value.code is code
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.tableName(1),
        lambda b: b.location(1),
        lambda b: b.comment(1),
        lambda b: b.addColumn(1, "int"),
        lambda b: b.addColumn("a", 1),
        lambda b: b.addColumn("a", T.IntegerType(), comment=1),
        lambda b: b.addColumn("a", T.IntegerType(), generatedAlwaysAs=1),
        lambda b: b.addColumn("a", T.IntegerType(), generatedByDefaultAs="1"),
        lambda b: b.addColumn("a", T.IntegerType(), nullable=1),
        lambda b: b.addColumns(1),
        lambda b: b.addColumns([T.StructField("1", T.IntegerType()), 1]),
        lambda b: b.partitionedBy(1),
        lambda b: b.partitionedBy([1]),
        lambda b: b.clusterBy(1, "1"),
        lambda b: b.property(1, "1"),
        lambda b: b.property("1", 1),
    ],
)
def test_arguments_of_the_wrong_type_are_type_errors(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="Found"):
        call(DeltaTable.create(object()))  # type: ignore[arg-type]


def test_both_kinds_of_generation_exclude_each_other() -> None:
    kind = T.LongType()
    unused = DeltaTable.create(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot both be set"):
        unused.addColumn("a", kind, generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator())
    with pytest.raises(ValueError, match="non-zero"):
        unused.addColumn("a", kind, generatedByDefaultAs=IdentityGenerator(step=0))


def test_a_table_has_a_name_or_a_location(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as error:
        DeltaTable.create(spark).addColumn("a", "INT").execute()
    assert error.value.code is ErrorCode.CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION
    named = DeltaTable.create(spark).tableName(f"delta.`{tmp_path}/t`").addColumn("a", "INT")
    with pytest.raises(DeltaError) as error:
        named.location(str(tmp_path / "u")).execute()
    assert error.value.code is ErrorCode.CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH
    assert named.location(f"file:{tmp_path}/t").execute().toDF().columns == ["a"]
