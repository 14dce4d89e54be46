"""Columns and partitions of a Delta table as Iceberg's: field ids, names in files, and types.

A table with column mapping has field ids of its own, in its schema and in its data files. Other
files have no ids: each column gets one when it is first exported, and readers find the columns of
such files by the name mapping of the Iceberg table (``schema.name-mapping.default``). The mapping
is also the memory of the exports: an id is never given twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pyiceberg import types as I
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.transforms import IdentityTransform
from typing_extensions import assert_never

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.features.column_mapping import NESTED_IDS, field_id, physical_name
from puredelta.protocol.features.feature_usage import TYPE_CHANGES
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.features.type_widening import iceberg_widens
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.traversal import fields_by_path
from puredelta.protocol.schema.types import (
    COLLATIONS,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from puredelta.protocol.table.change_data import CHANGE_TYPE
from puredelta.protocol.table.row_tracking import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from puredelta.protocol.table.table_config import TableConfig

Path: TypeAlias = tuple[str, ...]
"""Names in files from the column down, with ``element``, ``key`` and ``value``."""

_PRIMITIVES: Mapping[str, I.PrimitiveType] = {
    "byte": I.IntegerType(),
    "short": I.IntegerType(),
    "integer": I.IntegerType(),
    "long": I.LongType(),
    "float": I.FloatType(),
    "double": I.DoubleType(),
    "boolean": I.BooleanType(),
    "string": I.StringType(),
    "binary": I.BinaryType(),
    "date": I.DateType(),
    "timestamp": I.TimestamptzType(),
    "timestamp_ntz": I.TimestampType(),
}
_HIDDEN_ID = 2_000_000_000
"""The first id of columns that a table with column mapping does not show; it has no such ids."""
_OF_CHANGES = {CHANGE_TYPE: _HIDDEN_ID + 2, "__is_cdc": _HIDDEN_ID + 3}
"""Columns that files of a table with change data feed have, without an id; the second is
delta-spark's."""
LAST_PARTITION_ID = 999
"""Iceberg numbers partition fields after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergLayout:
    """The columns and partitions of one version, and the ids of all columns that ever were."""

    schema: Schema
    partition_fields: tuple[I.NestedField, ...]
    """The columns that partition the table, in their order."""
    ids: Mapping[Path, int]
    """Of dropped columns, too."""

    @property
    def mapping(self) -> NameMapping:
        """The ids as a name mapping of Iceberg."""
        return NameMapping(_mapped_fields(self.ids))


def iceberg_layout(config: TableConfig, known: Mapping[Path, int]) -> IcebergLayout:
    """Return the layout of a version; ``known`` are the ids of earlier exports.

    Raises:
        UnsupportedError: Iceberg has no such column (DELTA_UNIVERSAL_FORMAT_VIOLATION).
    """
    _require_iceberg_changes(config)
    ids = _Ids(dict(known), config.column_mapping, has_nested_ids=bool(config.columns_with_ids))
    fields = ids.fields(config.schema, ())
    for place, key in enumerate((ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN)):
        name = config.metadata.configuration.get(key)
        if name:
            ids.hide(name, _HIDDEN_ID + place)
    for name, number in _OF_CHANGES.items():
        ids.known.setdefault((name,), number)
    by_name = {one.name: one for one in fields}
    return IcebergLayout(
        schema=Schema(*fields),
        partition_fields=tuple(by_name[name] for name in config.partition_columns),
        ids=ids.known,
    )


def renamed_spec(spec: PartitionSpec, schema: Schema) -> PartitionSpec:
    """Return an earlier spec with the names that its columns have now.

    A spec that a column's new name made another one would part files from their deletion vectors:
    both need one spec, and DuckDB checks it.
    """
    names = {one.field_id: one.name for one in schema.fields}
    fields = [
        one.model_copy(update={"name": names.get(one.source_id, one.name)}) for one in spec.fields
    ]
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def partition_spec(layout: IcebergLayout, known: Sequence[PartitionSpec]) -> PartitionSpec:
    """Return the spec of the table, one of the ``known`` ones if it is the same.

    A column that partitioned the table before keeps its id as a partition field.
    """
    numbers = {f.source_id: f.field_id for spec in known for f in spec.fields}
    highest = max(numbers.values(), default=LAST_PARTITION_ID)
    fields = []
    for one in layout.partition_fields:
        number = numbers.get(one.field_id)
        if number is None:
            number = highest = highest + 1
        fields.append(
            PartitionField(
                source_id=one.field_id,
                field_id=number,
                transform=IdentityTransform(),
                name=one.name,
            )
        )
    same = next((spec for spec in known if spec.fields == tuple(fields)), None)
    number = max((spec.spec_id for spec in known), default=-1) + 1
    return PartitionSpec(*fields, spec_id=number) if same is None else same


def known_ids(mapping: NameMapping, prefix: Path = ()) -> dict[Path, int]:
    """Return the ids that a name mapping gives to paths."""
    found: dict[Path, int] = {}
    for mapped in mapping:
        for name in mapped.names:
            path = (*prefix, name)
            if mapped.field_id is not None:
                found[path] = mapped.field_id
            found |= known_ids(NameMapping(mapped.fields), path)
    return found


def are_ids_kept(before: Mapping[Path, int], after: Mapping[Path, int]) -> bool:
    """Return whether every column has the id that it had in earlier exports, and no other has it.

    Column mapping that is enabled later numbers columns in another order.

    >>> are_ids_kept({("a",): 1}, {("a",): 1, ("b",): 2}), are_ids_kept({("a",): 1}, {("b",): 1})
    (True, False)
    """
    owners = {number: path for path, number in before.items()}
    return all(
        before.get(path, number) == number and owners.get(number, path) == path
        for path, number in after.items()
    )


@dataclass(slots=True)
class _Ids:
    """The ids of columns; new columns get new ones."""

    known: dict[Path, int]
    mode: ColumnMappingMode
    has_nested_ids: bool = False
    """Whether files have ids for elements, keys and values, too (IcebergCompat from version 2)."""
    highest: int = field(init=False)

    def __post_init__(self) -> None:
        self.highest = max((n for n in self.known.values() if n < _HIDDEN_ID), default=0)

    def fields(self, struct: StructType, prefix: Path) -> list[I.NestedField]:
        return [self._field(one, prefix) for one in struct.fields]

    def hide(self, name: str, number: int) -> None:
        """Give an id to a column of files that the table does not show.

        pyiceberg refuses a file with a column that has no id, DuckDB reads NULL in later columns.
        """
        if self.mode is ColumnMappingMode.NONE:
            self._numbered((name,))
        else:
            self.known[name,] = number

    def _field(self, one: StructField, prefix: Path) -> I.NestedField:
        path = (*prefix, physical_name(one, self.mode))
        if self.mode is ColumnMappingMode.NONE:
            number = self._numbered(path)
        else:
            number = self.known[path] = field_id(one)
            if self.has_nested_ids:
                for inside, inner in one.metadata.get(NESTED_IDS, {}).items():
                    parts = tuple(inside[len(path[-1]) + 1 :].split("."))
                    self.known[path + parts] = int(inner)
        if COLLATIONS in one.metadata:
            raise _violation(one.name, "has a collation")
        comment = one.metadata.get("comment")
        # Every column is optional: the rows are those of Delta, which has checked them.
        return I.NestedField(
            field_id=number,
            name=one.name,
            field_type=self._type(one.type, path, one.name),
            required=False,
            doc=comment if isinstance(comment, str) else None,
        )

    def _type(self, kind: DataType, path: Path, column: str) -> I.IcebergType:
        match kind:
            case StructType():
                return I.StructType(*self.fields(kind, path))
            case ArrayType(element):
                element_path = (*path, "element")
                self._require_id(element_path, kind, column)
                return I.ListType(
                    element_id=self._numbered(element_path),
                    element_type=self._type(element, element_path, column),
                    element_required=False,
                )
            case MapType(key, value):
                key_path, value_path = (*path, "key"), (*path, "value")
                self._require_id(key_path, kind, column)
                return I.MapType(
                    key_id=self._numbered(key_path),
                    key_type=self._type(key, key_path, column),
                    value_id=self._numbered(value_path),
                    value_type=self._type(value, value_path, column),
                    value_required=False,
                )
            case DecimalType(precision, scale):
                return I.DecimalType(precision, scale)
            case PrimitiveType(name):
                found = _PRIMITIVES.get(name)
                if found is None:
                    raise _violation(column, f"has the type {simple_string(kind)}")
                return found
            case _:
                assert_never(kind)

    def _numbered(self, path: Path) -> int:
        if path not in self.known:
            self.highest += 1
            self.known[path] = self.highest
        return self.known[path]

    def _require_id(self, path: Path, kind: DataType, column: str) -> None:
        """Refuse arrays and maps in files with field ids, but none for the elements."""
        if self.mode is not ColumnMappingMode.NONE and path not in self.known:
            raise _violation(
                column,
                f"has the type {simple_string(kind)} under column mapping: its data files have "
                "field ids, but none for elements, and readers of Iceberg would see NULL; REORG "
                "TABLE ... APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2)) writes them",
            )


def _mapped_fields(ids: Mapping[Path, int]) -> list[MappedField]:
    inner: dict[str, dict[Path, int]] = {}
    for path, number in ids.items():
        inner.setdefault(path[0], {})[path[1:]] = number
    found = []
    for name, column in inner.items():
        own = column.get(())
        below = {path: value for path, value in column.items() if path}
        found.append(
            MappedField.model_validate(
                {"field-id": own, "names": [name], "fields": _mapped_fields(below)}
            )
        )
    return found


def _require_iceberg_changes(config: TableConfig) -> None:
    """Require that old files have types that Iceberg widens, too."""
    for path, one in fields_by_path(config.schema):
        for change in one.metadata.get(TYPE_CHANGES, ()):
            before, after = change.get("fromType"), change.get("toType")
            if not iceberg_widens(str(before), str(after)):
                raise _violation(path, f"was widened from {before} to {after}")


def _violation(column: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        Message.UNIVERSAL_FORMAT_VIOLATION_COLUMN, format="iceberg", column=column, reason=reason
    )
