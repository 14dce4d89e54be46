"""The log of schemas of a stream: its files, their entries, and the changes that they allow.

A file has the line ``v1`` and one line of JSON. It says with which columns, properties and protocol
the stream reads the table up to the next change.

Added columns come as they are. A renamed, dropped or wider column may break what the stream writes
to, so that the query does not go on before its user has said that it may.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from puredelta.errors import CorruptTableError, DeltaError, InvalidRequestError, Message
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.action_json import encode_action, parse_action
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.schema.schema_json import encode_schema, parse_schema
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.schema_changes import FieldDifference, SchemaChanges, find_changes
from puredelta.store.base import PutOutcome, Store

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
            Message.STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED, location=location
        ) from error


def _partition_schema(schema: StructType, columns: tuple[str, ...]) -> StructType:
    fields = (schema.find(name) for name in columns)
    return StructType(tuple(field for field in fields if field is not None))


def _incomplete(location: str) -> CorruptTableError:
    return CorruptTableError(
        Message.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED_INCOMPLETE, location=location
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLog:
    """The log as it was when it was last read or written; one query writes it."""

    store: Store
    """Its root is the directory of the log."""
    number: int = -1
    """That of the last entry."""
    current: TrackedSchema | None = None
    """The last entry."""

    @classmethod
    def read(cls, store: Store, table_id: str) -> SchemaLog:
        """Read the last entry.

        Raises:
            CorruptTableError: it cannot be read (see `parse_tracked`).
            InvalidRequestError: it is that of another table
                (DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID).
        """
        names = (file.name for file in store.list_from("", ""))
        numbers = (int(name) for name in names if name.isascii() and name.isdecimal())
        number = max(numbers, default=-1)
        if number < 0:
            return cls(store=store)
        current = parse_tracked(store.read(str(number)), store.root_uri)
        if current.table_id != table_id:
            raise InvalidRequestError(
                Message.STREAMING_SCHEMA_LOG_INCOMPATIBLE_TABLE_ID,
                recorded=current.table_id,
                table_id=table_id,
                location=store.root_uri,
            )
        return cls(store=store, number=number, current=current)

    def previous(self) -> TrackedSchema | None:
        """Return the entry that was in force before the current one; None if there was none.

        Raises:
            CorruptTableError: it cannot be read, or is gone.
        """
        number = self._previous_number
        if number < 0:
            return None
        try:
            return parse_tracked(self.store.read(str(number)), self.store.root_uri)
        except FileNotFoundError as error:
            raise CorruptTableError(
                Message.STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED_PREVIOUS,
                number=number,
                location=self.store.root_uri,
            ) from error

    def with_entry(self, entry: TrackedSchema) -> SchemaLog:
        """Write another entry, and return the log with it; an equal one is not written again.

        Raises:
            InvalidRequestError: another program has written it
                (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT).
        """
        if entry == self.current:
            return self
        number = self.number + 1
        outcome = self.store.put_if_absent(str(number), entry.text().encode())
        if outcome is PutOutcome.ALREADY_EXISTS:
            raise location_conflict(self.store.root_uri)
        return replace(self, number=number, current=entry)

    def with_replaced(self, entry: TrackedSchema) -> SchemaLog:
        """Write an entry in place of the current one: that before it stays the one before.

        Errors as `with_entry`.
        """
        if self.current is None:
            return self.with_entry(entry)
        return self.with_entry(replace(entry, previous=self._previous_number))

    @property
    def _previous_number(self) -> int:
        current = self.current
        known = None if current is None else current.previous
        return self.number - 1 if known is None else known


def location_conflict(location: str) -> InvalidRequestError:
    """Say that two streams have one log of schemas."""
    return InvalidRequestError(
        Message.STREAMING_SCHEMA_LOCATION_CONFLICT_LOCATION_CONFLICT, location=location
    )


ALWAYS = "always"
RENAME = "allowSourceColumnRename"
DROP = "allowSourceColumnDrop"
TYPE_CHANGE = "allowSourceColumnTypeChange"
OPTIONS = (RENAME, DROP, TYPE_CHANGE)
RENAME_AND_DROP = "allowSourceColumnRenameAndDrop"
"""Only a setting has this name."""
SETTINGS_PREFIX = "spark.databricks.delta.streaming."


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedChanges:
    """What a user has said. A value is ``always``, or the version of one change."""

    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Every setting of the session; those for one stream end with ``.ckpt_`` and its number."""

    def require(self, older: TrackedSchema, newer: TrackedSchema) -> None:
        """Refuse to go on after a change that the user has not allowed.

        Raises:
            InvalidRequestError: it is not allowed
                (DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION), or no reader can
                read older rows after it (DELTA_SCHEMA_CHANGED_WITH_VERSION).
        """
        changes = find_changes(older.schema, newer.schema)
        if not changes.is_readable:
            raise InvalidRequestError(
                Message.SCHEMA_CHANGED_WITH_VERSION_FILES,
                older=encode_schema(older.schema),
                newer=encode_schema(newer.schema),
                version=newer.version,
            )
        number = stream_number(newer.source_path)
        kinds = [kind for kind, found in _kinds(changes) if found]
        if all(self._has_allowed(kind, number, newer.version) for kind in kinds):
            return
        raise _not_allowed(changes, kinds, number, older.version, newer.version)

    def _has_allowed(self, kind: str, number: int, version: int) -> bool:
        if self.options.get(kind) in {ALWAYS, str(version)}:
            return True
        names = (kind,) if kind == TYPE_CHANGE else (kind, RENAME_AND_DROP)
        for name in names:
            key = SETTINGS_PREFIX + name
            if self.settings.get(key, "").lower() == ALWAYS:
                return True
            if self.settings.get(f"{key}.ckpt_{number}", "").lower() in {ALWAYS, str(version)}:
                return True
        return False


