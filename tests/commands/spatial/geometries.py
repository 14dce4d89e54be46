"""Rows with geometries and geographies, and what tests ask of tables that hold some."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.api import read
from puredelta.spark.session.types import HAVE_SPATIAL_TYPES
from puredelta.tables import DeltaTable

needs_spatial_types = pytest.mark.skipif(
    not HAVE_SPATIAL_TYPES, reason="PySpark 4.2 and pyarrow 20 have columns of geometries"
)


def point(x: int, y: int) -> str:
    """Return SQL of a point of no reference system; both numbers are 1 or 2."""
    numbers = {1: "000000000000F03F", 2: "0000000000000040"}
    return f"ST_GeomFromWKB(X'0101000000{numbers[x]}{numbers[y]}')"


def at(x: int, y: int, srid: int = 3857) -> str:
    """Return SQL of a point of a reference system."""
    return f"ST_SetSrid({point(x, y)}, {srid})"


def on_earth(x: int, y: int) -> str:
    """Return SQL of a geography."""
    return point(x, y).replace("ST_GeomFromWKB", "ST_GeogFromWKB")


def places(spark: SparkSession, first: int, end: int, x: int = 1) -> DataFrame:
    """Return rows with geometries in every place; every third has none."""
    return spark.range(first, end, 1, 1).selectExpr(
        "id",
        f"if(id % 3 = 0, NULL, {at(x, 2)}) g",
        f"{on_earth(x, 2)} y",
        f"named_struct('a', array({at(x, 1, 0)}, NULL), 'm', map('k', {on_earth(x, 1)})) n",
    )


def merge_places(table: DeltaTable, rows: DataFrame) -> None:
    """Update the rows of `places` whose ids are there, and insert the others."""
    (
        table.alias("t")
        .merge(rows.alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def shown(spark: SparkSession, path: str, **version: Any) -> list[tuple[Any, ...]]:
    """Return each row: its id, the x of the geometry, its number, and the x of the others."""
    rows = read(spark, path, **version).selectExpr(
        "id",
        *(f"substring(hex(ST_AsBinary({c})), 23, 4)" for c in ("g", "y", "n.a[0]", "n.m['k']")),
        "ST_Srid(g)",
        "ST_Srid(n.a[0])",
    )
    words = {"F03F": 1, "0040": 2, None: None}
    return sorted(
        (row[0], *(words[value] for value in row[1:5]), row[5], row[6]) for row in rows.collect()
    )


def logical_types(path: str) -> set[tuple[str, str]]:
    """Return the columns of all data files with the logical types that are no texts.

    The default system may have no name in a file.
    """
    files = (f for f in Path(path).rglob("*.parquet") if "_delta_log" not in f.parts)
    columns = (
        schema.column(i)
        for f in files
        for schema in [pq.ParquetFile(f).schema]
        for i in range(len(schema))
    )
    return {
        (column.path, re.sub(r"crs=(?=[,)])", "crs=OGC:CRS84", str(column.logical_type)))
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and str(column.logical_type) != "String"
    }


def respell(path: str, old: str, new: str) -> None:
    """Let the first commit name a type as another writer does."""
    commit = Path(path) / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    assert old in text
    commit.write_text(text.replace(old, new))
    for checksum in (Path(path) / "_delta_log").glob("*.crc"):
        checksum.unlink()


def set_statistics(path: str, version: int, **changed: Any) -> None:
    """Let a commit say something else of its files."""
    commit = Path(path) / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps({**json.loads(line["add"]["stats"]), **changed})
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc]
    """What Arrow writes as a geometry."""

    def __init__(self, metadata: dict[str, str]) -> None:
        self.metadata = metadata
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self.metadata).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, text: bytes) -> WellKnownBinary:
        return cls(json.loads(text or b"{}"))


def write_geometries(file: Path, values: list[bytes | None], **metadata: str) -> None:
    """Write a file as Arrow does: ids and geometries."""
    kind = WellKnownBinary(metadata)
    geometries = pa.ExtensionArray.from_storage(kind, pa.array(values, pa.binary()))
    file.parent.mkdir(parents=True, exist_ok=True)
    ids = pa.array(range(len(values)), pa.int64())
    pq.write_table(pa.table({"id": ids, "g": geometries}), file)
