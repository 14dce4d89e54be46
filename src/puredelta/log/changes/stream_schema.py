"""Columns of a stream, and the changes of columns that it can follow.

A stream reads every commit with the columns that the table had when the stream was made. An older
commit may lack columns; nothing else may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from puredelta.errors import DeltaError, InvalidRequestError, Message
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata, Protocol
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import ColumnMappingMode, TableProperties
from puredelta.protocol.features.protocol_versions import require_capability
from puredelta.protocol.table.schema_changes import TableShape, adds_columns_only, keeps_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedTable:
    """The version of a table whose columns a stream reads; small enough to send to workers."""

    root_uri: str
    version: int
    metadata: Metadata
    follows_changes: bool = False
    """Whether a log of schemas stops the stream before every change of the columns."""

    @classmethod
    def of(cls, snapshot: Snapshot, *, follows_changes: bool = False) -> StreamedTable:
        """Return the part of a snapshot that a stream needs."""
        return cls(
            root_uri=snapshot.root_uri,
            version=snapshot.version,
            metadata=snapshot.metadata,
            follows_changes=follows_changes,
        )

    def require_supported(self, commit: Commit) -> None:
        """Reject a commit that needs a reader feature this library lacks."""
        for action in commit.actions:
            if isinstance(action, Protocol):
                shape = TableShape.of(self.metadata)
                properties = TableProperties.of(self.metadata.configuration)
                require_capability(Capability.READ, action, properties, shape.schema)

    def require_columns(self, metadata: Metadata, version: int) -> None:
        """Refuse the columns of a version if the stream cannot read them.

        Raises:
            InvalidRequestError: columns were renamed or dropped under column mapping
                (DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG), or changed in
                another way (DELTA_SCHEMA_CHANGED_WITH_VERSION).
        """
        if self.follows_changes:
            return
        stored, read = TableShape.of(metadata), TableShape.of(self.metadata)
        older, newer = (stored, read) if version <= self.version else (read, stored)
        if not keeps_mapping(older, newer):
            raise InvalidRequestError(
                Message.STREAMING_INCOMPATIBLE_SCHEMA_CHANGE,
                older=_text(self.metadata),
                newer=_text(metadata),
                version=version,
                path=self.root_uri,
            )
        if not adds_columns_only(stored.schema, read.schema):
            raise InvalidRequestError(
                Message.SCHEMA_CHANGED_WITH_VERSION_METADATA,
                older=_text(self.metadata),
                newer=_text(metadata),
                version=version,
                path=self.root_uri,
            )


def _text(metadata: Metadata) -> str:
    return metadata.schema_string


class MetadataInForce:
    """The metadata at the version that was last looked at."""

    def __init__(
        self, log: TableLog, table: StreamedTable, require: Callable[[Metadata, int], None]
    ) -> None:
        self._log = log
        self._table = table
        self._require = require
        self._known: tuple[int, Metadata] | None = None

    def require_state(self, metadata: Metadata, version: int) -> None:
        """Check the metadata of a whole version."""
        self._require(metadata, version)
        self._known = (version, metadata)

    def require_commit(self, commit: Commit) -> None:
        """Check what is in force at a commit: its own metadata, or that before it."""
        own, known = commit.metadata, self._known
        self._table.require_supported(commit)
        for metadata in own:
            self.require_state(metadata, commit.version)
        if own:
            return
        if known is not None and known[0] in {commit.version - 1, commit.version}:
            self._known = (commit.version, known[1])
            return
        found = self._metadata_at(commit.version)
        if found is not None:
            self.require_state(found, commit.version)

    def _metadata_at(self, version: int) -> Metadata | None:
        if version == self._table.version:
            return self._table.metadata
        try:
            return self._log.snapshot(version=version).metadata
        except DeltaError:
            # Its checkpoint may be gone. Names then tell nothing under column mapping.
            if TableShape.of(self._table.metadata).column_mapping is not ColumnMappingMode.NONE:
                raise
            return None
