"""What an Iceberg table is, in values that need no pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.stats import LeafPath, LeafStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """One data file of the current snapshot."""

    path: str
    """Percent-encoded: relative to the table's root, or absolute outside of it."""
    size_bytes: int
    num_rows: int
    """Physical rows, deleted ones included."""
    partition_values: Mapping[str, str | None]
    leaves: Mapping[LeafPath, LeafStatistics]
    deleted: RowIndexes | None
    """The positions of its deleted rows, None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergContent:
    """The current snapshot of a table."""

    schema: StructType
    """With the ids of Iceberg as column mapping has them, and the types that files have."""
    partition_columns: tuple[str, ...]
    """Those that every file of the snapshot is partitioned by, as they are."""
    max_column_id: int
    timestamp_ms: int
    """When the snapshot was committed."""
    files: Sequence[IcebergFile]


class IcebergTable(Protocol):
    """A table whose metadata was read, and nothing else yet."""

    @property
    def location(self) -> str:
        """The table's root, as the metadata says."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    def read(self) -> IcebergContent:
        """Read the manifests, the footers of all data files and the files of deleted rows.

        Raises:
            UnsupportedError: something that a Delta table cannot have; the message names it.
            CorruptTableError: a file is missing, or not Parquet.
        """

    def require_current(self) -> None:
        """Look for metadata that is newer than what was read.

        Raises:
            ConcurrentWriteException: there is some.
        """
