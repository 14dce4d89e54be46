"""The Py4J edge to Spark's analyzer: plans in, plans out. Classic sessions only.

Nothing here knows what a command is. Every attribute of an analyzed plan has an
*expression id*; a ``Column`` taken from a DataFrame (``source["id"]``) finds its attribute by
that id, so frames that take another's place must carry the other's ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from puredelta.spark.plans.lazy_frame import LazyDataFrame, dataset_of, named_plan
from puredelta.spark.session.jvm import java_class, scala_object, scala_seq

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


_CATALYST = "org.apache.spark.sql.catalyst"


class LazyColumn(ClassicColumn):
    """A Column that the JVM makes when it is first used; most columns of a table never are."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _jc(self) -> Any:
        return self._make()


class Catalyst:
    """The few Scala entry points that resolution needs, by name."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        jvm: Any = spark._jvm  # noqa: SLF001 - the edge itself
        self.jvm = jvm
        self.session: Any = spark._jsparkSession  # noqa: SLF001

    # frames and plans

    def analyzed(self, rows: DataFrame) -> Any:
        """Return the analyzed logical plan."""
        if isinstance(rows, LazyDataFrame):
            return rows.plan
        return rows._jdf.queryExecution().analyzed()  # noqa: SLF001

    def logical(self, rows: DataFrame) -> Any:
        """Return the plan that frames made of these rows have below them, the very object."""
        return rows._jdf.logicalPlan()  # noqa: SLF001

    def tag(self, name: str) -> Any:
        """Return the tag of a name; plans keep a value per tag."""
        return java_class(self.jvm, f"{_CATALYST}.trees.TreeNodeTag")(name)

    def rows(self, plan: Any) -> DataFrame:
        """Return a plan as a DataFrame of this session; Spark checks the plan."""
        return DataFrame(dataset_of(self.spark, plan), self.spark)

    def checked(self, plan: Any) -> T.StructType:
        """Return the schema of a plan that is analyzed, once Spark has checked it.

        Raises:
            pyspark.errors.AnalysisException: an expression stands where it must not, or has
                operands that it does not take.
        """
        self.session.sessionState().analyzer().checkAnalysis(plan)
        return T.StructType.fromJson(json.loads(plan.schema().json()))

    def relation(self, output: Any) -> Any:
        """Return an empty relation with these very attributes: ids, names, qualifiers.

        ``output`` is a Scala ``Seq``.
        """
        nothing, streaming = self.seq([]), False
        return self._operator("LocalRelation")(output, nothing, streaming, self._none)

    def cross_join(self, left: Any, right: Any) -> Any:
        """Return the plan of a cross join."""
        cross = scala_object(self.jvm, f"{_CATALYST}.plans.Cross")
        hint = self._operator("JoinHint").NONE()
        return self._operator("Join")(left, right, cross, self._none, hint)

    def project(self, expressions: Sequence[Any], plan: Any) -> Any:
        """Return the plan of a projection."""
        return self._operator("Project")(self.seq(expressions), plan)

    def named(self, name: str, plan: Any) -> Any:
        """Return the plan under a name."""
        return named_plan(self.spark, name, plan)

    def _operator(self, name: str) -> Any:
        return java_class(self.jvm, f"{_CATALYST}.plans.logical.{name}")

    # expressions

    def parsed(self, expression: str | Column) -> Any:
        """Return SQL text or a Column as an expression that is not yet resolved.

        Raises:
            pyspark.errors.ParseException: the text is no expression.
        """
        if isinstance(expression, str):
            return self.session.sessionState().sqlParser().parseExpression(expression)
        column: Any = expression
        return self.session.expression(column._jc)  # noqa: SLF001

    def column(self, expression: Any) -> Column:
        """Return a resolved expression as a Column: it is not resolved again."""
        return ClassicColumn(self._column_of(expression))

    def late_column(self, expression: Callable[[], Any]) -> Column:
        """Return the same for an expression that is fetched when the Column is first used."""
        return LazyColumn(lambda: self._column_of(expression()))

    @cached_property
    def _column_of(self) -> Any:
        return java_class(self.jvm, "org.apache.spark.sql.classic.ExpressionUtils").column

    def alias(self, expression: Any, name: str, *, like: Any = None) -> Any:
        """Return the expression under a name, with the id and qualifiers of ``like``."""
        if like is None:
            expr_id, qualifier = self._new_expr_id(), self.seq([])
        else:
            expr_id, qualifier = like.exprId(), like.qualifier()
        return self._new_alias(expression, name, expr_id, qualifier, self._none, self._no_keys)

    @cached_property
    def _new_alias(self) -> Any:
        return java_class(self.jvm, f"{_CATALYST}.expressions.Alias")

    @cached_property
    def _new_expr_id(self) -> Any:
        return java_class(self.jvm, f"{_CATALYST}.expressions.NamedExpression").newExprId

    @cached_property
    def _no_keys(self) -> Any:
        return self.seq([])

    def resolved(self, expressions: Sequence[Any], plan: Any) -> Any:
        """Return ``CollectMetrics(expressions)`` over the plan, analyzed but not checked.

        That operator is the one whose expressions the analyzer resolves and coerces but
        never moves: aggregates, windows and unresolved names stay where they are and can
        be reported one by one.

        Raises:
            pyspark.errors.AnalysisException: what the analyzer refuses on sight, such as an
                ambiguous name or an unknown function.
        """
        named = [self.alias(e, f"_{n}") for n, e in enumerate(expressions)]
        plan = self._operator("CollectMetrics")("puredelta", self.seq(named), plan, 0)
        return self.session.sessionState().analyzer().execute(plan)

    def trees(self, plan: Any) -> list[list[Any]]:
        """Return the expressions of a ``CollectMetrics``, each a list of JSON nodes.

        The plan below is left out: the attributes of wide rows would be most of the text.
        """
        alone = plan.withNewChildren(self.seq([self.relation(self.seq([]))]))
        found: list[list[Any]] = json.loads(alone.toJSON())[0]["metrics"]
        return found

    def folded(self, plan: Any) -> Any:
        """Return the plan with constants folded and needless casts gone."""
        for rule in _FOLDING:
            plan = self.after_rule(rule, plan)
        return plan

    def after_rule(self, name: str, plan: Any) -> Any:
        """Return what one rule of the optimizer makes of a plan."""
        return java_class(self.jvm, f"{_CATALYST}.optimizer.{name}").apply(plan)

    def unresolved_names(self, expression: Any) -> tuple[str, ...]:
        """Return the names in an expression that the analyzer could not resolve."""
        attributes = self._each(expression.references().iterator())
        return tuple(a.sql() for a in attributes if not a.resolved())

    @cached_property
    def _none(self) -> Any:
        return java_class(self.jvm, "scala.Option").empty()

    # collections

    def attribute_map(self, pairs: Any) -> Any:
        """Return an ``AttributeMap``, which finds attributes by id, however they are spelt.

        ``pairs`` is a Scala ``Seq``.
        """
        maps = scala_object(self.jvm, f"{_CATALYST}.expressions.AttributeMap")
        return maps.apply(pairs)

    def seq(self, items: Sequence[Any]) -> Any:
        """Return a Scala ``Seq``."""
        return scala_seq(self.jvm, items)

    def items(self, seq: Any) -> tuple[Any, ...]:
        """Return the elements of a Scala ``Seq``."""
        return tuple(seq.apply(n) for n in range(seq.size()))

    @staticmethod
    def _each(iterator: Any) -> Iterator[Any]:
        while iterator.hasNext():
            yield iterator.next()
