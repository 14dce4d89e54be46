"""Workers have the standard library, numpy and pyarrow: all else has to travel with the task."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from puredelta import spark

MODULES = sorted(Path(spark.__path__[0]).glob("*_task.py"))


def imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_workers_need_nothing_of_ours(module: Path) -> None:
    others = {f"puredelta.spark.{path.stem}" for path in MODULES}
    roots = {name.split(".")[0] for name in imported(module) - others}
    assert roots <= {*sys.stdlib_module_names, "numpy", "pyarrow"}
