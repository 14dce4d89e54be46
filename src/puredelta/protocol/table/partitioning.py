"""The partitions of a table: which files are in one, by values and never by their texts.

A log has the spellings of all its writers: ``month=01`` of a converted directory beside the ``1``
of Spark, local times beside those in UTC, ``char(n)`` filled up with blanks or not. Every command
that puts files together, or asks whether two are of one partition, asks here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import TypeAlias

from puredelta.protocol.schema.partition_values import partition_identity
from puredelta.protocol.schema.timestamps import parse_time_zone
from puredelta.protocol.schema.types import DataType
from puredelta.protocol.table.table_config import TableConfig

PartitionKey: TypeAlias = tuple[Hashable, ...]
"""Equal for files of one partition, and for no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """One column that partitions a table."""

    physical_name: str
    type: DataType
    is_padded: bool
    """A ``char(n)``: blanks at the end do not count."""
    time_zone: tzinfo | None

    def identity(self, text: str | None) -> Hashable:
        """Return the key of a value, see `partition_identity`."""
        if text and self.is_padded:
            # Nothing but blanks is the empty char, which is no null.
            return text.rstrip(" ")
        return partition_identity(text, self.type, self.time_zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """The partitioning of a table's files."""

    columns: tuple[PartitionColumn, ...]

    @classmethod
    def of(cls, config: TableConfig, time_zone: str | None = None) -> Partitioning:
        """Return the partitioning of a table.

        ``time_zone`` is that of the session, in which texts of times without a zone are read.
        Where it is not known such a text is a value of its own.
        """
        zone: tzinfo | None = None
        with contextlib.suppress(ValueError):
            zone = None if time_zone is None else parse_time_zone(time_zone)
        return cls(
            columns=tuple(
                PartitionColumn(
                    physical_name=name,
                    type=field.type,
                    is_padded=field.name in config.padded_columns,
                    time_zone=zone,
                )
                for name, field in zip(
                    config.physical_partition_columns, config.partition_schema.fields, strict=True
                )
            )
        )

    def key(self, values: Mapping[str, str | None] | None) -> PartitionKey:
        """Return the key of the partition that a file with these values is in."""
        given = values or {}
        return tuple(column.identity(given.get(column.physical_name)) for column in self.columns)
