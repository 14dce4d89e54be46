"""SYNC IDENTITY: an identity column continues after the values that its rows have by now."""

from __future__ import annotations

import dataclasses

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.commands.alter.change import commit_change, start_change
from puredelta.commands.definition.columns import config_with_marks
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import ColumnChange, change_column
from puredelta.protocol.features.feature_usage import IDENTITY_HIGH_WATER_MARK
from puredelta.protocol.features.filled_columns import Identity, identities
from puredelta.protocol.schema.schema_edit import FieldPath, find_field
from puredelta.spark.scan.scan import scan_strictly
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.delta_conf import REFUSED_BY_SYNC_IDENTITY
from puredelta.spark.session.identifiers import quote_name


def sync_identity(spark: SparkSession, log: TableLog, path: FieldPath) -> int:
    """Let the values to be generated follow those that are there; return the version made.

    For a column that takes values from its user. The high water mark never goes back. Runs
    one Spark job, over this column.

    Raises:
        InvalidRequestError: there is no such column, or it is no identity column
            (IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN).
        ConflictError: another writer changed the table meanwhile, by adding rows, too.
    """
    command = start_change(spark, log)
    REFUSED_BY_SYNC_IDENTITY.require_defaults(command.session.settings)
    config = command.snapshot.config
    canonical, field = find_field(config.schema, path)
    identity = identities(config.schema).get(field.name) if len(canonical) == 1 else None
    if identity is None:
        raise InvalidRequestError(
            "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns: "
            f"{'.'.join(canonical)}.",
            code=ErrorCode.IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN,
            column=".".join(canonical),
        )
    command.transaction.read_files(None, command.snapshot.files)
    last = _last_value(spark, command.snapshot, identity)
    marks = {} if last is None else {identity.column: synced_mark(identity, last)}
    kept = {k: v for k, v in field.metadata.items() if k != IDENTITY_HIGH_WATER_MARK}
    recorded = dataclasses.replace(field, metadata=kept)
    return commit_change(
        command,
        config_with_marks(config, {k: v for k, v in marks.items() if v is not None}),
        operation=change_column(ColumnChange(path=canonical, field=recorded)),
    )


def synced_mark(identity: Identity, last: int) -> int | None:
    """Return the high water mark that covers the furthest value there is; None if none does.

    >>> column = Identity(column="id", start=10, step=5, allows_explicit_insert=True)
    >>> synced_mark(column, 12), synced_mark(column, 3)
    (15, None)
    """
    known = identity.high_water_mark
    if identity.further(last, identity.start) != last:
        return known  # all lie before the first value
    mark = identity.rounded(last)
    return mark if known is None else identity.further(known, mark)


def _last_value(spark: SparkSession, snapshot: Snapshot, identity: Identity) -> int | None:
    column = F.col(quote_name([identity.column]))
    furthest = F.max(column) if identity.step > 0 else F.min(column)
    with tagged_jobs(spark):
        rows = scan_strictly(spark, snapshot, columns=[identity.column])
        row = rows.agg(furthest.alias("last")).first()
    return None if row is None or row["last"] is None else int(row["last"])
