"""The code that brings rows of several files together in a new one, inside a Spark worker.

Shipped by value: it knows the standard library, numpy and pyarrow only. Rows keep their order
and their values, only the names of columns change; what Arrow might read otherwise than Spark
is refused before anything is written. The answer is that of `puredelta.spark.split_task`.
"""

from __future__ import annotations

import inspect
import itertools
import os
import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.spark.probe_read_task import IncomparableError, Mask, require_one_calendar
from puredelta.spark.split_task import (
    ANSWER_SCHEMA,
    BATCH_ROWS,
    GROUP_BYTES_MAX,
    OUT_OF_REACH,
    SplitAnswer,
    UnreadableError,
    columns_with_nan,
    dictionary_columns,
    dropped_rows,
    readable,
    remove_file,
    serialized,
    unfaithful,
)


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


def gather_rows(order: GatherOrder) -> SplitAnswer:
    """Write the rows of ``order``; memory is bounded by one row group's share.

    What Spark could still do, such as reading what Arrow cannot, is answered as a refusal, and
    nothing is left behind; a full disk is raised.
    """
    extension = ".parquet" if order.codec == "none" else f".{order.codec}.parquet"
    name = f"{order.name_prefix}-{uuid.uuid4()}.c000{extension}"
    target = os.path.join(order.directory, name)  # noqa: PTH118 - text in, text out
    try:
        os.makedirs(order.directory, exist_ok=True)  # noqa: PTH103
        return _written(order, name, target)
    except (*OUT_OF_REACH, UnreadableError, IncomparableError) as reason:
        remove_file(target)
        return SplitAnswer(ordinal=order.ordinal, refusal=f"{type(reason).__name__}: {reason}")
    except BaseException:
        remove_file(target)
        raise


def _written(order: GatherOrder, name: str, target: str) -> SplitAnswer:
    schema = pa.schema([(written, kind) for _, written, kind in order.columns])
    footers: list[pq.FileMetaData] = []
    nan_columns: set[tuple[str, ...]] = set()
    num_rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in _groups(order, schema):
            if writer is None:
                options = _writer_options(order)
                writer = pq.ParquetWriter(target, schema, metadata_collector=footers, **options)
            nan_columns.update(columns_with_nan(table))
            writer.write_table(table, row_group_size=table.num_rows)
            num_rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return SplitAnswer(ordinal=order.ordinal)
    written = os.stat(target)  # noqa: PTH116
    return SplitAnswer(
        ordinal=order.ordinal,
        name=name,
        kept_rows=num_rows,
        size_bytes=written.st_size,
        modified_ms=written.st_mtime_ns // 1_000_000,
        footer=serialized(footers[0]),
        nan_columns=tuple(sorted(nan_columns)),
    )


def _groups(order: GatherOrder, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows in pieces, each for a row group of the new file.

    Raises:
        UnreadableError: Arrow cannot read them.
    """
    parts: list[pa.RecordBatch] = []
    size_bytes = 0
    every = (_batches(rows, order, schema) for rows in order.rows)
    for batch in readable(itertools.chain.from_iterable(every)):
        parts.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= GROUP_BYTES_MAX:
            yield pa.Table.from_batches(parts)
            parts, size_bytes = [], 0
    if parts:
        yield pa.Table.from_batches(parts)


def _batches(rows: Rows, order: GatherOrder, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    words, bits = np.frombuffer(rows.words, "<i8"), np.frombuffer(rows.bits, "<u8")
    stored = list(dict.fromkeys(name for name, _, _ in order.columns))
    first_row = rows.first_row
    with _opened(rows.path) as file:
        _require_alike(file, order)
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=list(rows.groups), columns=stored, use_threads=False
        ):
            marked = dropped_rows(words, bits, first_row, batch.num_rows)
            first_row += batch.num_rows
            chosen = _chosen(batch, marked, keeps=order.keeps)
            if chosen.num_rows:
                columns = [_of_type(kind, chosen[name]) for name, _, kind in order.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _opened(path: str) -> pq.ParquetFile:
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us", pre_buffer=False)


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
        IncomparableError: a column is missing or stored in another form.
    """
    if (reason := unfaithful(file)) is not None:
        raise IncomparableError(reason)
    schema = file.schema_arrow
    for name, _, kind in order.columns:
        if schema.names.count(name) != 1:
            raise IncomparableError(f"there is no column {name}, or more than one")
        stored = schema.field(name).type
        if pa.types.is_dictionary(stored):
            stored = stored.value_type
        int96 = pa.types.is_timestamp(kind) and stored == pa.timestamp("us")
        if stored != kind and not int96:
            raise IncomparableError(f"column {name} is stored as {stored}, not {kind}")


def _writer_options(order: GatherOrder) -> dict[str, Any]:
    options: dict[str, Any] = {
        "compression": order.codec,
        "use_dictionary": _dictionary_columns(order),
        "store_schema": False,
    }
    known = inspect.signature(pq.write_table).parameters
    for option in ("store_decimal_as_integer", "write_page_index"):
        if option in known:
            options[option] = True
    return options


def _dictionary_columns(order: GatherOrder) -> list[str] | bool:
    """Choose the columns for which the first file kept a dictionary."""
    with _opened(order.rows[0].path) as file:
        kept = dictionary_columns(file.metadata)
    names = kept if isinstance(kept, list) else []
    return [written for name, written, _ in order.columns if name in names] or False


def gather_if_able(payload: bytes, orders: Iterable[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Unpack `gather_tuples` from ``payload`` and run it; refuse if its libraries are missing.

    Itself it needs the standard library only, so it can be unpacked anywhere.
    """
    try:
        gather = pickle.loads(payload)  # noqa: S301 - our own code, on its way to us
    except ImportError as missing:
        reason = f"{type(missing).__name__} on a worker: {missing}"
        return [(order[0], None, 0, 0, 0, 0, b"", (), reason) for order in orders]
    answers: Sequence[tuple[Any, ...]] = gather(orders)
    return answers


def gather_tuples(orders: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Answer the fields of each `GatherOrder` with the fields of a `SplitAnswer`."""
    answers = [
        gather_rows(GatherOrder(ordinal, tuple(Rows(*one) for one in rows), *rest))
        for ordinal, rows, *rest in orders
    ]
    return [tuple(getattr(answer, name) for name in ANSWER_SCHEMA.names) for answer in answers]
