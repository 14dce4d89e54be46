"""Looks a small source's keys up in data files, in Arrow, inside Spark tasks.

Where ON is nothing but equality of plain columns this answers the same as a join of Spark's,
without broadcasting, shuffling or compiling anything: one Spark job. Needs workers with
Python, numpy and pyarrow that reach the storage themselves; otherwise the answer is
`Refused` and Spark joins.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import Any

import numpy as np
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from puredelta.log.deletion_vectors import read_positions
from puredelta.log.file_table import FileTable
from puredelta.protocol.partition_values import parse_partition_value
from puredelta.protocol.paths import absolute_uri
from puredelta.protocol.table_config import TableConfig
from puredelta.spark import probe_task
from puredelta.spark.bitmaps import WORD_INDEX_BITS, CountedWords
from puredelta.spark.data_file import DataFile
from puredelta.spark.rewriting import Refused
from puredelta.spark.row_bitmap import RowBitmap
from puredelta.spark.session import is_connect
from puredelta.spark.split_job import balanced, collect_in_workers, unfit_worker

cloudpickle.register_pickle_by_value(probe_task)  # type: ignore[no-untyped-call]

_TASK_BYTES = 256 * 1024 * 1024
"""Of data files: a task reads their key columns, and the source's keys once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A column of the table that must equal one of the staged source."""

    target: str
    """Logical name."""
    source: str
    null_safe: bool


def probe_keys(
    spark: SparkSession,
    config: TableConfig,
    files: FileTable,
    source_files: Sequence[DataFile],
    keys: Sequence[KeyColumn],
    *,
    root_uri: str,
    target_set: int | None,
    source_set: int | None,
) -> CountedWords | Refused:
    """Return the rows of ``files`` and of the source that have a partner. Runs one Spark job.

    They are counted per row of either side as a join would give pairs; sets are named as in
    `puredelta.spark.bitmaps.collect_words`, and one that is ``None`` is left out.
    """
    if is_connect(spark):
        return Refused(reason="no RDD on Spark Connect")
    paths = [_local_path(absolute_uri(root_uri, p)) for p in files.rows["path"].to_pylist()]
    staged = [_local_path(file.uri) for file in source_files]
    if None in paths or None in staged:
        return Refused(reason=f"no local file system under {root_uri}")
    columns = tuple((config.physical_name(k.target), k.source, k.null_safe) for k in keys)
    orders = _orders(config, files, paths, keys, root_uri)
    sizes = files.rows["size_bytes"].to_pylist()
    context = spark.sparkContext
    wanted = max(context.defaultParallelism, -(-sum(sizes) // _TASK_BYTES))
    batches = balanced(orders, sizes, num_batches=min(len(orders), wanted))
    payload: bytes = cloudpickle.dumps(probe_task.probe_tuples)  # type: ignore[no-untyped-call]
    work = functools.partial(probe_task.probe_if_able, payload, (columns, tuple(staged)))
    try:
        answers = collect_in_workers(context, batches, work)
    except Exception as failure:
        if (reason := unfit_worker(failure)) is None:
            raise
        return Refused(reason=reason)
    if (refusal := next((reason for reason, _ in answers if reason), None)) is not None:
        return Refused(reason=refusal)
    return _counted(
        [found for _, task in answers for found in task],
        {False: target_set, True: source_set},
    )


def _orders(
    config: TableConfig,
    files: FileTable,
    paths: Sequence[str | None],
    keys: Sequence[KeyColumn],
    root_uri: str,
) -> list[tuple[Any, ...]]:
    deleted = read_positions(files, root_uri)
    partitions = {
        config.physical_name(f.name): f.type
        for f in config.partition_schema.fields
        if any(key.target == f.name for key in keys)
    }
    values = [dict(v or ()) for v in files.rows["partition_values"].to_pylist()]
    orders = []
    for ordinal, (path, parts) in enumerate(zip(paths, values, strict=True)):
        rows = RowBitmap.of_rows(deleted[ordinal]) if ordinal in deleted else RowBitmap.empty()
        constants = tuple(
            (name, parse_partition_value(parts.get(name), kind, timezone.utc))
            for name, kind in partitions.items()
        )
        words, bits = rows.words.astype("<i8").tobytes(), rows.bits.astype("<u8").tobytes()
        orders.append((ordinal, path, constants, words, bits))
    return orders


def _counted(found: Sequence[probe_task.Found], sets: dict[bool, int | None]) -> CountedWords:
    row_sets, words = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    bits, hits = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for of_source, file, packed in found:
        row_set = sets[of_source]
        if row_set is None:
            continue
        index = np.frombuffer(packed[0], "<i8").astype(np.int64)
        row_sets.append(np.full(len(index), row_set, np.int32))
        words.append(index | (file << WORD_INDEX_BITS))
        bits.append(np.frombuffer(packed[1], "<u8").astype(np.uint64))
        hits.append(np.frombuffer(packed[2], "<i8").astype(np.int64))
    return CountedWords(
        np.concatenate(row_sets), np.concatenate(words), np.concatenate(bits), np.concatenate(hits)
    )


def _local_path(uri: str) -> str | None:
    return uri.removeprefix("file:") if uri.startswith("file:/") else None
