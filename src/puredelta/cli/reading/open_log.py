"""The log of a table as commands without Spark open it."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.log.replay.table_log import TableLog
from puredelta.store.registry import NO_SESSION


def open_log(context: Context, table: str) -> TableLog:
    """Open the log of a table at a path or URI.

    Raises:
        UnsupportedError, InvalidRequestError: see `puredelta.store.registry.Storage.open`.
    """
    return TableLog.open(table, storage=NO_SESSION.with_options(context.storage_options))
