"""Errors of statements, with delta-spark's classes and texts (E-01).

MERGE has Delta's own error classes for most errors. UPDATE and DELETE leave most of them to Spark,
so their errors have Spark's classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.resolve.unresolved_clauses import SEARCH_CONDITION
from puredelta.errors import InvalidRequestError, Message
from puredelta.spark.resolve.expressions import (
    Request,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
    Resolver,
    Scope,
)
from puredelta.spark.session.names import display_name
from puredelta.spark.values.store_assignment import is_same_type, sql_type

_DEFAULT = "default"


def unresolved(name: str, *, clause: str, columns: Sequence[str]) -> InvalidRequestError:
    """Return the error of a name that does not exist (M-21)."""
    given = ", ".join(columns)
    is_twice = len(set(columns)) < len(columns)
    hint = " Columns of both sides have one name: call them by alias('t') and alias('s')."
    return InvalidRequestError(
        Message.MERGE_UNRESOLVED_EXPRESSION,
        hint=hint if is_twice else "",
        sql_expr=name,
        clause=clause,
        cols=given,
    )


def ambiguous(name: str, *, could_be: Sequence[str]) -> InvalidRequestError:
    """Return the error of a star that finds a name twice in the source."""
    return InvalidRequestError(
        Message.AMBIGUOUS_REFERENCE, name=name, reference_names=", ".join(could_be)
    )


def name_error(
    error: ResolutionError, *, clause: str, columns: Sequence[str]
) -> InvalidRequestError | None:
    """Return the error of an expression with a column that is not in its scope (M-21, M-30)."""
    match error.problem:
        case ResolutionProblem.UNRESOLVED:
            return unresolved(error.names[0], clause=clause, columns=columns)
        case ResolutionProblem.FOREIGN:
            names = ", ".join(display_name((n,)) for n in error.names)
            return InvalidRequestError(
                Message.MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT,
                columns=", ".join(columns),
                missing_attributes=names,
                clause=clause,
            )
        case ResolutionProblem.AGGREGATE:
            return None


def aggregate_error(
    error: ResolutionError, *, words: str, is_condition: bool
) -> InvalidRequestError:
    """Return the error of an aggregate or window function (M-22)."""
    if is_condition:
        operation = f"{words} of MERGE operation"
        return InvalidRequestError(
            Message.AGGREGATION_NOT_SUPPORTED, operation=operation, predicate=error.sql
        )
    return InvalidRequestError(
        Message.UNSUPPORTED_EXPR_FOR_OPERATOR_CLAUSE, clause=words, invalid_expressions=error.sql
    )


def require_merge_condition(condition: ResolvedExpression, *, words: str) -> None:
    """Refuse a condition that two evaluations may decide differently, or that no join can use.

    Raises:
        InvalidRequestError: it is not deterministic, has a subquery (M-22), or is no boolean.
    """
    operation = f"{words} of MERGE operation"
    if not condition.is_deterministic:
        raise InvalidRequestError(
            Message.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
            operation=operation,
            expression=condition.sql,
        )
    if condition.has_subquery:
        raise InvalidRequestError(
            Message.UNSUPPORTED_SUBQUERY, operation=operation, cond=condition.sql
        )
    if not isinstance(condition.type, T.BooleanType):
        raise InvalidRequestError(
            Message.JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE
            if words == SEARCH_CONDITION
            else Message.FILTER_NOT_BOOLEAN_MERGE,
            words=words,
            condition=condition.sql,
            type=sql_type(condition.type),
        )


def require_same_columns(known: T.StructType, current: T.StructType) -> None:
    """Refuse a table with columns added, dropped or renamed since its object was made (M-34).

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


def _changes(known: T.StructType, current: T.StructType) -> str:
    """Return the columns that were added, dropped or changed in type."""
    before = {field.name: field.dataType.simpleString() for field in known.fields}
    after = {field.name: field.dataType.simpleString() for field in current.fields}
    changes = [
        *(f"{name} is gone" for name in before if name not in after),
        *(f"{name} {after[name]} is new" for name in after if name not in before),
        *(
            f"{name} was {before[name]} and is {after[name]}"
            for name in before
            if after.get(name, before[name]) != before[name]
        ),
    ]
    return f"{'; '.join(changes)}. " if changes else ""


def _schema_changed(known: T.StructType, current: T.StructType) -> InvalidRequestError:
    return InvalidRequestError(
        Message.SCHEMA_CHANGE_SINCE_ANALYSIS_CHANGES,
        changes=_changes(known, current),
        known=known.simpleString(),
        current=current.simpleString(),
    )


def require_columns(schema: T.StructType) -> None:
    """Refuse a target without columns (M-33).

    Raises:
        InvalidRequestError: names the next step.
    """
    if not schema.fields:
        raise InvalidRequestError(Message.MERGE_INTO_EMPTY_SCHEMA_TARGET)


def require_no_errors(
    errors: Sequence[ResolutionError],
    requests: Sequence[Request],
    resolver: Resolver,
    *,
    values: Collection[int],
) -> None:
    """Raise the error of the first invalid expression; ``values`` are assigned.

    Raises:
        InvalidRequestError: an aggregate or window function, or DEFAULT inside a value.
        pyspark.errors.AnalysisException: an unknown name, or a column of other rows, in
            Spark's own words.
    """
    for error in errors:
        if error.problem is ResolutionProblem.AGGREGATE:
            raise InvalidRequestError(
                Message.UNSUPPORTED_EXPR_FOR_OPERATOR, invalid_expressions=error.sql
            )
        request = requests[error.position]
        if error.position in values and _has_default_inside(request, error):
            raise InvalidRequestError(
                Message.DEFAULT_PLACEMENT_INVALID_UPDATE, expression=error.sql
            )
        resolver.check([_column(request)], Scope.TARGET)
        raise RuntimeError(f"Spark's analyzer takes what it could not resolve: {error.sql}")


def _has_default_inside(request: Request, error: ResolutionError) -> bool:
    whole = request.expression
    is_whole = isinstance(whole, str) and whole.strip().lower() == _DEFAULT
    return not is_whole and _DEFAULT in {name.lower() for name in error.names}


def _column(request: Request) -> Column:
    given = request.expression
    return F.expr(given) if isinstance(given, str) else given


def require_filter(condition: ResolvedExpression, *, operation: str) -> None:
    """Refuse a filter that is no condition, or that two evaluations may decide differently.

    Raises:
        InvalidRequestError: it has a subquery, is not deterministic, or is no boolean.
    """
    if condition.has_subquery:
        raise InvalidRequestError(
            Message.UNSUPPORTED_SUBQUERY_USE_MERGE, operation=operation, cond=condition.sql
        )
    require_deterministic(condition)
    if not isinstance(condition.type, T.BooleanType):
        raise InvalidRequestError(
            Message.FILTER_NOT_BOOLEAN, sql_expr=condition.sql, type=sql_type(condition.type)
        )


def require_deterministic(expression: ResolvedExpression) -> None:
    """Refuse a condition that is not deterministic: it would change other rows than it found.

    Raises:
        InvalidRequestError: it is not (INVALID_NON_DETERMINISTIC_EXPRESSIONS).
    """
    if not expression.is_deterministic:
        raise InvalidRequestError(
            Message.INVALID_NON_DETERMINISTIC_EXPRESSIONS, sql_exprs=expression.sql
        )
