"""What a statement asks for, as frozen values; nothing here has looked at a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from puredelta.commands.merge.clauses import MergeSpec
from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.update_delete.spec import DeleteSpec, UpdateSpec, operation_name
from puredelta.sql.text.table_name import TableReference


class StatementKind(Enum):
    """The statements that may be ours, by the word they begin with."""

    MERGE = "MERGE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONVERT = "CONVERT"
    OPTIMIZE = "OPTIMIZE"


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
    """``USING (query)``; the query is what stands between the brackets."""

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

    @property
    def operation(self) -> str:
        """What messages call it."""
        return "MERGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStatement:
    """``[WITH ...] UPDATE target SET ...``."""

    target: Target
    spec: UpdateSpec
    ctes: str = ""

    @property
    def operation(self) -> str:
        """What messages call it."""
        return operation_name(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStatement:
    """``[WITH ...] DELETE FROM target ...``."""

    target: Target
    spec: DeleteSpec
    ctes: str = ""

    @property
    def operation(self) -> str:
        """What messages call it."""
        return operation_name(self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertStatement:
    """``CONVERT TO DELTA identifier [NO STATISTICS] [PARTITIONED BY (...)]`` (C-01)."""

    identifier: str
    """With back-ticks around every part."""
    partition_schema: str | None = None
    """Names and types, as the user wrote them."""
    collect_stats: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeStatement:
    """``OPTIMIZE table [WHERE condition] [ZORDER BY (columns)]``; Spark knows no such statement."""

    spec: OptimizeSpec

    @property
    def operation(self) -> str:
        """What messages call it."""
        return "OPTIMIZE"


Statement: TypeAlias = (
    MergeStatement | UpdateStatement | DeleteStatement | ConvertStatement | OptimizeStatement
)
