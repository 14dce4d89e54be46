"""The resolver of a command's expressions: of a classic session, with one analysis per scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.protocol.schema.predicates import CompareOp, Opaque, Predicate, Ref, Side
from puredelta.spark.jvm.analyzer import (
    checked_types,
    expression_trees,
    folded,
    resolved,
    resolved_expressions,
)
from puredelta.spark.jvm.expressions import (
    Attribute,
    Attributes,
    Expression,
    column_of,
    lazy_column_of,
    parsed,
    tried,
)
from puredelta.spark.jvm.frames import analyzed_plan, frame_of, with_attributes
from puredelta.spark.jvm.plans import AttributeMoves, Plan, cross_join, empty_relation
from puredelta.spark.resolve.connect import ConnectFrames, ConnectResolver
from puredelta.spark.resolve.expressions import (
    ConditionPart,
    ExpressionTree,
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
    Resolver,
    Scope,
    SourceColumn,
    SourceValue,
    source_columns,
    target_columns,
)
from puredelta.spark.resolve.predicate_from_json import (
    SUBQUERIES,
    Node,
    SideColumn,
    SourceTree,
    TargetTree,
    attribute_ids,
    class_name,
    condition_trees,
    predicate_of,
)
from puredelta.spark.resolve.statement_timestamp import (
    ClassicTimestamp,
    ConnectTimestamp,
    StatementTimestamp,
)
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.values.casters import caster_of
from puredelta.spark.values.store_assignment import Caster


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The tools of one command."""

    resolver: Resolver
    caster: Caster
    timestamp: StatementTimestamp


def open_analysis(
    spark: SparkSession, target: DataFrame, source: DataFrame, *, session: SessionInfo
) -> Analysis:
    """Return the tools for a target and a source as the user knows them; runs no job."""
    caster = caster_of(spark, session)
    if session.is_connect:
        frames = ConnectFrames(target, source)
        resolver = ConnectResolver(frames, case_sensitive=session.case_sensitive)
        return Analysis(resolver=resolver, caster=caster, timestamp=ConnectTimestamp(spark))
    timestamp = ClassicTimestamp(spark)
    own = ClassicFrames(target, source)
    classic = ClassicResolver(spark, own, timestamp=timestamp, time_zone=session.time_zone)
    return Analysis(resolver=classic, caster=caster, timestamp=timestamp)


