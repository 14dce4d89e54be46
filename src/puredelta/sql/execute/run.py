"""``spark.sql`` for statements on Delta tables; every other text reaches Spark unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.sql.execute.dispatch import execute
from puredelta.sql.execute.script import find_script, run_script
from puredelta.sql.execute.tables import concerns_delta
from puredelta.sql.parse.explain_statement import ReadStatement
from puredelta.sql.parse.immediate import Immediate, read_immediate
from puredelta.sql.parse.parse import parse
from puredelta.sql.parse.statement import RowStatement, SparkParsedStatement, ViewStatement
from puredelta.sql.relations.computed_names import with_computed_names
from puredelta.sql.relations.metadata_query import run_metadata_query
from puredelta.sql.relations.named_columns import needed_columns
from puredelta.sql.relations.parameters import Arguments, with_values
from puredelta.sql.relations.query_tables import may_need_names, may_query_tables, with_views
from puredelta.sql.relations.stored_views import names_stored_view, with_stored_views
from puredelta.sql.relations.views import TemplateFields, TemporaryViews
from puredelta.sql.text.table_name import TableName


def run_sql(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Execute statement text and return its result, as ``spark.sql`` does.

    Ours are the statements of `run_ours`. Every other text goes to ``spark.sql`` untouched,
    with its arguments.

    Args:
        spark: the session.
        text: one statement.
        args: values of ``:name`` or ``?`` parameters.
        fields: values of ``{name}`` fields, DataFrames above all, as ``spark.sql`` takes
            them as keyword arguments.

    Raises:
        pyspark.errors.ParseException: the text is wrong; says where.
        puredelta.errors.DeltaError: what the command itself raises.

    Examples:
        >>> run_sql(
        ...     spark,
        ...     '''MERGE INTO delta.`/data/events` AS t USING {updates} AS s ON t.id = s.id
        ...        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *''',
        ...     fields={"updates": updates},
        ... )  # doctest: +SKIP
    """
    text, args = with_computed_names(spark, text, args)
    result = run_ours(spark, text, args=args, fields=fields)
    if result is not None:
        return result
    given: dict[str, Any] = {} if args is None else {"args": args}
    return spark.sql(text, **given, **(fields or {}))


def run_ours(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame | None:
    """Execute a statement on Delta tables and return its result; None for every other text.

    These are the statements on Delta tables that ``docs/sql.md`` lists, EXECUTE IMMEDIATE, scripts,
    and queries that name one by its path or a version of one, or call ``table_changes``. Errors as
    `run_sql`.
    """
    if not (args or fields) and (script := find_script(spark, text)) is not None:
        return run_script(spark, script, lambda statement: run_sql(spark, statement))
    immediate = None if args or fields else read_immediate(text)
    if immediate is not None:
        return _run_immediate(spark, immediate)
    statement = parse(text)  # fields and parameters have no values yet
    result = None
    if statement is not None and _may_be_ours(spark, statement, text):
        with TemporaryViews() as views:
            filled = with_values(spark, text, args=args, fields=fields, names=views)
            if isinstance(statement, RowStatement | SparkParsedStatement):
                filled = with_stored_views(spark, filled, views, targets=_targets(statement))
            statement = statement if filled == text else parse(filled)
            if statement is not None:
                result = execute(spark, statement, text=filled, views=views)
    if result is None and not (args or fields):
        result = run_metadata_query(spark, text)
    if result is None and may_query_tables(text):
        return run_query(spark, text, args=args, fields=fields)
    return result


def _targets(statement: RowStatement | SparkParsedStatement) -> list[tuple[str, ...]]:
    """Return the names of the tables that a statement changes, as far as they are not computed."""
    targets = [statement.target] if isinstance(statement, RowStatement) else statement.targets
    return [at.name.parts for at in targets if isinstance(at.name, TableName)]


def _run_immediate(spark: SparkSession, statement: Immediate) -> DataFrame | None:
    """Compute the text of a statement and its values, and execute it; None if Spark is to say no.

    Spark would execute it without us.
    """
    columns = [f"string({statement.text})", *(f"({value})" for value in statement.values)]
    [row] = spark.sql("SELECT " + ", ".join(columns)).collect()
    text, *values = row
    if text is None or read_immediate(text) is not None:
        return None
    given: Arguments = (
        dict(zip(statement.names, values, strict=True)) if statement.names else values
    )
    return run_sql(spark, text, args=given or None)


def _may_be_ours(spark: SparkSession, statement: ReadStatement, text: str) -> bool:
    """Tell early of statements that Spark has many of, so that Spark gets them as they are."""
    match statement:
        case SparkParsedStatement():
            return concerns_delta(spark, statement, text)
        case ViewStatement():
            return may_need_names(text) or names_stored_view(spark, text)
        case _:
            return True


def run_query(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame | None:
    """Let Spark execute a query with our tables as ``{name}`` fields of it; None without any.

    So do the views of the catalog that show what Spark does not know. Not as views of ours: over
    Connect Spark resolves the text only when it runs, when they are gone.
    """
    frames = TemplateFields()
    filled = with_values(spark, text, args=args, fields=fields, names=frames)
    num_given = len(frames.rows)
    text = with_stored_views(spark, filled, frames)
    named = with_views(spark, text, frames, columns=needed_columns(spark, text))
    if len(frames.rows) == num_given:
        return None
    return spark.sql(frames.template(named), **frames.rows)
