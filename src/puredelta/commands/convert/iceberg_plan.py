"""The conversion of an Iceberg table: its snapshot as the content of version 0."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from puredelta.commands.command import Command
from puredelta.commands.convert.conversion_plan import (
    ConversionPlan,
    ConvertSettings,
    require_counted,
)
from puredelta.commands.new_table import NewTableProperties, plan_new_table
from puredelta.errors import Message, UnsupportedError
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import PROPERTY_KEYS, ColumnMappingMode
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.stats import (
    LeafPath,
    LeafStatistics,
    encode_statistics,
    indexed_leaves,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_CONVERT
from puredelta.store.base import Store


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
    """Contains Iceberg's field ids as those of column mapping, and the types in the files."""
    partition_columns: tuple[str, ...]
    """The columns that partition every file of the snapshot by identity."""
    max_column_id: int
    timestamp_ms: int
    """The commit time of the snapshot."""
    files: Sequence[IcebergFile]


class IcebergTable(Protocol):
    """A table of which only the metadata has been read."""

    @property
    def location(self) -> str:
        """The table's root, from the metadata."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    def read(self) -> IcebergContent:
        """Read the manifests, the footers of all data files and the files of deleted rows.

        Raises:
            UnsupportedError: a feature that a Delta table cannot have; the message names it.
            CorruptTableError: a file is missing, or not Parquet.
        """

    def require_current(self) -> None:
        """Search for metadata newer than the metadata that was read.

        Raises:
            ConcurrentWriteException: there is some.
        """


_READER = "puredelta.commands.convert.iceberg_table"


def open_iceberg(store: Store) -> IcebergTable:
    """Open an Iceberg table; the store is at its root, or at one of its metadata files.

    Raises:
        UnsupportedError: pyiceberg is not installed (DELTA_MISSING_ICEBERG_CLASS).
        InvalidRequestError: there is no table.
    """
    try:
        reader = importlib.import_module(_READER)  # imports take a second, and few need them
    except ImportError as missing:
        raise UnsupportedError(
            Message.MISSING_ICEBERG_CLASS, missing=missing, path=store.root_uri
        ) from missing
    table: IcebergTable = reader.open_table(store)
    return table


_COMMENT = "comment"
_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"


def plan_iceberg(command: Command, table: IcebergTable, *, collect_stats: bool) -> ConversionPlan:
    """Plan the conversion of an Iceberg table. Reads its metadata and all footers."""
    REFUSED_BY_CONVERT.require_defaults(command.session.settings)
    settings = ConvertSettings.parse(command.session.settings)
    collects = collect_stats and settings.collect_stats
    content = table.read()
    wanted = NewTableProperties(
        properties=_properties(table, content),
        description=table.properties.get(_COMMENT),
        max_column_id=content.max_column_id,
    )
    config = plan_new_table(
        command.session.settings, content.schema, content.partition_columns, wanted=wanted
    )
    require_counted(config, collects_stats=collects)
    config.require(Capability.APPEND)
    indexed = frozenset(indexed_leaves(config)) if collects else frozenset()
    adds = (
        _add(file, config, indexed, modified_ms=content.timestamp_ms, has_stats=collects)
        for file in content.files
    )
    return ConversionPlan(
        config=config,
        files=SpooledFiles.of(adds),
        collects_stats=collects,
        listed=(),
        deleted={f.path: f.deleted for f in content.files if f.deleted is not None},
    )


def _properties(table: IcebergTable, content: IcebergContent) -> Mapping[str, str]:
    """Return the properties that give the Delta table the meaning of the Iceberg table."""
    properties = {PROPERTY_KEYS["column_mapping_mode"]: ColumnMappingMode.ID.value}
    if any(file.deleted is not None for file in content.files):
        properties[PROPERTY_KEYS["enable_deletion_vectors"]] = "true"
    age = table.properties.get(_SNAPSHOT_AGE, "")
    if age.isdecimal():
        properties[PROPERTY_KEYS["log_retention"]] = f"interval {age} milliseconds"
    return properties


def _add(
    file: IcebergFile,
    config: TableConfig,
    indexed: frozenset[LeafPath],
    *,
    modified_ms: int,
    has_stats: bool,
) -> Add:
    """Return the add action of a file; one with deleted rows gets its minimum row count (M-134)."""
    stats = None
    if has_stats or file.deleted is not None:
        stats = encode_statistics(
            {path: leaf for path, leaf in file.leaves.items() if path in indexed},
            num_records=file.num_rows,
            tight_bounds=True if config.supports("deletionVectors") else None,
            string_prefix_length=config.properties.data_skipping_string_prefix_length,
        )
    return Add(
        path=file.path,
        partition_values=file.partition_values,
        size_bytes=file.size_bytes,
        modified_ms=modified_ms,
        data_change=True,
        stats=stats,
    )
