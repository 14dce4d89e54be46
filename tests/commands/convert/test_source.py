"""C-01, C-05, E-02: which identifiers can be converted, and what the others are told."""

from __future__ import annotations

import pytest

from puredelta.commands.convert.target import (
    CatalogName,
    DeltaDirectory,
    IcebergLocation,
    ParquetDirectory,
    parse_source,
)
from puredelta.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("parquet.`/data/t`", ParquetDirectory("/data/t")),
        (" PARQUET . `/data/my t` ", ParquetDirectory("/data/my t")),
        ("`parquet`.`file:/data/t`", ParquetDirectory("file:/data/t")),
        ("parquet.`file:///data/t`", ParquetDirectory("file:///data/t")),
        ("parquet.`/odd``name`", ParquetDirectory("/odd`name")),
        ("parquet.`s3a://bucket/t`", ParquetDirectory("s3a://bucket/t")),
        ("delta.`/data/t`", DeltaDirectory("/data/t")),
        ("Iceberg.`/data/t`", IcebergLocation("/data/t")),
    ],
)
def test_c_01_directories(identifier: str, expected: object) -> None:
    assert parse_source(identifier) == expected


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("events", ("events",)),
        (" sales . `my events` ", ("sales", "my events")),
        ("spark_catalog.sales.events", ("spark_catalog", "sales", "events")),
        ("`odd``name`.`a.b`", ("odd`name", "a.b")),
        ("parquet.events", ("parquet", "events")),
        ("a.b.c.d", ("a", "b", "c", "d")),
        ("sales /* it's */ . events -- .x", ("sales", "events")),
    ],
)
def test_c_02_names(identifier: str, parts: tuple[str, ...]) -> None:
    assert parse_source(identifier) == CatalogName(parts)


@pytest.mark.parametrize(
    ("identifier", "kind", "error_class", "text"),
    [
        (
            "`/data/t`",
            InvalidRequestError,
            "DELTA_MISSING_PROVIDER_FOR_CONVERT",
            "only supports parquet tables. Please rewrite your target as parquet.`/data/t` if",
        ),
        ("/data/t", InvalidRequestError, "DELTA_MISSING_PROVIDER_FOR_CONVERT", "parquet.`/data/t`"),
        (
            "json.`/data/t`",
            InvalidRequestError,
            "DELTA_CONVERT_NON_PARQUET_TABLE",
            "but you are trying to convert a json source: `json`.`/data/t`",
        ),
        ("iceberg.`relative/t`", InvalidRequestError, "PATH_NOT_FOUND", "must be absolute"),
        ("parquet.`relative/t`", InvalidRequestError, "PATH_NOT_FOUND", "must be absolute"),
        ("", InvalidRequestError, "PARSE_SYNTAX_ERROR", "is not the name of a table"),
        ("a..c", InvalidRequestError, "PARSE_SYNTAX_ERROR", "'a..c'"),
        ("parquet.`/data/t", InvalidRequestError, "PARSE_SYNTAX_ERROR", "backticks"),
        ("parquet./data/t", InvalidRequestError, "PARSE_SYNTAX_ERROR", "backticks"),
    ],
)
def test_e_02_refusals(identifier: str, kind: type, error_class: str, text: str) -> None:
    with pytest.raises(kind) as refused:
        parse_source(identifier)
    assert refused.value.getErrorClass() == error_class
    assert text in refused.value.message
