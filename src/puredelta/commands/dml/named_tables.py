"""Delta tables of the catalog that subqueries in the expressions of a statement name.

Spark resolves each expression separately, in several frames, and looks the tables up in its catalog
each time. Stock Spark cannot read the catalog entry of a Delta table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import (
    Assignments,
    Delete,
    Expression,
    MergeSpec,
    RowSpec,
    Star,
    UpdateSpec,
)
from puredelta.protocol.schema.sql_lexer import may_hold_query
from puredelta.spark.catalog.relation_cache import relations_of_texts

_Spec: TypeAlias = MergeSpec | RowSpec


def named_tables(spark: SparkSession, spec: _Spec) -> AbstractContextManager[None]:
    """Return a context in which Spark knows these tables, each in its newest version.

    A statement whose expressions hold no query costs nothing.
    """
    return relations_of_texts(spark, [text for text in _texts(spec) if may_hold_query(text)])


def _texts(spec: _Spec) -> Iterator[str]:
    for expression in _expressions(spec):
        if isinstance(expression, str):
            yield expression


def _expressions(spec: _Spec) -> Iterator[Expression | None]:
    if not isinstance(spec, MergeSpec):
        yield spec.condition
        if isinstance(spec, UpdateSpec):
            yield from _values(spec.assignments)
        return
    yield spec.on
    for clause in spec.clauses:
        yield clause.condition
        if not isinstance(clause.action, Delete):
            yield from _values(clause.action.assignments)


def _values(assignments: Assignments) -> Iterator[Expression]:
    if assignments is not Star.STAR:
        yield from (assignment.value for assignment in assignments)
