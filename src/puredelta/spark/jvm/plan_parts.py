"""Parts of analyzed plans that the log can answer, and their replacements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.jvm.expressions import Nodes, nodes_of
from puredelta.spark.jvm.file_index import DATASOURCES, SCAN_CLASS, AskedIndex, asked_index
from puredelta.spark.jvm.gateway import (
    CATALYST,
    chained,
    class_name,
    class_of,
    java_array,
    java_class,
    java_constant,
    java_map,
    jvm_of,
    predicates_of,
    scala_condition,
    scala_map,
    scala_none,
    scala_object,
    scala_seq,
    step,
)
from puredelta.spark.jvm.plans import Plan, empty_relation

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


_FUNCTION = "scala.Function1"
_FILES_CLASS = f"{DATASOURCES}.HadoopFsRelation"
_RULES = (
    "ReplaceExpressions",
    "RewriteWithExpression",
    "ConstantFolding",
    "SimplifyCasts",
    "UnwrapCastInBinaryComparison",
    "LikeSimplification",
)
"""Rules of Spark's optimizer that make conditions simple, in its order."""


def numbered_lines(plan: Plan) -> list[str]:
    """Return what the plan prints, a line for each of its parts: one call."""
    return str(plan.java.treeString()).splitlines()


def part_at(plan: Plan, number: int, kind: str) -> Plan | None:
    """Return the part that prints the line of a number; None if it is not of this class."""
    part = plan.java.apply(number)
    return Plan(part) if part is not None and class_name(part) == kind else None


def simple_condition(plan: Plan) -> Nodes | None:
    """Return the condition of a ``Filter`` as Spark's optimizer simplifies it."""
    java = plan.with_children(empty_relation(plan.child().output())).java
    for rule in _RULES:
        java = scala_object(java, f"{CATALYST}.optimizer.{rule}").apply(java)
    if class_name(java) != "Filter":
        return None
    return nodes_of(scala_seq(java, [java.condition()]))


def renamed_columns(plan: Plan) -> Mapping[int, int]:
    """Return which columns of a ``Project`` are columns below, by expression id."""
    coalesce = java_class(plan.java, f"{CATALYST}.expressions.Coalesce")
    nodes = json.loads(coalesce(plan.java.projectList()).toJSON())[1:]
    found: dict[int, int] = {}
    place = 0
    while place < len(nodes):
        node, end = nodes[place], _end(nodes, place)
        kind = str(node["class"]).rsplit(".", 1)[-1]
        if kind == "AttributeReference":
            found[node["exprId"]["id"]] = node["exprId"]["id"]
        elif kind == "Alias" and end == place + 2 and "exprId" in nodes[place + 1]:
            found[node["exprId"]["id"]] = nodes[place + 1]["exprId"]["id"]
        place = end
    return found


def _end(nodes: Sequence[Mapping[str, Any]], place: int) -> int:
    """Return where the nodes of the expression end that begins at a place."""
    open_ones = 1
    while open_ones:
        open_ones += int(nodes[place]["num-children"]) - 1
        place += 1
    return place


def may_ask(rows: DataFrame) -> bool:
    """Tell whether the analyzed plan of a frame, its subqueries included, has a scan whose files
    are asked for. It is one call into the JVM, however wide or deep the plan is.
    """
    frame: Any = rows
    return bool(_asking(frame._jdf).evaluate(frame._jdf))


_asking_by_jvm: dict[Any, Any] = {}


def _asking(jvm: Any) -> Any:
    """Return the predicate of the JVM that tells of a frame what `may_ask` does."""
    known = _asking_by_jvm.get(jvm._gateway_client)
    if known is None:
        predicates = predicates_of(jvm)
        is_a = predicates.instanceofPredicate
        is_proxy = chained(
            jvm,
            step(jvm, "location"),
            step(jvm, "getClass"),
            step(jvm, "getName"),
            step(jvm, "contains", "$Proxy", "java.lang.CharSequence"),
        )
        asks = predicates.andPredicate(
            is_a(class_of(jvm, _FILES_CLASS)), predicates.asPredicate(is_proxy)
        )
        is_scan = is_a(class_of(jvm, SCAN_CLASS))
        asks = predicates.transformedPredicate(step(jvm, "relation"), asks)
        asks = scala_condition(predicates.andPredicate(is_scan, asks))
        in_plan = predicates.asPredicate(step(jvm, "exists", asks, _FUNCTION))
        in_some = step(jvm, "exists", scala_condition(in_plan), _FUNCTION)
        in_subqueries = predicates.asPredicate(chained(jvm, step(jvm, "subqueriesAll"), in_some))
        known = predicates.transformedPredicate(
            chained(jvm, step(jvm, "queryExecution"), step(jvm, "analyzed")),
            predicates.orPredicate(in_plan, in_subqueries),
        )
        _asking_by_jvm.clear()  # one JVM at a time
        _asking_by_jvm[jvm._gateway_client] = known
    return known


def asked_scan(leaves: Iterable[Plan]) -> tuple[Plan, AskedIndex] | None:
    """Return the one scan among plans whose files are asked for, and its index."""
    found = []
    for leaf in leaves:
        if leaf.class_name == SCAN_CLASS:
            relation = leaf.java.relation()
            if class_name(relation) == "HadoopFsRelation":
                index = asked_index(relation.location())
                found += [] if index is None else [(leaf, index)]
    return found[0] if len(found) == 1 else None


def scan_of(spark: SparkSession, scan: Plan, index: Any) -> Plan:
    """Return a scan of the files of an index of Spark's own, in all else like another scan."""
    known = scan.java.relation()
    relation = java_class(known, f"{DATASOURCES}.HadoopFsRelation")(
        index,
        known.partitionSchema(),
        known.dataSchema(),
        known.bucketSpec(),
        known.fileFormat(),
        known.options(),
        known.sparkSession(),
    )
    # The number of its fields differs between releases of Spark.
    java = scan.java
    others = [java.productElement(n) for n in range(1, java.productArity())]
    fields = java_array(spark, "java.lang.Object", [relation, *others])
    return Plan(java.makeCopy(fields))
