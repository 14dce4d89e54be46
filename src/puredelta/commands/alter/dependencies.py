"""What in a table depends on a column, and therefore keeps it from being changed.

Constraints and generation expressions are text that names columns; clustering and partitioning
are lists of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.feature_usage import GENERATION_EXPRESSION
from puredelta.protocol.schema.expression_names import referenced_paths
from puredelta.protocol.schema.schema_edit import FieldPath
from puredelta.protocol.table.table_config import TableConfig


def require_independent(config: TableConfig, path: FieldPath) -> None:
    """Check that no rule of the table mentions a column, what it lies in or what is in it.

    A column's own generation expression does not count.

    Raises:
        InvalidRequestError: CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
            GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE.
    """
    name = ".".join(path)
    constraints = _mentioning(config, path, config.check_constraints)
    if constraints:
        raise InvalidRequestError(
            f"Cannot alter column {name} because this column is referenced by the following check "
            f"constraint(s): {_listed(constraints)}. Drop them first.",
            code=ErrorCode.CONSTRAINT_DEPENDENT_COLUMN_CHANGE,
            column=name,
        )
    generated = {
        field.name: str(field.metadata[GENERATION_EXPRESSION])
        for field in config.schema.fields
        if GENERATION_EXPRESSION in field.metadata and (field.name,) != path
    }
    dependent = _mentioning(config, path, generated)
    if dependent:
        raise InvalidRequestError(
            f"Cannot alter column {name} because this column is referenced by the following "
            f"generated column(s): {_listed(dependent)}.",
            code=ErrorCode.GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE,
            column=name,
        )


def _mentioning(
    config: TableConfig, path: FieldPath, expressions: Mapping[str, str]
) -> dict[str, str]:
    return {
        name: sql
        for name, sql in expressions.items()
        if any(_overlap(path, used) for used in referenced_paths(sql, config.schema))
    }


def _overlap(one: FieldPath, other: FieldPath) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _listed(expressions: Mapping[str, str]) -> str:
    return "; ".join(f"{name} -> {sql}" for name, sql in expressions.items())
