"""``puredelta optimize``."""

from __future__ import annotations

from puredelta.cli.context import Context
from puredelta.cli.session.names import quoted, table_name
from puredelta.cli.session.start import spark_session


def run(context: Context, *, table: str, where: str | None, zorder: str | None, full: bool) -> None:
    """Compact, cluster or order files, and print the metrics."""
    columns = [name.strip() for name in (zorder or "").split(",") if name.strip()]
    text = f"OPTIMIZE {table_name(table)}" + (" FULL" if full else "")
    text += f" WHERE {where}" if where else ""
    if columns:
        names = ", ".join(".".join(quoted(part) for part in c.split(".")) for c in columns)
        text += f" ZORDER BY ({names})"
    with spark_session(context, f"optimize {table}") as spark:
        for row in spark.sql(text).collect():
            values = row.asDict(recursive=True)
            metrics = values.get("metrics") or {}
            context.output.value({"path": values.get("path"), **_plain(metrics)})


def _plain(metrics: dict[str, object]) -> dict[str, object]:
    """Leave out what is NULL or empty."""
    return {name: value for name, value in metrics.items() if value not in (None, {}, [])}
