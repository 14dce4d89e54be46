"""``puredelta restore``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.session.start import spark_session
from puredelta.cli.session.tables import table_log
from puredelta.commands.read.read_table import resolve_timestamp
from puredelta.commands.restore.restore import differing_files, restore_table
from puredelta.errors import ErrorCode, InvalidRequestError


def run(
    context: Context, *, table: str, version: int | None, timestamp: str | None, apply: bool
) -> None:
    """Say what a RESTORE would change; change it only where that is asked for."""
    if (version is None) == (timestamp is None):
        raise InvalidRequestError(
            "Give either --version or --timestamp.", code=ErrorCode.ONE_OF_IN_TIME_TRAVEL
        )
    with spark_session(context, f"restore {table}") as spark:
        log = table_log(spark, table)
        out = context.output
        if apply:
            outcome = restore_table(spark, log, version=version, timestamp=timestamp)
            out.value({"restored": outcome is not None, **(outcome.metrics() if outcome else {})})
            return
        time_ms = None if timestamp is None else resolve_timestamp(spark, timestamp)
        latest = log.snapshot()
        target = log.snapshot(version=version, timestamp_ms=time_ms)
        restored, removed = differing_files(target.files, latest.files)
        out.value(
            {
                "dryRun": True,
                "fromVersion": latest.version,
                "toVersion": target.version,
                "numRestoredFiles": len(restored),
                "numRemovedFiles": len(removed),
                "numRowsNow": latest.files.num_records(),
                "numRowsThen": target.files.num_records(),
            }
        )
        out.text("Nothing is changed: add --apply.")
