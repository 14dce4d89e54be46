"""Tables whose columns change, written as commits without a writer's checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import Action, Metadata, Protocol
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import LONG, DataType, StructField, StructType
from puredelta.store.local import LocalStore
from tests.log.tables import metadata

TABLE_ID = metadata().id
MAPPED = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"columnMapping", "typeWidening"}),
    writer_features=frozenset({"appendOnly", "columnMapping", "typeWidening"}),
)
PROPERTIES = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}


def column(name: str, physical: str, kind: DataType = LONG) -> StructField:
    number = sum(physical.encode())
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return StructField(name, kind, metadata=keys)


def columns(*fields: StructField, **properties: str) -> Metadata:
    given = {key.replace("__", "."): value for key, value in properties.items()}
    made = replace(metadata(schema=StructType(fields)), configuration={**PROPERTIES, **given})
    assert encode_schema(StructType(fields)) == made.schema_string
    return made


class Table:
    """A table, one commit after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = LocalStore(str(path))
        self.version = -1

    def commit(self, *actions: Action) -> int:
        self.version += 1
        text = "\n".join(encode_action(action) for action in actions)
        self.store.put(f"_delta_log/{self.version:020}.json", text.encode())
        return self.version

    def log(self) -> TableLog:
        return TableLog(LocalStore(str(self.path)))
