"""Looks a source's keys up in data files, in Arrow, inside Spark tasks.

Where equality of plain columns finds the pairs, and Arrow decides everything else as Spark
would, this answers the same as a join of Spark's, without broadcasting, shuffling or compiling
anything: one Spark job. Every task holds the keys of the whole source, so there are as many
tasks as memory allows; where workers may hold little they look at their files once for each part
of the source. Needs workers with Python, numpy and pyarrow that reach the storage themselves;
otherwise the answer is `NotApplicable` and Spark joins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timezone

import numpy as np
from pyspark.sql import SparkSession

from puredelta.errors import CorruptTableError
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics
from puredelta.log.skipping.file_bounds import Bounds, FileBounds
from puredelta.protocol.schema.partition_values import parse_partition_value
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.types import DATE, INTEGRAL
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.workers import (
    WorkerCalls,
    WorkerSettings,
    assign_to_tasks,
    count_source_tasks,
    parallelism_of,
    run_in_workers,
)
from puredelta.spark.scan.bitmaps import WORD_INDEX_BITS, CountedWords
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.data_access import DataPaths
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import NotApplicable
from puredelta.store.base import Store
from puredelta.store.registry import open_store
from puredelta.worker.files import DataPath
from puredelta.worker.lookup.conditions import NO_CLAUSE, ResidualConditions
from puredelta.worker.lookup.key_index import whole_numbers
from puredelta.worker.lookup.key_lookup import look_up
from puredelta.worker.lookup.lookup_request import (
    FOUND_ROWS,
    LOOKUP_BATCHES,
    LOOKUP_REQUESTS,
    ColumnBounds,
    Constants,
    FoundRows,
    KeyColumn,
    LookupBatch,
    LookupRequest,
    Searched,
)
from puredelta.worker.lookup.range_index import KeyRange

_WORD_BYTES = 8
_NUMBERED = INTEGRAL | {DATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLookup:
    """A search that needs no join.

    Target columns have their logical names, source columns those of the staged source.
    """

    keys: tuple[KeyColumn, ...]
    conditions: ResidualConditions | None
    """``None``: every pair is for `clause`."""
    within: KeyRange | None = None
    """What finds the pairs where there are no keys. Without both there is no source: conditions
    alone find rows."""
    clause: int = NO_CLAUSE
    task_bytes: int = 0
    """What a task holds of the source at a time, estimated."""
    parts: int = 1
    """In how many parts a task looks the source up, one after the other."""
    finds_target: bool = True
    """Whether rows of the table are found."""
    source_base: int | None = None
    """What is added to the number of a clause to name its rows of the source; ``None``: these are
    not found."""

    @property
    def searched(self) -> Searched:
        """What finds the pairs."""
        return Searched(keys=self.keys, within=self.within)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupTarget:
    """The files of a table in which keys are looked up."""

    config: TableConfig
    files: FileTable
    root_uri: str
    open_at: Callable[[str], Store] = open_store
    statistics: FileStatistics | None = NOTHING_PARSED
    """Those of ``files`` that are parsed already; ``None``: no file is left out by its bounds."""


def look_up_keys(
    spark: SparkSession,
    lookup: KeyLookup,
    target: LookupTarget,
    source_files: Sequence[DataFile],
    settings: WorkerSettings,
) -> CountedWords | NotApplicable:
    """Return the rows of a table and of the source that clauses act on. Runs one Spark job.

    They are counted per row of either side as a join would give pairs. Sets are named as in
    `puredelta.spark.scan.bitmaps.collect_words`: rows of the table by the number of their clause,
    rows of the source by that plus ``lookup.source_base``.
    """
    paths = DataPaths(target.open_at)
    try:
        constants = constants_of_files(target.config, target.files, read_columns(lookup))
    except CorruptTableError as error:  # a year that Python does not have, or no value at all
        return NotApplicable(reason=error.message)
    batch = _batch(lookup, target, paths, constants)
    staged = [paths.find(file.uri, file.size_bytes) for file in source_files]
    reached = tuple(path for path in staged if path is not None)
    if batch is None or len(reached) < len(staged):
        return NotApplicable(reason=f"workers have no way to files of {target.root_uri}")
    request = _request(lookup, target.config, reached, settings)
    sizes = target.files.rows["size_bytes"].to_pylist()
    tasks_max = settings.memory.tasks_max(lookup.task_bytes)
    num_tasks = count_source_tasks(sizes, parallelism_of(spark), lookup.task_bytes, tasks_max)
    fields = LOOKUP_REQUESTS.encode(request)
    calls = WorkerCalls(
        function=look_up,
        messages=[
            (fields, LOOKUP_BATCHES.encode(batch.take(places)))
            for places in assign_to_tasks(range(len(batch)), sizes, num_tasks=num_tasks)
        ],
    )
    answers = run_in_workers(spark, [calls], settings)
    if isinstance(answers, NotApplicable):
        return answers
    (tasks,) = answers
    if (refusal := next((reason for reason, _ in tasks if reason), None)) is not None:
        return NotApplicable(reason=refusal)
    found = [FOUND_ROWS.decode(rows) for _, task in tasks for rows in task]
    return _counted(found, lookup.source_base or 0)


def _request(
    lookup: KeyLookup,
    config: TableConfig,
    source_files: tuple[DataPath, ...],
    settings: WorkerSettings,
) -> LookupRequest:
    """Return what every task is asked."""
    stored = in_files(lookup, config)
    return LookupRequest(
        keys=stored.keys,
        within=stored.within,
        source_files=source_files,
        conditions=stored.conditions,
        clause=lookup.clause,
        finds_target=lookup.finds_target,
        finds_source=lookup.source_base is not None,
        parts=lookup.parts,
        limits=settings.limits,
    )


def in_files(lookup: KeyLookup, config: TableConfig) -> KeyLookup:
    """Return the lookup with the names that target columns have in files."""
    conditions = lookup.conditions
    if conditions is not None:
        columns = conditions.target_columns
        conditions = replace(
            conditions,
            target_columns=tuple((config.physical_name(name), kind) for name, kind in columns),
        )
    keys = tuple(replace(key, target=config.physical_name(key.target)) for key in lookup.keys)
    within = lookup.within
    if within is not None:
        within = replace(within, target=config.physical_name(within.target))
    return replace(lookup, keys=keys, within=within, conditions=conditions)


def _batch(
    lookup: KeyLookup, target: LookupTarget, reached: DataPaths, constants: Sequence[Constants]
) -> LookupBatch | None:
    """Return all files of the table; ``None`` if workers cannot reach them."""
    config, files = target.config, target.files
    paths = reached.find_all(
        target.root_uri, files.rows["path"].to_pylist(), files.rows["size_bytes"].to_pylist()
    )
    if paths is None:
        return None
    deleted = read_positions(files, target.root_uri, open_at=target.open_at)
    return LookupBatch(
        ordinals=np.arange(len(files), dtype=np.int32),
        paths=paths,
        constants=constants,
        deleted={n: RowBitmap.of_rows(rows).packed() for n, rows in deleted.items()},
        bounds=()
        if target.statistics is None
        else key_bounds(config, files, lookup, target.statistics),
    )


def key_bounds(
    config: TableConfig,
    files: FileTable,
    lookup: KeyLookup,
    statistics: FileStatistics = NOTHING_PARSED,
) -> tuple[ColumnBounds | None, ...]:
    """Return per column what the files' keys may be, as far as whole numbers and dates say."""
    if lookup.conditions is not None and lookup.conditions.by_source:
        return ()  # unmatched rows are asked for
    types = {field.name: field.type for field in config.schema.fields}
    searched = [(key.target, not key.null_safe and key.value is None) for key in lookup.keys]
    if lookup.within is not None:
        searched = [(lookup.within.target, True)]
    refs = [
        Ref(Side.TARGET, (name,), types[name]) if types[name] in _NUMBERED and is_bounded else None
        for name, is_bounded in searched
    ]
    known = FileBounds(files, config, [ref for ref in refs if ref is not None], statistics)
    return tuple(None if ref is None else _column_bounds(known.find(ref)) for ref in refs)


