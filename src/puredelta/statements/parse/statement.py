"""Parsed statements as frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, TypeVar

from puredelta.commands.dml.spec import DeleteSpec, MergeSpec, UpdateSpec
from puredelta.commands.optimize import OptimizeSpec
from puredelta.errors import DeltaError, InvalidRequestError, UnsupportedError
from puredelta.protocol.schema.schema_edit import ColumnPosition, FieldPath
from puredelta.statements.parse.column_text import ColumnDefinition
from puredelta.statements.parse.cursor import Cursor, SqlSyntaxError
from puredelta.statements.parse.expression_text import read_expression
from puredelta.statements.parse.table_name import (
    TableArgument,
    TableName,
    TableReference,
    TimeTravel,
)


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
    """``ALTER COLUMN`` of one column: its changes, None for unchanged parts."""

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
"""Changes made in one commit of the table; DROP FEATURE makes several."""

Change: TypeAlias = TableChange | SetLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStatement:
    """One change of one table."""

    table: TableReference
    change: Change
    known_to_spark: bool = True
    """Whether the parser of every supported Spark knows the change."""


# --- MERGE, UPDATE, DELETE ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table a statement changes."""

    name: TableReference
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """``USING name``: a table, a view, a common table expression or a path."""

    name: TableReference
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceQuery:
    """``USING (query)``; the query is the text between the brackets."""

    query: str
    alias: str | None = None


Source: TypeAlias = SourceTable | SourceQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement:
    """``[WITH ...] MERGE [WITH SCHEMA EVOLUTION] INTO target USING source ...``."""

    target: Target
    source: Source
    spec: MergeSpec
    ctes: str = ""
    """``WITH name AS (...), ...`` before the statement, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStatement:
    """``[WITH ...] UPDATE target SET ...``."""

    target: Target
    spec: UpdateSpec
    ctes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStatement:
    """``[WITH ...] DELETE FROM target ...``."""

    target: Target
    spec: DeleteSpec
    ctes: str = ""


RowStatement: TypeAlias = MergeStatement | UpdateStatement | DeleteStatement

# --- statements unknown to Spark's parser ----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertStatement:
    """``CONVERT TO DELTA source [NO STATISTICS] [PARTITIONED BY (...)] [DRY RUN | VERIFY]``."""

    source: TableName
    partition_schema: str | None = None
    """Names and types, as the user wrote them."""
    collect_stats: bool = True
    dry_run: bool = False
    verify: bool = False
    """Whether the statistics are compared with the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeStatement:
    """``OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (columns)]``."""

    table: TableArgument
    spec: OptimizeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorgStatement:
    """``REORG TABLE table [WHERE condition] APPLY (PURGE)``, or ``APPLY (UPGRADE UNIFORM
    (ICEBERG_COMPAT_VERSION = n))``.
    """

    table: TableArgument
    predicates: tuple[str, ...] = ()
    iceberg_compat: int | None = None
    """The version to upgrade to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumStatement:
    """``VACUUM table [LITE | FULL] [USING INVENTORY rows] [RETAIN n HOURS] [DRY RUN]``."""

    table: TableArgument
    retention_hours: float | None = None
    dry_run: bool = False
    lite: bool | None = None
    inventory: str | None = None
    """The query of ``USING INVENTORY``, or the name of a table as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreStatement:
    """``RESTORE [TABLE] table [TO] VERSION AS OF n``, or ``TIMESTAMP AS OF 'time'``."""

    table: TableArgument
    state: TimeTravel


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateStatement:
    """``GENERATE mode FOR TABLE table``."""

    table: TableArgument
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeHistory:
    """``DESC[RIBE] HISTORY table [LIMIT n]``."""

    table: TableArgument
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDetail:
    """``DESC[RIBE] DETAIL table``."""

    table: TableArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneStatement:
    """``CREATE [OR REPLACE] TABLE target SHALLOW CLONE source``: over the files of the source."""

    target: TableReference
    source: TableReference
    shallow: bool
    creates: bool
    """Whether the target may be missing."""
    replaces: bool
    """Whether the target may exist."""
    if_not_exists: bool
    state: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


