"""Spark's analyzer and some rules of its optimizer, one by one. Classic sessions only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.expressions import Attributes, Expression, aliased
from puredelta.spark.jvm.frames import analyzed_plan
from puredelta.spark.jvm.gateway import (
    CATALYST,
    java_class,
    java_constant,
    java_map,
    java_type,
    jvm_of,
    once_per_session,
    scala_map,
    seq_items,
    session_of,
)
from puredelta.spark.jvm.plans import Plan, collected_metrics, empty_relation, projected

# The rules that bring conditions into a form worth reading, in an order that works on
# 4.0 to 4.3. The whole optimizer is of no use: over empty relations it folds the plan away.
_FOLDING = (
    "ReplaceExpressions",
    "RewriteWithExpression",
    "ConstantFolding",
    "UnwrapCastInBinaryComparison",
    "LikeSimplification",
    "ConstantFolding",
    "BooleanSimplification",
)


@once_per_session
def _analyzer(spark: SparkSession) -> Any:
    return session_of(spark).sessionState().analyzer()


def resolved(spark: SparkSession, expressions: Sequence[Expression], plan: Plan) -> Plan:
    """Return ``CollectMetrics(expressions)`` over the plan, analyzed but not checked.

    That operator is the one whose expressions the analyzer resolves and coerces but
    never moves: aggregates, windows and unresolved names stay where they are and can
    be reported one by one.
    """
    unresolved = collected_metrics(expressions, plan)
    return Plan(_analyzer(spark).execute(unresolved.java))


def resolved_expressions(plan: Plan) -> list[Expression]:
    """Return the expressions of a plan that `resolved` gave, in their order."""
    return [Expression(alias.child()) for alias in seq_items(plan.java.metrics())]


def expression_trees(plan: Plan) -> list[list[Mapping[str, Any]]]:
    """Return the same expressions, each as the nodes that ``TreeNode.toJSON`` writes.

    An expression begins with the alias that `resolved` gave it.

    The plan below is left out: the attributes of wide rows would be most of the text.
    """
    alone = plan.with_children(empty_relation(Attributes.of(plan.java, [])))
    found: list[list[Mapping[str, Any]]] = json.loads(alone.java.toJSON())[0]["metrics"]
    return found


def checked_types(
    spark: SparkSession, expressions: Sequence[Expression], plan: Plan
) -> list[T.DataType]:
    """Return the types of resolved expressions over a plan, once Spark has checked them."""
    named = [aliased(e, f"_{n}") for n, e in enumerate(expressions)]
    project = projected(named, plan).java
    _analyzer(spark).checkAnalysis(project)
    schema = T.StructType.fromJson(json.loads(project.schema().json()))
    return [field.dataType for field in schema.fields]


def folded(plan: Plan) -> Plan:
    """Return the plan with constants folded and needless casts gone."""
    for rule in _FOLDING:
        plan = _after_rule(rule, plan)
    return plan


def _after_rule(name: str, plan: Plan) -> Plan:
    """Return what one rule of the optimizer makes of a plan."""
    return Plan(java_class(plan.java, f"{CATALYST}.optimizer.{name}").apply(plan.java))


def require_valid_default(
    spark: SparkSession, column: str, expression: str, data_type: T.DataType, *, statement: str
) -> None:
    """Refuse what cannot be the default of a column; ``statement`` is what messages call it."""
    jvm = jvm_of(spark)
    rules = java_class(jvm, f"{CATALYST}.util.ResolveDefaultColumns")
    rules.analyze(column, java_type(jvm, data_type), expression, statement)


# --- the clock ------------------------------------------------------------------------------


class ClockReading:
    """What ``current_timestamp()`` and its kin gave once: a literal for each of them.

    A Scala ``Map`` is a ``PartialFunction``, so ``transformAllExpressionsWithSubqueries(map)``
    replaces expressions by equality without any Scala code.
    """

    def __init__(self, spark: SparkSession) -> None:
        """Read the clock as Spark does."""
        asked = spark.sql("select current_timestamp(), now(), current_date(), localtimestamp()")
        before = analyzed_plan(asked)
        readings = before.java.expressions()
        literals = _after_rule("ComputeCurrentTime", before).java.expressions()
        pairs = [
            (readings.apply(n).child(), literals.apply(n).child())
            for n in range(len(asked.columns))
        ]
        self._literals = scala_map(before.java, java_map(before.java, pairs))

    def in_place_of_clock(self, plan: Plan) -> Plan:
        """Return the plan with these literals in the place of all that reads the clock.

        ``ReplaceExpressions`` comes first: ``current_timestamp() - interval 1 day`` keeps a copy
        of its own inside until then.
        """
        plain = _after_rule("ReplaceExpressions", plan).java
        return Plan(plain.transformAllExpressionsWithSubqueries(self._literals))


def reads_clock(plan: Plan) -> bool:
    """Return whether anything in a plan reads the clock, its subqueries included."""
    pattern = java_constant(plan.java, f"{CATALYST}.trees.TreePattern", "CURRENT_LIKE")
    return bool(plan.java.containsPattern(pattern))