class ClassicFrames:
    """Frames whose columns are known by expression id: every way to name a column keeps working.

    What the user knows has the ids of the user's plans. Frames have ids of their own, so
    that they never meet those in one plan, and resolved expressions are moved to them
    (`moved`). Where both sides share ids (the source is derived from the target), a
    ``Column`` taken from a DataFrame means the target's column, as in delta-spark (M-30).
    """

    def __init__(self, target: DataFrame, source: DataFrame) -> None:
        self.target_columns = target_columns(target)
        self.source_columns = source_columns(source)
        target_output, source_output = _output(target), _output(source)
        target_ids, source_ids = target_output.expr_ids(), source_output.expr_ids()
        taken = set(target_ids)
        if shared := {place for place, expr_id in enumerate(source_ids) if expr_id in taken}:
            source_output = source_output.with_new_ids(shared)
            source_ids = source_output.expr_ids()
        self._ids = {Side.TARGET: target_ids, Side.SOURCE: source_ids}
        relations = {
            Side.TARGET: empty_relation(target_output),
            Side.SOURCE: empty_relation(source_output),
        }
        self._known = {s: _Relation(plan, len(self._ids[s])) for s, plan in relations.items()}
        self._own = {
            s: _Relation(plan.new_instance(), len(self._ids[s])) for s, plan in relations.items()
        }
        self._columns: dict[tuple[Side, int], Column] = {}

    @cached_property
    def columns_by_id(self) -> Mapping[int, SideColumn]:
        """The column of each expression id of the user's plans; source columns by staged name."""
        target = zip(self._ids[Side.TARGET], self.target_columns, strict=True)
        source = zip(self._ids[Side.SOURCE], self.source_columns, strict=True)
        known = {n: SideColumn(Side.TARGET, c.name, c.type) for n, c in target}
        known |= {n: SideColumn(Side.SOURCE, c.staged, c.type) for n, c in source}
        return known

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        target = self._known[Side.TARGET]
        return target.attributes[0].qualifier() if target.length else ()

    @property
    def staged_columns(self) -> tuple[SourceColumn, ...]:
        """The columns of the source."""
        return self.source_columns

    def staged(self, source_rows: DataFrame) -> DataFrame:
        """Return the user's source with its columns under their staged names."""
        return source_rows.toDF(*[c.staged for c in self.source_columns])

    def displayed(self, scope: Scope) -> Sequence[str]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        return _Displayed([self._known[side] for side in scope.value])

    def known(self, scope: Scope) -> Plan:
        """Return the plan of no rows that the user's expressions are resolved over."""
        return _joined([self._known[side] for side in scope.value])

    def own(self, scope: Scope) -> Plan:
        """Return the plan of no rows that resolved expressions are evaluated over."""
        return _joined([self._own[side] for side in scope.value])

    def moved(self, plan: Plan) -> Plan:
        """Return an analyzed operator whose expressions use the frames' own ids."""
        return plan.moved(self._moves)

    @cached_property
    def _moves(self) -> AttributeMoves:
        """The frames' own attribute for every attribute the user knows."""
        known = [self._known[side].attributes for side in Side]
        return AttributeMoves(known, [self._own[side].attributes for side in Side])

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        own, present = self._own[Side.TARGET].attributes, set(rows.columns)
        named = {c.name: (c.name, own[c.ordinal]) for c in self.target_columns if c.name in present}
        return with_attributes(rows, named)

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        own, present = self._own[Side.SOURCE].attributes, set(rows.columns)
        named = {
            c.staged: (c.name, own[c.ordinal]) for c in self.source_columns if c.staged in present
        }
        return with_attributes(rows, named)

    def before_join(self, rows: DataFrame, name: str, value: Column) -> tuple[DataFrame, Column]:  # noqa: ARG002
        """Leave the value as it is: its columns are the target's, whatever is joined."""
        return rows, value

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``."""
        ordinal = next(c.ordinal for c in self.target_columns if c.name == name)
        return self._column(Side.TARGET, ordinal)

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``."""
        ordinal = next(c.ordinal for c in self.source_columns if c.staged == staged)
        return self._column(Side.SOURCE, ordinal)

    def _column(self, side: Side, ordinal: int) -> Column:
        """Return the same object every time: values that are one column are seen to be one."""
        if (side, ordinal) not in self._columns:
            fetch = partial(self._own[side].attribute, ordinal)
            self._columns[side, ordinal] = lazy_column_of(fetch)
        return self._columns[side, ordinal]


@dataclass(frozen=True)
class _Relation:
    """An empty relation and its attributes, which are read from the JVM on first use."""

    plan: Plan
    length: int

    @cached_property
    def attributes(self) -> Attributes:
        """All of them."""
        return self.plan.output(self.length)

    def attribute(self, ordinal: int) -> Attribute:
        """Return one of them."""
        return self.attributes[ordinal]


class _Displayed(Sequence[str]):
    """The names of columns as messages show them, each read from the JVM on first use."""

    def __init__(self, sides: Sequence[_Relation]) -> None:
        self._places = [(side, place) for side in sides for place in range(side.length)]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        side, at = self._places[place]
        return side.attribute(at).sql()


def _output(rows: DataFrame) -> Attributes:
    return analyzed_plan(rows).output(len(rows.columns))


def _joined(sides: Sequence[_Relation]) -> Plan:
    plans = [side.plan for side in sides]
    return plans[0] if len(plans) == 1 else cross_join(*plans)