# --- statements of Spark on any table -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeStatement:
    """``CREATE TABLE target LIKE source``: no rows, and the definition of the source."""

    target: TableReference
    source: TableReference
    if_not_exists: bool
    provider: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateStatement:
    """``TRUNCATE TABLE table``."""

    table: TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPathStatement:
    """``DROP TABLE [IF EXISTS] delta.`/path` ``."""

    table: TableName
    path: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropNamedStatement:
    """``DROP TABLE [IF EXISTS] table``."""

    table: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowProperties:
    """``SHOW TBLPROPERTIES table [(key)]``."""

    table: TableReference
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowColumns:
    """``SHOW COLUMNS IN table [IN database]``."""

    table: TableReference
    database: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreate:
    """``SHOW CREATE TABLE table [AS SERDE]``."""

    table: TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitions:
    """``SHOW PARTITIONS table [PARTITION (column = constant, ...)]``."""

    table: TableReference
    values: tuple[tuple[str, str], ...] = ()
    """Names of columns, and the texts of the constants that they equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTable:
    """``DESC[RIBE] [TABLE] [EXTENDED] table [column]``."""

    table: TableReference
    extended: bool = False
    column: FieldPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UseNamespace:
    """``USE [CATALOG | SCHEMA] name`` or ``SET CATALOG name``."""

    parts: tuple[str, ...]
    is_catalog: bool | None = None
    """Whether the name is said to be that of a catalog; None: Spark's rule, a catalog first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables:
    """``SHOW TABLES [IN namespace] [LIKE pattern]``."""

    namespace: tuple[str, ...] = ()
    pattern: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSchemas:
    """``SHOW SCHEMAS [IN catalog] [LIKE pattern]``; also DATABASES and NAMESPACES."""

    namespace: tuple[str, ...] = ()
    pattern: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCatalogs:
    """``SHOW CATALOGS [LIKE pattern]``."""

    pattern: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCurrent:
    """``SHOW CURRENT NAMESPACE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSchema:
    """``DESCRIBE SCHEMA [EXTENDED] name``."""

    namespace: tuple[str, ...]
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema:
    """``CREATE SCHEMA [IF NOT EXISTS] name [COMMENT ...] [LOCATION ...] [WITH ... (...)]``."""

    namespace: tuple[str, ...]
    if_not_exists: bool = False
    comment: str = ""
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSchema:
    """``DROP SCHEMA [IF EXISTS] name [CASCADE]``."""

    namespace: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    """``ALTER TABLE table RENAME TO name``."""

    table: TableReference
    new_name: tuple[str, ...]


CatalogStatement: TypeAlias = (
    UseNamespace
    | ShowTables
    | ShowSchemas
    | ShowCatalogs
    | ShowCurrent
    | DescribeSchema
    | CreateSchema
    | DropSchema
    | RenameTable
    | DropNamedStatement
)
"""Statements about catalogs, schemas and entries: Spark's own, except in a catalog of this library.
"""

ShowStatement: TypeAlias = (
    ShowProperties | ShowColumns | ShowCreate | ShowPartitions | DescribeTable
)


class ViewLifetime(Enum):
    """Lifetimes of views."""

    SESSION = "temporary"
    """Also that of a `CACHE TABLE`."""
    GLOBAL = "global temporary"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStatement:
    """``CREATE [[GLOBAL] TEMPORARY] VIEW`` or ``CACHE TABLE``."""

    lifetime: ViewLifetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInText:
    """The name of a table, with its position in the text."""

    name: TableReference
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkParsedStatement:
    """CREATE TABLE, REPLACE TABLE or INSERT, of which only the beginning has been read.

    Spark's own parser reads the rest: `puredelta.spark.jvm.statement_plans`.
    """

    defines: bool
    """CREATE or REPLACE, not INSERT."""
    targets: tuple[TableInText, ...]
    """One; several for several INSERTs after one FROM."""
    start: int
    """Position of the statement's first word, after common table expressions and FROM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Text that begins as one of these statements and continues as something else.

    The error is raised only under conditions that a parser cannot check: the table is a Delta
    table, and Spark's parser does not raise another error.
    """

    error: DeltaError
    table: TableReference | None = None
    """The error is raised only if this is a Delta table."""
    known_to_spark: bool = True
    """Whether Spark's parser knows such statements: then its error comes first, and a text that
    names no table is left to Spark.
    """


Statement: TypeAlias = (
    RowStatement
    | ConvertStatement
    | OptimizeStatement
    | ReorgStatement
    | VacuumStatement
    | RestoreStatement
    | GenerateStatement
    | DescribeHistory
    | DescribeDetail
    | CloneStatement
    | LikeStatement
    | AlterStatement
    | TruncateStatement
    | CatalogStatement
    | DropPathStatement
    | ShowStatement
    | ViewStatement
    | SparkParsedStatement
    | Rejected
)
"""Closed union: ``match`` over it ends in ``assert_never``."""

Read = TypeVar("Read")


def read_or_reject(
    cursor: Cursor,
    read: Callable[[Cursor], Read],
    *,
    table: TableReference | None = None,
    known_to_spark: bool = True,
) -> Read | Rejected:
    """Return the result of ``read`` for the text up to its end, or its error as a value."""
    try:
        statement = read(cursor)
        cursor.expect_end()
    except (InvalidRequestError, UnsupportedError) as error:
        return Rejected(error=error, table=table, known_to_spark=known_to_spark)
    return statement


Explained: TypeAlias = (
    RowStatement | ConvertStatement | OptimizeStatement | RestoreStatement | VacuumStatement
)
"""Statements explained here; Spark explains queries."""


class ExplainFormat(Enum):
    """Detail levels of EXPLAIN."""

    SIMPLE = ""
    FORMATTED = "FORMATTED"
    EXTENDED = "EXTENDED"
    COST = "COST"
    CODEGEN = "CODEGEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainStatement:
    """``EXPLAIN [FORMATTED | EXTENDED | COST | CODEGEN] statement``."""

    statement: Explained
    format: ExplainFormat
    text: str
    """The text of the explained statement."""


ReadStatement: TypeAlias = Statement | ExplainStatement
"""Statements that a text may contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    """EXECUTE IMMEDIATE before its text is computed; all texts are expressions."""

    text: str
    values: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Names of the values, if they have names."""


def read_immediate(text: str) -> Immediate | None:
    """Read EXECUTE IMMEDIATE; None if it is another statement, wrong, or sets variables.

    >>> read_immediate("EXECUTE IMMEDIATE 'SELECT :a' USING 1 AS a")
    Immediate(text="'SELECT :a'", values=('1',), names=('a',))
    """
    cursor = Cursor(text)
    if not cursor.accept("EXECUTE", "IMMEDIATE"):
        return None
    try:
        statement = read_expression(cursor, lambda at: at.sees("USING") or at.sees("INTO"))
        given = cursor.items_in_brackets(_value, optional=True) if cursor.accept("USING") else []
        cursor.expect_end()
    except SqlSyntaxError:
        return None
    names = tuple(name for _, name in given if name is not None)
    if names and len(names) != len(given):
        return None
    return Immediate(text=statement, values=tuple(value for value, _ in given), names=names)


def _value(cursor: Cursor) -> tuple[str, str | None]:
    value = read_expression(cursor, lambda at: at.sees(",") or at.sees("AS"))
    return value, cursor.identifier() if cursor.accept("AS") else None
