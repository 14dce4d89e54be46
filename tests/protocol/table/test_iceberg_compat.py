"""The rules of IcebergCompat, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.commit.commit_checks import require_valid_actions
from puredelta.protocol.actions.actions import (
    Add,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
)
from puredelta.protocol.features.column_mapping import (
    NESTED_IDS,
    PARQUET_NESTED_IDS,
    assign_columns,
)
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.iceberg_compat import (
    require_iceberg_files,
    require_iceberg_rules,
    upgraded_properties,
    with_nested_ids,
    with_required_properties,
    without_orphaned_format,
)
from puredelta.protocol.table.table_config import TableConfig

FEATURES = frozenset(
    ("columnMapping", "deletionVectors", "icebergCompatV1", "icebergCompatV2", "typeWidening")
)
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"columnMapping", "deletionVectors", "typeWidening"}),
    writer_features=FEATURES,
)
V1, V2 = ({f"delta.enableIcebergCompatV{n}": "true"} for n in (1, 2))
MAPPED = {"delta.columnMapping.mode": "name"}


def config(
    properties: dict[str, str],
    kind: DataType = LONG,
    *,
    partitions: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
) -> TableConfig:
    fields = (StructField("v", kind, True, metadata or {}), StructField("p", LONG))
    schema, _ = assign_columns(StructType(fields), max_column_id=0)
    return TableConfig.of(
        PROTOCOL,
        Metadata(
            id="t",
            schema_string=encode_schema(schema),
            partition_columns=partitions,
            configuration={**MAPPED, **properties},
        ),
    )


def change(before: str, after: str) -> dict[str, Any]:
    return {TYPE_CHANGES: [{"fromType": before, "toType": after}]}


VIOLATIONS = [
    (config({**V1, **V2}), ErrorCode.ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE),
    (
        config({**V1, "delta.columnMapping.mode": "none"}),
        ErrorCode.ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY,
    ),
    (
        config({**V2, "delta.enableDeletionVectors": "true"}),
        ErrorCode.ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED,
    ),
    (config(V1, ArrayType(LONG)), ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE),
    (config(V1, MapType(LONG, LONG)), ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE),
    (config(V1, VOID), ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE),
    (config(V2, VOID), ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE),
    (
        config(V2, ArrayType(PrimitiveType("interval year to month"))),
        ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE,
    ),
    (
        config(V2, STRING, metadata={"__COLLATIONS": {"v": "spark.UTF8_LCASE"}}),
        ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE,
    ),
    (
        config(V2, PrimitiveType("double"), metadata=change("integer", "double")),
        ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_TYPE_WIDENING,
    ),
    (
        config({"delta.universalFormat.enabledFormats": "iceberg"}),
        ErrorCode.UNIVERSAL_FORMAT_VIOLATION,
    ),
]


@pytest.mark.parametrize(("table", "code"), VIOLATIONS)
def test_violations(table: TableConfig, code: ErrorCode) -> None:
    for before in (None, config({})):
        with pytest.raises(UnsupportedError) as refused:
            require_iceberg_rules(before, table)
        assert refused.value.code is code


@pytest.mark.parametrize(
    "table",
    [
        config({}, VOID),
        config({"delta.enableIcebergCompatV1": "false"}, ArrayType(LONG)),
        config(V1, PrimitiveType("date")),
        config(V2, MapType(STRING, ArrayType(StructType((StructField("x", INTEGER),))))),
        config(V2, LONG, metadata=change("integer", "long")),
        config({**V2, "delta.universalFormat.enabledFormats": "iceberg"}),
    ],
)
def test_allowed_tables(table: TableConfig) -> None:
    require_iceberg_rules(None, table)
    require_iceberg_rules(config({}), table)


def test_partition_columns_keep_their_names() -> None:
    before = config(V2, partitions=("p",))
    require_iceberg_rules(before, before)
    require_iceberg_rules(config(V2), before)
    for after in (config(V2), config(V2, partitions=("v",))):
        with pytest.raises(UnsupportedError, match=r"Prev Partition Spec: \(p\)") as refused:
            require_iceberg_rules(before, after)
        code = ErrorCode.ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES
        assert refused.value.code is code
    require_iceberg_rules(before, config({}))


ADD = Add(
    path="a.parquet",
    partition_values={},
    size_bytes=1,
    modified_ms=1,
    data_change=True,
    stats='{"numRecords":1}',
)


def test_added_files_have_a_row_count_and_no_vector() -> None:
    table = config(V1)
    require_iceberg_files([ADD], table)
    require_valid_actions((ADD,), before=table, after=table)
    vector = DeletionVectorDescriptor(
        storage_type="i", path_or_inline="", offset=None, size_bytes=1, cardinality=1
    )
    with pytest.raises(UnsupportedError) as refused:
        require_valid_actions(
            (replace(ADD, deletion_vector=vector),), before=table, after=table, operation="RESTORE"
        )
    assert refused.value.code is ErrorCode.ICEBERG_COMPAT_DELETION_VECTORS_NOT_PURGED
    for stats in (None, "{}"):
        with pytest.raises(UnsupportedError) as refused:
            require_valid_actions((replace(ADD, stats=stats),), before=table, after=table)
        assert refused.value.code is ErrorCode.ICEBERG_COMPAT_FILES_NOT_ICEBERG_COMPAT
    require_valid_actions((replace(ADD, stats=None),), before=None, after=config({}))


def test_a_commit_cannot_break_the_rules_of_a_table() -> None:
    with pytest.raises(UnsupportedError):
        require_valid_actions((), before=config(V2), after=config(V2, VOID))


def test_content_of_files() -> None:
    """Partition columns come last, and elements have ids from version 2 on."""
    plain = config({}, partitions=("v",))
    assert plain.file_schema.names == ("p",)
    assert plain.materialized_partition_columns == plain.columns_with_ids == ()
    assert not plain.needs_arrow_writer
    first = config(V1, partitions=("v",))
    assert first.file_schema.names == ("p", "v")
    assert first.columns_with_ids == ()
    assert first.needs_arrow_writer
    assert not config(V2).needs_arrow_writer
    assert len(config(V2).columns_with_ids) == len(("v", "p"))
    feature = replace(PROTOCOL, writer_features=frozenset({"materializePartitionColumns"}))
    unmapped = TableConfig.of(
        replace(feature, min_reader_version=1, reader_features=None),
        replace(plain.metadata, configuration={}),
    )
    assert unmapped.materialized_partition_columns == ("v",)


def test_ids_of_elements() -> None:
    kind = MapType(STRING, ArrayType(StructType((StructField("x", ArrayType(INTEGER)),))))
    table = config({**V2, "delta.columnMapping.maxColumnId": "9"}, kind)
    schema, properties = with_nested_ids(table.schema, table.metadata.configuration)
    name = table.physical_name("v")
    assert schema.fields[0].metadata[NESTED_IDS] == {
        f"{name}.key": 10,
        f"{name}.value": 11,
        f"{name}.value.element": 12,
    }
    assert properties["delta.columnMapping.maxColumnId"] == "13"
    assert with_nested_ids(schema, properties) == (schema, properties)
    again, _ = assign_columns(schema, max_column_id=0)
    assert again == schema
    first = config(V1)
    assert with_nested_ids(first.schema, first.metadata.configuration)[0] == first.schema
    stored = TableConfig.of(
        PROTOCOL, replace(table.metadata, schema_string=encode_schema(schema))
    ).physical_file_schema(field_ids=True)
    assert stored.fields[0].metadata[PARQUET_NESTED_IDS][f"{name}.value"] == len("-----------")


def test_properties_that_come_along() -> None:
    assert with_required_properties({}) == {}
    atomic = {"delta.universalFormat.iceberg.atomicConversion.supported": "true"}
    assert with_required_properties(V1) == {**V1, **MAPPED, **atomic}
    by_id = {**V2, **atomic, "delta.columnMapping.mode": "id"}
    assert with_required_properties(by_id) == by_id
    assert upgraded_properties(config(V1), 2) == {
        **V2,
        **MAPPED,
        **atomic,
        "delta.enableIcebergCompatV1": "false",
        "delta.enableDeletionVectors": "false",
    }


def test_iceberg_metadata_ends_with_the_rules() -> None:
    formats = {"delta.universalFormat.enabledFormats": "iceberg"}
    before = config({**V2, **formats})
    assert without_orphaned_format(before, formats) == {}
    assert without_orphaned_format(before, {**V2, **formats}) == {**V2, **formats}
    assert without_orphaned_format(config({}), formats) == formats
