"""ALTER TABLE ... SET LOCATION: whether a table of the catalog may stand for another directory."""

from __future__ import annotations

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.column_mapping import without_mapping
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.spark.session.delta_conf import ALTER_LOCATION_BYPASS
from puredelta.spark.session.session import settings_of


def require_table_at(spark: SparkSession, now: TableLog, wanted: TableLog) -> None:
    """Require a Delta table at the new location, with the columns and partitions of the present.

    Where the present location has no table any more, because it was moved, any table will do.

    Raises:
        TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
        InvalidRequestError: it has other columns (DELTA_SET_LOCATION_SCHEMA_MISMATCH).
    """
    if not wanted.exists():
        raise TableNotFoundError(
            f"{wanted.root_uri} is not a Delta table, which the new location of one has to be. "
            "Copy or clone the table to it first.",
            code=ErrorCode.MISSING_DELTA_TABLE,
            table=wanted.root_uri,
        )
    if ALTER_LOCATION_BYPASS.flag(settings_of(spark)) or not now.exists():
        return
    old, new = now.snapshot().config, wanted.snapshot().config
    same = without_mapping(old.schema) == without_mapping(new.schema)
    if same and old.partition_columns == new.partition_columns:
        return
    raise InvalidRequestError(
        "The schema of the new Delta location is different than the current table schema.\n"
        f"original schema: {simple_string(old.schema)}, partitioned by {old.partition_columns}\n"
        f"destination schema: {simple_string(new.schema)}, partitioned by {new.partition_columns}\n"
        f"If this is intended, set {ALTER_LOCATION_BYPASS.key} to true.",
        code=ErrorCode.SET_LOCATION_SCHEMA_MISMATCH,
        original=simple_string(old.schema),
        destination=simple_string(new.schema),
    )
