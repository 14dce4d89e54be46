"""Statements on tables as Spark's own parser reads them: what they name and say, as plain values.

Classic sessions only. Nothing is analyzed here; the query inside a statement comes out as
rows, which Spark analyzes then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.catalog.relation_cache import pinned, plan_relations
from puredelta.spark.plans.catalyst import Catalyst


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedIdentity:
    """``GENERATED ... AS IDENTITY (START WITH start INCREMENT BY step)``."""

    start: int
    step: int
    allows_explicit_insert: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedColumn:
    """A column of ``CREATE TABLE``."""

    name: str
    type: T.DataType
    """``char(n)`` and ``varchar(n)`` included."""
    nullable: bool
    comment: str | None
    default: str | None
    """The text behind DEFAULT."""
    generated_as: str | None
    """The text behind GENERATED ALWAYS AS."""
    identity: StatedIdentity | None


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
    query: Any
    """The plan behind AS, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto:
    """``INSERT INTO | OVERWRITE name [PARTITION (...)] [(columns)] [BY NAME] query``."""

    name: tuple[str, ...]
    columns: tuple[str, ...]
    partition: Mapping[str, str | None]
    """``PARTITION (p = 'value')``: the values of columns as text, None for NULL."""
    open_partition: tuple[str, ...]
    """``PARTITION (p)``: columns without a value."""
    by_name: bool
    overwrite: bool
    replace_where: str | None
    """The condition of ``REPLACE WHERE``."""
    if_not_exists: bool
    evolves: bool
    """``WITH SCHEMA EVOLUTION``."""
    beyond: str | None
    """A clause that is more than this, by its words."""
    query: Any


@dataclass(frozen=True, slots=True)
class SeveralInserts:
    """``FROM rows INSERT ... INSERT ...``, in their order."""

    inserts: tuple[InsertInto, ...]


_INSERTS = frozenset({"InsertIntoStatement", "OverwriteByExpression"})


def parse_plan(spark: SparkSession, text: str) -> StatedTable | InsertInto | SeveralInserts | None:
    """Return what a text says; None if it is another statement.

    Raises:
        pyspark.errors.ParseException: Spark's parser refuses the text.
    """
    plan: Any = Catalyst(spark).session.sessionState().sqlParser().parsePlan(text)
    ctes = None
    if _kind(plan) == "UnresolvedWith":
        plan, ctes = plan.child(), plan
    match _kind(plan):
        case "CreateTable" | "ReplaceTable":
            return _table(plan, tuple(_columns(plan.columns())), None)
        case "CreateTableAsSelect" | "ReplaceTableAsSelect":
            return _table(plan, (), plan.query())
        case kind if kind in _INSERTS:
            return _one_insert(spark, plan, ctes)
        case "Union":
            return _several(spark, plan, ctes)
        case _:
            return None


def _one_insert(spark: SparkSession, plan: Any, ctes: Any) -> InsertInto | None:
    query = _with_ctes(spark, ctes, plan.query())
    if _kind(plan) == "InsertIntoStatement":
        return _insert(plan, query)
    return _replace_where(plan, query)  # before 4.3: INSERT INTO ... REPLACE WHERE


def _several(spark: SparkSession, plan: Any, ctes: Any) -> SeveralInserts | None:
    children = list(_items(plan.children()))
    if any(_kind(child) not in _INSERTS for child in children):
        return None
    inserts = [_one_insert(spark, child, ctes) for child in children]
    known = tuple(insert for insert in inserts if insert is not None)
    return SeveralInserts(known) if len(known) == len(inserts) else None


def query_rows(spark: SparkSession, query: Any) -> DataFrame:
    """Return the rows of the query inside a statement; Spark analyzes it now.

    It may name Delta tables of the catalog.
    """
    with pinned(spark, plan_relations(query)):
        return Catalyst(spark).rows(query)


def _with_ctes(spark: SparkSession, ctes: Any, query: Any) -> Any:
    """Return the query with the common table expressions that stand before its statement."""
    return query if ctes is None else ctes.withNewChildren(Catalyst(spark).seq([query]))


# --- CREATE and REPLACE ---------------------------------------------------------------------


