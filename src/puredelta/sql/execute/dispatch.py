"""One statement handed to what executes it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_never

from puredelta.commands.optimize.optimize import run_optimize
from puredelta.commands.optimize.reorg import run_reorg
from puredelta.commands.read.history import history_rows
from puredelta.sql.execute.alter import alter
from puredelta.sql.execute.clone import clone, create_like
from puredelta.sql.execute.explained import explain, refusal
from puredelta.sql.execute.maintenance import (
    convert,
    drop_path,
    generate_manifest,
    restore,
    truncate,
    vacuum_table,
)
from puredelta.sql.execute.row_changes import change_rows
from puredelta.sql.execute.show import describe_detail, show
from puredelta.sql.execute.tables import create_or_insert
from puredelta.sql.execute.views import create_view
from puredelta.sql.parse.alter_statement import AlterStatement
from puredelta.sql.parse.explain_statement import ExplainStatement, ReadStatement
from puredelta.sql.parse.statement import (
    CloneStatement,
    ConvertStatement,
    DeleteStatement,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropPathStatement,
    GenerateStatement,
    LikeStatement,
    MergeStatement,
    OptimizeStatement,
    Rejected,
    ReorgStatement,
    RestoreStatement,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    SparkParsedStatement,
    TruncateStatement,
    UpdateStatement,
    VacuumStatement,
    ViewStatement,
)
from puredelta.sql.relations.names import find_location, open_table, resolve_name
from puredelta.sql.relations.views import TemporaryViews


def execute(  # noqa: C901, PLR0911, PLR0912 - one case for each statement
    spark: SparkSession, statement: ReadStatement, *, text: str, views: TemporaryViews
) -> DataFrame | None:
    """Execute a statement and return its result; None if it concerns no Delta table.

    ``text`` is what `statement` was read from, for what only Spark's parser can read.

    Raises:
        pyspark.errors.ParseException: the text is wrong; says where.
        TableNotFoundError: there is no Delta table.
        DeltaError: what the commands raise.
    """
    match statement:
        case MergeStatement() | UpdateStatement() | DeleteStatement():
            return change_rows(spark, statement, text=text, views=views)
        case ExplainStatement():
            return explain(spark, statement, views)
        case ConvertStatement():
            return convert(spark, statement)
        case OptimizeStatement():
            return run_optimize(spark, open_table(spark, statement.table), statement.spec)
        case ReorgStatement():
            return run_reorg(spark, open_table(spark, statement.table), statement.predicates)
        case VacuumStatement():
            return vacuum_table(spark, statement, views=views)
        case RestoreStatement():
            return restore(spark, statement)
        case GenerateStatement():
            return generate_manifest(spark, statement)
        case DescribeHistory():
            log = open_table(spark, statement.table)
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
            return create_view(spark, statement, text=text)
        case SparkParsedStatement():
            return create_or_insert(spark, statement, text=text, views=views)
        case Rejected():
            if not _concerns_delta(spark, statement):
                return None
            raise refusal(spark, statement, text)
        case _:
            assert_never(statement)


def _concerns_delta(spark: SparkSession, statement: Rejected) -> bool:
    """Tell whether Spark cannot know what is wrong: a Delta table, or a statement of Delta's."""
    if statement.table is None:
        return not statement.known_to_spark
    return find_location(spark, resolve_name(spark, statement.table)) is not None
