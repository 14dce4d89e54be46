"""An ``Aggregate`` without groups, and the row that takes its place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import (
    CATALYST,
    java_array,
    java_class,
    java_constant,
    java_map,
    jvm_of,
    scala_map,
    scala_none,
    scala_object,
    scala_seq,
)
from puredelta.spark.jvm.plans import Plan

_FUNCTIONS = f"{CATALYST}.expressions.aggregate."
_KNOWN = frozenset({"Count", "Min", "Max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """``count``, ``min`` or ``max`` of a column."""

    function: str
    """Count, Min or Max."""
    column: int | None
    """The expression id of the column; None: of a constant, which counts rows."""
    place: int
    """Among the nodes of all expressions."""


class GlobalAggregate:
    """An ``Aggregate`` over all rows of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._java = plan.java
        # Any expression that takes a list will do to look at many at once.
        coalesce = java_class(self._java, f"{CATALYST}.expressions.Coalesce")
        self._every = coalesce(self._java.aggregateExpressions())

    @staticmethod
    def has_groups(plan: Plan) -> bool:
        """Return whether an ``Aggregate`` makes a row for each of several groups."""
        return bool(plan.java.groupingExpressions().nonEmpty())

    def calls(self) -> list[AggregateCall] | None:
        """Return its aggregate functions; None if one is anything but a plain count, min or max."""
        nodes = json.loads(self._every.toJSON())
        calls = []
        for place, node in enumerate(nodes):
            kind = str(node["class"])
            if kind == f"{_FUNCTIONS}AggregateExpression":
                call = _call(nodes, place)
                if call is None:
                    return None
                calls.append(call)
            elif kind.startswith(_FUNCTIONS) and kind.rsplit(".", 1)[-1] not in _KNOWN:
                return None
        return calls

    def answered(self, spark: SparkSession, answers: Mapping[int, str | None]) -> Plan:
        """Return a plan of one row under the same names, types and expression ids.

        ``answers`` has for the place of each call its value as Spark would cast it to text.
        """
        literals = []
        for place, text in answers.items():
            call = self._every.apply(place)
            literals.append((call, _literal(call, text)))
        replace = scala_map(self._java, java_map(self._java, literals))
        expressions = self._java.transformExpressions(replace).aggregateExpressions()
        project = java_class(self._java, f"{CATALYST}.plans.logical.Project")
        return Plan(project(expressions, _one_row(spark)))


def _call(nodes: Sequence[Mapping[str, Any]], place: int) -> AggregateCall | None:
    """Return the call of an ``AggregateExpression``, whose nodes follow it."""
    whole, function, *arguments = nodes[place : place + 3]
    name = str(function["class"]).removeprefix(_FUNCTIONS)
    is_plain = (whole["num-children"], function["num-children"]) == (1, 1)
    if whole["isDistinct"] or not is_plain or name not in _KNOWN:
        return None
    (argument,) = arguments
    match str(argument["class"]).rsplit(".", 1)[-1]:
        case "AttributeReference":
            return AggregateCall(function=name, column=argument["exprId"]["id"], place=place)
        case "Literal" if name == "Count" and argument["value"] is not None:
            return AggregateCall(function=name, column=None, place=place)
        case _:
            return None


def _literal(call: Any, text: str | None) -> Any:
    """Return a value of the type and nullability of a call."""
    expressions = f"{CATALYST}.expressions"
    literals = scala_object(call, f"{expressions}.Literal")
    data_type, none = call.dataType(), scala_none(call)
    null = literals.create(None, data_type)
    if text is None:
        return null
    value = literals.apply(text)
    if str(data_type.typeName()) == "string":
        # Spark's own minimum may be NULL for all that a schema says.
        always = java_constant(call, f"{expressions}.Literal", "TrueLiteral")
        return java_class(call, f"{expressions}.If")(always, value, null)
    legacy = scala_object(call, f"{expressions}.EvalMode").LEGACY()
    value = java_class(call, f"{expressions}.Cast")(value, data_type, none, legacy)
    if call.nullable():
        return value
    not_null = java_class(call, f"{expressions}.objects.AssertNotNull")
    return not_null(value, scala_seq(call, []))


def _one_row(spark: SparkSession) -> Any:
    """Return a relation of one row without columns."""
    jvm = jvm_of(spark)
    relations = scala_object(jvm, f"{CATALYST}.plans.logical.LocalRelation")
    cells = java_array(spark, "java.lang.Object", [])
    row = java_class(jvm, "org.apache.spark.sql.RowFactory").create(cells)
    return relations.fromExternalRows(scala_seq(jvm, []), scala_seq(jvm, [row]))
