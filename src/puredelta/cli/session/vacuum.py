"""``puredelta vacuum``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.session.start import spark_session
from puredelta.cli.session.tables import table_log
from puredelta.commands.vacuum.vacuum import vacuum
from puredelta.quantities import counted, size_text

_SHOWN_MAX = 1_000


def run(context: Context, *, table: str, retain: float | None, delete: bool) -> None:
    """List what is not needed; delete it only where that is asked for."""
    with spark_session(context, f"vacuum {table}") as spark:
        log = table_log(spark, table)
        outcome = vacuum(spark, log, retention_hours=retain, dry_run=not delete)
        out = context.output
        value = {
            "dryRun": not delete,
            "numPaths": len(outcome.paths),
            "numDeleted": outcome.num_deleted,
            "sizeInBytes": outcome.size_bytes,
            "paths": outcome.paths[:_SHOWN_MAX],
        }
        if out.as_json:
            out.value(value)
            return
        for path in outcome.paths[:_SHOWN_MAX]:
            out.text(path)
        what = f"{counted(len(outcome.paths), 'path')}, {size_text(outcome.size_bytes)}"
        out.text(
            f"{what}: {outcome.num_deleted:,} deleted."
            if delete
            else f"{what} would be deleted. Nothing is: add --delete."
        )
