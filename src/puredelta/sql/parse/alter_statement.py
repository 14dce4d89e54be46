"""What ALTER TABLE asks for, as frozen values; nothing here has looked at a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.protocol.schema.schema_edit import ColumnPosition, FieldPath
from puredelta.sql.text.column_text import ColumnDefinition
from puredelta.sql.text.table_name import TableReference


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``SET TBLPROPERTIES (...)``."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetProperties:
    """``UNSET TBLPROPERTIES [IF EXISTS] (...)``."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ADD COLUMN[S] (...)``."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnAction:
    """``ALTER COLUMN`` of one column: what is to change, None where nothing is."""

    path: FieldPath
    data_type: str | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drops_default: bool = False
    position: ColumnPosition | None = None


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """``ALTER COLUMN`` or ``CHANGE COLUMN``."""

    columns: tuple[ColumnAction, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``RENAME COLUMN path TO new_name``."""

    path: FieldPath
    new_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumns:
    """``DROP COLUMN[S] [IF EXISTS] ...``."""

    paths: tuple[FieldPath, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """``REPLACE COLUMNS (...)``."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """``ALTER COLUMN path SYNC IDENTITY``."""

    path: FieldPath


@dataclass(frozen=True, slots=True)
class AddCheck:
    """``ADD CONSTRAINT name CHECK (condition)``; the condition is the user's text."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """``DROP CONSTRAINT [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """``CLUSTER BY (...)``, or ``CLUSTER BY NONE`` without columns."""

    columns: tuple[FieldPath, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFeature:
    """``DROP FEATURE name [TRUNCATE HISTORY]``."""

    name: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class SetLocation:
    """``SET LOCATION 'path'``."""

    location: str


ColumnsChange: TypeAlias = AddColumns | ChangeColumns | RenameColumn | DropColumns | ReplaceColumns

TableChange: TypeAlias = (
    SetProperties
    | UnsetProperties
    | ColumnsChange
    | SyncIdentity
    | AddCheck
    | DropConstraint
    | ClusterBy
    | DropFeature
)
"""What is a commit of the table; DROP FEATURE makes several."""

Change: TypeAlias = TableChange | SetLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStatement:
    """One change of one table."""

    table: TableReference
    change: Change
    known_to_spark: bool = True
    """Whether every Spark's parser knows such a change."""
