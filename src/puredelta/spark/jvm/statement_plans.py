"""Statements on tables as Spark's own parser reads them: what they name and say, as plain values.

`parse_plan` needs a classic session. Nothing is analyzed here; the query inside a statement comes
out as the plan that Spark has parsed. A Connect client has a reader of its own for the same values
(`puredelta.statements.execute.stated`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.features.generated_columns import IdentitySpec
from puredelta.spark.jvm.gateway import (
    CATALYST,
    class_name,
    scala_object,
    scala_seq,
    seq_items,
    text_items,
    text_map,
    text_option,
)
from puredelta.spark.jvm.plans import Plan, parsed_plan

Query: TypeAlias = Plan | str
"""The query inside a statement: the plan that Spark has parsed, or over Connect its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedColumn:
    """A column of ``CREATE TABLE``."""

    name: str
    type: T.DataType
    """``char(n)`` and ``varchar(n)`` included."""
    nullable: bool
    comment: str | None
    default: str | None
    """The text after DEFAULT."""
    generated_as: str | IdentitySpec | None
    """The text after GENERATED ALWAYS AS, or what AS IDENTITY says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTable:
    """``[CREATE [OR]] [REPLACE] TABLE [IF NOT EXISTS] name ...``, with a query or without."""

    name: tuple[str, ...]
    provider: str | None
    creates: bool
    """Whether there may be no such table."""
    replaces: bool
    """Whether there may be one."""
    if_not_exists: bool
    columns: tuple[StatedColumn, ...]
    partition_by: tuple[str, ...]
    cluster_by: tuple[tuple[str, ...], ...] | None
    other_layout: str | None
    """A transform that is neither a plain column nor CLUSTER BY, as Spark describes it."""
    buckets: bool
    location: str | None
    comment: str | None
    properties: Mapping[str, str]
    options: Mapping[str, str]
    has_constraints: bool
    query: Query | None
    """The query after AS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto:
    """``INSERT INTO | OVERWRITE name [PARTITION (...)] [(columns)] [BY NAME] query``."""

    name: tuple[str, ...]
    query: Query
    by_name: bool
    columns: tuple[str, ...] = ()
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """``PARTITION (p = 'value')``: the values of columns as text, None for NULL."""
    open_partition: tuple[str, ...] = ()
    """``PARTITION (p)``: columns without a value."""
    overwrite: bool = False
    replace_where: str | None = None
    """The condition of ``REPLACE WHERE``."""
    if_not_exists: bool = False
    evolves: bool = False
    """``WITH SCHEMA EVOLUTION``."""
    options: Mapping[str, str] = field(default_factory=dict)
    """``WITH (name = value, ...)``."""
    beyond: str | None = None
    """A clause that is more than this, by its words."""


@dataclass(frozen=True, slots=True)
class SeveralInserts:
    """``FROM rows INSERT ... INSERT ...``, in their order."""

    inserts: tuple[InsertInto, ...]


_INSERTS = frozenset({"InsertIntoStatement", "OverwriteByExpression"})


def parse_plan(spark: SparkSession, text: str) -> StatedTable | InsertInto | SeveralInserts | None:
    """Return what a text says; None if it is another statement."""
    plan = parsed_plan(spark, text).java
    ctes = None
    if class_name(plan) == "UnresolvedWith":
        plan, ctes = plan.child(), plan
    match class_name(plan):
        case "CreateTable" | "ReplaceTable":
            return _table(plan, tuple(_columns(plan.columns())), None)
        case "CreateTableAsSelect" | "ReplaceTableAsSelect":
            return _table(plan, (), Plan(plan.query()))
        case kind if kind in _INSERTS:
            return _one_insert(plan, ctes)
        case "Union":
            return _several(plan, ctes)
        case _:
            return None


def _one_insert(plan: Any, ctes: Any) -> InsertInto | None:
    query = plan.query()
    if ctes is not None:  # they precede the statement, and belong to its query
        query = ctes.withNewChildren(scala_seq(query, [query]))
    if class_name(plan) == "InsertIntoStatement":
        return _insert(plan, Plan(query))
    return _replace_where(plan, Plan(query))  # before 4.3: INSERT INTO ... REPLACE WHERE


def _several(plan: Any, ctes: Any) -> SeveralInserts | None:
    children = list(seq_items(plan.children()))
    if any(class_name(child) not in _INSERTS for child in children):
        return None
    inserts = [_one_insert(child, ctes) for child in children]
    known = tuple(insert for insert in inserts if insert is not None)
    return SeveralInserts(known) if len(known) == len(inserts) else None


# --- CREATE and REPLACE ---------------------------------------------------------------------


