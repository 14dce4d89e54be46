"""Views of the catalog whose text Spark alone cannot resolve: made, and read, with its machinery.

Spark keeps the text of a view as the user wrote it, and resolves it anew in the namespace and
with the settings of its definition. Here it gets the same entry with another text, one that
names temporary views in the place of what Spark does not know. Classic sessions only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.classes import (
    class_name,
    java_class,
    jvm_of,
    scala_map,
    scala_some,
    seq_items,
    text_items,
    text_map,
)
from puredelta.spark.jvm.frames import analyzed_plan, frame_of
from puredelta.spark.jvm.plans import Plan, RelationName, parsed_plan
from puredelta.spark.jvm.session_catalog import catalog_of, stored_entry, with_fields

_TEMPORARY_NAMES = "view.referredTempViewNames"
"""The property in which Spark keeps the temporary views that a view may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPlace:
    """A name of a table or view in a text."""

    name: RelationName
    start: int
    """Where it begins."""


def relation_places(spark: SparkSession, text: str) -> tuple[RelationPlace, ...]:
    """Return every name of a relation in a statement that is no common table expression's, in
    their order.

    Raises:
        pyspark.errors.ParseException: Spark's parser refuses the text.
    """
    plan = parsed_plan(spark, text).java
    ctes = {name.lower() for name in _cte_names(plan)}
    found = set(_places(plan))  # a plan may stand in a subquery, and below it
    return tuple(
        place
        for place in sorted(found, key=lambda place: place.start)
        if len(place.name) > 1 or place.name[0].lower() not in ctes
    )


def _places(node: Any) -> Iterator[RelationPlace]:
    start = node.origin().startIndex()
    if class_name(node) == "UnresolvedRelation" and start.isDefined():
        yield RelationPlace(name=text_items(node.multipartIdentifier()), start=int(start.get()))
    for inner in _below(node):
        yield from _places(inner)


def _cte_names(node: Any) -> Iterator[str]:
    if class_name(node) == "UnresolvedWith":
        yield from (str(relation._1()) for relation in seq_items(node.cteRelations()))
    for inner in _below(node):
        yield from _cte_names(inner)


def _below(node: Any) -> Iterator[Any]:
    kind = class_name(node)
    if kind == "ExplainCommand":
        yield node.logicalPlan()
    elif kind == "RelationTimeTravel":
        yield node.relation()
    for plans in (node.children(), node.innerChildren(), node.subqueries()):
        yield from seq_items(plans)


def view_rows(
    spark: SparkSession, database: str, name: str, text: str, temporary: Sequence[str]
) -> DataFrame:
    """Return the rows of a view of the catalog as if its text were this one.

    ``temporary`` are the temporary views that the text names; they may go when this returns.
    """
    jvm = jvm_of(spark)
    stored = stored_entry(spark, database, name)
    allowed = json.dumps([[view] for view in temporary])
    properties = {**text_map(stored.properties()), _TEMPORARY_NAMES: allowed}
    changed = with_fields(
        stored, viewText=scala_some(jvm, text), properties=scala_map(jvm, properties)
    )
    options = java_class(jvm, "org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()
    return frame_of(spark, Plan(catalog_of(spark).getRelation(changed, options)))


def view_query(spark: SparkSession, text: str) -> str:
    """Return the query in the definition of a view (``CREATE VIEW``, ``ALTER VIEW ... AS``)."""
    written = parsed_plan(spark, text).java.originalText()
    return str(written.get() if hasattr(written, "get") else written)


def define_view(spark: SparkSession, text: str, rows: DataFrame) -> DataFrame:
    """Execute the definition of a view with these rows for its query; its text stays.

    Temporary views below the rows are taken for what they show.

    Raises:
        pyspark.errors.AnalysisException: Spark refuses the view.
    """
    plan = analyzed_plan(rows)
    shown = [(view, view.child()) for view in _temporary_views(plan)]
    query = plan.with_replaced(shown) if shown else plan
    return frame_of(spark, Plan(with_fields(parsed_plan(spark, text).java, query=query.java)))


def _temporary_views(plan: Plan) -> Iterator[Plan]:
    if plan.kind == "View" and plan.java.isTempView():
        yield plan
    for inner in (*plan.children(), *plan.subqueries()):
        yield from _temporary_views(inner)
