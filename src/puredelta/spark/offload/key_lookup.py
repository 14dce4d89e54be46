"""Looks a source's keys up in data files, in Arrow, inside Spark tasks.

Where equality of plain columns finds the pairs, and Arrow decides everything else as Spark
would, this answers the same as a join of Spark's, without broadcasting, shuffling or compiling
anything: one Spark job. Every task holds the keys of the whole source, so there are as many
tasks as memory allows; where workers may hold little they look at their files once for each part
of the source. Needs workers with Python, numpy and pyarrow that reach the storage themselves;
otherwise the answer is `NotApplicable` and Spark joins.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.log.files.file_statistics import NOTHING_PARSED, FileStatistics
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.file_bounds import Bounds, FileBounds
from puredelta.log.vectors.read import read_positions
from puredelta.protocol.schema.types import DATE, INTEGRAL
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.partition_values import parse_partition_value
from puredelta.protocol.values.predicates import Ref, Side
from puredelta.spark.offload.arrow_predicate import Call
from puredelta.spark.offload.deal import balanced
from puredelta.spark.offload.workers import collect_if_fit, packed_code
from puredelta.spark.scan.bitmaps import WORD_INDEX_BITS, CountedWords
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import is_connect
from puredelta.store.local_files import local_path, local_paths
from puredelta.worker import key_lookup
from puredelta.worker.key_index import whole_numbers
from puredelta.worker.lookup_batch import Constants, LookupBatch, Spans

_WORD_BYTES = 8
_NUMBERED = INTEGRAL | {DATE}
_TASK_BYTES = 256 * 1024 * 1024
"""Of data files: a task reads their key columns, and the source's keys once."""
_FILES_PER_SOURCE = 4
"""How much more a task reads of files than it holds of the source, where there is a choice."""
_ELSEWHERE_BYTES_MAX = 64 * 1024 * 1024
"""Of the source's keys in a worker of a cluster, beside whatever else that machine does."""
_ELSEWHERE_PARTS_MAX = 4
"""How often a worker of a cluster reads its files, each time to look a part of the source up."""
_HERE_BYTES_MAX = 4 * 1024 * 1024 * 1024
_HERE_SHARE = 8
"""The part of this machine's memory that all workers together may take: one in this many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of the table that must equal one of the source."""

    target: str
    """Logical name."""
    source: str
    """Inside the source's files."""
    null_safe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What else decides, as calls of Arrow's functions (see `arrow_predicate`)."""

    on: Call
    """What must be true of a pair besides equal keys."""
    matched: tuple[Call, ...]
    by_source: tuple[Call, ...]
    """Of target rows without a partner."""
    target_columns: tuple[tuple[str, pa.DataType], ...]
    """By logical name; calls name them by place."""
    source_columns: tuple[tuple[str, pa.DataType], ...]
    """By name inside the source's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLookup:
    """A search that needs no join."""

    keys: tuple[KeyColumn, ...]
    judgement: Judgement | None
    """``None``: every pair is for `clause`."""
    clause: int = key_lookup.IDLE
    task_bytes: int = 0
    """What a task holds of the source at a time, estimated."""
    parts: int = 1
    """In how many parts a task looks the source up, one after the other."""
    tasks_max: int | None = None
    """How many tasks may run at once; ``None``: any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """What Python workers may hold of a source, in bytes."""

    task_max: int
    all_max: int | None = None
    """All of them together, where they share this machine."""
    parts_max: int = 1
    """In how many parts a task may hold a source, one after the other."""

    @classmethod
    def of(cls, spark: SparkSession) -> WorkerMemory:
        """Return what the workers of this session may take."""
        return cls.on(None if is_connect(spark) else spark.sparkContext.master)

    @classmethod
    def on(cls, master: str | None) -> WorkerMemory:
        """Return what the workers of a master may take; ``None``: of one nobody knows."""
        if not _runs_here(master):
            return cls(task_max=_ELSEWHERE_BYTES_MAX, parts_max=_ELSEWHERE_PARTS_MAX)
        here = min(_HERE_BYTES_MAX, _memory_bytes() // _HERE_SHARE)
        return cls(task_max=here, all_max=here)

    def tasks_max(self, task_bytes: int) -> int | None:
        """Return how many tasks may run at once; ``None``: any number."""
        return None if self.all_max is None else max(1, self.all_max // max(1, task_bytes))


def _runs_here(master: str | None) -> bool:
    return master is not None and (master == "local" or master.startswith("local["))


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such name on this system
        return _HERE_SHARE * _ELSEWHERE_BYTES_MAX


def look_up_keys(
    spark: SparkSession,
    config: TableConfig,
    files: FileTable,
    source_files: Sequence[DataFile],
    probe: KeyLookup,
    *,
    root_uri: str,
    finds_target: bool,
    source_base: int | None,
    statistics: FileStatistics | None = NOTHING_PARSED,
) -> CountedWords | NotApplicable:
    """Return the rows of ``files`` and of the source that clauses act on. Runs one Spark job.

    Files whose bounds no key of the source lies in are not opened, unless ``statistics`` of
    ``files`` are ``None`` or rows without a partner are asked for.
    They are counted per row of either side as a join would give pairs; sets are named as in
    `puredelta.spark.scan.bitmaps.collect_words`: target rows by the number of their clause, source
    rows by that plus ``source_base``. A side that is not asked for is left out.
    """
    if is_connect(spark):
        return NotApplicable(reason="no RDD on Spark Connect")
    paths = local_paths(root_uri, files.rows["path"].to_pylist())
    staged = [local_path(file.uri) for file in source_files]
    if paths is None or None in staged:
        return NotApplicable(reason=f"no local file system under {root_uri}")
    deleted = read_positions(files, root_uri)
    orders = LookupBatch(
        ordinals=np.arange(len(files), dtype=np.int32),
        paths=paths,
        constants=_constants(config, files, _read_columns(probe)),
        deleted={n: RowBitmap.of_rows(rows).packed() for n, rows in deleted.items()},
        spans=() if statistics is None else key_spans(config, files, probe, statistics),
    )
    sizes = files.rows["size_bytes"].to_pylist()
    context = spark.sparkContext
    num_tasks = _num_tasks(sizes, context.defaultParallelism, probe)
    dealt = balanced(range(len(orders)), sizes, num_batches=num_tasks)
    batches = [orders.some(places).packed() for places in dealt]
    fields = (
        tuple((config.physical_name(k.target), k.source, k.null_safe) for k in probe.keys),
        tuple(staged),
        _judgement_fields(probe.judgement, config),
        probe.clause,
        finds_target,
        source_base is not None,
        probe.parts,
    )
    work = functools.partial(
        key_lookup.look_up_if_able, packed_code(key_lookup.look_up_tuples), fields
    )
    answers = collect_if_fit(context, batches, work)
    if isinstance(answers, NotApplicable):
        return answers
    if (refusal := next((reason for reason, _ in answers if reason), None)) is not None:
        return NotApplicable(reason=refusal)
    return _counted([found for _, task in answers for found in task], source_base or 0)


def _num_tasks(sizes_bytes: Sequence[int], parallelism: int, probe: KeyLookup) -> int:
    """Choose how many tasks share the files: one per core at least, if memory allows it."""
    limit = probe.tasks_max
    if limit is not None and limit < parallelism:
        return min(len(sizes_bytes), limit)
    # A task that reads much of the source has to read more of the files to be worth it.
    task_bytes = max(_TASK_BYTES, _FILES_PER_SOURCE * probe.task_bytes)
    return min(len(sizes_bytes), max(parallelism, -(-sum(sizes_bytes) // task_bytes)))


def key_spans(
    config: TableConfig,
    files: FileTable,
    probe: KeyLookup,
    statistics: FileStatistics = NOTHING_PARSED,
) -> Sequence[Spans | None]:
    """Return per column what the files' keys may be, as far as whole numbers and dates say."""
    if probe.judgement is not None and probe.judgement.by_source:
        return ()  # rows are asked for that have no partner
    types = {field.name: field.type for field in config.schema.fields}
    refs = [
        Ref(Side.TARGET, (key.target,), types[key.target])
        if types[key.target] in _NUMBERED and not key.null_safe
        else None
        for key in probe.keys
    ]
    known = FileBounds(files, config, [ref for ref in refs if ref is not None], statistics)
    return [None if ref is None else _spans(known.find(ref)) for ref in refs]


def _spans(bounds: Bounds | None) -> Spans | None:
    if bounds is None or bounds.low is None or bounds.high is None:
        return None
    (lows, has_low), (highs, has_high) = map(whole_numbers, (bounds.low, bounds.high))
    known = np.ones(len(lows), np.bool_)
    for has in (has_low, has_high):
        if has is not None:
            known &= has
    return Spans(known, lows, highs)


def _read_columns(probe: KeyLookup) -> set[str]:
    judged = () if probe.judgement is None else probe.judgement.target_columns
    return {*(key.target for key in probe.keys), *(name for name, _ in judged)}


def _judgement_fields(judgement: Judgement | None, config: TableConfig) -> Any:
    if judgement is None:
        return None
    return (
        judgement.on,
        judgement.matched,
        judgement.by_source,
        tuple((config.physical_name(name), kind) for name, kind in judgement.target_columns),
        judgement.source_columns,
    )


def _constants(config: TableConfig, files: FileTable, columns: set[str]) -> Sequence[Constants]:
    partitions = {
        config.physical_name(f.name): f.type
        for f in config.partition_schema.fields
        if f.name in columns
    }
    if not partitions:
        return ()
    return [
        tuple(
            (name, parse_partition_value(values.get(name), kind, timezone.utc))
            for name, kind in partitions.items()
        )
        for values in (dict(v or ()) for v in files.rows["partition_values"].to_pylist())
    ]


def _counted(found: Sequence[key_lookup.Found], source_base: int) -> CountedWords:
    row_sets = [clause + of_source * source_base for of_source, clause, _, _ in found]
    files = np.array([file for _, _, file, _ in found], np.int64)
    index, bits, hits = (b"".join([packed[n] for *_, packed in found]) for n in range(3))
    counts = [len(packed[0]) // _WORD_BYTES for *_, packed in found]
    return CountedWords(
        np.repeat(np.array(row_sets, np.int32), counts),
        np.frombuffer(index, "<i8").astype(np.int64) | np.repeat(files << WORD_INDEX_BITS, counts),
        np.frombuffer(bits, "<u8").astype(np.uint64),
        np.frombuffer(hits, "<i8").astype(np.int64),
    )
