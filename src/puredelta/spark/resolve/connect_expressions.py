"""Expressions of a Connect session, resolved by Spark's analyzer through the public API.

The analyzer answers with a schema or an error, never with a tree. So the form of a condition is
parsed from its text where that is simple (`predicate_from_sql`). A ``Column``, and text that is
not understood, may use every column of its scope.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.schema.types import StructType
from puredelta.protocol.values.predicates import Opaque, Predicate, Ref, Side, references
from puredelta.spark.resolve.connect_frames import ConnectFrames
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
)
from puredelta.spark.resolve.frames import Scope, SourceColumn, TargetColumn
from puredelta.spark.resolve.predicate_from_json import SideColumn
from puredelta.spark.resolve.predicate_from_sql import NamedSide, Names, parse_predicate
from puredelta.spark.session.identifiers import display_name, parse_name
from puredelta.spark.session.types import from_spark_type

_UNRESOLVED = "UNRESOLVED_COLUMN"
_FOREIGN = "CANNOT_RESOLVE_DATAFRAME_COLUMN"
_AGGREGATES = (
    "INVALID_WHERE_CONDITION",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "MISSING_GROUP_BY",
)
_NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_SUBQUERY_REFUSED = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
_SUBQUERY = re.compile(r"\(\s*(?:select|with|values|from)\b", re.IGNORECASE)


class ConnectResolver:
    """Resolves over the frames that will be evaluated: what is not found there is refused.

    Two requests to the server per scope; one more per expression once something is wrong.
    """

    def __init__(self, frames: ConnectFrames, *, case_sensitive: bool) -> None:
        self.frames = frames
        self._case_sensitive = case_sensitive

    def resolve(self, requests: Sequence[Request]) -> Resolution:
        """Resolve all requests, or say what is wrong with some."""
        done: dict[int, ResolvedExpression] = {}
        errors: list[ResolutionError] = []
        for scope in Scope:
            some = {n: r for n, r in enumerate(requests) if r.scope is scope}
            if not some:
                continue
            frame = self.frames.stand_in(scope)
            try:
                types = _types(frame, [_column(r) for r in some.values()])
            except AnalysisException:
                errors += [e for n, r in some.items() if (e := _error(frame, n, r)) is not None]
                continue
            certain = _are_deterministic(frame, [_column(r) for r in some.values()])
            for (n, request), kind, sure in zip(some.items(), types, certain, strict=True):
                done[n] = self._expression(request, kind, is_deterministic=sure)
        if errors:
            return Resolution(errors=tuple(sorted(errors, key=lambda e: e.position)))
        return Resolution(expressions=tuple(done[n] for n in range(len(requests))))

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope."""
        try:
            return _types(self.frames.stand_in(scope), values)
        except AnalysisException as error:
            if (error.getCondition() or "").startswith(_UNRESOLVED):
                _types(self.frames.shown(scope), values)  # Spark proposes names that are the user's
            raise

    def _expression(
        self, request: Request, data_type: T.DataType, *, is_deterministic: bool
    ) -> ResolvedExpression:
        predicate = self._predicate(request)
        used = references(predicate)
        return ResolvedExpression(
            request=request,
            column=_column(request),
            type=data_type,
            is_deterministic=is_deterministic,
            has_subquery=_has_subquery(request),
            predicate=predicate if is_deterministic else Opaque(used),
            target_columns=frozenset(r.path[0] for r in used if r.side is Side.TARGET),
            source_columns=frozenset(r.path[0] for r in used if r.side is Side.SOURCE),
            sql=_sql(request),
        )

    def _predicate(self, request: Request) -> Predicate:
        known: Predicate | None = None
        if isinstance(request.expression, str):
            sides = tuple(self._side(side) for side in request.scope.value)
            names = Names(sides=sides, case_sensitive=self._case_sensitive)
            known = parse_predicate(request.expression, names)
        if known is None:
            every = [ref for side in request.scope.value for _, ref, _ in self._side(side).columns]
            return Opaque(frozenset(every))
        return known

    def _side(self, side: Side) -> NamedSide:
        if side is Side.TARGET:
            qualifier = self.frames.target_qualifier
            columns = [_named(c, Side.TARGET, c.name) for c in self.frames.target_columns]
        else:
            qualifier = self.frames.source_qualifier
            columns = [_named(c, Side.SOURCE, c.staged) for c in self.frames.source_columns]
        return NamedSide(side=side, qualifier=qualifier[-1] if qualifier else None, columns=columns)


def _named(
    column: TargetColumn | SourceColumn, side: Side, key: str
) -> tuple[str, Ref, StructType | None]:
    struct = from_spark_type(column.type) if isinstance(column.type, T.StructType) else None
    ref = SideColumn(side, key, column.type).ref()
    return column.name, ref, struct if isinstance(struct, StructType) else None


def _column(request: Request) -> Column:
    given = request.expression
    return F.expr(given) if isinstance(given, str) else given


def _has_subquery(request: Request) -> bool:
    """Tell from the text; a Column cannot hold one that the analyzer lets pass in a filter."""
    given = request.expression
    return isinstance(given, str) and bool(_SUBQUERY.search(_QUOTED.sub("''", given)))


def _sql(request: Request) -> str:
    given = request.expression
    return given if isinstance(given, str) else str(given).removeprefix("Column<'")[:-2]


def _types(frame: DataFrame, values: Sequence[Column]) -> tuple[T.DataType, ...]:
    """Return the types; a filter comes first, because it refuses aggregates and windows."""
    plain = frame.where(reduce(and_, [v.isNull() for v in values]))
    named = [v.alias(f"_{n}") for n, v in enumerate(values)]
    return tuple(f.dataType for f in plain.select(*named).schema.fields)


def _error(frame: DataFrame, position: int, request: Request) -> ResolutionError | None:
    """Return what is wrong with one request; other errors are raised as Spark's own."""
    try:
        _types(frame, [_column(request)])
    except AnalysisException as error:
        condition = error.getCondition() or ""
        sql, names = _sql(request), tuple[str, ...]()
        if condition.startswith(_UNRESOLVED):
            name = (error.getMessageParameters() or {}).get("objectName", "")
            problem, names = ResolutionProblem.UNRESOLVED, (display_name(parse_name(name)),)
        elif condition == _FOREIGN:
            problem, names = ResolutionProblem.FOREIGN, (sql,)
        elif condition.startswith(_AGGREGATES):
            problem = ResolutionProblem.AGGREGATE
        else:
            raise
        return ResolutionError(position=position, problem=problem, names=names, sql=sql)
    return None


def _are_deterministic(frame: DataFrame, values: Sequence[Column]) -> list[bool]:
    """Tell which values give the same twice; a join condition takes no others.

    It takes no subquery either, and so says nothing of a value that has one.
    """
    if _refused_in_join(frame, values) is None:
        return [True] * len(values)
    return [_refused_in_join(frame, [v]) != _NON_DETERMINISTIC for v in values]


def _refused_in_join(frame: DataFrame, values: Sequence[Column]) -> str | None:
    """Return why values cannot stand in a join condition, if they cannot."""
    one_row = frame.sparkSession.range(1).toDF("__puredelta_one")
    try:
        _ = frame.join(one_row, reduce(and_, [v.isNull() for v in values]), "inner").schema
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition == _NON_DETERMINISTIC or condition.startswith(_SUBQUERY_REFUSED):
            return condition
        raise
    return None
