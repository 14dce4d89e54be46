"""``spark.sql`` for Delta tables: dispatch of statements and scripts.

Spark interprets a script (`puredelta.spark.jvm.stored_text`). Its statements that change or create
tables are executed here, one by one; queries and conditions see the newest version of each table
that they name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.optimize import prepare_optimize
from puredelta.commands.read_table import history_rows
from puredelta.protocol.schema.sql_lexer import mentions
from puredelta.spark.catalog.relation_cache import cached_relations
from puredelta.spark.jvm.stored_text import Script
from puredelta.spark.session.catalogs import find_identifier
from puredelta.spark.session.names import FORMAT
from puredelta.spark.session.pyspark_errors import like_pyspark
from puredelta.spark.session.session import no_rows
from puredelta.statements.execute.alter import alter, describe_detail, show
from puredelta.statements.execute.explained import explain, refusal
from puredelta.statements.execute.maintenance import (
    convert,
    drop_path,
    generate_manifest,
    reorganized,
    restore,
    truncate,
    vacuum_table,
)
from puredelta.statements.execute.namespaces import execute_in_catalog, run_view_in_catalog
from puredelta.statements.execute.row_changes import change_rows
from puredelta.statements.execute.session_texts import texts_of
from puredelta.statements.execute.tables import clone, concerns_delta, create_like, create_or_insert
from puredelta.statements.names.named_columns import needed_columns
from puredelta.statements.names.names import (
    find_location,
    is_known,
    may_name_catalog,
    open_table,
    resolve_name,
)
from puredelta.statements.names.parameters import Arguments, with_computed_names, with_values
from puredelta.statements.names.query_tables import (
    is_query,
    may_need_names,
    may_query_tables,
    with_views,
)
from puredelta.statements.names.stored_views import names_stored_view, with_stored_views
from puredelta.statements.names.views import TemplateFields, TemporaryViews
from puredelta.statements.parse.cursor import Cursor
from puredelta.statements.parse.parse import parse
from puredelta.statements.parse.statement import (
    AlterStatement,
    CatalogStatement,
    CloneStatement,
    ConvertStatement,
    DeleteStatement,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropNamedStatement,
    DropPathStatement,
    ExplainStatement,
    GenerateStatement,
    Immediate,
    LikeStatement,
    MergeStatement,
    OptimizeStatement,
    ReadStatement,
    Rejected,
    ReorgStatement,
    RestoreStatement,
    RowStatement,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    SparkParsedStatement,
    TruncateStatement,
    UpdateStatement,
    VacuumStatement,
    ViewStatement,
    read_immediate,
)
from puredelta.statements.parse.table_name import TableName


@like_pyspark
def execute(  # noqa: C901, PLR0911, PLR0912 - one case for each statement
    spark: SparkSession, statement: ReadStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement and return its result; None if it concerns no Delta table.

    ``text`` is the source of `statement`, for the parts that only Spark's parser can read.

    Raises:
        pyspark.errors.ParseException: the text is wrong; the message has the position.
        TableNotFoundError: there is no Delta table.
        DeltaError: an error of the command.
    """
    match statement:
        case MergeStatement() | UpdateStatement() | DeleteStatement():
            return change_rows(spark, statement, text=text, views=views)
        case ExplainStatement():
            return explain(spark, statement, views)
        case ConvertStatement():
            return convert(spark, statement)
        case OptimizeStatement():
            return prepare_optimize(
                spark, open_table(spark, statement.table, "OPTIMIZE"), statement.spec
            ).execute()
        case ReorgStatement():
            return reorganized(spark, statement)
        case VacuumStatement():
            return vacuum_table(spark, statement, views=views)
        case RestoreStatement():
            return restore(spark, statement)
        case GenerateStatement():
            return generate_manifest(spark, statement)
        case DescribeHistory():
            log = open_table(spark, statement.table, "DESCRIBE HISTORY")
            return history_rows(spark, log, limit=statement.limit)
        case DescribeDetail():
            return describe_detail(spark, statement)
        case CloneStatement():
            return clone(spark, statement)
        case LikeStatement():
            return create_like(spark, statement, text=text)
        case AlterStatement():
            return alter(spark, statement, text=text)
        case TruncateStatement():
            return truncate(spark, statement)
        case DropPathStatement():
            return drop_path(spark, statement)
        case ShowProperties() | ShowColumns() | ShowPartitions() | ShowCreate() | DescribeTable():
            return show(spark, statement)
        case ViewStatement():
            if run_view_in_catalog(spark, statement, text=text):
                return no_rows(spark)
            return texts_of(spark).create_view(statement, text)
        case SparkParsedStatement():
            return create_or_insert(spark, statement, text=text, views=views)
        case Rejected():
            if not _concerns_delta(spark, statement):
                return None
            raise refusal(spark, statement, text)
        case _:
            return execute_in_catalog(spark, statement)


