"""Rows of one file in Arrow: names, types, what is missing, what is hidden."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.changes import file_rows
from puredelta.log.changes.file_rows import ReadableFile, read_batches
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from tests.deletion_vectors import encode_inline


def field(name: str, kind: Any, physical: str | None = None) -> StructField:
    key = "delta.columnMapping.physicalName"
    return StructField(name, kind, metadata={} if physical is None else {key: physical})


def vector(positions: list[int] | None) -> DeletionVectorDescriptor | None:
    return None if positions is None else encode_inline(np.array(positions, np.uint64))


def rows(path: Path, schema: StructType, wanted: pa.Schema, **given: Any) -> list[dict[str, Any]]:
    mode = given.pop("mode", ColumnMappingMode.NONE)
    file = ReadableFile(
        uri=f"file:{path}",
        partition_values=given.pop("values", {}),
        root_uri=f"file:{path.parent}",
        deleted=vector(given.pop("deleted", None)),
        only=vector(given.pop("only", None)),
    )
    partitions = given.pop("partitions", ())
    batches = read_batches(file, schema, wanted, partition_columns=partitions, mode=mode)
    with mock.patch.object(file_rows, "BATCH_ROWS", 3):
        return [row for batch in batches for row in batch.to_pylist()]


def test_deleted_rows_partition_values_and_what_a_file_lacks(tmp_path):
    pq.write_table(pa.table({"id": pa.array(range(8), pa.int32())}), tmp_path / "a b.parquet")
    schema = StructType((field("day", DATE), field("id", LONG), field("new", STRING)))
    wanted = pa.schema({"day": pa.date32(), "id": pa.int64(), "new": pa.string()})
    found = rows(
        tmp_path / "a b.parquet",
        schema,
        wanted,
        values={"day": "2025-01-31"},
        partitions=("day",),
        deleted=[0, 2, 3, 4, 5, 7],
    )
    day = dt.date(2025, 1, 31)
    assert found == [{"day": day, "id": n, "new": None} for n in (1, 6)]


def test_only_the_rows_that_one_vector_has_and_another_has_not(tmp_path):
    path, schema = tmp_path / "f.parquet", StructType((field("id", LONG),))
    pq.write_table(pa.table({"id": pa.array(range(8), pa.int64())}), path)
    wanted = pa.schema({"id": pa.int64()})
    found = rows(path, schema, wanted, only=[0, 1, 4, 7], deleted=[1, 2, 4])
    assert [row["id"] for row in found] == [0, 7]
    path.unlink()
    assert rows(path, schema, wanted, only=[1], deleted=[1, 2]) == [], "opens no file"


@pytest.mark.parametrize("sliced", [False, True])
def test_nested_values_under_logical_names(tmp_path, sliced):
    """Renamed, widened and added fields inside structs, arrays and maps; NULLs stay NULL."""
    inner = pa.struct({"x-1": pa.int32()})
    kinds = {
        "s-1": pa.struct({"x-1": pa.int32(), "gone": pa.string()}),
        "a-1": pa.list_(inner),
        "m-1": pa.map_(pa.string(), inner),
    }
    values = {
        "s-1": [{"x-1": 1, "gone": "g"}, None, {"x-1": None}],
        "a-1": [[{"x-1": 1}, None], None, []],
        "m-1": [[("k", {"x-1": 1}), ("n", None)], None, []],
    }
    table = pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})
    path = tmp_path / "f.parquet"
    pq.write_table(table, path)
    point = StructType((field("x", LONG, "x-1"), field("y", INTEGER, "y-1")))
    schema = StructType(
        (
            field("s", point, "s-1"),
            field("a", ArrayType(point), "a-1"),
            field("m", MapType(STRING, point), "m-1"),
        )
    )
    to = pa.struct({"x": pa.int64(), "y": pa.int32()})
    wanted = pa.schema({"s": to, "a": pa.list_(to), "m": pa.map_(pa.string(), to)})
    deleted = [0] if sliced else None
    found = rows(path, schema, wanted, mode=ColumnMappingMode.NAME, deleted=deleted)
    one = {"x": 1, "y": None}
    expected = [
        {"s": one, "a": [one, None], "m": [("k", one), ("n", None)]},
        {"s": None, "a": None, "m": None},
        {"s": {"x": None, "y": None}, "a": [], "m": []},
    ]
    assert found == (expected[1:] if sliced else expected)


def test_a_table_of_partition_columns_only(tmp_path):
    pq.write_table(pa.table({"other": [1, 2]}), tmp_path / "f.parquet")
    schema = StructType((field("p", STRING),))
    found = rows(
        tmp_path / "f.parquet",
        schema,
        pa.schema({"p": pa.string()}),
        values={"p": None},
        partitions=("p",),
    )
    assert found == [{"p": None}] * 2
