"""The keys of a small source themselves: a range says little of scattered values."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.commands.dml.resolve.statement import EquiPair
from puredelta.commands.dml.source.staged_source import ColumnNames
from puredelta.commands.dml.spec.settings import KeyLimits
from puredelta.protocol.schema.types import INTEGRAL, DecimalType, PrimitiveType
from puredelta.protocol.table.stats import LeafPath
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.source.in_place import plain_type
from puredelta.spark.source.staging import StagedRows
from puredelta.worker.lookup.key_index import run_starts
from puredelta.worker.sound_kinds import sound_parquet


def read_distinct_keys(
    staged: StagedRows,
    pairs: Iterable[EquiPair],
    names: ColumnNames,
    *,
    limits: KeyLimits,
    open_file: Callable[[DataFile], BinaryIO],
) -> Mapping[LeafPath, Sequence[Any]]:
    """Return all values but NULL of the keys of ``pairs``, by staged path, where they are few."""
    if staged.num_rows > limits.rows_max:
        return {}
    columns = {
        pair.source.path: (names.in_file(pair.source.path[0]), pair.source.type)
        for pair in pairs
        if len(pair.source.path) == 1
        and isinstance(pair.source.type, PrimitiveType | DecimalType)
        and pair.target.type == pair.source.type
    }
    if not columns or not staged.files:
        return {}
    wanted = sorted({column for column, _ in columns.values()})
    tables = []
    for file in staged.files:
        with open_file(file) as opened:
            tables.append(sound_parquet(opened).read(columns=wanted))
    found = {
        path: _whole_numbers([table[column] for table in tables])
        if kind in INTEGRAL
        else _values([table[column] for table in tables], limits.values_max)
        for path, (column, kind) in columns.items()
    }
    return {path: values for path, values in found.items() if values is not None}


def _whole_numbers(parts: Sequence[pa.ChunkedArray]) -> Sequence[Any]:
    values = _united([part.cast(pa.int64()) for part in parts])
    numbers = np.sort(pc.drop_null(values).to_numpy())  # a fifth of the time of np.unique
    return array("q", numbers[run_starts(numbers)].tobytes())


def _values(parts: Sequence[pa.ChunkedArray], values_max: int) -> Sequence[Any] | None:
    values = _united([part.cast(plain_type(part.type)) for part in parts])
    distinct = pc.drop_null(pc.unique(values))
    if len(distinct) > values_max:
        return None
    try:
        return tuple(distinct.to_pylist())
    except UnicodeDecodeError:  # Spark's texts may be any bytes; such keys are looked up as bytes
        return None


def _united(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
