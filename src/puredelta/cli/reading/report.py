"""``puredelta report``."""

from __future__ import annotations

import re
from pathlib import Path

from puredelta.cli.context import Context
from puredelta.cli.reading.open_log import open_log
from puredelta.inspection.report.page import report_page

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def run(context: Context, *, table: str, out: Path | None, commits: int) -> None:
    """Write the page; an older one of the same name is replaced."""
    log = open_log(context, table)
    page = report_page(log, commits=commits)
    if out is None:
        name = _UNSAFE.sub("-", log.root_uri.rpartition("/")[2]).strip("-.") or "table"
        out = Path(f"{name}-report.html")
    out.write_text(page, encoding="utf-8")
    context.output.value({"report": str(out), "sizeInBytes": len(page.encode())})
