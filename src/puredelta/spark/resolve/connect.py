"""Expressions and frames of a Connect session, resolved by the public API.

The analyzer answers with a schema or an error, never with a tree. So the form of a condition is
parsed from its text (`predicate_from_sql`) or its message (`predicate_from_message`) where that
is simple. What is not understood may use every column of its scope.

A client's plan is a protobuf message: functions are nodes of it, SQL text is text. A call
such as ``now()`` is replaced in both. The keywords without brackets (``current_timestamp``)
could be names of columns: they are replaced only where they stand in an expression and are
no part of a longer name. What a temporary view of the server reads stays out of reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from operator import and_
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.protocol.schema.predicates import Opaque, Predicate, Ref, Side, references
from puredelta.protocol.schema.sql_lexer import (
    TokenCursor,
    TokenKind,
    keywords,
    may_hold_query,
    replaced,
)
from puredelta.protocol.schema.types import StructType
from puredelta.spark.connect.messages import (
    alias_rows,
    client_of,
    copy_of,
    parts_of,
    with_known_columns,
)
from puredelta.spark.resolve.bound_columns import (
    column_named,
    names_in,
    outer_ids,
    outer_name,
    text_with_names,
    with_names,
)
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
    Scope,
    SourceColumn,
    TargetColumn,
    source_columns,
    target_columns,
)
from puredelta.spark.resolve.predicate_from_json import SideColumn
from puredelta.spark.resolve.predicate_from_message import NamesOfPlan, predicate_of_column
from puredelta.spark.resolve.predicate_from_sql import (
    NamedSide,
    Names,
    is_surely_boolean,
    parse_predicate,
)
from puredelta.spark.session.names import (
    display_name,
    parse_name,
    quote,
    quote_name,
    source_column_name,
    target_copy_name,
)
from puredelta.spark.session.types import from_spark_type

_Named: TypeAlias = tuple[int | None, str]
"""A column as a client names it: the node that it is bound to, if to one, and its name."""


class ConnectFrames:
    """Frames whose columns are known by alias and name, all that a Connect client has.

    Beside the user's names each frame carries copies under unique names, so that what this
    library itself refers to is never ambiguous. A ``Column`` taken from the source or from the
    target (``table.toDF()``) becomes one of these names. What only the plan of the source can
    resolve, an alias or a ``Column`` of a part of it, is one more column of the staged rows
    (`read_inside`).
    """

    def __init__(self, target: DataFrame, source: DataFrame) -> None:
        self.target_columns = target_columns(target)
        self.source_columns = source_columns(source)
        self.target_qualifier = outer_name(target)
        """The name of the target: its alias, or catalog, database and table; maybe empty."""
        self.source_qualifier = outer_name(source)
        """The name of the source."""
        self._target = target
        self._source = source
        self._columns: dict[str, Column] = {}
        self.bound: Mapping[int, Side] = _bound_sides(target, source)
        """The sides to which columns may be bound, by the ids of nodes of plans."""
        self._outer = outer_ids(target) | outer_ids(source)
        self._inside: dict[_Named, SourceColumn] = {}

    @property
    def staged_columns(self) -> tuple[SourceColumn, ...]:
        """The columns of the source, and those that only its plan can resolve."""
        return (*self.source_columns, *self._inside.values())

    def staged(self, source_rows: DataFrame) -> DataFrame:
        """Return the user's source with its columns under their staged names."""
        inside = [column_named(*named) for named in self._inside]
        rows = source_rows.select("*", *inside) if inside else source_rows
        return rows.toDF(*[c.staged for c in self.staged_columns])

    def read_inside(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Return requests with staged names for what only the plan of the source can resolve.

        A request to the server if there may be such names.
        """
        named = list(dict.fromkeys(name for r in requests for name in self._names_inside(r)))
        found = self._types_inside(named)
        if not found and len(named) > 1:
            found = {k: v for name in named for k, v in self._types_inside([name]).items()}
        for (node, name), kind in found.items():
            at = len(self.staged_columns)
            self._inside[node, name] = SourceColumn(
                ordinal=at, name=name, staged=source_column_name(at), type=kind
            )
        if not found:
            return requests
        return [replace(r, expression=self._with_staged_names(r.expression)) for r in requests]

    def _with_staged_names(self, given: str | Column) -> str | Column:
        if isinstance(given, str):
            return text_with_names(given, self._staged_name)
        return with_names(given, self.client, self._staged_name)

    def _names_inside(self, request: Request) -> Iterator[_Named]:
        """Yield names that are those of no side, nor of a part of a column."""
        if Side.SOURCE not in request.scope.value:
            return
        for node, name in names_in(request.expression, self.client):
            if node is not None:
                if node not in self._outer:
                    yield node, name
                continue
            first, *rest = parse_name(name) if "." in name else (name,)
            if rest and first.lower() not in self._firsts:
                yield None, name

    @cached_property
    def _firsts(self) -> frozenset[str]:
        """The first parts, in lower case, of names with several parts that each side has."""
        of_target = ((c.name, c.type) for c in self.target_columns)
        columns = [*of_target, *((c.name, c.type) for c in self.source_columns)]
        nested = [name for name, kind in columns if not isinstance(kind, T.AtomicType)]
        every = [*self.target_qualifier, *self.source_qualifier, *nested]
        return frozenset(name.lower() for name in every)

    def _types_inside(self, named: Sequence[_Named]) -> Mapping[_Named, T.DataType]:
        """Return the types of names over the source; nothing if it does not have all of them."""
        if not named:
            return {}
        columns = [column_named(*name).alias(f"_{n}") for n, name in enumerate(named)]
        try:
            fields = self._source.select(*columns).schema.fields
        except AnalysisException:
            return {}
        return {name: field.dataType for name, field in zip(named, fields, strict=True)}

    def _staged_name(self, node: int | None, name: str) -> str | None:
        found = self._inside.get((node, name))
        return None if found is None else found.staged

    def displayed(self, scope: Scope) -> Sequence[str]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        names = {
            Side.TARGET: [(*self.target_qualifier, c.name) for c in self.target_columns],
            Side.SOURCE: [(*self.source_qualifier, c.name) for c in self.source_columns],
        }
        return tuple(display_name(parts) for side in scope.value for parts in names[side])

    def stand_in(self, scope: Scope) -> DataFrame:
        """Return the frame of a scope for analysis; it is never run."""
        staged = self.staged(self._source)
        kinds = [T.StructField(c.staged, c.type) for c in self.staged_columns]
        with_known_columns(staged, T.StructType(kinds))
        match scope:
            case Scope.TARGET:
                return self.target(self._target)
            case Scope.SOURCE:
                return self.source(staged)
            case _:
                return self.target(self._target).crossJoin(self.source(staged))

    def shown(self, scope: Scope) -> DataFrame:
        """Return a frame of the user's names alone, for errors that list what there is."""
        sides = {Side.TARGET: self._target, Side.SOURCE: self._source}
        return reduce(lambda one, other: one.crossJoin(other), (sides[s] for s in scope.value))

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        present = [c for c in self.target_columns if c.name in rows.columns]
        copies = [F.col(quote(c.name)).alias(target_copy_name(c.ordinal)) for c in present]
        frame = rows.select("*", *copies)
        return alias_rows(frame, self.target_qualifier) if self.target_qualifier else frame

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        present = [c for c in self.source_columns if c.staged in rows.columns]
        frame = rows.select("*", *[F.col(c.staged).alias(c.name) for c in present])
        return alias_rows(frame, self.source_qualifier) if self.source_qualifier else frame

    def before_join(self, rows: DataFrame, name: str, value: Column) -> tuple[DataFrame, Column]:
        """Compute the value: in the join a name means whichever side has it."""
        return rows.withColumn(name, value), F.col(name)

    def free(self, column: Column) -> Column:
        """Return a Column with unique names in the place of columns bound to a side."""
        if not self.bound:
            return column
        return with_names(column, self.client, self._unique_name)

    @property
    def client(self) -> Any:
        """The client of the session."""
        return client_of(self._target.sparkSession)

    def _unique_name(self, node: int | None, written: str) -> str | None:
        if node is None:
            return None
        side, (first, *rest) = self.bound.get(node), parse_name(written)
        names = {
            Side.TARGET: [(c.name, target_copy_name(c.ordinal)) for c in self.target_columns],
            Side.SOURCE: [(c.name, c.staged) for c in self.source_columns],
        }
        found = [] if side is None else names[side]
        same = [unique for name, unique in found if name == first]
        same = same or [unique for name, unique in found if name.lower() == first.lower()]
        return quote_name((same[0], *rest)) if len(same) == 1 else None

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``."""
        ordinal = next(c.ordinal for c in self.target_columns if c.name == name)
        return F.col(target_copy_name(ordinal))

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``, the same object every time."""
        return self._columns.setdefault(staged, F.col(staged))


def _bound_sides(target: DataFrame, source: DataFrame) -> Mapping[int, Side]:
    """Return the side of each node; one of both is none: its columns are ambiguous."""
    of_target, of_source = outer_ids(target), outer_ids(source)
    sides = dict.fromkeys(of_target - of_source, Side.TARGET)
    return {**sides, **dict.fromkeys(of_source - of_target, Side.SOURCE)}


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


class ConnectResolver:
    """Resolves over the frames that will be evaluated: what is not found there is refused.

    One request to the server per scope, none for plain columns and comparisons of them; more once
    something is wrong, or not deterministic.
    """

    def __init__(self, frames: ConnectFrames, *, case_sensitive: bool) -> None:
        self.frames = frames
        self._case_sensitive = case_sensitive

    def resolve(self, requests: Sequence[Request]) -> Resolution:
        """Resolve all requests, or say what is wrong with some."""
        given, requests = requests, self.frames.read_inside(requests)
        done: dict[int, ResolvedExpression] = {}
        errors: list[ResolutionError] = []
        for scope in Scope:
            some = {n: r for n, r in enumerate(requests) if r.scope is scope}
            if not some:
                continue
            certain = [True] * len(some)
            types = self._known_types(some.values())
            frame = self.frames.stand_in(scope)
            values = [self._column(r) for r in some.values()]
            types = types or _types_in_join(frame, values)
            if types is None:
                try:
                    types = _types(frame, values)
                except AnalysisException:
                    errors += [e for n, r in some.items() if (e := self._error(frame, n, r))]
                    continue
                certain = _are_deterministic(frame, values)
            for (n, request), kind, sure in zip(some.items(), types, certain, strict=True):
                known = self._expression(request, kind, is_deterministic=sure)
                done[n] = replace(known, request=given[n], sql=_sql(given[n]))
        if errors:
            return Resolution(errors=tuple(sorted(errors, key=lambda e: e.position)))
        return Resolution(expressions=tuple(done[n] for n in range(len(requests))))

    def _known_types(self, some: Iterable[Request]) -> tuple[T.DataType, ...] | None:
        """Return the types if the analyzer has nothing to add: plain columns and comparisons."""
        types = [self._known_type(request) for request in some]
        return tuple(t for t in types if t) if all(types) else None

    def _known_type(self, request: Request) -> T.DataType | None:
        if not isinstance(request.expression, str):
            return None
        tree = parse_predicate(request.expression, self._names(request.scope.value))
        match tree:
            case None:
                return None
            case Ref(side=Side.TARGET, path=(name,)):
                return next(c.type for c in self.frames.target_columns if c.name == name)
            case Ref(side=Side.SOURCE, path=(name,)):
                return next(c.type for c in self.frames.staged_columns if c.staged == name)
            case _:
                return T.BooleanType() if is_surely_boolean(tree) else None

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope."""
        try:
            return _types(self.frames.stand_in(scope), values)
        except AnalysisException as error:
            if (error.getCondition() or "").startswith(_UNRESOLVED):
                _types(self.frames.shown(scope), values)  # Spark proposes names that are the user's
            raise

    def check_all(self, values: Mapping[Scope, Sequence[Column]]) -> None:
        """Let Spark refuse values, each in its scope; one request if it takes all of them."""
        frames = {scope: self.frames.stand_in(scope) for scope in values}
        columns = {s: [v.alias(f"_{n}") for n, v in enumerate(some)] for s, some in values.items()}
        checked = [frames[scope].select(*some) for scope, some in columns.items()]
        try:
            _ = reduce(lambda one, other: one.crossJoin(other), checked).schema
        except AnalysisException:
            for scope, some in values.items():
                self.check(some, scope)
            raise

    def _expression(
        self, request: Request, data_type: T.DataType, *, is_deterministic: bool
    ) -> ResolvedExpression:
        predicate = self._predicate(request)
        used = references(predicate)
        return ResolvedExpression(
            request=request,
            column=self._column(request),
            type=data_type,
            is_deterministic=is_deterministic,
            has_subquery=_has_subquery(request),
            predicate=predicate if is_deterministic else Opaque(used),
            target_columns=frozenset(r.path[0] for r in used if r.side is Side.TARGET),
            source_columns=frozenset(r.path[0] for r in used if r.side is Side.SOURCE),
            sql=_sql(request),
        )

    def _column(self, request: Request) -> Column:
        given = request.expression
        return F.expr(given) if isinstance(given, str) else self.frames.free(given)

    def _error(self, frame: DataFrame, position: int, request: Request) -> ResolutionError | None:
        """Return what is wrong with one request; other errors are raised as Spark's own."""
        try:
            _types(frame, [self._column(request)])
        except AnalysisException as error:
            return _problem(error, position, request)
        return None

    def _predicate(self, request: Request) -> Predicate:
        names = self._names(request.scope.value)
        known: Predicate | None
        if isinstance(request.expression, str):
            known = parse_predicate(request.expression, names)
        else:
            bound = {node: self._names((side,)) for node, side in self.frames.bound.items()}
            of_plan = NamesOfPlan(free=names, bound=bound)
            known = predicate_of_column(request.expression, self.frames.client, of_plan)
        if known is None:
            every = [ref for side in request.scope.value for _, ref, _ in self._side(side).columns]
            return Opaque(frozenset(every))
        return known

    def _names(self, sides: Iterable[Side]) -> Names:
        known = tuple(map(self._side, sides))
        return Names(sides=known, case_sensitive=self._case_sensitive)

    def _side(self, side: Side) -> NamedSide:
        if side is Side.TARGET:
            qualifier = self.frames.target_qualifier
            columns = [_named(c, Side.TARGET, c.name) for c in self.frames.target_columns]
        else:
            qualifier = self.frames.source_qualifier
            columns = [_named(c, Side.SOURCE, c.staged) for c in self.frames.source_columns]
            inside = self.frames.staged_columns[len(columns) :]
            columns += [
                (c.staged, ref, kind)
                for c in inside
                for _, ref, kind in [_named(c, Side.SOURCE, c.staged)]
            ]
        return NamedSide(side=side, qualifier=qualifier, columns=columns)


def _named(
    column: TargetColumn | SourceColumn, side: Side, key: str
) -> tuple[str, Ref, StructType | None]:
    struct = from_spark_type(column.type) if isinstance(column.type, T.StructType) else None
    ref = SideColumn(side, key, column.type).ref()
    return column.name, ref, struct if isinstance(struct, StructType) else None


def _has_subquery(request: Request) -> bool:
    """Tell from the text; a Column cannot hold one that the analyzer lets pass in a filter."""
    given = request.expression
    return isinstance(given, str) and may_hold_query(given)


def _sql(request: Request) -> str:
    given = request.expression
    return given if isinstance(given, str) else str(given).removeprefix("Column<'")[:-2]


def _types(frame: DataFrame, values: Sequence[Column]) -> tuple[T.DataType, ...]:
    """Return the types; a filter comes first, because it refuses aggregates and windows."""
    plain = frame.where(reduce(and_, [v.isNull() for v in values]))
    named = [v.alias(f"_{n}") for n, v in enumerate(values)]
    return tuple(f.dataType for f in plain.select(*named).schema.fields)


def _types_in_join(frame: DataFrame, values: Sequence[Column]) -> tuple[T.DataType, ...] | None:
    """Return the types of values that all are possible in a join condition; None if some are not.

    It takes what a filter takes, if that is deterministic and has no subquery.
    """
    named = [v.alias(f"_{n}") for n, v in enumerate(values)]
    try:
        return tuple(f.dataType for f in _in_join(frame, values).select(*named).schema.fields)
    except AnalysisException:
        return None


def _in_join(frame: DataFrame, values: Sequence[Column]) -> DataFrame:
    one_row = frame.sparkSession.range(1).toDF("__puredelta_one")
    return frame.join(one_row, reduce(and_, [v.isNull() for v in values]), "inner")


def _problem(error: AnalysisException, position: int, request: Request) -> ResolutionError:
    """Return what an error says of a request; another error is raised as it is."""
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
        raise error
    return ResolutionError(position=position, problem=problem, names=names, sql=sql)


def _are_deterministic(frame: DataFrame, values: Sequence[Column]) -> list[bool]:
    """Tell which values give the same twice; a join condition takes no others.

    It takes no subquery either, and so says nothing of a value that has one.
    """
    if _refused_in_join(frame, values) is None:
        return [True] * len(values)
    return [_refused_in_join(frame, [v]) != _NON_DETERMINISTIC for v in values]


def _refused_in_join(frame: DataFrame, values: Sequence[Column]) -> str | None:
    """Return the reason why values cannot be in a join condition, if there is one."""
    try:
        _ = _in_join(frame, values).schema
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition == _NON_DETERMINISTIC or condition.startswith(_SUBQUERY_REFUSED):
            return condition
        raise
    return None


_TYPES = {
    "current_timestamp": "timestamp",
    "now": "timestamp",
    "current_date": "date",
    "curdate": "date",
    "localtimestamp": "timestamp_ntz",
    "unix_timestamp": "bigint",
}
"""Functions that read the clock when they have no argument, and their types."""

_KEYWORDS = frozenset({"current_timestamp", "current_date", "localtimestamp"})
"""Functions that are also written without brackets."""
_NAMES_FOLLOW = keywords(". AS")
_NO_KEYWORD = keywords(". (")
_MENTIONED = re.compile("|".join(_TYPES).encode(), re.IGNORECASE)


def reads_clock(plan: Any) -> bool:
    """Return whether a plan might read the clock; a name in its data is a false alarm."""
    return _MENTIONED.search(plan.SerializeToString()) is not None


def with_timestamp(plan: Any, micros: int) -> Any:
    """Return a copy of a plan that reads ``micros`` since 1970 wherever it read the clock."""
    copy = copy_of(plan)
    _bind(copy, micros)
    return copy


def text_with_timestamp(text: str, micros: int, *, is_expression: bool) -> str:
    """Return SQL text in which readings of the clock are constants.

    >>> text_with_timestamp("now() > t.now AND 'now()' <> x", 5, is_expression=True)
    "CAST(timestamp_micros(5) AS timestamp) > t.now AND 'now()' <> x"
    """
    readings = _clock_readings(text, with_keywords=is_expression)
    return replaced(
        text,
        (
            (start, end, f"CAST(timestamp_micros({micros}) AS {_TYPES[name]})")
            for start, end, name in readings
        ),
    )


def _clock_readings(text: str, *, with_keywords: bool) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the function of each reading of the clock."""
    cursor = TokenCursor(text)
    before = ""
    while (token := cursor.peek()) is not None:
        name, start = token.text.lower(), token.start
        is_reading = name in _TYPES and token.kind is TokenKind.WORD and before not in _NAMES_FOLLOW
        before = token.text.upper()
        cursor.skip()
        if is_reading and (end := cursor.peek(1)) is not None and cursor.accept("(", ")"):
            yield start, end.end, name
        elif is_reading and with_keywords and name in _KEYWORDS and cursor.word not in _NO_KEYWORD:
            yield start, token.end, name


def _bind(message: Any, micros: int) -> None:
    kind = message.DESCRIPTOR.full_name
    if kind == "spark.connect.Expression":
        name = _called(message)
        if name is not None:
            message.Clear()
            message.cast.expr.literal.timestamp = micros
            message.cast.type_str = _TYPES[name]
            return
        if message.WhichOneof("expr_type") == "expression_string":
            string = message.expression_string
            string.expression = text_with_timestamp(string.expression, micros, is_expression=True)
    elif kind == "spark.connect.SQL":
        message.query = text_with_timestamp(message.query, micros, is_expression=False)
    elif kind == "spark.connect.Project":
        _keep_names(message)
    for part in parts_of(message):
        _bind(part, micros)


def _called(expression: Any) -> str | None:
    """Return the function an expression calls, if it reads the clock."""
    match expression.WhichOneof("expr_type"):
        case "unresolved_function":
            call = expression.unresolved_function
        case "call_function":
            call = expression.call_function
        case _:
            return None
    name = str(call.function_name).lower()
    return name if name in _TYPES and not call.arguments else None


def _keep_names(project: Any) -> None:
    """Give selected readings of the clock the names they have had."""
    for expression in project.expressions:
        name = _called(expression)
        if name is not None:
            reading = type(expression)()
            reading.CopyFrom(expression)
            expression.Clear()
            expression.alias.expr.CopyFrom(reading)
            expression.alias.name.append(f"{name}()")
