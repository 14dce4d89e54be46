"""Writes the rows of a task of Spark to new data files, inside its worker.

Rows of a partition follow each other, so that one file is open at a time. The last columns of a
batch are the partition's values as texts, and before them, where a job writes change files too,
whether a row is for one.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from puredelta.worker.data_files.copy_rows import HIVE_NULL
from puredelta.worker.data_files.write_file import (
    FILE_ANSWERS,
    OUT_OF_REACH,
    FileAnswer,
    filter_options,
    known_options,
    new_encodings,
    refused,
    row_groups,
    write_file,
)
from puredelta.worker.file_columns import ColumnRules, as_stored, plain_schema
from puredelta.worker.files import DataPath, joined, make_directory
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of

_RULES = ColumnRules(case_sensitive=True)
DATA, CHANGES = 0, 1
"""What the ``ordinal`` of an answer says of the file."""

_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOrder:
    """How the rows of every task of one job are written."""

    schema: pa.Schema
    """Of the first columns of a batch; files hold geometries in types of their own."""
    directory: DataPath
    changes_directory: DataPath | None
    """Where change files go; ``None``: there are none."""
    partition_columns: tuple[str, ...]
    """As directories spell them."""
    escapes: Mapping[int, str]
    """What stands for some characters of a value in the name of a directory."""
    codec: str
    file_rows: int
    """How many rows a file has at most; 0: any number."""
    limits: Limits = LIMITS


WRITE_ORDERS = codec_of(WriteOrder)


@dataclass(frozen=True, slots=True)
class _FileOrder:
    ordinal: int
    directory: DataPath
    name_prefix: str


def write_stream(message: Fields, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task; yield the pickled fields of a `FileAnswer` per file."""
    for answer in write_rows(WRITE_ORDERS.decode(message), batches):
        packed = pickle.dumps(FILE_ANSWERS.encode(answer))
        yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], ["answer"])


def write_rows(order: WriteOrder, batches: Iterable[pa.RecordBatch]) -> Iterator[FileAnswer]:
    """Yield what became of every file. What this worker cannot do is answered as a refusal."""
    runs = itertools.groupby(_runs(order, batches), key=lambda run: run[0])
    for number, (key, some) in enumerate(runs):
        values = key[:-1]
        is_change = order.changes_directory is not None and bool(values[0])
        texts = values if order.changes_directory is None else values[1:]
        at = "/".join(
            f"{name}={HIVE_NULL if text is None else text.translate(order.escapes)}"
            for name, text in zip(order.partition_columns, texts, strict=True)
        )
        root = order.changes_directory if is_change else order.directory
        directory = joined(order.directory if root is None else root, at)
        file = _FileOrder(
            CHANGES if is_change else DATA,
            directory,
            f"{'cdc' if is_change else 'part'}-{number:05d}",
        )
        try:
            make_directory(directory)
        except OUT_OF_REACH as failure:
            yield refused(file.ordinal, failure)
            return
        answer = write_file(
            file,
            row_groups((batch for _, batch in some), limits=order.limits),
            schema=order.schema,
            codec=order.codec,
            options=partial(_writer_options, order.limits),
        )
        name = answer.name and "/".join(part for part in (at, answer.name) if part)
        yield replace(answer, name=name, partition=texts)


def _runs(
    order: WriteOrder, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[_Key, pa.RecordBatch]]:
    """Yield rows of one file each: what the file is known by, the values of its partition first."""
    known: _Key | None = None
    number = num_rows = 0
    for batch in filter(len, batches):
        stored = _stored(order, batch)
        for values, start, end in _same_values(batch.columns[len(order.schema) :], len(batch)):
            if values != known:
                known, number, num_rows = values, 0, 0
            at = start
            while at < end:
                count = min(end - at, order.file_rows - num_rows) if order.file_rows else end - at
                yield (*values, number), stored.slice(at, count)
                at, num_rows = at + count, num_rows + count
                if num_rows == order.file_rows:
                    number, num_rows = number + 1, 0


def _stored(order: WriteOrder, batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = plain_schema(order.schema)
    columns = [
        as_stored(column, field.type, _RULES)
        for column, field in zip(batch.columns, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _same_values(columns: list[pa.Array], num_rows: int) -> Iterator[tuple[_Key, int, int]]:
    """Yield runs of rows that have the same values, and where they begin and end."""
    changes = np.zeros(num_rows - 1, np.bool_)
    for column in columns:
        places = column.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
        changes |= places[1:] != places[:-1]
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], num_rows], strict=True):
        yield tuple(_value(column[start]) for column in columns), start, end


def _value(scalar: pa.Scalar) -> Any:
    """Return a value; what is no UTF-8 in a text becomes U+FFFD, as in partitions of Spark."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode(errors="replace")


def _writer_options(limits: Limits, rows: pa.Table) -> dict[str, Any]:
    return {
        **new_encodings(rows),
        **filter_options(limits.filters, rows.num_rows),
        "store_schema": False,
        **known_options(store_decimal_as_integer=True, write_page_index=True),
    }
