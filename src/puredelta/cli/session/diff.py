"""``puredelta diff --rows``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.session.sql import print_rows
from puredelta.cli.session.start import spark_session
from puredelta.cli.session.tables import table_log
from puredelta.commands.read.diff import diff_rows
from puredelta.inspection.table.commits import require_before


def run(
    context: Context,
    *,
    table: str,
    older: int,
    newer: int | None,
    keys: str | None,
    limit: int,
) -> None:
    """Print at most ``limit`` rows that two versions do not share; see `puredelta.diff`.

    Only files that the versions do not share are read.
    """
    columns = [name.strip() for name in (keys or "").split(",") if name.strip()]
    with spark_session(context, f"diff {table}") as spark:
        log = table_log(spark, table)
        after = log.snapshot(version=newer).version
        require_before(older, after)
        differing = diff_rows(spark, log, older, after, keys=columns or None)
        print_rows(context, differing, limit=limit)
