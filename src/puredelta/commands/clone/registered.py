"""CLONE under a name of the session catalog. Classic sessions only."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.commands.clone.clone_table import CloneRequest, clone_table, require_absolute
from puredelta.commands.create.create_table import CreateMode
from puredelta.commands.create.managed_entry import managed_entry
from puredelta.commands.create.registered import require_replaceable
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.spark.catalog.catalog_entries import (
    EntryName,
    follow_columns,
    is_taken,
    register_written,
    require_possible,
)
from puredelta.spark.session.open_log import open_log
from puredelta.spark.session.types import to_spark


def clone_registered(
    spark: SparkSession,
    source: Snapshot,
    name: EntryName,
    request: CloneRequest,
    *,
    mode: CreateMode,
    location: str | None = None,
) -> bool:
    """Clone into a table of the catalog; return False where it exists and may stay as it is.

    Without a location the catalog owns the directory.

    Raises:
        InvalidRequestError: the name is taken (TABLE_NAME_ALREADY_EXISTS), also by no
            Delta table (NOT_A_DELTA_TABLE), or what `clone_table` refuses.
        TableNotFoundError: there is no table to replace (CANNOT_REPLACE_MISSING_TABLE), or no
            such database.
        CatalogError: the clone at the location is made, and the catalog refuses its entry.
    """
    if location is not None:
        require_absolute(location)
    if is_taken(spark, name):
        if mode is CreateMode.CREATE:
            raise InvalidRequestError(
                f"Table {name} already exists.",
                code=ErrorCode.TABLE_NAME_ALREADY_EXISTS,
                name=str(name),
            )
        if mode is not CreateMode.CREATE_IF_NOT_EXISTS:
            known = require_replaceable(spark, name)
            clone_table(spark, source, open_log(spark, known.location), request)
            follow_columns(spark, name, to_spark(source.config.schema))
        return mode is not CreateMode.CREATE_IF_NOT_EXISTS
    if mode is CreateMode.REPLACE:
        raise nothing_to_replace(str(name))
    require_possible(spark, name)
    schema = to_spark(source.config.schema)
    if location is not None:
        log = open_log(spark, location)
        clone_table(spark, source, log, request)
        register_written(spark, name, schema, location=log.root_uri)
        return True
    with managed_entry(spark, name, schema) as log:
        clone_table(spark, source, log, request)
    return True


def nothing_to_replace(name: str) -> TableNotFoundError:
    """Return the error for REPLACE TABLE where no table is."""
    return TableNotFoundError(
        f"Table {name} cannot be replaced as it does not exist. Use CREATE OR REPLACE TABLE to "
        "create the table.",
        code=ErrorCode.CANNOT_REPLACE_MISSING_TABLE,
        table=name,
    )
