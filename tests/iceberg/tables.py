"""Tables with Parquet files on disk, made from rows without Spark, and their rows as each reader
sees them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from puredelta.inspection.described import arrow_schema, first_rows
from puredelta.log.files.file_stats import TableStatistics
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, Metadata, Protocol, Remove
from puredelta.protocol.actions.paths import encode_path
from puredelta.protocol.features.column_mapping import FIELD_ID, physical_name
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.partition_values import encode_partition_value
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.local import LocalStore
from tests.log.tables import WRITE, Client

MAPPED = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"columnMapping", "typeWidening", "timestampNtz", "deletionVectors"}),
    writer_features=frozenset(
        {
            "columnMapping",
            "typeWidening",
            "timestampNtz",
            "deletionVectors",
            "appendOnly",
            "invariants",
        }
    ),
)
Rows = Sequence[Mapping[str, Any]]
_EVERYTHING = 1 << 30


class SmallTable:
    """A table whose commits are made here."""

    def __init__(
        self,
        root: Path,
        schema: StructType,
        *,
        partitioned_by: tuple[str, ...] = (),
        protocol: Protocol = MAPPED,
        **properties: str,
    ) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.log = TableLog(LocalStore(str(root)))
        self._numbers = itertools.count()
        self.metadata = Metadata(
            id=f"id-of-{root.name}",
            schema_string=encode_schema(schema),
            partition_columns=partitioned_by,
            configuration={key.replace("__", "."): text for key, text in properties.items()},
            created_ms=1,
        )
        Client(self.log, None).commit([protocol, self.metadata], WRITE)

    @property
    def config(self) -> TableConfig:
        return self.log.snapshot().config

    def commit(self, *actions: Action) -> None:
        client = Client(self.log, self.log.snapshot(), capability=Capability.ADMINISTER)
        client.commit(actions, WRITE)

    def change(self, schema: StructType | None = None, *actions: Action, **properties: str) -> None:
        """Commit another schema or other properties."""
        configuration = {key.replace("__", "."): text for key, text in properties.items()}
        self.metadata = replace(
            self.metadata,
            schema_string=self.metadata.schema_string if schema is None else encode_schema(schema),
            configuration={**self.metadata.configuration, **configuration},
        )
        self.commit(self.metadata, *actions)

    def append(self, rows: Rows, **rest: Any) -> Add:
        added = self.file(rows, **rest)
        self.commit(added)
        return added

    def replace_all(self, rows: Rows) -> None:
        self.commit(*self.removes(), self.file(rows))

    def removes(self) -> list[Remove]:
        return [
            Remove(path=add.path, deleted_ms=1, data_change=True, size_bytes=add.size_bytes,
                   extended_file_metadata=True, partition_values=add.partition_values,
                   deletion_vector=add.deletion_vector)
            for add in self.log.snapshot().files.adds()
        ]  # fmt: skip

    def file(
        self, rows: Rows, *, schema: StructType | None = None, stats: bool = True, ids: bool = True
    ) -> Add:
        """Write a file of rows in one partition, under physical names."""
        config = self.config
        schema = config.schema if schema is None else schema
        names = [f.name for f in schema.fields]
        table = pa.Table.from_pylist(
            [{name: row.get(name) for name in names} for row in rows], arrow_schema(schema)
        )
        values = {
            physical_name(f, config.column_mapping): encode_partition_value(
                rows[0].get(f.name), f.type
            )
            for f in config.partition_schema.fields
        }
        kept = StructType(tuple(f for f in schema.fields if f.name not in config.partition_columns))
        in_file = _physical(kept, config.column_mapping, ids=ids)
        columns = [_renamed(table[f.name].combine_chunks(), g.type)
                   for f, g in zip(kept.fields, in_file, strict=True)]  # fmt: skip
        name = f"part {next(self._numbers)}.parquet"
        path = self.root / name
        pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(in_file)), path)
        footer = pq.read_metadata(path)
        text = TableStatistics(config).encode(footer) if stats else None
        return Add(
            path=encode_path(name),
            partition_values=values,
            size_bytes=path.stat().st_size,
            modified_ms=1,
            data_change=True,
            stats=text,
        )


def _physical(struct: StructType, mode: ColumnMappingMode, *, ids: bool) -> list[pa.Field]:
    found = []
    for logical, kind in zip(struct.fields, arrow_schema(struct), strict=True):
        mapped = mode is not ColumnMappingMode.NONE
        number = {"PARQUET:field_id": str(logical.metadata[FIELD_ID])} if mapped and ids else None
        inner = _inner(logical.type, kind.type, mode, ids=ids)
        found.append(pa.field(physical_name(logical, mode), inner, metadata=number))
    return found


def _inner(
    kind: DataType, arrow: pa.DataType, mode: ColumnMappingMode, *, ids: bool
) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct(_physical(kind, mode, ids=ids))
        case ArrayType(element):
            return pa.list_(_inner(element, arrow.value_type, mode, ids=ids))
        case MapType(key, value):
            return pa.map_(
                _inner(key, arrow.key_type, mode, ids=ids),
                _inner(value, arrow.item_type, mode, ids=ids),
            )
        case _:
            return arrow


def _renamed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values under the names of another type, by position."""
    if pa.types.is_struct(kind):
        inner = [_renamed(values.field(n), kind.field(n).type) for n in range(kind.num_fields)]
        return pa.StructArray.from_arrays(
            inner, fields=[kind.field(n) for n in range(kind.num_fields)], mask=values.is_null()
        )
    return values.cast(kind) if values.type != kind else values


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


def column(name: str, kind: DataType, number: int | None = None, physical: str | None = None,
           **more: Any) -> StructField:  # fmt: skip
    """Return a column; with ``number`` it is mapped to a name in files."""
    metadata = dict(more)
    if number is not None:
        metadata |= {FIELD_ID: number, "delta.columnMapping.physicalName": physical or name}
    return StructField(name, kind, metadata=metadata)


def duckdb_rows(root: Path, snapshot_id: int) -> list[str]:
    """Return the rows of a snapshot as DuckDB reads them; skip the test without its extension."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    try:
        connection.execute("LOAD avro")
        connection.execute("LOAD iceberg")
    except duckdb.Error as missing:
        pytest.skip(f"DuckDB has not all extensions: {missing}")
    text = f"SELECT * FROM iceberg_scan('{root}/_iceberg', snapshot_from_id={snapshot_id}::UBIGINT)"
    return comparable(connection.execute(text).to_arrow_table())
