"""``puredelta detail``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.inspection.table.described import detail_row
from puredelta.quantities import size_text


def run(context: Context, *, table: str, version: int | None) -> None:
    """Print what the table is at a version."""
    row = detail_row(open_log(context, table).snapshot(version=version))
    if not context.output.as_json:
        size_bytes = row["sizeInBytes"]
        row["sizeInBytes"] = f"{size_bytes:,} ({size_text(size_bytes)})"
        row["columns"] = "\n".join(f"{name} {kind}" for name, kind in row["columns"].items())
        for name in ("partitionColumns", "clusteringColumns", "tableFeatures"):
            row[name] = ", ".join(row[name])
        row["properties"] = "\n".join(f"{k} = {v}" for k, v in row["properties"].items())
    context.output.value(row)
