"""Empty tables with columns that fill themselves, as another engine would create them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import LONG, DataType, StructField, StructType
from tests.log.tables import Client

FEATURES = (
    "allowColumnDefaults",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "invariants",
)


def generated(name: str, kind: DataType, sql: str) -> StructField:
    return StructField(name, kind, metadata={"delta.generationExpression": sql})


def defaulted(name: str, kind: DataType, sql: str) -> StructField:
    return StructField(name, kind, metadata={"CURRENT_DEFAULT": sql})


def identity(name: str, *, start: int = 1, step: int = 1, explicit: bool = False) -> StructField:
    return StructField(
        name,
        LONG,
        metadata={
            "delta.identity.start": start,
            "delta.identity.step": step,
            "delta.identity.allowExplicitInsert": explicit,
        },
    )


def lay_empty(
    root: Path,
    *fields: StructField,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    features: Sequence[str] = FEATURES,
) -> TableLog:
    log = TableLog.open(str(root))
    metadata = Metadata(
        id="t",
        schema_string=encode_schema(StructType(tuple(fields))),
        partition_columns=tuple(partition_by),
        configuration=dict(properties or {}),
    )
    protocol = Protocol(
        min_reader_version=1, min_writer_version=7, writer_features=frozenset(features)
    )
    Client(log, None).commit([metadata, protocol], Operation(name="CREATE TABLE"))
    return log
