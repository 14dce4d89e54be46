"""Logical plans of Spark: opaque outside of this room, like expressions.

Nothing here knows what a command is: plans go in, plans come out. Classic sessions only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from puredelta.spark.jvm.expressions import Attributes, Expression, aliased, seq_texts
from puredelta.spark.jvm.gateway import (
    CATALYST,
    class_name,
    full_class_name,
    java_class,
    java_constant,
    java_map,
    parser_of,
    require_unicode,
    scala_map,
    scala_none,
    scala_object,
    scala_seq,
    seq_items,
    text_items,
    text_option,
)


class Plan:
    """A logical plan in the JVM. What never changes is asked for once."""

    def __init__(self, java: Any) -> None:
        self.java = java

    @property
    def kind(self) -> str:
        """The name of its class, such as ``Project``."""
        return class_name(self.java)

    @property
    def alias(self) -> str:
        """The name that a ``SubqueryAlias`` gives."""
        return str(self.java.alias())

    @cached_property
    def class_name(self) -> str:
        """The full name of its class."""
        return full_class_name(self.java)

    def statement_text(self) -> str:
        """Return the SQL text that a parsed plan comes from, "" if it comes from none."""
        return text_option(self.java.origin().sqlText()) or ""

    def text(self) -> str:
        """Return what the plan prints."""
        return str(self.java.toString())

    def child(self) -> Plan:
        """Return the one plan below."""
        return Plan(self.java.child())

    def children(self) -> tuple[Plan, ...]:
        """Return the plans below."""
        return tuple(map(Plan, seq_items(self.java.children())))

    def subqueries(self) -> tuple[Plan, ...]:
        """Return the plans inside of its expressions."""
        return tuple(map(Plan, seq_items(self.java.subqueries())))

    def every_subquery(self) -> tuple[Plan, ...]:
        """Return the plans inside of its expressions and of those below, and inside of these."""
        return tuple(map(Plan, seq_items(self.java.subqueriesAll())))

    @cached_property
    def leaves(self) -> tuple[Plan, ...]:
        """The plans with nothing below, without those of subqueries."""
        return tuple(map(Plan, seq_items(self.java.collectLeaves())))

    def condition(self) -> Expression:
        """Return the condition of a ``Filter``."""
        return Expression(self.java.condition())

    def output(self, length: int | None = None) -> Attributes:
        """Return its columns; ``length`` is how many there are, if that is known."""
        return Attributes(self.java.output(), length)

    def output_texts(self) -> list[str]:
        """Return what each of its columns prints."""
        return seq_texts(self.java.output())

    def projections(self) -> Projections:
        """Return the expressions of a ``Project``."""
        return Projections(self.java.projectList())

    def is_deterministic(self) -> bool:
        """Return whether it gives the same rows each time it is run."""
        return bool(self.java.deterministic())

    def is_same(self, other: Plan) -> bool:
        """Return whether both are equal, expression ids included."""
        return bool(self.java.fastEquals(other.java))

    def new_instance(self) -> Plan:
        """Return the same relation with other expression ids."""
        return Plan(self.java.newInstance())

    def with_children(self, *children: Plan) -> Plan:
        """Return the same operator over other plans."""
        return Plan(self.java.withNewChildren(scala_seq(self.java, [c.java for c in children])))

    def moved(self, moves: AttributeMoves) -> Plan:
        """Return the operator with other attributes in its expressions."""
        return Plan(self.java.rewriteAttrs(moves.java))

    def with_replaced(self, parts: Sequence[tuple[Plan, Plan]]) -> Plan:
        """Return the plan with parts of it replaced by others, subqueries included."""
        # A Scala Map is a PartialFunction.
        replace = java_map(self.java, [(part.java, new.java) for part, new in parts])
        return Plan(self.java.transformDownWithSubqueries(scala_map(self.java, replace)))

    # tags: a text per name, which Spark carries along and never compares

    def find_tag(self, name: str) -> str | None:
        """Return the text that was put on the plan under a name."""
        value = self.java.getTagValue(_tag(self.java, name))
        return str(value.get()) if value.isDefined() else None

    def set_tag(self, name: str, text: str) -> None:
        """Put a text on the plan under a name."""
        self.java.setTagValue(_tag(self.java, name), text)


def _tag(jvm: Any, name: str) -> Any:
    return java_class(jvm, f"{CATALYST}.trees.TreeNodeTag")(name)


class Projections:
    """The expressions of a ``Project``; each is fetched when it is asked for."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def texts(self) -> list[str]:
        """Return what each of them prints: one call."""
        return seq_texts(self._java)

    def __len__(self) -> int:
        return int(self._java.size())

    def __getitem__(self, place: int) -> Expression:
        return Expression(self._java.apply(place))

    def __iter__(self) -> Iterator[Expression]:
        return (self[place] for place in range(len(self)))


class AttributeMoves:
    """Which attribute takes the place of which: found by expression id, however it is spelt."""

    __slots__ = ("java",)

    def __init__(self, known: Sequence[Attributes], new: Sequence[Attributes]) -> None:
        """The attributes of a relation give way to those of another, place by place."""
        first, *others = (k.java.zip(n.java) for k, n in zip(known, new, strict=True))
        pairs = reduce(lambda all_pairs, more: all_pairs.concat(more), others, first)
        maps = scala_object(pairs, f"{CATALYST}.expressions.AttributeMap")
        self.java = maps.apply(pairs)


