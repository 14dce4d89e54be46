"""Schema changes of a streamed table: recorded in the log of schemas, then the query restarts.

A change is another schema, partitioning, protocol or ``delta.`` property. The rows before it are
delivered in the old columns. Then the query ends with an error once the change is in the log of
schemas; the next query reads in the new columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.schema_log import AllowedChanges, SchemaLog, TrackedSchema
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import Add, AddChangeFile, Metadata, Protocol, Remove
from puredelta.protocol.features.generated_columns import without_writer_metadata
from puredelta.protocol.features.protocol_versions import supported_features
from puredelta.protocol.schema.schema_json import parse_schema, simple_string
from puredelta.protocol.table.schema_changes import TableShape, can_read
from puredelta.protocol.table.table_config import TableConfig


def has_changed(location: str, entry: TrackedSchema) -> InvalidRequestError:
    """Return the error for a recorded change, after which the query must be restarted."""
    properties = ", ".join(f"{k}:{v}" for k, v in sorted((entry.configuration or {}).items()))
    protocol = "" if entry.protocol is None else encode_action(entry.protocol)
    return InvalidRequestError(
        Message.STREAMING_METADATA_EVOLUTION,
        schema=simple_string(entry.schema),
        properties=properties,
        protocol=protocol,
        version=entry.version,
        location=location,
    )


def made_before(location: str, read: Snapshot, entry: TrackedSchema) -> InvalidRequestError:
    """Return the error for a frame that is older than the last recorded change of columns."""
    return InvalidRequestError(
        Message.STREAMING_SCHEMA_MISMATCH_ON_RESTART,
        read=simple_string(read.config.schema),
        recorded=simple_string(entry.schema),
        version=entry.version,
        location=location,
    )


def other_source(location: str, here: str, known: str) -> InvalidRequestError:
    """Return the error for a log of schemas that belongs to another stream."""
    return InvalidRequestError(
        Message.STREAMING_SCHEMA_LOCATION_CONFLICT_OTHER_SOURCE,
        here=here,
        known=known,
        location=location,
    )


def no_common_state(location: str, first: int, last: int) -> InvalidRequestError:
    """Return the error for a first batch whose rows have several schemas."""
    return InvalidRequestError(
        Message.STREAMING_SCHEMA_LOG_INIT_FAILED, first=first, last=last, location=location
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRead:
    """The schema of a stream: the one that its log of schemas records, or that of the table."""

    schema_log: SchemaLog
    snapshot: Snapshot

    @classmethod
    def of(cls, log: TableLog, schema_log: SchemaLog) -> TrackedRead:
        """Return what a new stream reads by; changes without rows between them become one."""
        newest, current = log.snapshot(), schema_log.current
        if current is None:
            return cls(schema_log=schema_log, snapshot=newest)
        merged = _merged(log, current)
        if merged is not None:
            schema_log = schema_log.with_replaced(merged)
            current = merged
        config = TableConfig.of(current.protocol or newest.protocol, current.metadata_over(newest))
        read = replace(newest, config=config, version=current.version)
        return cls(schema_log=schema_log, snapshot=read)


class StreamTracking:
    """One stream's log of schemas while queries run, one at a time."""

    def __init__(self, log: TableLog, read: TrackedRead, allowed: AllowedChanges) -> None:
        self._log = log
        self._read = read.snapshot
        self._schema_log = read.schema_log
        self._allowed = allowed
        self._source_path = ""
        self._known_version = -1
        """That of the entry with which the query began."""

    @property
    def location(self) -> str:
        """Where the log of schemas is."""
        return self._schema_log.store.root_uri

    def begin(self, source_path: str, settings: Mapping[str, str]) -> None:
        """Begin a query, which keeps what it knows of this source at a path of its checkpoint.

        Raises:
            InvalidRequestError: the log is that of another stream
                (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT), the frame was made before the last
                change (DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART), or see
                `AllowedChanges.require`.
        """
        schema_log = SchemaLog.read(self._schema_log.store, self._read.metadata.id)
        current = schema_log.current
        if current is not None:
            if current.source_path != source_path:
                raise other_source(self.location, source_path, current.source_path)
            if self._differs(current.metadata_over(self._read), current.protocol):
                raise made_before(self.location, self._read, current)
            previous = schema_log.previous()
            if previous is not None:
                replace(self._allowed, settings=settings).require(previous, current)
        self._schema_log, self._source_path = schema_log, source_path
        self._known_version = -1 if current is None else current.version

    def start_at(self, version: int) -> None:
        """Write the first entry, if there is none, for a stream that begins with a version."""
        if self._schema_log.current is None:
            # "latest" is the version that comes next.
            state = self._log.snapshot(version=min(version, self._log.snapshot().version))
            self._write_first(state.metadata, state.protocol, state.version)

    def start_within(self, first: int, last: int) -> None:
        """Write the first entry, if there is none, for a batch of versions that was planned.

        Raises:
            InvalidRequestError: as `start_at`, or no state of the table is one in which all rows of
                the batch can be read
                (DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA).
        """
        if self._schema_log.current is not None:
            return
        newest = self._log.snapshot().version
        first, last = min(first, newest), min(last, newest)
        state = self._log.snapshot(version=first)
        metadata, protocol = state.metadata, state.protocol
        states = [metadata]
        for commit in self._log.commits_after(first, through=last) if last > first else ():
            states += commit.metadata[-1:]
            for newer in _protocols(commit):
                if not supported_features(protocol) <= supported_features(newer):
                    raise no_common_state(self.location, first, last)
                protocol = newer
        metadata = states[-1]
        shapes = [TableShape.of(each) for each in states]
        if not all(can_read(s, shapes[-1], stored_is_older=True) for s in shapes):
            raise no_common_state(self.location, first, last)
        self._write_first(metadata, protocol, max(first, last))

    def is_change(self, commit: Commit) -> bool:
        """Return whether a stream has to stop before the files of a commit."""
        if commit.version <= self._known_version:
            return False
        metadata, protocols = commit.metadata, _protocols(commit)
        return any(self._differs(m, None) for m in metadata) or any(
            p != self._read.protocol for p in protocols
        )

    def follow(self, version: int) -> None:
        """Write down what changed in a version, once all before it is delivered.

        Raises:
            InvalidRequestError: it is written: the query has to be restarted
                (DELTA_STREAMING_METADATA_EVOLUTION).
        """
        for commit in self._log.commits_after(version - 1, through=version):
            if self.is_change(commit):
                metadata = next(iter(commit.metadata), self._read.metadata)
                protocol = next(iter(_protocols(commit)), self._read.protocol)
                entry = self._entry(metadata, protocol, version)
                self._schema_log = self._schema_log.with_entry(entry)
                raise has_changed(self.location, entry)

    def require_initial(self, state: Snapshot) -> None:
        """Refuse to read a whole version in other columns than its own; `follow` says how.

        The version that a stream begins with may be another one after a restart, if none of it
        was delivered.
        """
        if self._schema_log.current is None or state.version < self._read.version:
            return
        if state.version > self._known_version and self._differs(state.metadata, state.protocol):
            entry = self._entry(state.metadata, state.protocol, state.version)
            self._schema_log = self._schema_log.with_replaced(entry)
            raise has_changed(self.location, entry)

    def _write_first(self, metadata: Metadata, protocol: Protocol, version: int) -> None:
        entry = self._entry(metadata, protocol, version)
        self._schema_log = self._schema_log.with_entry(entry)
        if self._differs(metadata, protocol):
            raise has_changed(self.location, entry)

    def _entry(self, metadata: Metadata, protocol: Protocol, version: int) -> TrackedSchema:
        entry = TrackedSchema.of(metadata, protocol, version, self._source_path)
        return replace(entry, table_id=self._read.metadata.id)

    def _differs(self, metadata: Metadata, protocol: Protocol | None) -> bool:
        return (protocol is not None and protocol != self._read.protocol) or (
            _tracked_state(metadata) != _tracked_state(self._read.metadata)
        )


def _tracked_state(metadata: Metadata) -> tuple[object, ...]:
    properties = {k: v for k, v in metadata.configuration.items() if k.startswith("delta.")}
    schema = without_writer_metadata(parse_schema(metadata.schema_string))
    return schema, tuple(metadata.partition_columns), properties


def _merged(log: TableLog, current: TrackedSchema) -> TrackedSchema | None:
    """Return the state after the changes that follow without a row between; None without any."""
    merged, expected = current, current.version
    for commit in log.read_commits_left(current.version):
        metadata, protocols = commit.metadata, _protocols(commit)
        has_files = any(isinstance(a, Add | Remove | AddChangeFile) for a in commit.actions)
        if commit.version != expected or has_files or not (metadata or protocols):
            break
        if commit.version > current.version:
            merged = merged.with_change(
                commit.version, next(iter(metadata), None), next(iter(protocols), None)
            )
        expected += 1
    return None if merged is current else merged


def _protocols(commit: Commit) -> Sequence[Protocol]:
    return [action for action in commit.actions if isinstance(action, Protocol)]
