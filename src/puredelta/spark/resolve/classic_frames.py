"""Frames of a classic session: columns are told apart by expression ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.protocol.values.predicates import Side
from puredelta.spark.plans.attribute_text import expr_ids, texts
from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.plans.predicate_from_json import Attribute
from puredelta.spark.resolve.frames import Scope, source_columns, target_columns


class ClassicFrames:
    """Frames told apart by expression ids: every way to name a column keeps working.

    What the user knows has the ids of the user's plans. Frames have ids of their own, so
    that they never meet those in one plan, and resolved expressions are moved to them
    (`moved`). Where both sides share ids (the source is derived from the target), a
    ``Column`` taken from a DataFrame means the target's column, as in the reference (M-30).
    """

    def __init__(self, spark: SparkSession, target: DataFrame, source: DataFrame) -> None:
        self.catalyst = Catalyst(spark)
        self.target_columns = target_columns(target)
        self.source_columns = source_columns(source)
        target_output, target_ids = self._output(target)
        source_output, source_ids = self._output(source)
        if shared := set(target_ids).intersection(source_ids):
            told_apart = [
                attribute.newInstance() if source_id in shared else attribute
                for attribute, source_id in zip(
                    self.catalyst.items(source_output), source_ids, strict=True
                )
            ]
            source_output = self.catalyst.seq(told_apart)
            source_ids = [expr_id(attribute) for attribute in told_apart]
        relations = {
            Side.TARGET: self.catalyst.relation(target_output),
            Side.SOURCE: self.catalyst.relation(source_output),
        }
        self._ids = {Side.TARGET: target_ids, Side.SOURCE: source_ids}
        self._known = {side: _Relation(plan, self._ids[side]) for side, plan in relations.items()}
        self._own = {
            side: _Relation(plan.newInstance(), self._ids[side]) for side, plan in relations.items()
        }
        self._columns: dict[tuple[Side, int], Column] = {}

    @cached_property
    def attributes(self) -> Mapping[int, Attribute]:
        """What each id the user knows stands for; a source column goes by its staged name."""
        target = zip(self._ids[Side.TARGET], self.target_columns, strict=True)
        source = zip(self._ids[Side.SOURCE], self.source_columns, strict=True)
        known = {n: Attribute(Side.TARGET, c.name, c.type) for n, c in target}
        known |= {n: Attribute(Side.SOURCE, c.staged, c.type) for n, c in source}
        return known

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        target = self._known[Side.TARGET]
        return self.catalyst.items(target[0].qualifier()) if target else ()

    def displayed(self, scope: Scope) -> Sequence[str]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        return _Displayed([self._known[side] for side in scope.value])

    def known(self, scope: Scope) -> Any:
        """Return the plan of no rows that the user's expressions are resolved over."""
        return self._joined([self._known[side] for side in scope.value])

    def own(self, scope: Scope) -> Any:
        """Return the plan of no rows that resolved expressions are evaluated over."""
        return self._joined([self._own[side] for side in scope.value])

    def moved(self, plan: Any) -> Any:
        """Return an analyzed operator whose expressions use the frames' own ids."""
        return plan.rewriteAttrs(self._moves)

    @cached_property
    def _moves(self) -> Any:
        """The frames' own attribute for every attribute the user knows."""
        target, source = (self._known[side].output.zip(self._own[side].output) for side in Side)
        return self.catalyst.attribute_map(target.concat(source))

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        own, present = self._own[Side.TARGET], set(rows.columns)
        named = {c.name: (c.name, own[c.ordinal]) for c in self.target_columns if c.name in present}
        return rebased(self.catalyst, rows, named)

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        own, present = self._own[Side.SOURCE], set(rows.columns)
        named = {
            c.staged: (c.name, own[c.ordinal]) for c in self.source_columns if c.staged in present
        }
        return rebased(self.catalyst, rows, named)

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
            fetch = partial(self._own[side].__getitem__, ordinal)
            self._columns[side, ordinal] = self.catalyst.late_column(fetch)
        return self._columns[side, ordinal]

    def _joined(self, sides: Sequence[_Relation]) -> Any:
        plans = [side.plan for side in sides]
        return plans[0] if len(plans) == 1 else self.catalyst.cross_join(*plans)

    def _output(self, rows: DataFrame) -> tuple[Any, list[int]]:
        """Return the attributes of a frame, a Scala ``Seq``, and their ids."""
        output = self.catalyst.analyzed(rows).output()
        ids = expr_ids(texts(output))
        if ids is None or len(ids) != len(rows.columns):  # a watermark prints more
            ids = [expr_id(a) for a in self.catalyst.items(output)]
        return output, ids


class _Relation(Sequence[Any]):
    """An empty relation, and its attributes: each is fetched when it is asked for."""

    def __init__(self, plan: Any, ids: Sequence[int]) -> None:
        self.plan = plan
        self._length = len(ids)
        self._fetched: dict[int, Any] = {}

    @cached_property
    def output(self) -> Any:
        """All of them, a Scala ``Seq``."""
        return self.plan.output()

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: Any) -> Any:
        if not 0 <= place < self._length:
            raise IndexError(place)
        if place not in self._fetched:
            self._fetched[place] = self.output.apply(place)
        return self._fetched[place]


class _Displayed(Sequence[str]):
    """The names of columns as messages show them, each asked for when it is read."""

    def __init__(self, sides: Sequence[_Relation]) -> None:
        self._places = [(side, place) for side in sides for place in range(len(side))]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        side, at = self._places[place]
        return str(side[at].sql())


def rebased(catalyst: Catalyst, rows: DataFrame, named: Mapping[str, tuple[str, Any]]) -> DataFrame:
    """Project rows onto other attributes; columns that are not named pass through.

    ``named`` gives for a column of ``rows`` its new name and the attribute whose id and
    qualifiers it takes. No plan below ``rows`` may have that id: Spark would give the new
    column another one.
    """
    plan = catalyst.analyzed(rows)
    projected = [
        catalyst.alias(attribute, named[column][0], like=named[column][1])
        if column in named
        else attribute
        for column, attribute in zip(rows.columns, catalyst.items(plan.output()), strict=True)
    ]
    return catalyst.rows(catalyst.project(projected, plan))


def expr_id(attribute: Any) -> int:
    """Return the id by which plans know an attribute."""
    return int(attribute.exprId().id())