def _concerns_delta(spark: SparkSession, statement: Rejected) -> bool:
    """Tell whether Spark cannot judge the text: it names a Delta table, or is Delta's statement."""
    if statement.table is None:
        return not statement.known_to_spark
    return find_location(spark, resolve_name(spark, statement.table)) is not None


def is_script(text: str) -> bool:
    """Tell whether a text is a script: ``[label:] BEGIN ...``, with more text after it.

    >>> is_script("BEGIN SELECT 1; END"), is_script("SELECT 'begin'")
    (True, False)
    """
    if not mentions(text, "begin"):
        return False
    cursor = Cursor(text)
    if cursor.sees(":", ahead=1):
        cursor.skip(2)
    return cursor.sees("BEGIN") and cursor.peek(1) is not None


def _find_script(spark: SparkSession, text: str) -> Script | None:
    """Return a script with statements on Delta tables, or with tables of the catalog."""
    if not is_script(text):
        return None
    is_ours, makes_delta = partial(_is_ours, spark), partial(_makes_delta, spark)
    return texts_of(spark).find_script(text, is_ours, makes_delta)


def _makes_delta(spark: SparkSession, text: str) -> bool:
    """Return whether a definition makes a Delta table, of which a server would make the entry."""
    match parse(text):
        case SparkParsedStatement() as statement:
            return concerns_delta(spark, statement, text)
        case LikeStatement() as like:
            if like.provider is not None:
                return like.provider.lower() == FORMAT
            return find_location(spark, resolve_name(spark, like.source)) is not None
        case statement:
            return isinstance(statement, CloneStatement)


def _is_ours(spark: SparkSession, text: str) -> bool:
    """Tell whether a statement may write a Delta table, or has a computed text.

    An INSERT into a missing table counts, since an earlier statement may create a Delta table.
    """
    match parse(text):
        case None:
            return read_immediate(text) is not None
        case ShowColumns() | ShowCreate() | ShowPartitions() | ShowProperties() | DescribeTable():
            return False  # Spark answers; rows returned here would be lost
        case ViewStatement():
            return may_need_names(text)
        case DropNamedStatement(table=named):
            return find_identifier(spark, named.parts) is not None
        case statement if isinstance(statement, CatalogStatement):
            return False
        case SparkParsedStatement() as statement if not statement.defines:
            into = statement.targets[0].name
            is_new = isinstance(into, TableName) and not is_known(spark, into)
            return is_new or concerns_delta(spark, statement, text)
        case SparkParsedStatement() as statement:
            return concerns_delta(spark, statement, text)
        case _:
            return True


def run_script(spark: SparkSession, script: Script, run: Callable[[str], object]) -> DataFrame:
    """Run a script and return the rows of its last query; ``run`` executes one statement."""
    names = script.relation_names()
    with ExitStack() as pinned:
        pinned.enter_context(cached_relations(spark, names))

        def execute(text: str) -> None:
            run(text)
            pinned.enter_context(cached_relations(spark, names))  # the newest versions now

        return script.run(partial(_is_ours, spark), execute)


