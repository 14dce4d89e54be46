"""Frames of a classic session: expression ids say which column is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pyspark.sql import Column, DataFrame

from puredelta.protocol.values.predicates import Side
from puredelta.spark.jvm.expressions import Attribute, Attributes, lazy_column_of
from puredelta.spark.jvm.frames import analyzed_plan, with_attributes
from puredelta.spark.jvm.plans import AttributeMoves, Plan, cross_join, empty_relation
from puredelta.spark.resolve.frames import Scope, source_columns, target_columns
from puredelta.spark.resolve.predicate_from_json import SideColumn


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
        """What each id the user knows stands for; a source column goes by its staged name."""
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
    """An empty relation, and its attributes, which are asked for when they are needed."""

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
    """The names of columns as messages show them, each asked for when it is read."""

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
