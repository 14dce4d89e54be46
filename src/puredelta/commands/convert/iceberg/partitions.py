"""Partition columns of a Delta table over the files of an Iceberg table.

A column whose values Iceberg partitions by as they are is one of Delta's. What Iceberg computes
(days, buckets, prefixes) is not: the files have the column itself, its bounds skip files, and no
column appears that Iceberg does not show. After a change of the partitioning, only those columns
count that all files are partitioned by (C-71).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg import types as I
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform

from puredelta.commands.convert.iceberg.footers import FileColumns
from puredelta.commands.convert.iceberg.schema import primitive
from puredelta.commands.convert.iceberg.statistics import python_value
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.protocol.schema.types import DataType
from puredelta.protocol.values.partition_escape import HIVE_NULL
from puredelta.protocol.values.partition_values import encode_partition_value, is_partition_type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    field_id: int
    name: str
    iceberg_type: I.PrimitiveType
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partition columns of all files."""

    specs: Mapping[int, Mapping[int, int]]
    """Where the values of columns stand, by specification and field id."""
    columns: tuple[_Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in partitioning order."""
        return tuple(column.name for column in self.columns)

    @classmethod
    def of(
        cls, metadata: TableMetadata, files: Sequence[DataFile], columns: Sequence[FileColumns]
    ) -> Partitions:
        """Choose the partition columns.

        Raises:
            UnsupportedError: a file lacks a column that only its partition value knows.
        """
        specs = {number: _places(spec) for number, spec in metadata.specs().items()}
        used = {file.spec_id for file in files} or {metadata.default_spec_id}
        top = {field.field_id: field for field in metadata.schema().fields}
        found = []
        for field_id in specs[metadata.default_spec_id]:
            field = top.get(field_id)
            if field is None or not isinstance(field.field_type, I.PrimitiveType):
                continue
            kind = field.field_type
            column = _Column(
                field_id=field_id,
                name=field.name,
                iceberg_type=kind,
                type=primitive(kind, (field.name,)),
            )
            everywhere = all(field_id in specs[number] for number in used)
            if everywhere and is_partition_type(column.type):
                found.append(column)
        chosen = cls(specs=specs, columns=tuple(found))
        exact = tuple(c for c in found if all(chosen._is_exact(c, file) for file in files))
        if len(exact) == len(top):
            exact = ()
        chosen = cls(specs=specs, columns=exact)
        chosen._require_in_files(files, columns, top)
        return chosen

    def values(self, file: DataFile) -> Mapping[str, str | None]:
        """Return the partition values of a file, by column."""
        return {
            column.name: encode_partition_value(self._value(column, file), column.type)
            for column in self.columns
        }

    def _value(self, column: _Column, file: DataFile) -> object:
        return python_value(
            column.iceberg_type, file.partition[self.specs[file.spec_id][column.field_id]]
        )

    def _is_exact(self, column: _Column, file: DataFile) -> bool:
        """Return whether the log can hold a value: empty text is NULL there."""
        value = self._value(column, file)
        if isinstance(value, float):
            return not math.isnan(value) and value != 0
        return value not in ("", b"", HIVE_NULL)

    def _require_in_files(
        self,
        files: Sequence[DataFile],
        columns: Sequence[FileColumns],
        top: Mapping[int, I.NestedField],
    ) -> None:
        """Refuse a column that is in the partition values of a file alone, as those of Hive are."""
        chosen = {column.field_id for column in self.columns}
        for file, found in zip(files, columns, strict=True):
            for field_id in self.specs[file.spec_id]:
                if field_id in top and field_id not in chosen and field_id not in found.ids:
                    raise UnsupportedError(
                        "The Iceberg table cannot become a Delta table: the file "
                        f"{file.file_path} lacks the column {top[field_id].name}, which its "
                        "partition knows, and not all files are partitioned by it. Rewrite the "
                        "file in Iceberg (rewrite_data_files), then convert it again.",
                        code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
                        path=file.file_path,
                        column=top[field_id].name,
                    )


def _places(spec: PartitionSpec) -> Mapping[int, int]:
    return {
        field.source_id: place
        for place, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform)
    }
