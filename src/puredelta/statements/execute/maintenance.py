"""Execution of CONVERT, VACUUM, RESTORE, GENERATE, TRUNCATE and DROP."""

from __future__ import annotations

import logging
import re

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.convert.convert_to_delta import prepare_convert
from puredelta.commands.convert.preview import preview_convert
from puredelta.commands.generate import generate
from puredelta.commands.restore import prepare_restore
from puredelta.commands.truncate import truncate_table
from puredelta.commands.vacuum import EVERYTHING, Inventory, Removed, VacuumScope, vacuum
from puredelta.spark.session.catalogs import (
    drop_catalog_table,
    find_identifier,
    session_catalog,
)
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import no_rows
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
    DropNamedStatement,
    DropPathStatement,
    GenerateStatement,
    RestoreStatement,
    ShowSchemas,
    ShowTables,
    TruncateStatement,
    VacuumStatement,
)

logger = logging.getLogger(__name__)

_PATHS = "path STRING"
_PREVIEW = "subject STRING, detail STRING"


def convert(spark: SparkSession, statement: ConvertStatement) -> DataFrame:
    """Execute CONVERT TO DELTA; return no rows, or those of a dry run."""
    source = quote_name(statement.source.parts)
    partitions, stats = statement.partition_schema, statement.collect_stats
    if statement.dry_run:
        preview = preview_convert(spark, source, partitions, collect_stats=stats)
        return spark.createDataFrame(list(preview.lines()), _PREVIEW)
    verify = statement.verify
    prepare_convert(spark, source, partitions, collect_stats=stats, verify=verify).execute()
    return no_rows(spark)


def vacuum_table(
    spark: SparkSession, statement: VacuumStatement, *, views: TemporaryViews
) -> DataFrame:
    """Execute VACUUM; return the table's path, or the paths that a dry run would delete."""
    outcome = vacuum(
        spark,
        open_table(spark, statement.table),
        retention_hours=statement.retention_hours,
        dry_run=statement.dry_run,
        scope=vacuum_scope(spark, statement, views),
    )
    paths = outcome.uris if statement.dry_run else (outcome.root_uri,)
    return spark.createDataFrame([(path,) for path in paths], _PATHS)


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
        open_table(spark, statement.table),
        version=None if version is None else int(version),
        timestamp=statement.state.timestamp,
    )
    outcome = prepared.execute()
    return no_rows(spark) if outcome is None else outcome.row(spark)


def generate_manifest(spark: SparkSession, statement: GenerateStatement) -> DataFrame:
    """Execute GENERATE."""
    log = open_table(spark, statement.table)
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


def drop(
    spark: SparkSession, statement: DropPathStatement | DropNamedStatement
) -> DataFrame | None:
    """Execute DROP TABLE of a path or of a name with a catalog; None for a name of Spark's."""
    if isinstance(statement, DropNamedStatement):
        return _drop_named(spark, statement)
    return _drop_path(spark, statement)


def _drop_path(spark: SparkSession, statement: DropPathStatement) -> DataFrame:
    """Drop nothing, as delta-spark: a table without a name in the catalog has no entry."""
    if open_log(spark, statement.path).exists():
        logger.warning(
            "DROP TABLE %s drops nothing: delete the directory of the table.", statement.table
        )
    elif not statement.if_exists:
        raise not_found(statement.table)
    return no_rows(spark)


def _drop_named(spark: SparkSession, statement: DropNamedStatement) -> DataFrame | None:
    """Drop a table of a catalog of this library; None for any other catalog.

    The catalog removes the files of a managed table; those of an external one stay.

    Raises:
        TableNotFoundError: there is no table of the name, and IF EXISTS is not said.
    """
    identifier = find_identifier(spark, statement.table.parts)
    if identifier is None:
        return None
    drop_catalog_table(spark, identifier, if_exists=statement.if_exists)
    return no_rows(spark)


def show_catalog(spark: SparkSession, statement: ShowTables | ShowSchemas) -> DataFrame | None:
    """List a catalog of this library; None for any other catalog.

    Raises:
        TableNotFoundError: there is no such schema.
    """
    found = session_catalog(spark, statement.catalog)
    if found is None:
        return None
    if isinstance(statement, ShowSchemas):
        names = [(name,) for name in found.catalog.schemas() if _is_like(name, statement.pattern)]
        return spark.createDataFrame(names, "namespace STRING")
    tables = (row.name.table for row in found.catalog.tables(statement.schema))
    rows = [(statement.schema, t, False) for t in tables if _is_like(t, statement.pattern)]
    return spark.createDataFrame(rows, "namespace STRING, tableName STRING, isTemporary BOOLEAN")


def _is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern of SHOW: ``*`` is any text, ``|`` separates."""
    parts = (re.escape(part).replace(r"\*", ".*") for part in pattern.split("|"))
    return any(re.fullmatch(part.strip(), name, re.IGNORECASE) for part in parts)
