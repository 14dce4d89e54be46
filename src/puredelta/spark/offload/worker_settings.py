"""What Spark's Python workers may be used for, as the session says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.session.delta_conf import DeltaConf
from puredelta.spark.session.read_settings import ReadSettings
from puredelta.spark.session.session import runs_here
from puredelta.worker.limits import LIMITS, Limits

PREFIX = "spark.puredelta.workers."

_MASTER = "spark.master"
_MEGABYTE = 1024 * 1024
_ELSEWHERE_BYTES_MAX = 64 * _MEGABYTE
"""Of the source's keys in a worker of a cluster, beside whatever else that machine does."""
_PARTS_MAX = 4
"""How often a worker reads its files, each time to look a part of the source up."""
_HERE_BYTES_MAX = 4 * 1024 * _MEGABYTE
_HERE_SHARE = 8
"""The part of this machine's memory that all workers together may take: one in this many."""


_conf = partial(DeltaConf, prefix=PREFIX)
ENABLED = _conf(
    name="enabled",
    default="true",
    effect="Python workers look keys up and copy rows in Arrow; off: Spark joins, reads and writes",
)
LOOKUP_BYTES = _conf(
    name="lookupBytes",
    default=None,
    effect="how many bytes a task may hold of the keys of a source; a larger source is looked up "
    f"in up to {_PARTS_MAX} parts. Unset: a share of the machine's memory in a local session, "
    f"{_ELSEWHERE_BYTES_MAX} elsewhere",
)
MERGE_SMALL_FILES = _conf(
    name="mergeSmallFiles",
    default="true",
    effect="small files that are alike are decoded as one; off: each is opened by itself",
)
QUICKACK = _conf(
    name="quickack",
    default="true",
    effect="tasks are acknowledged when they arrive (`TCP_QUICKACK`, Linux)",
)
GC_FREEZE = _conf(
    name="gcFreeze",
    default="true",
    effect="workers do not search for garbage among the modules they have loaded (`gc.freeze`)",
)
WORKER_CONFS = (ENABLED, LOOKUP_BYTES, MERGE_SMALL_FILES, QUICKACK, GC_FREEZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """What Python workers may hold of a source, in bytes."""

    task_max: int
    all_max: int | None = None
    """All of them together, where they share this machine."""
    parts_max: int = 1
    """In how many parts a task may hold a source, one after the other."""

    @classmethod
    def of(cls, master: str | None) -> WorkerMemory:
        """Return what the workers of a session may take; ``master`` is its ``spark.master``."""
        if not runs_here(master):
            return cls(task_max=_ELSEWHERE_BYTES_MAX, parts_max=_PARTS_MAX)
        here = min(_HERE_BYTES_MAX, _memory_bytes() // _HERE_SHARE)
        return cls(task_max=here, all_max=here)

    def tasks_max(self, task_bytes: int) -> int | None:
        """Return how many tasks may run at once; ``None``: any number."""
        return None if self.all_max is None else max(1, self.all_max // max(1, task_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What Python workers may be used for, read once per command."""

    enabled: bool = True
    memory: WorkerMemory = field(default_factory=lambda: WorkerMemory.of(None))
    limits: Limits = LIMITS
    quickack: bool = True
    gc_freeze: bool = True

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> WorkerSettings:
        """Read them from text by key, among all other settings of a session.

        Raises:
            InvalidRequestError: a setting that is a number has another value.

        >>> WorkerSettings.parse({"spark.puredelta.workers.quickack": "false"}).quickack
        False
        """
        merges = MERGE_SMALL_FILES.flag(settings)
        limits = replace(LIMITS, only_spark=ReadSettings.parse(settings).only_spark)
        return cls(
            enabled=ENABLED.flag(settings),
            memory=_memory(settings),
            limits=limits if merges else replace(limits, small_file_rows=0),
            quickack=QUICKACK.flag(settings),
            gc_freeze=GC_FREEZE.flag(settings),
        )


def _memory(settings: Mapping[str, str]) -> WorkerMemory:
    text = LOOKUP_BYTES.text(settings)
    if text is None:
        return WorkerMemory.of(settings.get(_MASTER))
    if not text.strip().isdecimal():
        raise InvalidRequestError(
            f"{LOOKUP_BYTES.key} is {text!r}: set it to a number of bytes.",
            code=ErrorCode.INVALID_CONF_VALUE,
            key=LOOKUP_BYTES.key,
            value=text,
        )
    return WorkerMemory(task_max=int(text), parts_max=_PARTS_MAX)


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such name on this system
        return _HERE_SHARE * _ELSEWHERE_BYTES_MAX
