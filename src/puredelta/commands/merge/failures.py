"""What is wrong with a MERGE, in delta-spark's words (E-01)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as T

from puredelta.commands.merge.requests import SEARCH_CONDITION
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.resolve.expressions import (
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
)
from puredelta.spark.session.identifiers import display_name
from puredelta.spark.values.store_assignment import is_same_type, sql_type


def unresolved(name: str, *, clause: str, columns: Sequence[str]) -> InvalidRequestError:
    """Return the error of a name that does not exist (M-21)."""
    given = ", ".join(columns)
    return InvalidRequestError(
        f"Cannot resolve {name} in {clause} given columns {given}.",
        code=ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
        sql_expr=name,
        clause=clause,
        cols=given,
    )


def ambiguous(name: str, *, could_be: Sequence[str]) -> InvalidRequestError:
    """Return the error of a star that finds a name twice in the source."""
    return InvalidRequestError(
        f"Reference `{name}` is ambiguous, could be: [{', '.join(could_be)}].",
        code=ErrorCode.AMBIGUOUS_REFERENCE,
        name=name,
        reference_names=", ".join(could_be),
    )


def name_flaw(
    flawed: ResolutionError, *, clause: str, columns: Sequence[str]
) -> InvalidRequestError | None:
    """Return the error of an expression with a column that is not in its scope (M-21, M-30)."""
    match flawed.flaw:
        case ResolutionProblem.UNRESOLVED:
            return unresolved(flawed.names[0], clause=clause, columns=columns)
        case ResolutionProblem.FOREIGN:
            names = ", ".join(display_name((n,)) for n in flawed.names)
            return InvalidRequestError(
                f"Resolved attribute(s) {names} missing from {', '.join(columns)} in the {clause} "
                "of MERGE. Take columns from the DataFrames that are merged, or name them through "
                "their aliases.",
                code=ErrorCode.MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT,
                missing_attributes=names,
                clause=clause,
            )
        case ResolutionProblem.AGGREGATE:
            return None


def aggregate_flaw(
    flawed: ResolutionError, *, words: str, is_condition: bool
) -> InvalidRequestError:
    """Return the error of an aggregate or window function (M-22)."""
    if is_condition:
        operation = f"{words} of MERGE operation"
        return InvalidRequestError(
            f"Aggregate functions are not supported in the {operation} (condition = {flawed.sql}).",
            code=ErrorCode.AGGREGATION_NOT_SUPPORTED,
            operation=operation,
            predicate=flawed.sql,
        )
    return InvalidRequestError(
        f"Aggregate and window functions are not supported in the {words} of MERGE: {flawed.sql}. "
        "Compute the value in the source first.",
        code=ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR,
        clause=words,
        invalid_expressions=flawed.sql,
    )


def require_condition(condition: ResolvedExpression, *, words: str) -> None:
    """Refuse a condition that could be evaluated twice with two answers, or not as a join.

    Raises:
        InvalidRequestError: it is not deterministic, has a subquery (M-22), or is no boolean.
    """
    operation = f"{words} of MERGE operation"
    if not condition.is_deterministic:
        raise InvalidRequestError(
            f"Non-deterministic functions are not supported in the {operation} "
            f"(condition = {condition.sql}).",
            code=ErrorCode.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
            operation=operation,
            expression=condition.sql,
        )
    if condition.has_subquery:
        raise InvalidRequestError(
            f"Subqueries are not supported in the {operation} (condition = {condition.sql}).",
            code=ErrorCode.UNSUPPORTED_SUBQUERY,
            operation=operation,
            cond=condition.sql,
        )
    if not isinstance(condition.type, T.BooleanType):
        raise InvalidRequestError(
            f"The {words} {condition.sql} of MERGE has the invalid type "
            f'{sql_type(condition.type)}, expected "BOOLEAN".',
            code=ErrorCode.JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE
            if words == SEARCH_CONDITION
            else ErrorCode.FILTER_NOT_BOOLEAN,
            condition=condition.sql,
            type=sql_type(condition.type),
        )


def require_same_columns(known: T.StructType, current: T.StructType) -> None:
    """Refuse a table that gained, lost or renamed columns since its object was made (M-34).

    Types, fields inside columns and their order may have changed: names still mean the same.

    Raises:
        InvalidRequestError: shows both schemas.
    """
    if set(known.names) != set(current.names):
        raise _schema_changed(known, current)


def require_same_schema(known: T.StructType, current: T.StructType) -> None:
    """Refuse a table whose columns changed since the DeltaTable object was made (M-34).

    Raises:
        InvalidRequestError: shows both schemas.
    """
    if not is_same_type(known, current):
        raise _schema_changed(known, current)


def _schema_changed(known: T.StructType, current: T.StructType) -> InvalidRequestError:
    return InvalidRequestError(
        "The schema of your Delta table has changed in an incompatible way since your "
        "DataFrame or DeltaTable object was created. Please redefine your DataFrame or "
        f"DeltaTable object. It was {known.simpleString()} and is {current.simpleString()}.",
        code=ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
        known=known.simpleString(),
        current=current.simpleString(),
    )


def require_columns(schema: T.StructType) -> None:
    """Refuse a target without columns (M-33).

    Raises:
        InvalidRequestError: says what it takes.
    """
    if not schema.fields:
        raise InvalidRequestError(
            "Cannot MERGE INTO a table with no columns. The target table must have columns, or "
            "schema evolution must be enabled.",
            code=ErrorCode.MERGE_INTO_EMPTY_SCHEMA_TARGET,
        )