def run_sql(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Execute statement text and return its result, as ``spark.sql`` does.

    Statements of `run_ours` are executed here. Every other text is passed to ``spark.sql``
    unchanged, with its arguments.

    Args:
        spark: the session.
        text: one statement.
        args: values of ``:name`` or ``?`` parameters.
        fields: values of ``{name}`` fields, DataFrames above all, as ``spark.sql`` takes
            them as keyword arguments.

    Examples:
        >>> run_sql(
        ...     spark,
        ...     '''MERGE INTO delta.`/data/events` AS t USING {updates} AS s ON t.id = s.id
        ...        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *''',
        ...     fields={"updates": updates},
        ... )  # doctest: +SKIP
    """
    text, args = with_plain_names(spark, text, args)
    result = run_ours(spark, text, args=args, fields=fields)
    if result is not None:
        return result
    given: dict[str, Any] = {} if args is None else {"args": args}
    return spark.sql(text, **given, **(fields or {}))


def with_plain_names(
    spark: SparkSession, text: str, args: Arguments | None
) -> tuple[str, Arguments | None]:
    """Return a text whose ``IDENTIFIER(...)`` are names, and its remaining arguments."""
    return with_computed_names(spark, text, args) if mentions(text, "identifier") else (text, args)


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
    if not (args or fields) and (script := _find_script(spark, text)) is not None:
        return run_script(spark, script, lambda statement: run_sql(spark, statement))
    immediate = None if args or fields else read_immediate(text)
    if immediate is not None:
        return _run_immediate(spark, immediate)
    statement = parse(text)  # fields and parameters have no values yet
    result = None
    if statement is not None and _may_be_ours(spark, statement, text):
        with TemporaryViews() as views:
            filled = text
            if args or fields:
                filled = with_values(spark, text, args=args, fields=fields, names=views)
            if isinstance(statement, RowStatement | SparkParsedStatement):
                filled = with_stored_views(spark, filled, views, targets=_targets(statement))
            statement = statement if filled == text else parse(filled)
            if statement is not None:
                result = execute(spark, statement, text=filled, views=views)
    if result is None and not (args or fields):
        result = texts_of(spark).metadata_query(text)
    if result is None and (may_query_tables(text) or _queries_catalog(spark, text)):
        return run_query(spark, text, args=args, fields=fields)
    return result


def _queries_catalog(spark: SparkSession, text: str) -> bool:
    return may_name_catalog(spark, text) and is_query(text)


def _targets(statement: RowStatement | SparkParsedStatement) -> list[tuple[str, ...]]:
    """Return the names of the tables that a statement changes, except computed names."""
    targets = [statement.target] if isinstance(statement, RowStatement) else statement.targets
    return [at.name.parts for at in targets if isinstance(at.name, TableName)]


def _run_immediate(spark: SparkSession, statement: Immediate) -> DataFrame | None:
    """Compute the text of a statement and its values, and execute it; None if Spark must refuse it.

    Otherwise Spark would execute the statement itself.
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
    """Tell early whether a frequent statement of Spark may concern a Delta table."""
    match statement:
        case SparkParsedStatement():
            return concerns_delta(spark, statement, text)
        case ViewStatement():
            return (
                may_need_names(text)
                or may_name_catalog(spark, text)
                or names_stored_view(spark, text)
            )
        case _:
            return True


def run_query(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame | None:
    """Let Spark execute a query with Delta tables as its ``{name}`` fields; None without any.

    Views of the catalog that Spark cannot resolve become fields, too. Temporary views would not do:
    over Connect Spark resolves the text only when it runs, after they are dropped.
    """
    frames = TemplateFields()
    filled = with_values(spark, text, args=args, fields=fields, names=frames)
    num_given = len(frames.rows)
    text = with_stored_views(spark, filled, frames)
    named = with_views(spark, text, frames, columns=needed_columns(spark, text))
    if len(frames.rows) == num_given:
        is_same = named == text or frames.rows or args
        return None if is_same else spark.sql(named)
    return texts_of(spark).rows(named, frames)
