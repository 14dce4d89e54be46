"""Expressions of a classic session: one analysis and one JSON text per scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as T

from puredelta.protocol.values.predicates import Opaque, Predicate, Side
from puredelta.spark.plans.predicate_from_json import (
    Attribute,
    Node,
    attribute_ids,
    class_name,
    predicate_of,
)
from puredelta.spark.resolve.classic_frames import ClassicFrames
from puredelta.spark.resolve.expressions import (
    Request,
    Resolution,
    ResolutionError,
    ResolutionProblem,
    ResolvedExpression,
)
from puredelta.spark.resolve.frames import Scope
from puredelta.spark.resolve.statement_timestamp import BoundTimestamp

_AGGREGATES = frozenset({"AggregateExpression", "PythonUDAF", "WindowExpression"})
_SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery", "InSubquery"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Analyzed:
    """One request after the analyzer: its expression in the JVM, and the nodes of it."""

    position: int
    request: Request
    expression: Any
    tree: list[Node]
    """The alias it got, then its own nodes."""

    @property
    def nodes(self) -> list[Node]:
        return self.tree[1:]


class ClassicResolver:
    """Resolves over empty relations that carry the attributes of target and source.

    The Columns it gives are bound to expression ids: nothing is resolved a second time, and
    a random function keeps its seed wherever the Column is used.
    """

    def __init__(self, frames: ClassicFrames, *, instant: BoundTimestamp, time_zone: str) -> None:
        self._frames = frames
        self._catalyst = frames.catalyst
        self._instant = instant
        self._time_zone = time_zone

    @property
    def frames(self) -> ClassicFrames:
        """The target and the source, and other rows in their place."""
        return self._frames

    def resolve(self, requests: Sequence[Request]) -> Resolution:
        """Resolve all requests, or say what is wrong with some."""
        plans: dict[Scope, Any] = {}
        analyzed: list[_Analyzed] = []
        for scope in Scope:
            some = [(n, r) for n, r in enumerate(requests) if r.scope is scope]
            if some:
                plans[scope] = self._analyze([r for _, r in some], scope)
                analyzed += self._analyzed(plans[scope], some)
        analyzed.sort(key=lambda a: a.position)
        flawed = [f for a in analyzed if (f := self._flaw(a)) is not None]
        if flawed:
            return Resolution(flaws=tuple(flawed))
        done: dict[int, ResolvedExpression] = {}
        for scope, plan in plans.items():
            some_analyzed = [a for a in analyzed if a.request.scope is scope]
            for a, r in zip(some_analyzed, self._resolved(plan, some_analyzed), strict=True):
                done[a.position] = r
        return Resolution(expressions=tuple(done[n] for n in range(len(requests))))

    def check(self, values: Sequence[Column], scope: Scope) -> tuple[T.DataType, ...]:
        """Return the types of values that are evaluated over a scope."""
        rows = self._catalyst.rows(self._frames.own(scope))
        return tuple(f.dataType for f in rows.select(*values).schema.fields)

    def _analyze(self, requests: Sequence[Request], scope: Scope) -> Any:
        parsed = [self._catalyst.parsed(r.expression) for r in requests]
        return self._catalyst.resolved(parsed, self._frames.known(scope))

    def _analyzed(self, plan: Any, requests: Sequence[tuple[int, Request]]) -> list[_Analyzed]:
        trees = self._catalyst.trees(plan)
        aliases = self._catalyst.items(plan.metrics())
        return [
            _Analyzed(position=n, request=r, expression=alias.child(), tree=tree)
            for (n, r), alias, tree in zip(requests, aliases, trees, strict=True)
        ]

    def _flaw(self, analyzed: _Analyzed) -> ResolutionError | None:
        classes = {class_name(n) for n in analyzed.nodes}
        if "UnresolvedAttribute" in classes:
            names = self._catalyst.unresolved_names(analyzed.expression)
            return self._flawed(analyzed, ResolutionProblem.UNRESOLVED, names)
        attributes = [n for n in analyzed.nodes if class_name(n) == "AttributeReference"]
        foreign = [n["name"] for n in attributes if not self._is_visible(n, analyzed.request)]
        if foreign:
            return self._flawed(analyzed, ResolutionProblem.FOREIGN, foreign)
        if classes & _AGGREGATES:
            return self._flawed(analyzed, ResolutionProblem.AGGREGATE, ())
        return None

    def _is_visible(self, attribute: Node, request: Request) -> bool:
        known = self._frames.attributes.get(attribute["exprId"]["id"])
        return known is not None and known.side in request.scope.value

    def _flawed(
        self, analyzed: _Analyzed, flaw: ResolutionProblem, names: Sequence[str]
    ) -> ResolutionError:
        sql = str(analyzed.expression.sql())
        return ResolutionError(position=analyzed.position, flaw=flaw, names=tuple(names), sql=sql)

    def _resolved(self, plan: Any, analyzed: Sequence[_Analyzed]) -> list[ResolvedExpression]:
        catalyst = self._catalyst
        checked = catalyst.checked(
            catalyst.project(
                [catalyst.alias(a.expression, f"_{a.position}") for a in analyzed], plan.child()
            )
        )
        certain = bool(plan.deterministic())
        moved = self._frames.moved(plan)
        own = [alias.child() for alias in catalyst.items(moved.metrics())]
        folded = catalyst.folded(self._instant.fixed(plan))
        unchanged = bool(folded.fastEquals(plan))
        trees = [a.tree for a in analyzed] if unchanged else catalyst.trees(folded)
        return [
            self._expression(
                a,
                column=catalyst.column(expression),
                data_type=field.dataType,
                tree=tree,
                is_deterministic=certain or bool(a.expression.deterministic()),
            )
            for a, expression, field, tree in zip(analyzed, own, checked.fields, trees, strict=True)
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
        attributes = self._frames.attributes
        used = [attributes[i] for i in attribute_ids(analyzed.nodes) if i in attributes]
        return ResolvedExpression(
            request=analyzed.request,
            column=column,
            type=data_type,
            is_deterministic=is_deterministic,
            has_subquery=any(class_name(n) in _SUBQUERIES for n in analyzed.nodes),
            predicate=self._predicate(tree, used, certain=is_deterministic),
            target_columns=frozenset(a.name for a in used if a.side is Side.TARGET),
            source_columns=frozenset(a.name for a in used if a.side is Side.SOURCE),
            sql=str(analyzed.expression.sql()),
        )

    def _predicate(
        self, tree: Sequence[Node], used: Sequence[Attribute], *, certain: bool
    ) -> Predicate:
        if not certain:  # never reordered, never pruned with
            return Opaque(frozenset(a.ref() for a in used))
        return predicate_of(tree, self._frames.attributes, time_zone=self._time_zone)
