"""Small tables for scan tests: Parquet by pyarrow, the log line by line, nothing by our writers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
)
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.actions.paths import encode_path
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import StructType
from tests.deletion_vectors import encode_file, encode_inline

EVERYTHING = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"columnMapping", "deletionVectors", "timestampNtz"}),
    writer_features=frozenset({"columnMapping", "deletionVectors", "timestampNtz"}),
)


@dataclass
class TableFiles:
    """A table that grows by one commit a call."""

    root: Path
    version: int = 0
    adds: list[Add] = field(default_factory=list)

    @classmethod
    def create(
        cls,
        root: Path,
        schema: StructType,
        *,
        partition_columns: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        protocol: Protocol = EVERYTHING,
    ) -> TableFiles:
        (root / "_delta_log").mkdir(parents=True)
        table = cls(root)
        metadata = Metadata(
            id=str(uuid.uuid4()),
            schema_string=encode_schema(schema),
            partition_columns=tuple(partition_columns),
            configuration=dict(configuration or {}),
        )
        table.commit(protocol, metadata)
        return table

    def commit(self, *actions: Action) -> None:
        path = self.root / "_delta_log" / f"{self.version:020d}.json"
        path.write_text("\n".join(map(encode_action, actions)))
        self.version += 1

    def write(
        self,
        name: str,
        content: pa.Table | Mapping[str, Any],
        *,
        values: Mapping[str, str | None] | None = None,
        deleted: Sequence[int] | None = None,
        inline: bool = False,
    ) -> Add:
        """Write one file with its own commit; ``deleted`` rows go into a deletion vector."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), path)
        add = Add(
            path=encode_path(name),
            partition_values=values or {},
            size_bytes=path.stat().st_size,
            modified_ms=0,
            data_change=True,
            deletion_vector=None if deleted is None else self.vector(deleted, inline=inline),
        )
        self.adds.append(add)
        self.commit(add)
        return add

    def vector(self, deleted: Sequence[int], *, inline: bool = False) -> DeletionVectorDescriptor:
        positions = np.array(deleted, np.uint64)
        if inline:
            return encode_inline(positions)
        # A vector that is not the first of its file.
        content, (_, second) = encode_file([np.array([1], np.uint64), positions], uuid.uuid4())
        path = vector_path(second)
        assert path is not None
        (self.root / path).write_bytes(content)
        return second

    def snapshot(self) -> Snapshot:
        return TableLog.open(str(self.root)).snapshot()
