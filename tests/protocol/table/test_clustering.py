"""Clustering columns and their domain."""

from __future__ import annotations

import pytest

from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError
from puredelta.protocol.actions.actions import DomainMetadata, Metadata, Protocol
from puredelta.protocol.features.column_mapping import assign_columns
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import BOOLEAN, INTEGER, STRING, StructField, StructType
from puredelta.protocol.table.clustering import (
    CLUSTERING_DOMAIN,
    clustering_columns,
    clustering_domain,
    resolve_clustering_columns,
)
from puredelta.protocol.table.table_config import TableConfig

COLUMNS = StructType(
    (
        StructField("id", INTEGER),
        StructField("at", StructType((StructField("x", INTEGER), StructField("y", STRING)))),
        StructField("flag", BOOLEAN),
    )
)


def table(*, mapped: bool = False, **configuration: str) -> TableConfig:
    schema = COLUMNS
    properties = {key.replace("__", "."): value for key, value in configuration.items()}
    if mapped:
        schema, highest = assign_columns(COLUMNS, max_column_id=0)
        properties["delta.columnMapping.mode"] = "name"
        properties["delta.columnMapping.maxColumnId"] = str(highest)
    protocol = Protocol(min_reader_version=2 if mapped else 1, min_writer_version=5)
    metadata = Metadata(
        id="t",
        schema_string=encode_schema(schema),
        partition_columns=(),
        configuration=properties,
    )
    return TableConfig.of(protocol, metadata)


@pytest.mark.parametrize("mapped", [False, True])
def test_the_domain_speaks_in_physical_names(mapped: bool) -> None:
    config = table(mapped=mapped)
    domain = clustering_domain(config, [("at", "x"), ("id",)])
    assert ('[["at","x"],["id"]]' in domain.configuration) is not mapped
    assert clustering_columns(config, {CLUSTERING_DOMAIN: domain}) == (("at", "x"), ("id",))
    assert clustering_columns(config, {}) == ()


def test_a_domain_that_names_no_column_is_damaged() -> None:
    for text in (
        "x",
        "{}",
        '{"clusteringColumns":[["nope"]]}',
        '{"clusteringColumns":[["id","x"]]}',
    ):
        domain = DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=text)
        with pytest.raises(CorruptTableError):
            clustering_columns(table(), {CLUSTERING_DOMAIN: domain})


def test_columns_are_found_ignoring_case() -> None:
    assert resolve_clustering_columns(table(), [("AT", "X")]) == (("at", "x"),)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ([("nope",)], ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA),
        ([("id",), ("ID",)], ErrorCode.DUPLICATE_COLUMNS_FOUND),
        ([("id",)] * 5, ErrorCode.CLUSTER_BY_INVALID_NUM_COLUMNS),
        ([("flag",)], ErrorCode.CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED),
        ([("at",)], ErrorCode.CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED),
        ([("at", "y")], ErrorCode.CLUSTERING_COLUMN_MISSING_STATS),
    ],
)
def test_what_cannot_cluster_a_table_is_named(
    columns: list[tuple[str, ...]], code: ErrorCode
) -> None:
    config = table(delta__dataSkippingStatsColumns="id,at.x,flag")
    with pytest.raises(InvalidRequestError) as error:
        resolve_clustering_columns(config, columns)
    assert error.value.code is code
