"""Protocol and metadata validated together."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, UnsupportedError
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features.column_mapping import assign_columns
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig

LEGACY = Protocol(min_reader_version=1, min_writer_version=2)
SCHEMA = StructType(
    (
        StructField("id", LONG, False),
        StructField("p", STRING),
        StructField(
            "n",
            StructType(
                (
                    StructField("x", INTEGER, False),
                    StructField("s", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}),
                )
            ),
        ),
        StructField("a", ArrayType(StructType((StructField("q", INTEGER, False),)))),
        StructField("i", LONG, True, {"delta.invariants": '{"expression":{"expression":"i > 3"}}'}),
        StructField("q", INTEGER),
    )
)


def config_of(
    schema: StructType = SCHEMA,
    partition_columns: tuple[str, ...] = ("q", "p"),
    protocol: Protocol = LEGACY,
    **configuration: str,
) -> TableConfig:
    return TableConfig.of(
        protocol,
        Metadata(
            id="t",
            schema_string=encode_schema(schema),
            partition_columns=partition_columns,
            configuration={"delta." + k.replace("__", "."): v for k, v in configuration.items()},
        ),
    )


def test_the_schema_falls_into_data_and_partitions() -> None:
    config = config_of()
    assert config.schema == SCHEMA
    assert config.data_schema.names == ("id", "n", "a", "i")
    assert config.partition_schema.names == ("q", "p")
    assert config.physical_partition_columns == ("q", "p")
    assert config.physical_data_schema().names == ("id", "n", "a", "i")


def test_rules_for_rows_are_found_through_structs() -> None:
    config = config_of(constraints__positive="id > 0")
    assert config.not_null_columns == (("id",), ("n", "x"))
    assert config.invariants == {("i",): "i > 3"}
    assert config.check_constraints == {"positive": "id > 0"}
    assert config.char_varchar_columns == {("n", "s"): "varchar(5)"}


def test_a_mapped_table_answers_in_physical_names() -> None:
    numbers = iter(range(100))
    mapped, _ = assign_columns(SCHEMA, max_column_id=0, new_name=lambda: f"c{next(numbers)}")
    protocol = Protocol(min_reader_version=2, min_writer_version=5)
    config = config_of(mapped, protocol=protocol, columnMapping__mode="id")
    assert config.column_mapping is ColumnMappingMode.ID
    assert config.physical_name("id") == "c0"
    assert config.physical_path(("n", "x")) == ("c2", "c3")
    assert config.physical_partition_columns == ("c8", "c1")
    assert config.physical_data_schema(field_ids=True).fields[0].metadata == {"parquet.field.id": 1}
    with pytest.raises(KeyError):
        config.physical_name("nope")


def test_a_mode_the_protocol_does_not_support_is_not_in_force() -> None:
    config = config_of(columnMapping__mode="name")
    assert config.column_mapping is ColumnMappingMode.NONE
    assert config.physical_name("id") == "id"


def test_an_incomplete_mapping_is_corrupt() -> None:
    protocol = Protocol(min_reader_version=2, min_writer_version=5)
    with pytest.raises(CorruptTableError, match="'id' has no"):
        config_of(protocol=protocol, columnMapping__mode="name")


@pytest.mark.parametrize(
    ("partition_columns", "problem"), [(("nope",), "nope missing"), (("p", "p"), "listed twice")]
)
def test_partition_columns_must_be_columns(
    partition_columns: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        config_of(partition_columns=partition_columns)


def test_a_broken_invariant_is_corrupt() -> None:
    schema = StructType((StructField("a", LONG, True, {"delta.invariants": "a > 3"}),))
    with pytest.raises(CorruptTableError, match="Column 'a'"):
        _ = config_of(schema, ()).invariants


def test_an_unreadable_table_is_refused_at_once() -> None:
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"adaptiveMetadata-preview"}),
        writer_features=frozenset({"adaptiveMetadata-preview"}),
    )
    with pytest.raises(UnsupportedError, match="adaptiveMetadata-preview"):
        config_of(protocol=protocol)


def test_features_are_asked_by_name() -> None:
    config = config_of(
        protocol=Protocol(min_reader_version=1, min_writer_version=4), enableChangeDataFeed="true"
    )
    assert config.supports("changeDataFeed")
    assert config.is_active("changeDataFeed")
    assert config.supports("generatedColumns")
    assert not config.is_active("generatedColumns")
    assert not config.supports("deletionVectors")
    config.require(Capability.APPEND)
    iceberg = config_of(
        protocol=Protocol(
            min_reader_version=1,
            min_writer_version=7,
            writer_features=frozenset({"icebergCompatV3"}),
        ),
        enableIcebergCompatV3="true",
    )
    with pytest.raises(UnsupportedError, match=r"delta\.enableIcebergCompatV3"):
        iceberg.require(Capability.MERGE)


def test_a_table_without_columns_is_still_a_table() -> None:
    metadata = Metadata(id="t", schema_string="", partition_columns=())
    assert TableConfig.of(LEGACY, metadata).schema == StructType(())


def test_a_length_that_is_no_text_is_no_bare_error() -> None:
    schema = StructType((StructField("a", STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": 7}),))
    config = config_of(schema, partition_columns=())
    assert config.char_varchar_columns == {("a",): "7"}
    assert config.padded_columns == frozenset()
