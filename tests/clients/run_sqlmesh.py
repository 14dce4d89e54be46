"""The sqlmesh project ``orders_mesh`` in a process of its own: planned, run, changed, restated.

Called with an empty directory and ``hive`` or ``memory``. The last line of output is JSON.
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

_PROJECT = Path(__file__).parent / "orders_mesh"


def main(root: Path, *, hive: bool) -> dict[str, Any]:
    """Plan and run the project, change a model and a seed, and plan again."""
    spark = start_session(root, hive=hive)
    project = Path(shutil.copytree(_PROJECT, root / "mesh"))
    config = _config(root)
    found: dict[str, Any] = {}
    _plan(project, config)
    found["first"] = _shown(spark)
    model = project / "models" / "whole.sql"
    model.write_text(model.read_text().replace("* 2", "* 3"))
    seed = project / "seeds" / "raw.csv"
    seed.write_text(seed.read_text() + "4,1.0,2024-01-01\n")
    _plan(project, config)
    found["second"] = _shown(spark)
    _plan(project, config, restate_models=["mesh.days"], start="2024-01-01", end="2024-01-03")
    found["restated"] = _shown(spark)
    found["logs"] = len(list((root / "warehouse").rglob("_delta_log")))
    return found


def _config(root: Path) -> Any:
    kinds: Any = importlib.import_module("sqlmesh.core.config")
    connections: Any = importlib.import_module("sqlmesh.core.config.connection")
    gateway = kinds.GatewayConfig(
        connection=connections.SparkConnectionConfig(concurrent_tasks=1),
        state_connection=kinds.DuckDBConnectionConfig(database=str(root / "state.db")),
    )
    return kinds.Config(
        gateways={"spark": gateway},
        default_gateway="spark",
        model_defaults=kinds.ModelDefaultsConfig(dialect="spark"),
    )


def _plan(project: Path, config: Any, **chosen: Any) -> None:
    sqlmesh: Any = importlib.import_module("sqlmesh")
    context = sqlmesh.Context(paths=[str(project)], config=config)
    context.plan(auto_apply=True, no_prompts=True, **chosen)


def _shown(spark: Any) -> dict[str, list[list[str]]]:
    names = ("raw", "whole", "days", "newest", "shown")
    return {name: _rows(spark.table(f"mesh.{name}")) for name in names}


def _rows(frame: Any) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in frame.collect())


if __name__ == "__main__":
    os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
    print(json.dumps(main(Path(sys.argv[1]), hive=sys.argv[2] == "hive")))  # noqa: T201
