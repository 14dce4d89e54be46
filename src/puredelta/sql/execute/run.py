"""``spark.sql`` for statements on Delta tables; what is not ours reaches Spark as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.replay.table_log import TableLog
from puredelta.spark.statements.sql_syntax import require_parsable
from puredelta.sql.execute.alter import run_alter
from puredelta.sql.execute.clone import run_copy
from puredelta.sql.execute.describe import run_describe
from puredelta.sql.execute.dispatch import convert, execute
from puredelta.sql.execute.maintenance import run_upkeep
from puredelta.sql.execute.show import run_show
from puredelta.sql.execute.tables import is_table_statement, run_table_statement
from puredelta.sql.execute.view_target import find_view
from puredelta.sql.execute.view_text import may_define_view, run_view
from puredelta.sql.parse.copy_text import may_copy
from puredelta.sql.parse.parse import Head, find_kind, parse_head, parse_rest
from puredelta.sql.parse.statement import ConvertStatement, StatementKind
from puredelta.sql.relations.names import find_location, resolve_name
from puredelta.sql.relations.parameters import Arguments, with_literals
from puredelta.sql.relations.table_argument import find_log
from puredelta.sql.relations.table_changes import may_query_changes
from puredelta.sql.relations.template import SqlTemplate, TemplateFields
from puredelta.sql.relations.time_travel import may_query_paths, with_views
from puredelta.sql.relations.views import RowNames, TemporaryViews
from puredelta.sql.text.cursor import Cursor
from puredelta.sql.text.syntax_error import SqlSyntaxError

Runner: TypeAlias = Callable[[SparkSession, str], DataFrame | None]
"""Executes a statement text if it is one of its own."""

_FIRST_WORD = re.compile(r"\s*([A-Za-z]\w*)")
_RUNNERS: Mapping[str, tuple[Runner, ...]] = {
    "ALTER": (run_alter,),
    "CACHE": (run_view,),
    "COMMENT": (run_alter,),
    "CREATE": (run_copy, run_view, run_table_statement),
    "DESC": (run_describe, run_show),
    "DESCRIBE": (run_describe, run_show),
    "DROP": (run_upkeep,),
    "FROM": (run_table_statement,),
    "GENERATE": (run_upkeep,),
    "INSERT": (run_table_statement,),
    "REPLACE": (run_copy, run_table_statement),
    "RESTORE": (run_upkeep,),
    "SHOW": (run_show,),
    "TRUNCATE": (run_upkeep,),
    "VACUUM": (run_upkeep,),
    "WITH": (run_table_statement,),
}
"""By the first word of a statement."""
_MAKE_TABLES = frozenset({"CACHE", "CREATE", "FROM", "INSERT", "REPLACE", "WITH"})
"""Words that many statements begin with that are none of ours."""


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
    result = run_ours(spark, text, args=args, fields=fields)
    return _by_spark(spark, text, args, fields or {}) if result is None else result


def run_ours(
    spark: SparkSession,
    text: str,
    *,
    args: Arguments | None = None,
    fields: Mapping[str, Any] | None = None,
) -> DataFrame | None:
    """Execute a statement if it is ours and return its result; None if it is Spark's.

    Ours are the statements on Delta tables that ``docs/sql.md`` lists, and queries that name
    one by its path or a version of one, or call ``table_changes``. Errors as `run_sql`.
    """
    kind = find_kind(text)
    if kind is not None:
        with TemporaryViews() as views:
            return _run(spark, kind, _filled(spark, text, args, fields, views), views)
    result = _table_statement(spark, text, args, fields)
    if result is None and (may_query_changes(text) or may_query_paths(text)):
        return _query(spark, text, args, fields)
    return result


def _by_spark(
    spark: SparkSession, text: str, args: Arguments | None, fields: Mapping[str, Any]
) -> DataFrame:
    if args is None:
        return spark.sql(text, **fields)
    return spark.sql(text, args=args, **fields)  # type: ignore[arg-type]


def _query(
    spark: SparkSession, text: str, args: Arguments | None, fields: Mapping[str, Any] | None
) -> DataFrame | None:
    """Let Spark execute a query with our tables as ``{name}`` fields of it; None without any.

    Not as views: over Connect Spark resolves the text only when it runs, when they are gone.
    """
    frames = TemplateFields()
    filled = _filled(spark, text, args, fields, frames)
    num_given = len(frames.rows)
    named = with_views(spark, filled, frames)
    if len(frames.rows) == num_given:
        return None
    return spark.sql(frames.template(named), **frames.rows)


def _table_statement(
    spark: SparkSession, text: str, args: Arguments | None, fields: Mapping[str, Any] | None
) -> DataFrame | None:
    word = _first_word(text)
    runners = _RUNNERS.get(word, ())
    if not runners or (word in _MAKE_TABLES and not _may_make_table(spark, text)):
        return None
    with TemporaryViews() as views:
        filled = _filled(spark, text, args, fields, views)
        results = (run(spark, filled) for run in runners)
        return next((result for result in results if result is not None), None)


def _may_make_table(spark: SparkSession, text: str) -> bool:
    return may_copy(text) or may_define_view(text) or is_table_statement(spark, text)


def _first_word(text: str) -> str:
    """Return the first word in upper case; nothing behind it is looked at, if that can be."""
    match = _FIRST_WORD.match(text)
    if match is not None:
        return match[1].upper()
    token = Cursor(text).peek()
    return "" if token is None else token.text.upper()


def _run(
    spark: SparkSession, kind: StatementKind, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute the statement; None if it is not ours."""
    head = _head(kind, text)
    if head is None:
        return None
    if kind is StatementKind.CONVERT:
        statement = parse_rest(head)
        return convert(spark, statement) if isinstance(statement, ConvertStatement) else None
    target = resolve_name(spark, head.table)
    view = find_view(spark, target)
    location = find_location(spark, target) if view is None else view.root_uri
    if kind is StatementKind.OPTIMIZE:  # which Spark's parser does not know
        location = find_log(spark, target).root_uri
    if location is None:
        return None
    if kind is not StatementKind.OPTIMIZE:
        require_parsable(spark, text)
    statement = parse_rest(head)
    if isinstance(statement, ConvertStatement):
        return None
    log = TableLog.open(location)
    return execute(spark, statement, target=target, log=log, view=view, views=views)


def _head(kind: StatementKind, text: str) -> Head | None:
    try:
        return parse_head(text)
    except SqlSyntaxError:
        if kind is StatementKind.CONVERT:
            raise
        return None  # Spark's own parser says it best


def _filled(
    spark: SparkSession,
    text: str,
    args: Arguments | None,
    fields: Mapping[str, Any] | None,
    views: RowNames,
) -> str:
    """Return the text with values in the place of fields and parameters."""
    if fields:
        text = SqlTemplate(views).format(text, **fields)
    return with_literals(spark, text, args) if args else text
