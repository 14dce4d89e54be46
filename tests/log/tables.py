"""Small tables as actions, for tests of the write side of the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from puredelta.log.commit.transaction import Transaction
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, Metadata, Protocol, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import INTEGER, LONG, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.store.base import Store

SCHEMA = StructType(
    (StructField("id", LONG), StructField("part", INTEGER), StructField("sub", INTEGER))
)
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)
WRITE = Operation(name="WRITE", parameters={"mode": "Append", "partitionBy": "[]"})
TRUNCATE = Operation(name="TRUNCATE", parameters={})
ENGINE = "Apache-Spark/4.1.0 puredelta/0.1.0"


def feature_protocol(*features: str, readers: tuple[str, ...] = ()) -> Protocol:
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset(readers),
        writer_features=frozenset({"appendOnly", "invariants", *features, *readers}),
    )


def metadata(
    *, partitioned_by: tuple[str, ...] = (), schema: StructType = SCHEMA, **configuration: str
) -> Metadata:
    """Keyword names of properties spell dots as two underscores: ``delta__appendOnly``."""
    return Metadata(
        id="5683ff9b-5e8b-4945-8d64-de090226f684",
        schema_string=encode_schema(schema),
        partition_columns=partitioned_by,
        configuration={key.replace("__", "."): value for key, value in configuration.items()},
        created_ms=1,
    )


def config(protocol: Protocol = PLAIN, **rest: object) -> TableConfig:
    return TableConfig.of(protocol, metadata(**rest))  # type: ignore[arg-type]


def add(
    path: str,
    part: Mapping[str, str | None] | None = None,
    *,
    ids: tuple[int, int] | None = None,
    rows: int = 10,
    data_change: bool = True,
) -> Add:
    stats: dict[str, object] = {"numRecords": rows}
    if ids is not None:
        stats |= {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}, "nullCount": {"id": 0}}
    return Add(
        path=path,
        partition_values=part or {},
        size_bytes=100,
        modified_ms=1,
        data_change=data_change,
        stats=json.dumps(stats),
    )


def remove(path: str, part: Mapping[str, str | None] | None = None, **rest: object) -> Remove:
    made = Remove(path=path, deleted_ms=4, data_change=True, partition_values=part or {})
    return replace(made, **rest)  # type: ignore[arg-type]


def column(name: str) -> Ref:
    field = SCHEMA.find(name)
    assert field is not None
    return Ref(Side.TARGET, (name,), field.type)


def compare(name: str, op: str, value: int) -> Predicate:
    return Compare(CompareOp(op), column(name), Const(value))


def equal(name: str, value: int) -> Predicate:
    return compare(name, "=", value)


def either(*parts: Predicate) -> Predicate:
    return Or(parts)


def both(*parts: Predicate) -> Predicate:
    return And(parts)


def create_table(
    store: Store, *actions: object, protocol: Protocol = PLAIN, **rest: object
) -> TableLog:
    """Create a table with these actions beside protocol and metadata."""
    log = TableLog(store)
    transaction = Transaction(log, None, engine_info=ENGINE, clock=lambda: 1_000)
    transaction.commit([protocol, metadata(**rest), *actions], WRITE)  # type: ignore[arg-type,list-item]
    return log


def transact(log: TableLog, **rest: object) -> Transaction:
    """Start a transaction on the newest version."""
    return Transaction(log, log.snapshot(), engine_info=ENGINE, **rest)  # type: ignore[arg-type]
