"""New values of some columns, computed from the columns of their own file, and written into it.

The rows are known by bitmaps, so nothing but the order comes from the driver, and nothing is
shuffled. What Arrow does not compute as Spark does is an error of Arrow
(`puredelta.spark.offload.arrow_values`): the file is left to Spark.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from puredelta.worker.calls import Call, evaluated_rows
from puredelta.worker.data_files.updated_file import (
    FileUpdate,
    GroupRows,
    Positions,
    columns_of_group,
    update_file,
)
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.read_rows import OnlySparkError, dropped_rows
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedValues:
    """The values of some clauses."""

    schema: pa.Schema
    """The columns that change, by their names in files."""
    reads: pa.Schema
    """The columns that values are computed from."""
    clauses: tuple[tuple[Call, ...], ...]
    """For each clause a call for each column of ``schema``."""
    limits: Limits = LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedFile:
    """A file, and the rows of each clause in it."""

    update: FileUpdate
    rows: tuple[tuple[bytes, bytes], ...]
    """For each clause the words and bits of a bitmap."""


COMPUTED_VALUES = codec_of(ComputedValues)
COMPUTED_FILES = codec_of(ComputedFile)


def compute_rows(message: tuple[Fields, Iterable[Fields]]) -> list[Fields]:
    """Write the files of a task; return the fields of a `FileAnswer` per file."""
    fields, files = message
    values = COMPUTED_VALUES.decode(fields)
    return [FILE_ANSWERS.encode(_written(COMPUTED_FILES.decode(file), values)) for file in files]


def _written(file: ComputedFile, values: ComputedValues) -> FileAnswer:
    new = functools.partial(_new_values, file.rows, values)
    return update_file(file.update, values.schema, new, values.limits, reads=values.reads)


def _new_values(
    bitmaps: Sequence[tuple[bytes, bytes]], values: ComputedValues, rows: GroupRows
) -> tuple[Positions, pa.Table]:
    """Return positions and values of the changed rows of a row group."""
    found = [_places(words, bits, rows) for words, bits in bitmaps]
    places: Positions = np.concatenate(found)
    if not len(places):
        return places, values.schema.empty_table()
    old = columns_of_group(rows.source, rows.group, values.reads)
    parts = [
        _evaluated(values, calls, old, at)
        for calls, at in zip(values.clauses, found, strict=True)
        if len(at)
    ]
    order = np.argsort(places, kind="stable")
    new = pa.Table.from_batches(parts).take(pa.array(order))
    return places[order] + rows.first_row, new


def _places(words: bytes, bits: bytes, rows: GroupRows) -> Positions:
    flags = dropped_rows(words, bits, rows.first_row, rows.end - rows.first_row)
    none: Positions = np.empty(0, np.int64)
    return none if flags is None else np.flatnonzero(flags).astype(np.int64)


def _evaluated(
    values: ComputedValues, calls: Sequence[Call], old: dict[str, pa.Array], at: Positions
) -> pa.RecordBatch:
    """Return the new values of the rows of one clause."""

    @functools.cache
    def column(_: str, name: str) -> pa.Array:
        return old[name].take(pa.array(at))

    try:
        columns = [
            _of_kind(evaluated_rows(call, column, len(at)), field)
            for call, field in zip(calls, values.schema, strict=True)
        ]
    except (pa.ArrowException, ArithmeticError, ValueError) as failure:
        raise OnlySparkError(f"new values: {failure}") from failure
    return pa.RecordBatch.from_arrays(columns, schema=values.schema)


def _of_kind(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type != field.type:
        raise OnlySparkError(f"new values of {field.name} are {values.type}, not {field.type}")
    return values
