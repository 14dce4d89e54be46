"""Frames of a classic session: columns are told apart by expression ids."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.protocol.predicates import Side
from puredelta.spark.catalyst import Catalyst
from puredelta.spark.catalyst_tree import Attribute
from puredelta.spark.frames import Scope, source_columns, target_columns


class ClassicFrames:
    """Frames told apart by expression ids: every way to name a column keeps working.

    Where both sides share ids (the source is derived from the target), the source gets new
    ones; a ``Column`` taken from a DataFrame then means the target's column, as in the
    reference (M-30).
    """

    def __init__(self, spark: SparkSession, target: DataFrame, source: DataFrame) -> None:
        self.catalyst = Catalyst(spark)
        self.target_columns = target_columns(target)
        self.source_columns = source_columns(source)
        self._target = self._output(target)
        taken = {expr_id(a) for a in self._target}
        self._source = tuple(
            a.newInstance() if expr_id(a) in taken else a for a in self._output(source)
        )

    @cached_property
    def attributes(self) -> Mapping[int, Attribute]:
        """What each expression id stands for; a source column goes by its staged name."""
        known = {
            expr_id(a): Attribute(Side.TARGET, c.name, c.type)
            for a, c in zip(self._target, self.target_columns, strict=True)
        }
        known |= {
            expr_id(a): Attribute(Side.SOURCE, c.staged, c.type)
            for a, c in zip(self._source, self.source_columns, strict=True)
        }
        return known

    @property
    def target_qualifier(self) -> tuple[str, ...]:
        """The alias of the target; empty if it has none."""
        return self.catalyst.items(self._target[0].qualifier()) if self._target else ()

    def displayed(self, scope: Scope) -> tuple[str, ...]:
        """Return the columns of a scope as messages show them: ``t.key``."""
        return tuple(a.sql() for side in scope.value for a in self._sides[side])

    def stand_in(self, scope: Scope) -> Any:
        """Return the plan of no rows with the attributes of a scope."""
        relations = [self.catalyst.relation(self._sides[side]) for side in scope.value]
        return relations[0] if len(relations) == 1 else self.catalyst.cross_join(*relations)

    def target(self, rows: DataFrame) -> DataFrame:
        """Give scanned rows the identity of the target."""
        named = zip(self.target_columns, self._target, strict=True)
        return rebased(self.catalyst, rows, {c.name: (c.name, a) for c, a in named})

    def source(self, rows: DataFrame) -> DataFrame:
        """Give staged rows the identity of the source."""
        named = zip(self.source_columns, self._source, strict=True)
        return rebased(self.catalyst, rows, {c.staged: (c.name, a) for c, a in named})

    def target_column(self, name: str) -> Column:
        """Return a column of ``target(...)``."""
        ordinal = next(c.ordinal for c in self.target_columns if c.name == name)
        return self.catalyst.column(self._target[ordinal])

    def source_column(self, staged: str) -> Column:
        """Return a column of ``source(...)``."""
        ordinal = next(c.ordinal for c in self.source_columns if c.staged == staged)
        return self.catalyst.column(self._source[ordinal])

    @property
    def _sides(self) -> Mapping[Side, tuple[Any, ...]]:
        return {Side.TARGET: self._target, Side.SOURCE: self._source}

    def _output(self, rows: DataFrame) -> tuple[Any, ...]:
        return self.catalyst.items(self.catalyst.analyzed(rows).output())


def rebased(catalyst: Catalyst, rows: DataFrame, named: Mapping[str, tuple[str, Any]]) -> DataFrame:
    """Project rows onto other attributes; columns that are not named pass through.

    ``named`` gives for a column of ``rows`` its new name and the attribute whose id and
    qualifiers it takes. An alias must not carry the id of the attribute it renames, so a
    column that has the id already passes through as that attribute.
    """
    plan = catalyst.analyzed(rows)
    projected: list[Any] = []
    given: set[int] = set()
    for column, attribute in zip(rows.columns, catalyst.items(plan.output()), strict=True):
        if column not in named:
            projected.append(attribute)
            continue
        name, like = named[column]
        if expr_id(like) in given:
            continue  # the source selects one attribute twice
        given.add(expr_id(like))
        same = expr_id(like) == expr_id(attribute)
        projected.append(like if same else catalyst.alias(attribute, name, like=like))
    return catalyst.rows(catalyst.project(projected, plan))


def expr_id(attribute: Any) -> int:
    """Return the id by which plans know an attribute."""
    return int(attribute.exprId().id())
