"""``EXPLAIN`` of a statement that is not a query, as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from puredelta.sql.parse.statement import (
    ConvertStatement,
    OptimizeStatement,
    RestoreStatement,
    RowStatement,
    Statement,
    VacuumStatement,
)

Explained: TypeAlias = (
    RowStatement | ConvertStatement | OptimizeStatement | RestoreStatement | VacuumStatement
)
"""What EXPLAIN is for here; Spark explains queries."""


class ExplainFormat(Enum):
    """How much EXPLAIN says."""

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
    """Of the statement that is explained."""


ReadStatement: TypeAlias = Statement | ExplainStatement
"""What text may be."""
