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

from puredelta.spark.catalyst import Catalyst
from puredelta.spark.pinned_tables import pinned, plan_relations


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
    is_computed: bool
    """GENERATED in any way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """``CREATE TABLE [IF NOT EXISTS] name ...``, with a query or without."""

    name: tuple[str, ...]
    provider: str | None
    if_not_exists: bool
    columns: tuple[StatedColumn, ...]
    partition_by: tuple[str, ...]
    other_layout: str | None
    """A transform that is no plain column, as Spark describes it."""
    location: str | None
    comment: str | None
    properties: Mapping[str, str]
    query: Any
    """The plan behind AS, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto:
    """``INSERT INTO | OVERWRITE name [(columns)] [BY NAME] query``."""

    name: tuple[str, ...]
    columns: tuple[str, ...]
    by_name: bool
    overwrite: bool
    beyond: str | None
    """A clause that is more than this, by its words."""
    query: Any


def parse_plan(spark: SparkSession, text: str) -> CreateTable | InsertInto | None:
    """Return what a text says; None if it is another statement.

    Raises:
        pyspark.errors.ParseException: Spark's parser refuses the text.
    """
    plan: Any = Catalyst(spark).session.sessionState().sqlParser().parsePlan(text)
    match plan.getClass().getSimpleName():
        case "CreateTable":
            return _create(plan, tuple(_columns(plan.columns())), None)
        case "CreateTableAsSelect":
            return _create(plan, (), plan.query())
        case "InsertIntoStatement":
            return _insert(plan)
        case _:
            return None


def query_rows(spark: SparkSession, query: Any) -> DataFrame:
    """Return the rows of the query inside a statement; Spark analyzes it now.

    It may name Delta tables of the catalog.
    """
    with pinned(spark, plan_relations(query)):
        return Catalyst(spark).rows(query)


def _create(plan: Any, columns: tuple[StatedColumn, ...], query: Any) -> CreateTable | None:
    name = plan.name()
    if name.getClass().getSimpleName() != "UnresolvedIdentifier":
        return None  # IDENTIFIER(...)
    said = plan.tableSpec()
    layout = [_transform(t) for t in _items(plan.partitioning())]
    return CreateTable(
        name=_strings(name.nameParts()),
        provider=_option(said.provider()),
        if_not_exists=bool(plan.ignoreIfExists()),
        columns=columns,
        partition_by=tuple(column for column, _ in layout if column is not None),
        other_layout=next((words for column, words in layout if column is None), None),
        location=_option(said.location()),
        comment=_option(said.comment()),
        properties=_mapping(said.properties()),
        query=query,
    )


def _insert(plan: Any) -> InsertInto | None:
    table = plan.table()
    if table.getClass().getSimpleName() != "UnresolvedRelation":
        return None
    beyond = "PARTITION" if plan.partitionSpec().nonEmpty() else None
    if plan.ifPartitionNotExists():
        beyond = "IF NOT EXISTS"
    # 4.3 knows REPLACE WHERE | ON | USING and WITH SCHEMA EVOLUTION, earlier versions do not.
    fields = {str(field) for field in _items(plan.productElementNames().toSeq())}
    if "replaceCriteriaOpt" in fields and plan.replaceCriteriaOpt().isDefined():
        beyond = "REPLACE"
    if "withSchemaEvolution" in fields and plan.withSchemaEvolution():
        beyond = "WITH SCHEMA EVOLUTION"
    return InsertInto(
        name=_strings(table.multipartIdentifier()),
        columns=_strings(plan.userSpecifiedCols()),
        by_name=bool(plan.byName()),
        overwrite=bool(plan.overwrite()),
        beyond=beyond,
        query=plan.query(),
    )


def _columns(columns: Any) -> Iterator[StatedColumn]:
    for column in _items(columns):
        kind = json.loads(str(column.dataType().json()))
        default = column.defaultValue()
        computed = column.generationExpression().isDefined() or (
            column.identityColumnSpec().isDefined()
        )
        yield StatedColumn(
            name=str(column.name()),
            type=T._parse_datatype_json_value(kind),  # noqa: SLF001 - the one JSON reader there is
            nullable=bool(column.nullable()),
            comment=_option(column.comment()),
            default=str(default.get().originalSQL()) if default.isDefined() else None,
            is_computed=bool(computed),
        )


def _transform(transform: Any) -> tuple[str | None, str]:
    """Return the column of an identity transform, None for another, and its description."""
    words = str(transform.describe())
    if str(transform.name()) != "identity":
        return None, words
    (reference,) = transform.references()
    parts = list(reference.fieldNames())
    return (parts[0] if len(parts) == 1 else None), words


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
