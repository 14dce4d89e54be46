"""Execution of CONVERT, VACUUM, REORG, RESTORE, GENERATE, TRUNCATE and DROP."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, SparkSession

from puredelta.catalogs.catalog import TableIdentifier
from puredelta.commands.alter.properties import upgrade_uniform
from puredelta.commands.convert.convert_to_delta import prepare_convert
from puredelta.commands.convert.preview import preview_convert
from puredelta.commands.generate import generate
from puredelta.commands.reorg import run_reorg
from puredelta.commands.restore import prepare_restore
from puredelta.commands.truncate import truncate_table
from puredelta.commands.vacuum import EVERYTHING, Inventory, Removed, VacuumScope, vacuum
from puredelta.errors import Message, UnsupportedError
from puredelta.spark.catalog.unity_entries import register_converted
from puredelta.spark.session.catalogs import describe_table, find_identifier
from puredelta.spark.session.names import FORMAT, quote_name
from puredelta.spark.session.session import no_rows, text_rows
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.names import (
    find_location,
    not_found,
    open_table,
    require_table,
    resolve_name,
)
from puredelta.statements.names.query_tables import with_views
from puredelta.statements.names.views import TemporaryViews
from puredelta.statements.parse.statement import (
    ConvertStatement,
    DropPathStatement,
    GenerateStatement,
    ReorgStatement,
    RestoreStatement,
    TruncateStatement,
    VacuumStatement,
)

logger = logging.getLogger(__name__)


def convert(spark: SparkSession, statement: ConvertStatement) -> DataFrame:
    """Execute CONVERT TO DELTA; return no rows, or those of a dry run."""
    identifier = find_identifier(spark, statement.source.parts)
    if identifier is not None:
        return _convert_in_catalog(spark, statement, identifier)
    return _convert(spark, statement, quote_name(statement.source.parts))


def _convert_in_catalog(
    spark: SparkSession, statement: ConvertStatement, identifier: TableIdentifier
) -> DataFrame:
    """Convert the files of an external Parquet table, and make its entry again.

    Raises:
        UnsupportedError: the catalog owns the files, or they are no Parquet files.
    """
    table = describe_table(spark, identifier)
    if table.format == FORMAT:
        return no_rows(spark)
    if table.format != "parquet" or table.kind != "EXTERNAL" or table.location is None:
        raise UnsupportedError(
            Message.OPERATION_NOT_ALLOWED_CONVERT_IN_CATALOG,
            table=str(identifier),
            kind=table.kind.lower(),
            format=table.format,
        )
    rows = _convert(spark, statement, quote_name(("parquet", table.location)))
    if not statement.dry_run:
        register_converted(spark, identifier, open_log(spark, table.location))
    return rows


def _convert(spark: SparkSession, statement: ConvertStatement, source: str) -> DataFrame:
    partitions, stats = statement.partition_schema, statement.collect_stats
    if statement.dry_run:
        preview = preview_convert(spark, source, partitions, collect_stats=stats)
        return text_rows(spark, preview.lines(), "subject", "detail")
    verify = statement.verify
    prepare_convert(spark, source, partitions, collect_stats=stats, verify=verify).execute()
    return no_rows(spark)


def vacuum_table(
    spark: SparkSession, statement: VacuumStatement, *, views: TemporaryViews
) -> DataFrame:
    """Execute VACUUM; return the table's path, or the paths that a dry run would delete."""
    outcome = vacuum(
        spark,
        open_table(spark, statement.table, "VACUUM"),
        retention_hours=statement.retention_hours,
        dry_run=statement.dry_run,
        scope=vacuum_scope(spark, statement, views),
    )
    paths = outcome.uris if statement.dry_run else (outcome.root_uri,)
    return text_rows(spark, [(path,) for path in paths], "path")


def vacuum_scope(
    spark: SparkSession, statement: VacuumStatement, views: TemporaryViews
) -> VacuumScope | None:
    """Return the scope of a VACUUM statement; None without a clause for it."""
    if statement.inventory is not None:
        return Inventory(spark.sql(with_views(spark, statement.inventory, views)))
    if statement.lite is None:
        return None
    return Removed() if statement.lite else EVERYTHING


def restore(spark: SparkSession, statement: RestoreStatement) -> DataFrame:
    """Execute RESTORE; return counts, or nothing where the table is in that state already."""
    version = statement.state.version
    prepared = prepare_restore(
        spark,
        open_table(spark, statement.table, "RESTORE"),
        version=None if version is None else int(version),
        timestamp=statement.state.timestamp,
    )
    outcome = prepared.execute()
    return no_rows(spark) if outcome is None else outcome.row(spark)


def generate_manifest(spark: SparkSession, statement: GenerateStatement) -> DataFrame:
    """Execute GENERATE."""
    log = open_table(spark, statement.table, "GENERATE")
    generate(log.store, log.snapshot(), statement.mode)
    return no_rows(spark)


def truncate(spark: SparkSession, statement: TruncateStatement) -> DataFrame | None:
    """Execute TRUNCATE TABLE; None if the table is no Delta table."""
    name = resolve_name(spark, statement.table)
    location = find_location(spark, name)
    if location is None:
        return None
    truncate_table(spark, require_table(spark, location, name))
    return no_rows(spark)


def drop_path(spark: SparkSession, statement: DropPathStatement) -> DataFrame:
    """Drop nothing, as delta-spark: a table without a name in the catalog has no entry."""
    if open_log(spark, statement.path).exists():
        logger.warning(
            "DROP TABLE %s drops nothing: delete the directory of the table.", statement.table
        )
    elif not statement.if_exists:
        raise not_found(statement.table)
    return no_rows(spark)


def reorganized(spark: SparkSession, statement: ReorgStatement) -> DataFrame:
    """Execute REORG TABLE; return the row of an OPTIMIZE."""
    log = open_table(spark, statement.table, "REORG")
    if statement.iceberg_compat is None:
        return run_reorg(spark, log, statement.predicates)
    return upgrade_uniform(spark, log, statement.iceberg_compat)
