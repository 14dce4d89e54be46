"""Tables with Parquet files on disk, made from rows without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.inspection.described import arrow_schema
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


def column(name: str, kind: DataType, number: int | None = None, physical: str | None = None,
           **more: Any) -> StructField:  # fmt: skip
    """Return a column; with ``number`` it is mapped to a name in files."""
    metadata = dict(more)
    if number is not None:
        metadata |= {FIELD_ID: number, "delta.columnMapping.physicalName": physical or name}
    return StructField(name, kind, metadata=metadata)
