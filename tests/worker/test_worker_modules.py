"""Workers have the standard library, numpy and pyarrow: all else has to travel with the task."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from puredelta import worker
from puredelta.spark.offload.workers import WORKER_MODULES, packed_code
from puredelta.worker.copy_rows import copy_tuples
from puredelta.worker.key_lookup import look_up_if_able, look_up_tuples
from puredelta.worker.rewrite_file import rewrite_batches, rewrite_tuples
from puredelta.worker.write_file import answer_if_able

MODULES = sorted(p for p in Path(worker.__path__[0]).glob("*.py") if p.stem != "__init__")


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
    others = {worker.__name__ for worker in WORKER_MODULES}
    roots = {name.split(".")[0] for name in imported(module) - others}
    assert roots <= {*sys.stdlib_module_names, "numpy", "pyarrow"}


def test_all_worker_modules_travel() -> None:
    assert {Path(module.__file__ or "") for module in WORKER_MODULES} == set(MODULES)


def run(absent: str, payload: bytes, call: str) -> str:
    """Unpack code in a process that lacks some libraries, and evaluate a call of it."""
    program = f"""
import sys
for name in {absent.split()!r}:
    sys.modules[name] = None
import pickle
code = pickle.load(sys.stdin.buffer)
print({call})
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=payload, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.mark.parametrize(
    ("function", "call", "answer"),
    [
        (rewrite_tuples, "code([(3, '/no/file', *'dp', b'', b'', *[None] * 5)])", "FileNotFound"),
        (rewrite_batches, "list(code([]))", "[]"),
        (
            copy_tuples,
            "code([(3, [('/no/file', (0,), 0, b'', b'')], True, (), '/proc/x', 'p', 'none')])",
            "FileNotFound",
        ),
        (
            look_up_tuples,
            "code((((*'ab', True),), ('/no/file',), None), (b'', [], [], {}, []))",
            "FileNotFound",
        ),
    ],
)
def test_code_works_where_puredelta_is_not(
    function: Callable[..., Any], call: str, answer: str
) -> None:
    assert answer in run("puredelta", packed_code(function), call)


@pytest.mark.parametrize("function", [answer_if_able, look_up_if_able])
def test_what_looks_for_the_libraries_needs_none(function: Callable[..., Any]) -> None:
    payload: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    assert run("puredelta numpy pyarrow", payload, "code.__name__") == function.__name__
