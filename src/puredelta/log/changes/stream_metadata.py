"""What is in force at each commit that a stream comes by, and whether it can be delivered."""

from __future__ import annotations

from collections.abc import Callable

from puredelta.errors import DeltaError
from puredelta.log.changes.stream_schema import StreamedTable
from puredelta.log.replay.commit_files import Commit
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Metadata
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.table.read_compatibility import TableShape


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
