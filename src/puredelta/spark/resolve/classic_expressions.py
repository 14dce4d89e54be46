"""Expressions of a classic session: one analysis and one JSON text per scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T

from puredelta.protocol.values.predicates import Opaque, Predicate, Side
from puredelta.spark.jvm.analyzer import (
    checked_types,
    expression_trees,
    folded,
    resolved,
    resolved_expressions,
)
from puredelta.spark.jvm.expressions import Expression, column_of, parsed
from puredelta.spark.jvm.frames import frame_of
from puredelta.spark.jvm.plans import Plan
from puredelta.spark.resolve.classic_frames import ClassicFrames
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
)
from puredelta.spark.resolve.frames import Scope
from puredelta.spark.resolve.json_literals import Node
from puredelta.spark.resolve.predicate_from_json import (
    SideColumn,
    attribute_ids,
    class_name,
    predicate_of,
)
from puredelta.spark.resolve.statement_timestamp import ClassicTimestamp

_AGGREGATES = frozenset({"AggregateExpression", "PythonUDAF", "WindowExpression"})
_SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery", "InSubquery"})


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
        return [
            self._expression(
                a,
                column=column_of(expression),
                data_type=data_type,
                tree=tree,
                is_deterministic=certain or a.expression.is_deterministic(),
            )
            for a, expression, data_type, tree in zip(analyzed, own, types, trees, strict=True)
        ]

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
            has_subquery=any(class_name(n) in _SUBQUERIES for n in analyzed.nodes),
            predicate=self._predicate(tree, used, certain=is_deterministic),
            target_columns=frozenset(c.name for c in used if c.side is Side.TARGET),
            source_columns=frozenset(c.name for c in used if c.side is Side.SOURCE),
            sql=analyzed.expression.sql(),
        )

    def _predicate(
        self, tree: Sequence[Node], used: Sequence[SideColumn], *, certain: bool
    ) -> Predicate:
        if not certain:  # never reordered, never pruned with
            return Opaque(frozenset(c.ref() for c in used))
        return predicate_of(tree, self.frames.columns_by_id, time_zone=self._time_zone)


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
