"""Row ids for the rows a table has before it tracks them (section "Row Tracking").

The protocol is raised first, so that every other writer gives ids to its files from then on;
then the files without ids are committed again, and the transaction gives them ids.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from puredelta.commands.alter.change import TableChange, finish, start
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.commit.row_ids import ROW_TRACKING
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import action_object
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import upgrade_protocol
from puredelta.protocol.features.protocol_versions import with_features
from puredelta.protocol.table.table_config import TableConfig

FILES_PER_COMMIT_MAX = 100_000


def give_row_ids(spark: SparkSession, log: TableLog) -> None:
    """Raise the protocol to row tracking and give every file row ids, in commits of their own.

    Raises:
        InvalidRequestError: a file says not how many rows it has
            (ROW_ID_ASSIGNMENT_WITHOUT_STATS), or giving out ids is suspended.
        ConflictError: somebody else changed the table meanwhile.
    """
    snapshot, transaction = start(spark, log)
    if snapshot.config.properties.row_tracking_suspended:
        raise InvalidRequestError(
            "Row tracking cannot be enabled while it is suspended. Set the table property "
            "delta.rowTrackingSuspended to false first.",
            code=ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        )
    if not snapshot.config.supports(ROW_TRACKING):
        protocol = with_features(snapshot.protocol, [ROW_TRACKING])
        change = TableChange(
            config=TableConfig.of(protocol, snapshot.metadata),
            operation=upgrade_protocol(action_object(protocol)[1]),
            writes_metadata=False,
        )
        finish(transaction, snapshot, change)
    batch = 0
    while _give_some(spark, log, batch):
        batch += 1


def _give_some(spark: SparkSession, log: TableLog, batch: int) -> bool:
    """Commit one batch; tell whether there was one. Each makes the rest smaller."""
    snapshot, transaction = start(spark, log)
    without = snapshot.files.select(pc.is_null(snapshot.files.rows["base_row_id"]))
    if not len(without):
        return False
    adds = [replace(add, data_change=False) for add in islice(without.adds(), FILES_PER_COMMIT_MAX)]
    transaction.read_files(None, without)
    operation = Operation(name="ROW TRACKING BACKFILL", parameters={"batchId": str(batch)})
    transaction.commit(adds, operation, metrics={}, is_blind_append=False)
    return True