def _table(plan: Any, columns: tuple[StatedColumn, ...], query: Any) -> StatedTable | None:
    name = plan.name()
    if _kind(name) != "UnresolvedIdentifier":
        return None  # IDENTIFIER(...)
    said = plan.tableSpec()
    replaces = _kind(plan).startswith("Replace")
    layout = [_Layout.of(transform) for transform in _items(plan.partitioning())]
    return StatedTable(
        name=_strings(name.nameParts()),
        provider=_option(said.provider()),
        creates=not replaces or bool(plan.orCreate()),
        replaces=replaces,
        if_not_exists=not replaces and bool(plan.ignoreIfExists()),
        columns=columns,
        partition_by=tuple(at.column for at in layout if at.column is not None),
        cluster_by=next((at.cluster_by for at in layout if at.cluster_by is not None), None),
        other_layout=next((at.words for at in layout if at.is_other), None),
        buckets=any(str(t.name()).endswith("bucket") for t in _items(plan.partitioning())),
        location=_option(said.location()),
        comment=_option(said.comment()),
        properties=_mapping(said.properties()),
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
        references = _items(transform.columnNames())
        paths = tuple(tuple(map(str, reference.fieldNames())) for reference in references)
        return cls(words=words, cluster_by=paths)


def _columns(columns: Any) -> Iterator[StatedColumn]:
    for column in _items(columns):
        kind = json.loads(str(column.dataType().json()))
        default, generated = column.defaultValue(), column.generationExpression()
        yield StatedColumn(
            name=str(column.name()),
            type=T._parse_datatype_json_value(kind),  # noqa: SLF001 - the one JSON reader there is
            nullable=bool(column.nullable()),
            comment=_option(column.comment()),
            default=str(default.get().originalSQL()) if default.isDefined() else None,
            generated_as=_sql(generated.get()) if generated.isDefined() else None,
            identity=_identity(column.identityColumnSpec()),
        )


def _sql(expression: Any) -> str:
    """Return the text of a generation expression; before 4.2 it is nothing else."""
    return expression if isinstance(expression, str) else str(expression.originalSQL())


def _identity(spec: Any) -> StatedIdentity | None:
    if not spec.isDefined():
        return None
    said = spec.get()
    return StatedIdentity(
        start=int(said.getStart()),
        step=int(said.getStep()),
        allows_explicit_insert=bool(said.isAllowExplicitInsert()),
    )


def _options(said: Any) -> dict[str, str]:
    """Return what stands behind OPTIONS; values that are no literals are left out."""
    options = {}
    for pair in _items(said.optionExpression().options()):
        value = pair._2()  # noqa: SLF001 - Scala's name
        if _kind(value) == "Literal":
            options[str(pair._1())] = str(value.toString())  # noqa: SLF001 - Scala's name
    return options


# --- INSERT ---------------------------------------------------------------------------------


def _insert(plan: Any, query: Any) -> InsertInto | None:
    table = plan.table()
    if _kind(table) != "UnresolvedRelation":
        return None
    where, beyond = None, None
    # 4.2 has REPLACE ON | USING and WITH SCHEMA EVOLUTION here, 4.3 REPLACE WHERE, too.
    fields = _fields(plan)
    if "replaceCriteriaOpt" in fields and plan.replaceCriteriaOpt().isDefined():
        criteria = plan.replaceCriteriaOpt().get()
        if _kind(criteria) == "InsertReplaceWhere":
            where = str(criteria.cond().sql())
        else:
            beyond = "REPLACE ON or REPLACE USING"
    evolves = "withSchemaEvolution" in fields and bool(plan.withSchemaEvolution())
    partition = {
        str(pair._1()): pair._2()  # noqa: SLF001 - Scala's name
        for pair in _items(plan.partitionSpec().toSeq())
    }
    return InsertInto(
        name=_strings(table.multipartIdentifier()),
        columns=_strings(plan.userSpecifiedCols()),
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
        evolves=evolves,
        beyond=beyond,
        query=query,
    )


def _replace_where(plan: Any, query: Any) -> InsertInto | None:
    if _kind(plan.table()) != "UnresolvedRelation":
        return None
    return InsertInto(
        name=_strings(plan.table().multipartIdentifier()),
        columns=(),
        partition={},
        open_partition=(),
        by_name=bool(plan.isByName()),
        overwrite=False,
        replace_where=str(plan.deleteExpr().sql()),
        if_not_exists=False,
        evolves=False,
        beyond=None,
        query=query,
    )


# --- Scala's values -------------------------------------------------------------------------


def _kind(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _fields(product: Any) -> set[str]:
    return {str(field) for field in _items(product.productElementNames().toSeq())}


def _items(seq: Any) -> Iterator[Any]:
    for n in range(seq.size()):
        yield seq.apply(n)


def _strings(seq: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(seq))


def _option(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None


def _mapping(mapping: Any) -> dict[str, str]:
    pairs = mapping.toSeq()
    return {str(pair._1()): str(pair._2()) for pair in _items(pairs)}  # noqa: SLF001 - Scala's name