_AGGREGATES = frozenset({"AggregateExpression", "PythonUDAF", "WindowExpression"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Analyzed:
    """One request after the analyzer: its expression in the JVM, and the nodes of it."""

    position: int
    request: Request
    expression: Expression
    tree: Sequence[Node]
    """The alias it got, then its own nodes."""

    @property
    def nodes(self) -> Sequence[Node]:
        return self.tree[1:]


class ClassicResolver:
    """Resolves over empty relations that carry the attributes of target and source.

    The Columns it gives are bound to expression ids: nothing is resolved a second time, and
    a random function keeps its seed wherever the Column is used.
    """

    def __init__(
        self,
        spark: SparkSession,
        frames: ClassicFrames,
        *,
        timestamp: ClassicTimestamp,
        time_zone: str,
    ) -> None:
        self._spark = spark
        self.frames = frames
        self._timestamp = timestamp
        self._time_zone = time_zone

    def resolve(self, requests: Sequence[Request]) -> Resolution:
        """Resolve all requests, or say what is wrong with some."""
        plans: dict[Scope, Plan] = {}
        analyzed: list[_Analyzed] = []
        for scope in Scope:
            some = [(n, r) for n, r in enumerate(requests) if r.scope is scope]
            if some:
                plans[scope] = self._analyze([r for _, r in some], scope)
                analyzed += _analyzed(plans[scope], some)
        analyzed.sort(key=lambda a: a.position)
        errors = [e for a in analyzed if (e := self._error(a)) is not None]
        if errors:
            return Resolution(errors=tuple(errors))
        done: dict[int, ResolvedExpression] = {}
        for scope, plan in plans.items():
            some_analyzed = [a for a in analyzed if a.request.scope is scope]
            for a, r in zip(some_analyzed, self._resolved(plan, some_analyzed), strict=True):
                done[a.position] = r
        return Resolution(expressions=tuple(done[n] for n in range(len(requests))))

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope."""
        rows = frame_of(self._spark, self.frames.own(scope))
        return tuple(f.dataType for f in rows.select(*values).schema.fields)

    def check_all(self, values: Mapping[Scope, Sequence[Column]]) -> None:
        """Let Spark refuse values, each in its scope."""
        for scope, some in values.items():
            self.check(some, scope)

    def _analyze(self, requests: Sequence[Request], scope: Scope) -> Plan:
        expressions = [parsed(self._spark, r.expression) for r in requests]
        return resolved(self._spark, expressions, self.frames.known(scope))

    def _error(self, analyzed: _Analyzed) -> ResolutionError | None:
        classes = {class_name(n) for n in analyzed.nodes}
        if "UnresolvedAttribute" in classes:
            names = analyzed.expression.unresolved_names()
            return _error_of(analyzed, ResolutionProblem.UNRESOLVED, names)
        attributes = [n for n in analyzed.nodes if class_name(n) == "AttributeReference"]
        foreign = [n["name"] for n in attributes if not self._is_visible(n, analyzed.request)]
        if foreign:
            return _error_of(analyzed, ResolutionProblem.FOREIGN, foreign)
        if classes & _AGGREGATES:
            return _error_of(analyzed, ResolutionProblem.AGGREGATE, ())
        return None

    def _is_visible(self, attribute: Node, request: Request) -> bool:
        known = self.frames.columns_by_id.get(attribute["exprId"]["id"])
        return known is not None and known.side in request.scope.value

    def _resolved(self, plan: Plan, analyzed: Sequence[_Analyzed]) -> list[ResolvedExpression]:
        types = checked_types(self._spark, [a.expression for a in analyzed], plan.child())
        certain = plan.is_deterministic()
        own = resolved_expressions(self.frames.moved(plan))
        folded_plan = folded(self._timestamp.bound(plan))
        unchanged = folded_plan.is_same(plan)
        trees = [a.tree for a in analyzed] if unchanged else expression_trees(folded_plan)
        found = [
            self._expression(
                a,
                column=column_of(expression),
                data_type=data_type,
                tree=tree,
                is_deterministic=certain or a.expression.is_deterministic(),
            )
            for a, expression, data_type, tree in zip(analyzed, own, types, trees, strict=True)
        ]
        return [
            replace(one, parts=partial(self._parts, folded_plan, place, one.tree))
            if one.tree is not None and isinstance(one.type, T.BooleanType)
            else one
            for place, one in enumerate(found)
        ]

    def _parts(self, plan: Plan, place: int, tree: ExpressionTree) -> tuple[ConditionPart, ...]:
        """Return the conjuncts of an expression of a plan, with what the source can hold."""
        found = condition_trees(tree.nodes, tree.columns, time_zone=tree.time_zone)
        if not any(isinstance(one, SourceTree) for one in found):
            return ()
        whole = resolved_expressions(self.frames.moved(plan))[place]
        return tuple(
            _source_value(whole, one, tree) if isinstance(one, SourceTree) else one for one in found
        )

    def _expression(
        self,
        analyzed: _Analyzed,
        *,
        column: Column,
        data_type: T.DataType,
        tree: Sequence[Node],
        is_deterministic: bool,
    ) -> ResolvedExpression:
        columns = self.frames.columns_by_id
        used = [columns[i] for i in attribute_ids(analyzed.nodes) if i in columns]
        return ResolvedExpression(
            request=analyzed.request,
            column=column,
            type=data_type,
            is_deterministic=is_deterministic,
            has_subquery=any(class_name(n) in SUBQUERIES for n in analyzed.nodes),
            predicate=self._predicate(tree, used, certain=is_deterministic),
            target_columns=frozenset(c.name for c in used if c.side is Side.TARGET),
            source_columns=frozenset(c.name for c in used if c.side is Side.SOURCE),
            sql=analyzed.expression.sql(),
            tree=self._tree(analyzed, tree) if is_deterministic else None,
        )

    def _tree(self, analyzed: _Analyzed, tree: Sequence[Node]) -> ExpressionTree:
        return ExpressionTree(
            nodes=tree,
            written_classes=frozenset(map(class_name, analyzed.nodes)),
            columns=self.frames.columns_by_id,
            time_zone=self._time_zone,
        )

    def _predicate(
        self, tree: Sequence[Node], used: Sequence[SideColumn], *, certain: bool
    ) -> Predicate:
        if not certain:  # never reordered, never pruned with
            return Opaque(frozenset(c.ref() for c in used))
        return predicate_of(tree, self.frames.columns_by_id, time_zone=self._time_zone)


def _source_value(whole: Expression, found: SourceTree, tree: ExpressionTree) -> SourceValue:
    part = whole
    for step in found.steps[1:]:  # the first one leads from the alias to the expression
        part = part.children()[step]
    value, failed = tried(part)
    compared: tuple[Ref | ExpressionTree, CompareOp] | None = None
    if found.compared is not None:
        target, op = found.compared
        if isinstance(target, TargetTree):
            compared = replace(tree, nodes=target.nodes), op
        else:
            compared = target, op
    return SourceValue(
        compared=compared,
        type=part.type(),
        value=column_of(value),
        failed=column_of(failed),
    )


def _analyzed(plan: Plan, requests: Sequence[tuple[int, Request]]) -> list[_Analyzed]:
    trees = expression_trees(plan)
    expressions = resolved_expressions(plan)
    return [
        _Analyzed(position=n, request=r, expression=expression, tree=tree)
        for (n, r), expression, tree in zip(requests, expressions, trees, strict=True)
    ]


def _error_of(
    analyzed: _Analyzed, problem: ResolutionProblem, names: Sequence[str]
) -> ResolutionError:
    return ResolutionError(
        position=analyzed.position,
        problem=problem,
        names=tuple(names),
        sql=analyzed.expression.sql(),
    )
