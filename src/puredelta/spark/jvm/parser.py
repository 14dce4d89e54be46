"""Spark's own parser: statements as plans that nobody has analyzed. Classic sessions only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import class_name, seq_items, session_of, text_items
from puredelta.spark.jvm.plans import Plan

RelationName: TypeAlias = tuple[str, ...]
"""The parts of a name of a table or view."""


def parsed_plan(spark: SparkSession, text: str) -> Plan:
    """Return the plan of a statement.

    Raises:
        pyspark.errors.ParseException: the parser refuses the text.
    """
    return Plan(session_of(spark).sessionState().sqlParser().parsePlan(text))


def relation_names(plan: Plan) -> tuple[RelationName, ...]:
    """Return every table name in a parsed plan that is not analyzed."""
    return tuple(dict.fromkeys(_relation_names(plan.java)))


def _relation_names(node: Any) -> Iterator[RelationName]:
    kind = class_name(node)
    if kind == "UnresolvedRelation":
        yield text_items(node.multipartIdentifier())
    if kind == "ExplainCommand":
        yield from _relation_names(node.logicalPlan())
    for inner in (node.children(), node.innerChildren(), node.subqueries()):
        for plan in seq_items(inner):
            yield from _relation_names(plan)