def _column_bounds(bounds: Bounds | None) -> ColumnBounds | None:
    if bounds is None or bounds.low is None or bounds.high is None:
        return None
    (lows, has_low), (highs, has_high) = map(whole_numbers, (bounds.low, bounds.high))
    known = np.ones(len(lows), np.bool_)
    for has in (has_low, has_high):
        if has is not None:
            known &= has
    return ColumnBounds(known=known, lows=lows, highs=highs)


def read_columns(lookup: KeyLookup) -> set[str]:
    """Return the target columns that a lookup reads, by their logical names."""
    read = () if lookup.conditions is None else lookup.conditions.target_columns
    return {*lookup.searched.target_names, *(name for name, _ in read)}


def constants_of_files(
    config: TableConfig, files: FileTable, columns: set[str]
) -> Sequence[Constants]:
    """Return the partition values of each file in some columns; empty: none is one of them."""
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


def _counted(found: Sequence[FoundRows], source_base: int) -> CountedWords:
    counts = [len(rows.words) // _WORD_BYTES for rows in found]
    row_sets = [rows.clause + rows.of_source * source_base for rows in found]
    files = np.array([rows.file for rows in found], np.int64)
    words = np.frombuffer(b"".join(rows.words for rows in found), "<i8").astype(np.int64)
    return CountedWords(
        np.repeat(np.array(row_sets, np.int32), counts),
        words | np.repeat(files << WORD_INDEX_BITS, counts),
        np.frombuffer(b"".join(rows.bits for rows in found), "<u8").astype(np.uint64),
        np.frombuffer(b"".join(rows.hits for rows in found), "<i8").astype(np.int64),
    )
