"""Row ids for the rows that a table has before it tracks rows (section "Row Tracking").

The protocol is raised first, so that from then on every other writer gives ids to its files. Then
the files without ids are committed again, and the transaction gives them ids.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pyarrow.compute as pc

from puredelta.commands.alter.change import commit_change, next_change
from puredelta.commands.command import Command
from puredelta.commands.finish import finish
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.protocol.actions.action_json import action_object
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.table_operations import upgrade_protocol
from puredelta.protocol.features.protocol_changes import with_features
from puredelta.protocol.table.row_tracking import ROW_TRACKING
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.delta_conf import REFUSED_BY_ROW_TRACKING

FILES_PER_COMMIT_MAX = 100_000


def give_row_ids(command: Command) -> None:
    """Raise the protocol to row tracking and give every file row ids, in commits of their own.

    Raises:
        InvalidRequestError: a file says not how many rows it has
            (ROW_ID_ASSIGNMENT_WITHOUT_STATS), or giving out ids is suspended.
        ConflictError: another writer changed the table meanwhile.
    """
    snapshot = command.snapshot
    REFUSED_BY_ROW_TRACKING.require_defaults(command.session.settings)
    if snapshot.config.properties.row_tracking_suspended:
        raise InvalidRequestError(
            "Row tracking cannot be enabled while it is suspended. Set the table property "
            "delta.rowTrackingSuspended to false first.",
            code=ErrorCode.ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION,
        )
    if not snapshot.config.supports(ROW_TRACKING):
        protocol = with_features(snapshot.protocol, [ROW_TRACKING])
        commit_change(
            command,
            TableConfig.of(protocol, snapshot.metadata),
            operation=upgrade_protocol(action_object(protocol)[1]),
            writes_metadata=False,
        )
    batch = 0
    while _give_some(next_change(command), batch):
        batch += 1


def _give_some(command: Command, batch: int) -> bool:
    """Commit one batch; return whether there was one. Each makes the rest smaller."""
    snapshot = command.snapshot
    without = snapshot.files.select(pc.is_null(snapshot.files.rows["base_row_id"]))
    if not len(without):
        return False
    adds = [replace(add, data_change=False) for add in islice(without.adds(), FILES_PER_COMMIT_MAX)]
    command.transaction.read_files(None, without)
    operation = Operation(name="ROW TRACKING BACKFILL", parameters={"batchId": str(batch)})
    finish(command, CommitRequest(actions=adds, operation=operation, is_blind_append=False))
    return True
