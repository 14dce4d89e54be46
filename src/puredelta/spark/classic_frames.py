"""Frames of a classic session: columns are told apart by expression ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.protocol.predicates import Side
from puredelta.spark.attribute_text import expr_ids, texts
from puredelta.spark.catalyst import Catalyst
from puredelta.spark.catalyst_tree import Attribute
from puredelta.spark.frames import Scope, source_columns, target_columns


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
        known_target, target_ids = self._output(target)
        known_source, source_ids = self._output(source)
        taken = set(target_ids)
        for n, source_id in enumerate(source_ids):
            if source_id in taken:
                known_source[n] = known_source[n].newInstance()
                source_ids[n] = expr_id(known_source[n])
        self._known = {Side.TARGET: known_target, Side.SOURCE: known_source}
        self._ids = {Side.TARGET: target_ids, Side.SOURCE: source_ids}
        self._own = {
            side: tuple(a.newInstance() for a in some) for side, some in self._known.items()
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

    def displayed(self, scope: Scope) -> tuple[str, ...]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        return tuple(name for side in scope.value for name in self._displayed[side])

    @cached_property
    def _displayed(self) -> Mapping[Side, tuple[str, ...]]:
        return {side: tuple(a.sql() for a in some) for side, some in self._known.items()}

    def known(self, scope: Scope) -> Any:
        """Return the plan of no rows that the user's expressions are resolved over."""
        return self._joined([self._known[side] for side in scope.value])

    def own(self, scope: Scope) -> Any:
        """Return the plan of no rows that resolved expressions are evaluated over."""
        return self._joined([self._own[side] for side in scope.value])

    def moved(self, plan: Any, used: Collection[int]) -> Any:
        """Return an analyzed operator whose expressions use the frames' own ids.

        ``used`` are the ids of the user's attributes in it.
        """
        both = [
            pair
            for side, some in self._known.items()
            for pair in zip(some, self._own[side], strict=True)
        ]
        pairs = [
            pair for pair, expr_id in zip(both, self.attributes, strict=True) if expr_id in used
        ]
        return plan.rewriteAttrs(self.catalyst.attribute_map(pairs))

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        named = zip(self.target_columns, self._own[Side.TARGET], strict=True)
        return rebased(self.catalyst, rows, {c.name: (c.name, a) for c, a in named})

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        named = zip(self.source_columns, self._own[Side.SOURCE], strict=True)
        return rebased(self.catalyst, rows, {c.staged: (c.name, a) for c, a in named})

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
            self._columns[side, ordinal] = self.catalyst.column(self._own[side][ordinal])
        return self._columns[side, ordinal]

    def _joined(self, sides: Sequence[Sequence[Any]]) -> Any:
        relations = [self.catalyst.relation(attributes) for attributes in sides]
        return relations[0] if len(relations) == 1 else self.catalyst.cross_join(*relations)

    def _output(self, rows: DataFrame) -> tuple[list[Any], list[int]]:
        """Return the attributes of a frame and their ids."""
        output = self.catalyst.analyzed(rows).output()
        attributes = list(self.catalyst.items(output))
        ids = expr_ids(texts(output))
        if ids is None or len(ids) != len(attributes):  # a watermark prints more
            ids = [expr_id(a) for a in attributes]
        return attributes, ids


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
