"""The code that brings rows of several files together in a new one, inside a Spark worker.

Shipped by value: it knows the standard library, numpy, pyarrow and modules like it only. Rows
keep their order and their values, only the names of columns change; what Arrow might read
otherwise than Spark is refused.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.spark.file_rows_task import (
    Mask,
    OnlySparkError,
    dropped_rows,
    opened,
    read_batches,
    unfaithful,
)
from puredelta.spark.new_file_task import (
    OUT_OF_REACH,
    FileAnswer,
    as_tuples,
    dictionary_columns,
    grouped,
    known_options,
    refused,
    write_file,
)
from puredelta.spark.probe_read_task import require_one_calendar


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one file."""

    path: str
    groups: tuple[int, ...]
    """Row groups that follow each other; no others are read."""
    first_row: int
    """The position of their first row in the file."""
    words: bytes
    """Little-endian int64: runs of 64 rows, as in `puredelta.spark.split_task.SplitOrder`."""
    bits: bytes


@dataclass(frozen=True, slots=True)
class GatherOrder:
    """Write rows of some files to one new file in ``directory``."""

    ordinal: int
    rows: tuple[Rows, ...]
    keeps: bool
    """Whether bitmaps say which rows are written, or which are not."""
    columns: tuple[tuple[str, str, pa.DataType], ...]
    """Name inside the files, name and type in the new one."""
    directory: str
    name_prefix: str
    codec: str


def gather_rows(order: GatherOrder) -> FileAnswer:
    """Write the rows of ``order``; memory is bounded by one row group's share.

    What Spark could still do, such as reading what Arrow cannot, is answered as a refusal, and
    nothing is left behind; a full disk is raised.
    """
    try:
        os.makedirs(order.directory, exist_ok=True)  # noqa: PTH103
    except OUT_OF_REACH as failure:
        return refused(order.ordinal, failure)
    schema = pa.schema([(written, kind) for _, written, kind in order.columns])
    every = (_batches(rows, order, schema) for rows in order.rows)
    return write_file(
        order,
        grouped(itertools.chain.from_iterable(every)),
        schema=schema,
        codec=order.codec,
        options=functools.partial(_writer_options, order),
    )


def _batches(rows: Rows, order: GatherOrder, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    words, bits = np.frombuffer(rows.words, "<i8"), np.frombuffer(rows.bits, "<u8")
    stored = list(dict.fromkeys(name for name, _, _ in order.columns))
    first_row = rows.first_row
    with opened(rows.path) as file:
        _require_alike(file, order)
        for batch in read_batches(file, rows.groups, columns=stored):
            marked = dropped_rows(words, bits, first_row, batch.num_rows)
            first_row += batch.num_rows
            chosen = _chosen(batch, marked, keeps=order.keeps)
            if chosen.num_rows:
                columns = [_of_type(kind, chosen[name]) for name, _, kind in order.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _chosen(batch: pa.RecordBatch, marked: Mask | None, *, keeps: bool) -> pa.RecordBatch:
    if marked is None:
        return batch.slice(0, 0) if keeps else batch
    return batch.filter(pa.array(marked if keeps else ~marked))


def _of_type(kind: pa.DataType, column: pa.Array) -> pa.Array:
    values = column if column.type == kind else column.cast(kind)
    require_one_calendar(values)
    return values


def _require_alike(file: pq.ParquetFile, order: GatherOrder) -> None:
    """Refuse files of which Spark might read other values.

    Raises:
        OnlySparkError: a column is missing or stored in another form.
    """
    if (reason := unfaithful(file)) is not None:
        raise OnlySparkError(reason)
    schema = file.schema_arrow
    for name, _, kind in order.columns:
        if schema.names.count(name) != 1:
            raise OnlySparkError(f"there is no column {name}, or more than one")
        stored = schema.field(name).type
        if pa.types.is_dictionary(stored):
            stored = stored.value_type
        int96 = pa.types.is_timestamp(kind) and stored == pa.timestamp("us")
        if stored != kind and not int96:
            raise OnlySparkError(f"column {name} is stored as {stored}, not {kind}")


def _writer_options(order: GatherOrder) -> dict[str, Any]:
    return {
        "use_dictionary": _dictionary_columns(order) or False,
        "store_schema": False,
        **known_options(store_decimal_as_integer=True, write_page_index=True),
    }


def _dictionary_columns(order: GatherOrder) -> list[str]:
    """Choose the columns for which the first file kept a dictionary."""
    with opened(order.rows[0].path) as file:
        names = dictionary_columns(file.metadata)
    return [written for name, written, _ in order.columns if name in names]


def gather_tuples(orders: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Answer the fields of each `GatherOrder` with the fields of a `FileAnswer`."""
    return as_tuples(
        gather_rows(GatherOrder(ordinal, tuple(Rows(*one) for one in rows), *rest))
        for ordinal, rows, *rest in orders
    )
