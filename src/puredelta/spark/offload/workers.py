"""Spark's Python workers: what code they are sent, and what keeps them from running it.

Executors have no puredelta, so its code travels with the task. The modules that may travel,
those in `puredelta.worker`, import the standard library, numpy and pyarrow only. A local session
runs them with the driver's own interpreter: by default its workers are whatever ``python3`` is
on the PATH, without the libraries of the virtual environment that the driver lives in. Elsewhere
the worker looks for the libraries before the code that needs them is unpacked, so that a worker
without them says so in one line instead of a stack trace in its log.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from pyspark import SparkContext, cloudpickle

from puredelta.spark.jvm.python_workers import worker_context
from puredelta.spark.session.fallback import NotApplicable
from puredelta.worker import (
    copy_rows,
    dictionaries,
    key_index,
    key_lookup,
    lookup_batch,
    lookup_read,
    merged_parquet,
    read_rows,
    rewrite_file,
    tcp_quickack,
    thrift_compact,
    write_file,
)

Fields: TypeAlias = tuple[Any, ...]
_Batch = TypeVar("_Batch")
_Answer = TypeVar("_Answer")
_Answers = TypeVar("_Answers")

WORKER_MODULES: tuple[ModuleType, ...] = (
    thrift_compact,
    dictionaries,
    read_rows,
    copy_rows,
    merged_parquet,
    key_index,
    write_file,
    lookup_batch,
    lookup_read,
    key_lookup,
    tcp_quickack,
    rewrite_file,
)
for _module in WORKER_MODULES:
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_UNFIT_WORKER = (
    "ModuleNotFoundError",
    "ImportError",
    "PYTHON_VERSION_MISMATCH",
    "Cannot run program",
)
"""What an error names when the workers' Python is not up to the task."""


@functools.cache
def packed_code(function: Callable[..., Any]) -> bytes:
    """Return a function of a worker module with all the code of ours that it needs.

    Packed once: it takes milliseconds, and the code does not change.
    """
    payload: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    return payload


def promptly(work: Callable[[_Batch], _Answers]) -> Callable[[_Batch], _Answers]:
    """Return ``work`` as workers do it without waiting (`puredelta.worker.tcp_quickack`)."""
    return functools.partial(tcp_quickack.answered, tcp_quickack.Prompt(), work)


def collect_if_fit(
    context: SparkContext,
    batches: Sequence[_Batch],
    work: Callable[[_Batch], Iterable[_Answer]],
) -> list[_Answer] | NotApplicable:
    """Do ``work`` in one task per batch and return all its answers. Runs one Spark job.

    Refuses if the workers' Python is not up to it. ``work`` is a function of a worker module,
    perhaps with some of its arguments.
    """
    return if_fit(functools.partial(_collected, context, batches, work))


def _collected(
    context: SparkContext,
    batches: Sequence[_Batch],
    work: Callable[[_Batch], Iterable[_Answer]],
) -> list[_Answer]:
    answers = context.parallelize(batches, len(batches)).flatMap(promptly(work))
    # In a local session the workers are the driver's own Python.
    is_local = (context.master or "").startswith("local")
    answers.ctx = worker_context(context, python=sys.executable if is_local else None)
    return answers.collect()


def if_fit(job: Callable[[], list[_Answer]]) -> list[_Answer] | NotApplicable:
    """Run a job, or refuse if the workers' Python is not up to it."""
    try:
        return job()
    except Exception as failure:
        if (reason := _unfit_worker(failure)) is None:
            raise
        return NotApplicable(reason=reason)


def _unfit_worker(failure: Exception) -> str | None:
    """Say what the workers' Python lacks, if that is why the job failed."""
    text = str(failure)
    sign = next((sign for sign in _UNFIT_WORKER if sign in text), None)
    return None if sign is None else f"workers: {sign} in {text[:500]}"
