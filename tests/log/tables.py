"""Small tables as actions, for tests of the write side of the log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from puredelta.log.commit.commit_request import CommitRequest, Committed, Environment
from puredelta.log.commit.post_commit import CheckpointWish, write_due_checkpoint
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, Metadata, Protocol, Remove
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    Or,
    Predicate,
    Ref,
    Side,
)
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import INTEGER, LONG, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
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


class Client:
    """Commits as commands do: a transaction, then what follows in the log."""

    def __init__(
        self,
        log: TableLog,
        snapshot: Snapshot | None,
        *,
        capability: Capability = Capability.APPEND,
        **environment: object,
    ) -> None:
        self._log = log
        self._environment = Environment(**environment)  # type: ignore[arg-type]
        self._transaction = Transaction(
            log,
            snapshot,
            engine_info=ENGINE,
            capability=capability,
            environment=self._environment,
        )

    def read_files(
        self, predicate: Predicate | None, files: FileTable, *, judges_rows_alone: bool = False
    ) -> None:
        self._transaction.read_files(predicate, files, judges_rows_alone=judges_rows_alone)

    def read_app_id(self, app_id: str) -> int | None:
        return self._transaction.read_app_id(app_id)

    def commit(
        self,
        actions: Sequence[Action],
        operation: Operation,
        *,
        metrics: Mapping[str, int | str] | None = None,
        checkpoint: CheckpointWish = CheckpointWish.AT_INTERVAL,
        **rest: object,
    ) -> Committed:
        request = CommitRequest(actions=actions, operation=operation, metrics=metrics, **rest)  # type: ignore[arg-type]
        committed = self._transaction.commit(request)
        environment = self._environment
        write_due_checkpoint(self._log, committed, wish=checkpoint, environment=environment)
        return committed


def create_table(
    store: Store, *actions: object, protocol: Protocol = PLAIN, **rest: object
) -> TableLog:
    """Create a table with these actions beside protocol and metadata."""
    log = TableLog(store)
    client = Client(log, None, clock=lambda: 1_000)
    client.commit([protocol, metadata(**rest), *actions], WRITE)  # type: ignore[arg-type,list-item]
    return log


def transact(log: TableLog, **rest: object) -> Client:
    """Start a transaction on the newest version."""
    return Client(log, log.snapshot(), **rest)  # type: ignore[arg-type]
