"""The rows of exported versions as each reader sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from puredelta.inspection.described import first_rows
from tests.filled_table import SmallTable

StaticTable = pytest.importorskip("pyiceberg.table").StaticTable
_EVERYTHING = 1 << 30


def delta_rows(table: SmallTable, version: int | None = None) -> list[str]:
    """Return the rows of a version as this library reads them, sorted texts."""
    snapshot = table.log.snapshot(version=version)
    return comparable(first_rows(snapshot, _EVERYTHING))


def iceberg_rows(location: str, snapshot_id: int | None = None, **scan: Any) -> list[str]:
    """Return the rows of a snapshot as pyiceberg reads them, sorted texts."""
    found = StaticTable.from_metadata(location)
    return comparable(found.scan(snapshot_id=snapshot_id, **scan).to_arrow())


def exported_versions(location: str) -> dict[int, int]:
    """Return the snapshot id of each exported version."""
    found = StaticTable.from_metadata(location)
    return {
        int(one.summary["delta-version"] or -1): one.snapshot_id
        for one in found.snapshots()
        if one.summary is not None
    }


def comparable(rows: pa.Table) -> list[str]:
    """Return rows as texts in one order; times as numbers, because Python has not all years."""
    columns = {name: _plain(rows[name].combine_chunks()) for name in rows.column_names}
    return sorted(
        json.dumps({name: _text(values[n]) for name, values in columns.items()}, sort_keys=True)
        for n in range(rows.num_rows)
    )


def _plain(values: Any) -> list[Any]:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind = values.type
    if pa.types.is_date32(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind):
        return list(values.cast(pa.int64()).to_pylist())
    return list(values.to_pylist())


def _text(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _text(one) for key, one in value.items()}
        case list() | tuple():
            return [_text(one) for one in value]
        case None:
            return None
        case _:
            return repr(value)


def duckdb_rows(root: Path, snapshot_id: int) -> list[str]:
    """Return the rows of a snapshot as DuckDB reads them; skip the test without its extensions."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        package = pytest.importorskip(f"duckdb_extension_{name}")
        (extension,) = Path(package.__file__).parent.rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    text = f"SELECT * FROM iceberg_scan('{root}/_iceberg', snapshot_from_id={snapshot_id}::UBIGINT)"
    return comparable(connection.execute(text).to_arrow_table())
