"""Whether a condition is true of all rows of a small source, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from puredelta.commands.dml.source.context import StatementContext
from puredelta.protocol.values.predicates import Predicate
from puredelta.spark.offload.arrow_predicate import Translation
from puredelta.store.local_files import open_file
from puredelta.worker.lookup.conditions import Call, Pairs, TargetColumns
from puredelta.worker.lookup.key_index import Numbers
from puredelta.worker.lookup.lookup_read import cast_to
from puredelta.worker.read_rows import OnlySparkError, require_one_calendar
from puredelta.worker.sound_kinds import sound_parquet


def all_rows_fulfil(context: StatementContext, predicate: Predicate, target: T.StructType) -> bool:
    """Tell whether Arrow finds a condition true of every source row; False if it cannot tell.

    The condition is on columns of the target, and is asked of the source's columns of the same
    names and types. Only a small source that is read in place is looked at.
    """
    statement, source = context.statement, context.source
    if source.num_rows > context.settings.key_limits.rows_max:
        return False
    translation = Translation(inexact=statement.config.padded_columns)
    call = translation.call(predicate)
    if call is None or source.in_place is None:
        return False
    names: list[str] = []
    for name in translation.target:
        same = [c for c in statement.source_columns if c.name.lower() == name.lower()]
        if len(same) != 1 or same[0].type != target[name].dataType:
            return False
        names.append(source.names.in_file(same[0].staged))
    try:
        return all(
            _is_true(call, file.uri, names, list(translation.target.values()))
            for file in source.files
        )
    except (OSError, pa.ArrowException, OnlySparkError):
        return False  # a job says what is wrong


def _is_true(call: Call, uri: str, names: Sequence[str], kinds: Sequence[pa.DataType]) -> bool:
    """Tell whether a call is true of every row of a file."""
    with open_file(uri) as opened:
        table = sound_parquet(opened, coerce_int96_timestamp_unit="us").read(columns=list(names))
    columns = _Columns(
        [
            pa.chunked_array(
                [cast_to(kind, chunk) for chunk in table[name].chunks], kind
            ).combine_chunks()
            for kind, name in zip(kinds, names, strict=True)
        ]
    )
    pairs = Pairs(target=columns, target_rows=np.arange(table.num_rows))
    return bool(pairs.is_true(call).all())


class _Columns(TargetColumns):
    """Columns of a small source, in memory."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        for column in columns:
            require_one_calendar(column)
        self._columns = columns

    def take(self, place: int, rows: Numbers) -> pa.Array:
        return pc.take(self._columns[place], pa.array(rows))

    def cost(self, place: int, rows: Numbers) -> int:  # noqa: ARG002
        return 0