def _table(plan: Any, columns: tuple[StatedColumn, ...], query: Plan | None) -> StatedTable | None:
    name = plan.name()
    if class_name(name) != "UnresolvedIdentifier":
        return None  # IDENTIFIER(...)
    said = plan.tableSpec()
    replaces = class_name(plan).startswith("Replace")
    layout = [_Layout.of(transform) for transform in seq_items(plan.partitioning())]
    return StatedTable(
        name=text_items(name.nameParts()),
        provider=text_option(said.provider()),
        creates=not replaces or bool(plan.orCreate()),
        replaces=replaces,
        if_not_exists=not replaces and bool(plan.ignoreIfExists()),
        columns=columns,
        partition_by=tuple(at.column for at in layout if at.column is not None),
        cluster_by=next((at.cluster_by for at in layout if at.cluster_by is not None), None),
        other_layout=next((at.words for at in layout if at.is_other), None),
        buckets=any(str(t.name()).endswith("bucket") for t in seq_items(plan.partitioning())),
        location=text_option(said.location()),
        comment=text_option(said.comment()),
        properties=text_map(said.properties()),
        options=_options(said),
        has_constraints="constraints" in _fields(said) and said.constraints().nonEmpty(),
        query=query,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """One part of PARTITIONED BY or CLUSTER BY."""

    words: str
    column: str | None = None
    cluster_by: tuple[tuple[str, ...], ...] | None = None

    @property
    def is_other(self) -> bool:
        return self.column is None and self.cluster_by is None

    @classmethod
    def of(cls, transform: Any) -> _Layout:
        words = str(transform.toString())  # CLUSTER BY has no description
        kind = str(transform.name())
        if kind == "identity":
            [reference] = transform.references()
            parts = tuple(map(str, reference.fieldNames()))
            return cls(words=words, column=parts[0] if len(parts) == 1 else None)
        if not kind.endswith("cluster_by"):  # delta-spark has a kind of its own
            return cls(words=words)
        references = seq_items(transform.columnNames())
        paths = tuple(tuple(map(str, reference.fieldNames())) for reference in references)
        return cls(words=words, cluster_by=paths)


def _columns(columns: Any) -> Iterator[StatedColumn]:
    for column in seq_items(columns):
        kind = json.loads(str(column.dataType().json()))
        default = column.defaultValue()
        yield StatedColumn(
            name=str(column.name()),
            type=T._parse_datatype_json_value(kind),
            nullable=bool(column.nullable()),
            comment=text_option(column.comment()),
            default=str(default.get().originalSQL()) if default.isDefined() else None,
            generated_as=_generated_as(column),
        )


def _generated_as(column: Any) -> str | IdentitySpec | None:
    if column.generationExpression().isDefined():
        expression = column.generationExpression().get()
        # Before 4.2 it is nothing but its text.
        return expression if isinstance(expression, str) else str(expression.originalSQL())
    if not column.identityColumnSpec().isDefined():
        return None
    said = column.identityColumnSpec().get()
    return IdentitySpec(
        start=int(said.getStart()),
        step=int(said.getStep()),
        allows_explicit_insert=bool(said.isAllowExplicitInsert()),
    )


def _options(said: Any) -> dict[str, str]:
    """Return the options after OPTIONS; values that are no literals are left out."""
    options = {}
    for pair in seq_items(said.optionExpression().options()):
        value = pair._2()
        if class_name(value) == "Literal":
            options[str(pair._1())] = str(value.toString())
    return options


# --- INSERT ---------------------------------------------------------------------------------


def _insert(plan: Any, query: Plan) -> InsertInto | None:
    table = plan.table()
    if class_name(table) != "UnresolvedRelation":
        return None
    where, beyond = None, None
    # 4.2 has REPLACE ON | USING and WITH SCHEMA EVOLUTION here, 4.3 REPLACE WHERE, too.
    fields = _fields(plan)
    if "replaceCriteriaOpt" in fields and plan.replaceCriteriaOpt().isDefined():
        criteria = plan.replaceCriteriaOpt().get()
        if class_name(criteria) == "InsertReplaceWhere":
            where = _condition_text(criteria.cond())
        else:
            beyond = "REPLACE ON or REPLACE USING"
    partition = {str(pair._1()): pair._2() for pair in seq_items(plan.partitionSpec().toSeq())}
    return InsertInto(
        name=text_items(table.multipartIdentifier()),
        columns=text_items(plan.userSpecifiedCols()),
        partition={
            name: None if value.get() is None else str(value.get())
            for name, value in partition.items()
            if value.isDefined()
        },
        open_partition=tuple(name for name, value in partition.items() if value.isEmpty()),
        by_name=bool(plan.byName()),
        overwrite=bool(plan.overwrite()) and where is None,
        replace_where=where,
        if_not_exists=bool(plan.ifPartitionNotExists()),
        evolves=_evolves(plan),
        options=_relation_options(table),
        beyond=beyond,
        query=query,
    )


def _replace_where(plan: Any, query: Plan) -> InsertInto | None:
    if class_name(plan.table()) != "UnresolvedRelation":
        return None
    return InsertInto(
        name=text_items(plan.table().multipartIdentifier()),
        by_name=bool(plan.isByName()),
        replace_where=_condition_text(plan.deleteExpr()),
        evolves=_evolves(plan),
        options=_relation_options(plan.table()),
        query=query,
    )


def _relation_options(relation: Any) -> dict[str, str]:
    options = relation.options().asCaseSensitiveMap()
    return {str(name): str(options.get(name)) for name in options}


def _evolves(plan: Any) -> bool:
    """Tell whether an INSERT has WITH SCHEMA EVOLUTION, which Spark knows since 4.2."""
    return "withSchemaEvolution" in _fields(plan) and bool(plan.withSchemaEvolution())


def _condition_text(condition: Any) -> str:
    """Return the text of a condition of REPLACE WHERE.

    Raises:
        InvalidRequestError: it has a subquery (UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY).
    """
    subqueries = scala_object(condition, f"{CATALYST}.expressions.SubqueryExpression")
    if subqueries.hasSubquery(condition):
        raise InvalidRequestError(Message.OVERWRITE_BY_SUBQUERY)
    return str(condition.sql())


def _fields(product: Any) -> set[str]:
    """Return the names of the fields that a Scala case class has in this version of Spark."""
    return set(text_items(product.productElementNames().toSeq()))