def stream_number(source_path: str) -> int:
    """Return the number by which settings name a stream: Java's hash of a text.

    >>> stream_number("file:/tmp/probe/r/cka/sources/0")
    -627915970
    """
    units = source_path.encode("utf-16-be")
    number = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def _kinds(changes: SchemaChanges) -> Iterator[tuple[str, Sequence[FieldDifference]]]:
    yield RENAME, changes.renamed
    yield DROP, changes.dropped
    yield TYPE_CHANGE, changes.widened


def _not_allowed(
    changes: SchemaChanges, kinds: Sequence[str], number: int, before: int, after: int
) -> InvalidRequestError:
    options = [f'.option("{kind}", "{after}")' for kind in kinds]
    always = [f'.option("{kind}", "{ALWAYS}")' for kind in kinds]
    here = [f"SET {SETTINGS_PREFIX}{kind}.ckpt_{number} = {after}" for kind in kinds]
    everywhere = [f'SET {SETTINGS_PREFIX}{kind} = "{ALWAYS}"' for kind in kinds]
    return InvalidRequestError(
        Message.STREAMING_CANNOT_CONTINUE_POST_SCHEMA_EVOLUTION,
        changes=_name(changes),
        changes_shown="; ".join(_details(changes)),
        options=" ".join(options),
        here="; ".join(here),
        always=" ".join(always),
        everywhere="; ".join(everywhere),
        previous_version=before,
        version=after,
        kinds=tuple(kinds),
    )


def _name(changes: SchemaChanges) -> str:
    """Return what delta-spark calls these changes."""
    columns = [
        word for word, found in (("RENAME", changes.renamed), ("DROP", changes.dropped)) if found
    ]
    if not changes.widened:
        return " AND ".join(columns) + " COLUMN"
    return " AND ".join([*([", ".join(columns)] if columns else []), "TYPE WIDENING"])


def _details(changes: SchemaChanges) -> Iterator[str]:
    if changes.renamed:
        pairs = ", ".join(f"{c.before} -> {c.after}" for c in changes.renamed)
        yield f"Columns renamed: {pairs}"
    if changes.dropped:
        yield f"Columns dropped: {', '.join(c.before for c in changes.dropped)}"
    if changes.widened:
        pairs = ", ".join(f"{c.before} -> {c.after}" for c in changes.widened)
        yield f"Columns with widened types: {pairs}"
