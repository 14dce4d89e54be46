"""An overwrite of the rows of a condition on data columns: files are split, not dropped.

It is the MERGE that matches nothing: every new row is inserted, every old row of the
condition is deleted, in one commit that the history calls a WRITE.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from puredelta.commands.merge.clauses import (
    Assignment,
    Delete,
    Insert,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
)
from puredelta.commands.merge.resolve import resolve_merge
from puredelta.commands.row_changes.counts import FileCounts, PhaseTimes, RowCounts
from puredelta.commands.row_changes.run import Outcome, RowCommand, change_rows
from puredelta.commands.row_changes.settings import ExecutionSettings, persistent_vectors
from puredelta.log.commit.transaction import Transaction
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import Operation
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import quoted

_TARGET, _SOURCE = "__puredelta_old", "__puredelta_new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """New rows, and the condition of the old ones whose place they take."""

    rows: DataFrame
    where: str
    evolves: bool
    """Whether columns that only the new rows have are added to the table."""
    operation: Operation


def replace_rows(
    replacement: Replacement,
    *,
    log: TableLog,
    snapshot: Snapshot,
    transaction: Transaction,
    settings: ExecutionSettings,
) -> Outcome:
    """Delete the rows of the condition and insert the new ones, in one commit.

    Raises:
        InvalidRequestError: a row breaks a rule of the table.
        ConflictError: another writer changed what this write relies on.
    """
    started = time.monotonic()
    rows = replacement.rows
    spark = rows.sparkSession
    session = SessionInfo.of(spark)
    source_rows = rows.alias(_SOURCE)
    values = tuple(Assignment(quoted(name), f"{_SOURCE}.{quoted(name)}") for name in rows.columns)
    spec = MergeSpec(
        on=F.lit(False),  # noqa: FBT003 - that is the value
        clauses=(
            NotMatched(Insert(Star.STAR if replacement.evolves else values), None),
            NotMatchedBySource(Delete(), replacement.where),
        ),
        evolve_schema=replacement.evolves,
    )
    statement = resolve_merge(
        spec,
        target_rows=table_identity(spark, snapshot.config.schema).alias(_TARGET),
        source_rows=source_rows,
        config=snapshot.config,
        session=session,
    )
    return change_rows(
        statement,
        RowCommand(
            operation=replacement.operation,
            metrics=_metrics,
            deletion_vectors=persistent_vectors(session.settings, "delete"),
        ),
        spark=spark,
        log=log,
        snapshot=snapshot,
        transaction=transaction,
        settings=replace(settings, skips_empty_commits=True),
        started=started,
        source_rows=source_rows,
    )


def _metrics(rows: RowCounts, files: FileCounts, _: PhaseTimes) -> Mapping[str, int]:
    return {
        "numFiles": files.added,
        "numRemovedFiles": files.removed,
        "numRemovedBytes": files.removed_bytes,
        "numOutputRows": rows.inserted + rows.copied,
        "numOutputBytes": files.added_bytes,
        "numDeletedRows": rows.deleted,
        "numCopiedRows": rows.copied,
        "numAddedChangeFiles": files.change_files,
    }