def empty_relation(attributes: Attributes) -> Plan:
    """Return a relation of no rows with these very attributes: ids, names, qualifiers."""
    java = attributes.java
    nothing, streaming = scala_seq(java, []), False
    relation = _operator(java, "LocalRelation")
    return Plan(relation(java, nothing, streaming, scala_none(java)))


def cross_join(left: Plan, right: Plan) -> Plan:
    """Return the plan of a cross join."""
    cross = scala_object(left.java, f"{CATALYST}.plans.Cross")
    hint = java_constant(left.java, f"{CATALYST}.plans.logical.JoinHint", "NONE")
    join = _operator(left.java, "Join")
    return Plan(join(left.java, right.java, cross, scala_none(left.java), hint))


def projected(expressions: Sequence[Expression], plan: Plan) -> Plan:
    """Return the plan of a projection."""
    java = [expression.java for expression in expressions]
    return Plan(_operator(plan.java, "Project")(scala_seq(plan.java, java), plan.java))


def with_last_column_hidden(plan: Plan) -> Plan:
    """Return the plan without its last column, which a query may still name.

    Spark resolves it as it does ``_metadata`` of files, and hides columns of natural joins so.
    """
    java = plan.java
    project = _operator(java, "Project")(java.output().init(), java)
    tag = java_constant(java, f"{CATALYST}.plans.logical.Project", "hiddenOutputTag")
    project.setTagValue(tag, scala_seq(java, [java.output().last()]))
    return Plan(project)


def named_plan(name: str, plan: Plan, *, qualifier: Sequence[str] = ()) -> Plan:
    """Return the plan under a name, which may have parts before it (``catalog.db.name``)."""
    java = plan.java
    if not qualifier:
        aliases = scala_object(java, f"{CATALYST}.plans.logical.SubqueryAlias")
        return Plan(aliases.apply(name, java))
    identifier = java_class(java, f"{CATALYST}.AliasIdentifier")
    parts = identifier(name, scala_seq(java, qualifier))
    return Plan(_operator(java, "SubqueryAlias")(parts, java))


def collected_metrics(expressions: Sequence[Expression], plan: Plan) -> Plan:
    """Return ``CollectMetrics(expressions)`` over a plan, see `puredelta.spark.jvm.analyzer`."""
    named = [aliased(e, f"_{n}").java for n, e in enumerate(expressions)]
    metrics = _operator(plan.java, "CollectMetrics")
    return Plan(metrics("puredelta", scala_seq(plan.java, named), plan.java, 0))


def _operator(jvm: Any, name: str) -> Any:
    return java_class(jvm, f"{CATALYST}.plans.logical.{name}")


RelationName: TypeAlias = tuple[str, ...]
"""The parts of a name of a table or view."""


def parsed_plan(spark: SparkSession, text: str) -> Plan:
    """Return the plan of a statement."""
    require_unicode(text)
    return Plan(parser_of(spark).parsePlan(text))


def relation_names(plan: Plan, text: str | None = None) -> tuple[RelationName, ...]:
    """Return every table name in a parsed plan that is not analyzed; ``text`` is what was parsed.

    Where no name of the text is quoted, one call into the JVM prints the plan, instead of several
    for each of its nodes.
    """
    if text is not None and not _QUOTES.intersection(text):
        printed = str(plan.java.treeString())
        found = _PRINTED_NAME.findall(printed)
        if len(found) == printed.count(_RELATION) and _OTHERWISE.search(printed) is None:
            return tuple(dict.fromkeys(tuple(name.split(", ")) for name in found))
    return tuple(dict.fromkeys(_relation_names(plan.java)))


_QUOTES = frozenset('`"')
_RELATION = "UnresolvedRelation"
_PRINTED_NAME = re.compile(rf"{_RELATION} \[(\w+(?:, \w+)*)\], \[")
_OTHERWISE = re.compile(r"ExplainCommand|DescribeQueryCommand|RelationTimeTravel|InsertInto")
"""Parts that print no query below them, or a name that is no table of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPart:
    """A name of a table or view in a parsed plan, with the alias that follows it."""

    part: Plan
    name: RelationName
    alias: str | None


def named_parts(plan: Plan) -> Iterator[NamedPart]:
    """Yield every table name of a parsed plan, but for those of table expressions before it."""
    for node in (plan, *plan.subqueries()):
        if node is not plan:
            yield from named_parts(node)
        elif node.kind == "UnresolvedRelation":
            yield NamedPart(part=node, name=text_items(node.java.multipartIdentifier()), alias=None)
        elif node.kind == "SubqueryAlias" and node.child().kind == "UnresolvedRelation":
            name = text_items(node.child().java.multipartIdentifier())
            yield NamedPart(part=node, name=name, alias=node.alias)
        else:
            for child in node.children():
                yield from named_parts(child)


def with_table_expressions(plan: Plan) -> Plan:
    """Return a parsed plan in which the names of ``WITH`` stand for their queries."""
    rule = scala_object(plan.java, f"{CATALYST}.analysis.CTESubstitution")
    return Plan(rule.apply(plan.java))


def _relation_names(node: Any) -> Iterator[RelationName]:
    kind = class_name(node)
    if kind == "UnresolvedRelation":  # nothing is below it
        yield text_items(node.multipartIdentifier())
        return
    if kind == "ExplainCommand":
        yield from _relation_names(node.logicalPlan())
    if kind == "DescribeQueryCommand":
        yield from _relation_names(node.plan())
    for inner in (node.children(), node.innerChildren(), node.subqueries()):
        for plan in seq_items(inner):
            yield from _relation_names(plan)
