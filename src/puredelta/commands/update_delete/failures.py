"""What is wrong with the expressions of an UPDATE or a DELETE.

MERGE has Delta's own error classes for most of this; here the reference leaves it to Spark,
and so these are Spark's classes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.resolve.expressions import (
    Request,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
    Resolver,
)
from puredelta.spark.resolve.frames import Scope
from puredelta.spark.values.store_assignment import sql_type

_DEFAULT = "default"


def require_no_flaws(
    flaws: Sequence[ResolutionError],
    requests: Sequence[Request],
    resolver: Resolver,
    *,
    values: Collection[int],
) -> None:
    """Raise the error of the first expression that has no meaning; ``values`` are assigned.

    Raises:
        InvalidRequestError: an aggregate or window function, or DEFAULT inside a value.
        pyspark.errors.AnalysisException: an unknown name, or a column of other rows, in
            Spark's own words.
    """
    for flawed in flaws:
        if flawed.flaw is ResolutionProblem.AGGREGATE:
            raise InvalidRequestError(
                "A query operator contains one or more unsupported expressions. Consider to "
                "rewrite it to avoid window functions, aggregate functions, and generator "
                f"functions. Invalid expressions: [{flawed.sql}].",
                code=ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR,
                invalid_expressions=flawed.sql,
            )
        request = requests[flawed.position]
        if flawed.position in values and _has_default_inside(request, flawed):
            raise InvalidRequestError(
                "A DEFAULT keyword could not be directly assigned to a target column because it "
                f"was part of an expression: {flawed.sql}. `SET column = DEFAULT` is allowed.",
                code=ErrorCode.DEFAULT_PLACEMENT_INVALID,
                expression=flawed.sql,
            )
        resolver.check([_column(request)], Scope.TARGET)
        raise RuntimeError(f"Spark's analyzer takes what it could not resolve: {flawed.sql}")


def _has_default_inside(request: Request, flawed: ResolutionError) -> bool:
    whole = request.expression
    is_whole = isinstance(whole, str) and whole.strip().lower() == _DEFAULT
    return not is_whole and _DEFAULT in {name.lower() for name in flawed.names}


def _column(request: Request) -> Column:
    given = request.expression
    return F.expr(given) if isinstance(given, str) else given


def require_condition(condition: ResolvedExpression, *, operation: str) -> None:
    """Refuse a condition that could be evaluated twice with two answers, or is none.

    Raises:
        InvalidRequestError: it has a subquery, is not deterministic, or is no boolean.
    """
    if condition.has_subquery:
        raise InvalidRequestError(
            f"Subqueries are not supported in the {operation} (condition = {condition.sql}). "
            "A MERGE can look at other tables.",
            code=ErrorCode.UNSUPPORTED_SUBQUERY,
            operation=operation,
            cond=condition.sql,
        )
    require_deterministic(condition)
    if not isinstance(condition.type, T.BooleanType):
        raise InvalidRequestError(
            f'Cannot resolve "{condition.sql}" due to data type mismatch: Filter expression '
            f'"{condition.sql}" of type {sql_type(condition.type)} is not a boolean.',
            code=ErrorCode.FILTER_NOT_BOOLEAN,
            sql_expr=condition.sql,
            type=sql_type(condition.type),
        )


def require_deterministic(expression: ResolvedExpression) -> None:
    """Refuse what gives another answer each time; it would hit other rows than it found.

    Raises:
        InvalidRequestError: it does (INVALID_NON_DETERMINISTIC_EXPRESSIONS).
    """
    if not expression.is_deterministic:
        raise InvalidRequestError(
            "The operator expects a deterministic expression, but the actual expression is "
            f'"{expression.sql}".',
            code=ErrorCode.INVALID_NON_DETERMINISTIC_EXPRESSIONS,
            sql_exprs=expression.sql,
        )
