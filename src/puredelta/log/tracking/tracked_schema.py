"""One entry of a stream's log of schemas, as delta-spark writes it.

A file has the line ``v1`` and one line of JSON. It says with which columns, properties and protocol
the stream reads the table up to the next change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from puredelta.errors import CorruptTableError, DeltaError, ErrorCode
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema
from puredelta.protocol.schema.types import StructType

_HEADER = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedSchema:
    """The state of a table at a version, in so far as it matters for reading its files."""

    table_id: str
    version: int
    """Files of this version can be read with it; the change may be an older one."""
    schema: StructType
    partition_schema: StructType
    source_path: str
    """Where the query that writes the log keeps what it knows of the source."""
    configuration: Mapping[str, str] | None
    protocol: Protocol | None
    """Old entries lack both."""
    previous: int | None = None
    """The number of the entry before, if another one was written for the same change."""

    @classmethod
    def of(
        cls, metadata: Metadata, protocol: Protocol | None, version: int, source_path: str
    ) -> TrackedSchema:
        """Return the entry for what two actions say."""
        schema = parse_schema(metadata.schema_string)
        return cls(
            table_id=metadata.id,
            version=version,
            schema=schema,
            partition_schema=_partition_schema(schema, metadata.partition_columns),
            source_path=source_path,
            configuration=metadata.configuration,
            protocol=protocol,
        )

    def metadata_over(self, read: Snapshot) -> Metadata:
        """Return the metadata of a snapshot as if the table were in this state."""
        known = read.metadata
        configuration = known.configuration if self.configuration is None else self.configuration
        return replace(
            known,
            schema_string=encode_schema(self.schema),
            partition_columns=tuple(self.partition_schema.names),
            configuration=configuration,
        )

    def with_change(
        self, version: int, metadata: Metadata | None, protocol: Protocol | None
    ) -> TrackedSchema:
        """Return the state after the actions of a later commit."""
        protocol = protocol or self.protocol
        if metadata is None:
            return replace(self, version=version, protocol=protocol)
        changed = TrackedSchema.of(metadata, protocol, version, self.source_path)
        return replace(changed, table_id=self.table_id, previous=self.previous)

    def text(self) -> str:
        """Return the content of the entry's file."""
        values: dict[str, Any] = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": encode_schema(self.schema),
            "partitionSchemaJson": encode_schema(self.partition_schema),
            "sourceMetadataPath": self.source_path,
        }
        if self.configuration is not None:
            values["tableConfigurations"] = dict(self.configuration)
        if self.protocol is not None:
            values["protocolJson"] = encode_action(self.protocol)
        if self.previous is not None:
            values["previousMetadataSeqNum"] = self.previous
        body = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
        return f"{_HEADER}\n{body}"


def parse_tracked(content: bytes, location: str) -> TrackedSchema:
    """Read the content of an entry's file; ``location`` is where the log is.

    Raises:
        CorruptTableError: it is none (DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED), or has a
            schema that is none (DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED).
    """
    try:
        header, _, body = content.decode().partition("\n")
        values = json.loads(body.partition("\n")[0]) if header.rstrip() == _HEADER else None
    except ValueError as error:
        raise _incomplete(location) from error
    if not isinstance(values, dict):
        raise _incomplete(location)
    try:
        protocol = values.get("protocolJson")
        action = None if protocol is None else parse_action(protocol)
        if not isinstance(action, Protocol | None):
            raise _incomplete(location)
        previous = values.get("previousMetadataSeqNum")
        configuration = values.get("tableConfigurations")
        return TrackedSchema(
            table_id=str(values["tableId"]),
            version=int(values["deltaCommitVersion"]),
            schema=_schema(values["dataSchemaJson"], location),
            partition_schema=_schema(values["partitionSchemaJson"], location),
            source_path=str(values["sourceMetadataPath"]),
            configuration=None if configuration is None else dict(configuration),
            protocol=action,
            previous=None if previous is None else int(previous),
        )
    except (KeyError, TypeError, ValueError, CorruptTableError) as error:
        if isinstance(error, DeltaError) and error.details.get("location") == location:
            raise
        raise _incomplete(location) from error


def _schema(text: object, location: str) -> StructType:
    try:
        return parse_schema(str(text))
    except DeltaError as error:
        raise CorruptTableError(
            f"Failed to parse the schema from the Delta streaming source schema log at "
            f"'{location}'. The schema log may have been corrupted. Please pick a new schema "
            "location.",
            code=ErrorCode.STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED,
            location=location,
        ) from error


def _partition_schema(schema: StructType, columns: tuple[str, ...]) -> StructType:
    fields = (schema.find(name) for name in columns)
    return StructType(tuple(field for field in fields if field is not None))


def _incomplete(location: str) -> CorruptTableError:
    return CorruptTableError(
        f"Incomplete log file in the Delta streaming source schema log at '{location}'. The schema "
        "log may have been corrupted. Please pick a new schema location.",
        code=ErrorCode.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED,
        location=location,
    )
