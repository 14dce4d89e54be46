"""The dbt project ``shop`` in a process of its own: built, changed, and built again.

Called with an empty directory and ``hive`` or ``memory``. The last line of output is JSON: each
step of dbt with its status, and the rows of the tables.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.clients.session import start_session

_PROJECT = Path(__file__).parent / "shop"


def main(root: Path, *, hive: bool) -> dict[str, Any]:
    """Run the project twice, with another seed the second time."""
    spark = start_session(root, hive=hive)
    project = Path(shutil.copytree(_PROJECT, root / "shop"))
    os.chdir(project)
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    steps = _invoke(project, "build", run=1)
    seed = project / "seeds" / "Raw_Orders.csv"
    seed.write_text(seed.read_text().replace("20.0", "25.0") + "4,cid,7.75,2024-01-02\n")
    steps += _invoke(project, "build", run=2)
    steps += _invoke(project, "docs generate", run=2)
    names = ("orders", "by_customer", "every_run", "per_day", "large", "first_orders", "history")
    kept = {name: _rows(spark.table(f"shop.{name}")) for name in names}
    providers = {
        name: dict(map(lambda row: row[:2], spark.sql(f"DESCRIBE EXTENDED shop.{name}").collect()))
        .get("Provider") for name in ("orders", "by_customer", "history")
    }  # fmt: skip
    return {"steps": steps, "rows": kept, "providers": providers}


def _invoke(project: Path, command: str, *, run: int) -> list[tuple[str, str, str]]:
    """Run a command and return its steps: name, status, message."""
    variables = json.dumps({"run": run, "changed": "bob"})
    where = ["--project-dir", str(project), "--profiles-dir", str(project), "--vars", variables]
    runner: Any = importlib.import_module("dbt.cli.main").dbtRunner
    done = runner().invoke([*command.split(), *where])
    steps = getattr(done.result, "results", ())
    if command != "build" or not steps:
        return [(command, "success" if done.success else "error", str(done.exception))]
    return [(str(step.node.name), str(step.status), str(step.message)) for step in steps]


def _rows(frame: Any) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in frame.collect())


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), hive=sys.argv[2] == "hive")
    print(json.dumps(found))  # noqa: T201
