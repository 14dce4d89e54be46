"""Geometries between Spark, its workers and files, without Spark."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.worker import file_columns
from puredelta.worker.file_columns import (
    ColumnRules,
    as_stored,
    is_spatial,
    parquet_schema,
    plain_schema,
    spatial_type,
)
from puredelta.worker.read_rows import OnlySparkError

RULES = ColumnRules()
GEOMETRY = spatial_type("geometry", 3857, "EPSG:3857")
GEOGRAPHY = spatial_type("geography", 4326, "OGC:CRS84")
POINT = bytes.fromhex("0101000000000000000000F03F0000000000000040")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("g", GEOMETRY),
        pa.field("a", pa.list_(pa.field("element", GEOGRAPHY))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", GEOMETRY))),
        pa.field("s", pa.struct([pa.field("x", GEOGRAPHY)])),
    ],
    metadata={"k": "v"},
)
ROWS: dict[str, list[Any]] = {
    "id": [1, 2],
    "g": [POINT, None],
    "a": [[POINT, None], None],
    "m": [[("k", POINT)], [("l", None)]],
    "s": [{"x": POINT}, None],
}

needs_types = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 21, reason="pyarrow 21 writes the types"
)


def rows() -> pa.Table:
    return pa.table(ROWS, plain_schema(SCHEMA))


def test_values_go_to_spark_and_come_back() -> None:
    for field in SCHEMA:
        column = rows().column(field.name).combine_chunks()
        there = as_stored(column, field.type, RULES)
        assert there.type == field.type
        assert as_stored(there, column.type, RULES).to_pylist() == column.to_pylist()
    known = as_stored(rows().column("g").combine_chunks(), GEOMETRY, RULES)
    assert known.to_pylist() == [{"srid": 3857, "wkb": POINT}, None]


def test_slices_of_what_spark_hands_over_keep_their_nulls() -> None:
    column = as_stored(pa.array([POINT, None, POINT, None]), GEOMETRY, RULES)
    assert as_stored(column.slice(1, 2), pa.binary(), RULES).to_pylist() == [None, POINT]
    assert as_stored(column.slice(2, 1), pa.binary(), RULES).to_pylist() == [POINT]


@needs_types
def test_files_get_types_that_name_the_system() -> None:
    out = io.BytesIO()
    schema = parquet_schema(SCHEMA)
    assert schema.metadata == SCHEMA.metadata
    with pq.ParquetWriter(out, schema) as writer:
        writer.write_table(rows().cast(schema))
    file = pq.ParquetFile(out)
    written = {file.schema.column(n).path: file.schema.column(n) for n in range(len(file.schema))}
    for path in ("g", "m.key_value.value"):
        assert str(written[path].logical_type) == "Geometry(crs=EPSG:3857)"
    for path in ("a.list.element", "s.x"):  # the default system is written as none
        assert str(written[path].logical_type) == "Geography(crs=, algorithm=spherical)"
    assert file.read().to_pylist() == rows().to_pylist()


def test_an_arrow_that_would_write_binary_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_columns, "_FIRST_ARROW", 1000)
    with pytest.raises(OnlySparkError, match="does not write geometries"):
        parquet_schema(SCHEMA)
    others = pa.schema([("id", pa.int64()), ("s", pa.struct([("srid", pa.int32())]))])
    assert parquet_schema(others) is others


def test_a_struct_of_the_same_fields_is_none() -> None:
    user = pa.struct([("srid", pa.int32()), ("wkb", pa.binary())])
    assert not is_spatial(user)
    assert is_spatial(GEOMETRY)
    schema = pa.schema([("u", user)])
    assert plain_schema(schema) is schema
