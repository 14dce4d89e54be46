"""The benchmark's Delta tables: Parquet files laid once, and a fresh copy for every repeat.

Data files of a copy are hard links, so a copy costs no writing and an engine cannot change
the original. Every engine gets the same files; the log differs only in whether the table
wants deletion vectors.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.rows import PART, RowSet, Totals, checked_columns, make_rows, total

PARTITIONS = 50
_INDEXED_COLUMNS = 32
_SPARK_TYPES = {"int32": "integer", "int64": "long", "string": "string"}


class Layout(Enum):
    """How rows lie in files."""

    SCATTERED = "scattered"
    CLUSTERED = "clustered"
    PARTITIONED = "partitioned"
    WIDE = "wide"


_SIZES: Mapping[str, Mapping[Layout, tuple[int, int]]] = {
    "S": {
        Layout.SCATTERED: (72_000, 20),
        Layout.CLUSTERED: (72_000, 20),
        Layout.PARTITIONED: (72_000, PARTITIONS),
        Layout.WIDE: (3_200, 8),
    },
    "S10": {
        Layout.SCATTERED: (720_000, 200),
        Layout.CLUSTERED: (720_000, 200),
        Layout.PARTITIONED: (720_000, PARTITIONS),
        Layout.WIDE: (32_000, 80),
    },
    "M": {
        Layout.SCATTERED: (7_200_000, 64),
        Layout.CLUSTERED: (7_200_000, 64),
        Layout.PARTITIONED: (7_200_000, PARTITIONS),
        Layout.WIDE: (320_000, 32),
    },
    "L": {
        Layout.SCATTERED: (72_000_000, 640),
        Layout.CLUSTERED: (72_000_000, 640),
        Layout.PARTITIONED: (72_000_000, PARTITIONS),
        Layout.WIDE: (3_200_000, 320),
    },
}


SIZES = tuple(_SIZES)
TEN_TIMES = {"S": "S10", "M": "L"}
"""Sizes that have ten times the rows, and ten times the files unless these are partitions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A table before it exists."""

    size: str
    layout: Layout
    pieces: int = 1
    """How many files each of the usual ones is cut into; their rows keep their order."""

    @property
    def name(self) -> str:
        """What its directory is called."""
        name = f"{self.size}-{self.layout.value}"
        return name if self.pieces == 1 else f"{name}-in-{self.pieces}"

    @property
    def rows(self) -> int:
        return _SIZES[self.size][self.layout][0]

    @property
    def files(self) -> int:
        return _SIZES[self.size][self.layout][1] * self.pieces

    @property
    def is_wide(self) -> bool:
        return self.layout is Layout.WIDE

    @property
    def is_partitioned(self) -> bool:
        return self.layout is Layout.PARTITIONED

    @property
    def checked(self) -> tuple[str, ...]:
        return checked_columns(wide=self.is_wide, partitioned=self.is_partitioned)

    def file_rows(self, file: int) -> RowSet:
        """Return the rows of a file, in its order."""
        first, last = self.rows * file // self.files, self.rows * (file + 1) // self.files
        numbers = np.arange(first, last, dtype=np.int64)
        if self.layout is not Layout.CLUSTERED:
            numbers = numbers * _stride(self.rows) % self.rows
        parts = np.full(len(numbers), file, np.int32) if self.is_partitioned else None
        return RowSet(numbers=numbers, parts=parts)

    def file_name(self, file: int) -> str:
        directory = f"{PART}={file}/" if self.is_partitioned else ""
        return f"{directory}part-{file:05d}.snappy.parquet"


def _stride(rows: int) -> int:
    """Return a step that reaches every row once and leaves neighbours far apart."""
    stride = int(rows * 0.6180339887) | 1
    while math.gcd(stride, rows) != 1:
        stride += 2
    return stride


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A table that was laid; it is only ever copied."""

    shape: Shape
    directory: Path
    adds: tuple[dict[str, Any], ...]
    schema_json: str
    totals: Totals

    def copy_to(
        self,
        directory: Path,
        *,
        deletion_vectors: bool = False,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Make a table of the same files at ``directory``, which must not exist."""
        if deletion_vectors:
            properties = {**properties, "delta.enableDeletionVectors": "true"}
        for add in self.adds:
            target = directory / add["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(self.directory / add["path"], target)
        log = directory / "_delta_log"
        log.mkdir()
        actions = [_protocol(deletion_vectors=deletion_vectors), self._metadata(properties)]
        actions += [{"add": add} for add in self.adds]
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{0:020d}.json").write_text(text)

    def _metadata(self, properties: Mapping[str, str]) -> dict[str, Any]:
        return {
            "metaData": {
                "id": f"00000000-0000-4000-8000-{self.shape.rows:012d}",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": self.schema_json,
                "partitionColumns": [PART] if self.shape.is_partitioned else [],
                "configuration": dict(properties),
                "createdTime": 1_700_000_000_000,
            }
        }


def _protocol(*, deletion_vectors: bool) -> dict[str, Any]:
    if not deletion_vectors:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    features = ["deletionVectors"]
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    }


def lay_table(shape: Shape, directory: Path) -> BaseTable:
    """Write the files of a table, unless an earlier run left them there."""
    described = directory / "described.json"
    if not described.exists():
        shutil.rmtree(directory, ignore_errors=True)
        described.parent.mkdir(parents=True)
        described.write_text(json.dumps(_write_files(shape, directory)))
    known = json.loads(described.read_text())
    return BaseTable(
        shape=shape,
        directory=directory,
        adds=tuple(known["adds"]),
        schema_json=known["schema"],
        totals=Totals(**known["totals"]),
    )


def _write_files(shape: Shape, directory: Path) -> dict[str, Any]:
    adds, totals, schema = [], Totals(), ""
    for file in range(shape.files):
        table = make_rows(shape.file_rows(file), wide=shape.is_wide)
        totals += total(table, shape.checked)
        schema = spark_schema(table.schema)
        stored = table.drop_columns([PART]) if shape.is_partitioned else table
        path = directory / shape.file_name(file)
        write_parquet(stored, path)
        written = path.stat()
        adds.append(
            {
                "path": shape.file_name(file),
                "partitionValues": {PART: str(file)} if shape.is_partitioned else {},
                "size": written.st_size,
                "modificationTime": written.st_mtime_ns // 1_000_000,
                "dataChange": True,
                "stats": json.dumps(statistics(stored)),
            }
        )
    return {"adds": adds, "totals": asdict(totals), "schema": schema}


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write one file with one row group, its decimals as Spark lays them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        table,
        path,
        row_group_size=max(1, table.num_rows),
        store_decimal_as_integer=True,
        store_schema=False,
    )


def statistics(table: pa.Table) -> dict[str, Any]:
    """Return the statistics of a file as the log holds them, of the first 32 columns."""
    bounds = {name: pc.min_max(table[name]) for name in table.column_names[:_INDEXED_COLUMNS]}
    return {
        "numRecords": table.num_rows,
        "minValues": {name: _number(b["min"].as_py()) for name, b in bounds.items()},
        "maxValues": {name: _number(b["max"].as_py()) for name, b in bounds.items()},
        "nullCount": {name: table[name].null_count for name in bounds},
    }


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def spark_schema(schema: pa.Schema) -> str:
    """Return the schema in Spark's JSON, as ``metaData`` holds it."""
    fields = [
        {"name": f.name, "type": _spark_type(f.type), "nullable": True, "metadata": {}}
        for f in schema
    ]
    return json.dumps({"type": "struct", "fields": fields})


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_TYPES[str(kind)]
