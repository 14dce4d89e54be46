"""Workers have the standard library, numpy and pyarrow: all else has to travel with the task."""

from __future__ import annotations

import ast
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from puredelta import worker
from puredelta.spark.offload import workers
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session.data_access import packed_code
from puredelta.worker.bootstrap import run_rows, run_task
from puredelta.worker.data_files.copy_rows import COPY_ORDERS, CopyOrder, RowGroups, copy
from puredelta.worker.data_files.rewrite_file import (
    REWRITE_TASKS,
    RewriteTask,
    rewrite,
)
from puredelta.worker.data_files.write_rows import write_stream
from puredelta.worker.footers.chunk_shapes import DOUBLES
from puredelta.worker.lookup.key_lookup import look_up
from puredelta.worker.lookup.lookup_request import (
    LOOKUP_BATCHES,
    LOOKUP_REQUESTS,
    FileLookup,
    KeyColumn,
    LookupRequest,
)
from puredelta.worker.scan_rows import read_parts
from puredelta.worker.wire import LIMITS, LIMITS_CODEC
from tests.worker.lookup.batches import batch_of
from tests.worker.unpacking import run_without

MODULES = sorted(Path(worker.__path__[0]).rglob("*.py"))
REWRITE = RewriteTask(
    ordinal=3, source="/no/file", directory="/no", name_prefix="p", words=b"", bits=b""
)
COPY = CopyOrder(
    ordinal=3,
    sources=(RowGroups(path="/no/file", groups=(0,), first_row=0, words=b"", bits=b""),),
    include=True,
    columns=(),
    directory="/proc/x",
    name_prefix="p",
    codec="none",
)
CALL = "code(*arguments)"
LOOKUP = LookupRequest(
    keys=(KeyColumn(target="a", source="b", null_safe=True),), source_files=("/no/file",)
)


def pickled(work: Callable[..., Any]) -> bytes:
    """Return a function as Spark sends it to workers."""
    code: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    return code


def imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_workers_need_nothing_else_of_ours(module: Path) -> None:
    names = {name for name in imported(module) if not name.startswith("puredelta.worker.")}
    roots = {name.split(".")[0] for name in names}
    assert roots <= {*sys.stdlib_module_names, "numpy", "pyarrow"}  # obstore: only where met


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rewrite, (LIMITS_CODEC.encode(LIMITS), [REWRITE_TASKS.encode(REWRITE)])),
        (copy, COPY_ORDERS.encode(COPY)),
        (
            look_up,
            (
                LOOKUP_REQUESTS.encode(LOOKUP),
                LOOKUP_BATCHES.encode(batch_of([FileLookup(0, "/no/file")])),
            ),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_code_works_where_puredelta_is_not(function: Callable[..., Any], message: Any) -> None:
    task = (0, pickle.dumps(message))
    sent = [packed_code(function)], task
    assert "FileNotFound" in run_without("puredelta", pickled(run_task), CALL, *sent)


def test_what_looks_for_the_libraries_needs_none() -> None:
    sent = [b"", packed_code(look_up)], (1, pickle.dumps(None))
    answer = run_without("puredelta numpy pyarrow", pickled(run_task), CALL, *sent)
    number, refusal, result = ast.literal_eval(answer)[0]
    assert (number, result) == (1, None)
    assert refusal.startswith("ModuleNotFoundError on a worker: ")


@pytest.mark.parametrize("run", [run_task, run_rows])
def test_what_is_sent_with_every_job_needs_no_library(run: Callable[..., Any]) -> None:
    work = workers.low_latency(run, WorkerSettings())
    assert (
        run_without("puredelta numpy pyarrow", pickled(work), "code.func.__name__")
        == "after_arrival"
    )


@pytest.mark.parametrize("function", [rewrite, copy, look_up, read_parts, write_stream])
def test_packed_code_is_small(function: Callable[..., Any]) -> None:
    """It is sent to every task; where Spark has run before, it is up to 8 kB larger."""
    assert len(packed_code(function)) < 185_000


def test_packed_code_has_no_numbers_of_files_that_were_read() -> None:
    for number in range(100):
        assert DOUBLES[bytes([200, number])] == 72 + 128 * number
    assert pickle.loads(cloudpickle.dumps(DOUBLES)) == {}  # type: ignore[no-untyped-call]
