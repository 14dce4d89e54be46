"""``puredelta convert``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.session.names import format_name
from puredelta.cli.session.sql import print_rows
from puredelta.cli.session.start import spark_session

_LINES_MAX = 1_000


def run(
    context: Context, *, source: str, partitions: str | None, dry_run: bool, statistics: bool
) -> None:
    """Convert, or say what a conversion would do."""
    with spark_session(context, f"convert {source}") as spark:
        text = f"CONVERT TO DELTA {format_name(source, 'parquet')}"
        text += "" if statistics else " NO STATISTICS"
        text += f" PARTITIONED BY ({partitions})" if partitions else ""
        rows = spark.sql(text + (" DRY RUN" if dry_run else ""))
        print_rows(context, rows, limit=_LINES_MAX)
        if not dry_run:
            context.output.note("Converted. puredelta detail and puredelta history show it.")
