"""New values of some columns, computed by the worker that writes them into a file.

Values are computed from columns of the file itself, and from rows of a statement's source. Target
rows are known by bitmaps, and their source rows are found by their keys, so nothing but the order
comes from the driver, and nothing is shuffled. What Arrow does not compute as Spark does is an
error of Arrow (`puredelta.spark.offload.arrow_values`): the file is left to Spark.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from puredelta.worker.data_files.copy_rows import in_type, require_stored_as
from puredelta.worker.data_files.rewrite_file import rewrite_with_values
from puredelta.worker.data_files.updated_file import (
    FileUpdate,
    GroupRows,
    Positions,
    columns_of_group,
    update_file,
)
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer, refused
from puredelta.worker.expressions import Expression, InputColumn, evaluated_rows
from puredelta.worker.files import DataPath
from puredelta.worker.lookup.conditions import Pairs, ResidualConditions, TargetColumns
from puredelta.worker.lookup.key_index import KeyIndex, Numbers
from puredelta.worker.lookup.key_lookup import compared_column, key_column
from puredelta.worker.lookup.lookup_read import (
    cast_to,
    in_one_array,
    longest_text,
    one_column,
    require_columns,
    searched_values,
)
from puredelta.worker.lookup.lookup_request import Constants, KeyColumn, Searched
from puredelta.worker.lookup.range_index import KeyRange, RangeIndex
from puredelta.worker.range_file import fetched_ahead
from puredelta.worker.read_rows import (
    OnlySparkError,
    dropped_rows,
    opened,
    read_batches,
    require_one_calendar,
)
from puredelta.worker.wire import LIMITS, Fields, Limits, codec_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSource:
    """The rows of a source from which values are computed, and how a target row finds its own."""

    files: tuple[DataPath, ...] = ()
    rows: tuple[tuple[bytes, bytes], ...] | None = None
    """For each file words and bits of its matched rows; ``None``: any row may be one."""
    keys: tuple[KeyColumn, ...]
    within: KeyRange | None = None
    """What finds pairs where there are no keys."""
    on: ResidualConditions | None
    """What else makes a pair, where a key has several rows."""
    target: pa.Schema
    """Columns of the files that ``keys`` and ``on`` read."""
    columns: pa.Schema
    """Columns that values read, by their names in the source's files."""

    @property
    def searched(self) -> Searched:
        """What finds the pairs."""
        return Searched(keys=self.keys, within=self.within)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedValues:
    """The values of some clauses."""

    schema: pa.Schema
    """The columns that change, by their names in files."""
    reads: pa.Schema
    """The columns of the file that values are computed from."""
    clauses: tuple[tuple[Expression, ...], ...]
    """For each clause an expression for each column of ``schema``."""
    required: tuple[str, ...] = ()
    """The columns of ``schema`` that have no NULL."""
    source: MatchedSource | None = None
    """``None``: no value reads one."""
    limits: Limits = LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedFile:
    """A file, and the rows of each clause in it."""

    update: FileUpdate
    rows: tuple[tuple[bytes, bytes], ...]
    """For each clause the words and bits of a bitmap."""
    constants: Constants = ()
    """Partition columns among those of `MatchedSource`."""


COMPUTED_VALUES = codec_of(ComputedValues)
COMPUTED_FILES = codec_of(ComputedFile)


def compute_rows(message: tuple[Fields, Iterable[Fields]]) -> list[Fields]:
    """Write the files of a task; return the fields of a `FileAnswer` per file."""
    fields, files = message
    values = COMPUTED_VALUES.decode(fields)
    orders = [COMPUTED_FILES.decode(file) for file in files]
    try:
        source = None if values.source is None else _Source.read(values.source, values.limits)
    except (OSError, pa.ArrowException, OnlySparkError, MemoryError) as failure:
        answers = [refused(one.update.ordinal, f"the source: {failure}") for one in orders]
    else:
        ahead = fetched_ahead(orders, lambda order: order.update.source, whole=True)
        answers = [_written(order, values, source) for order in ahead]
    return [FILE_ANSWERS.encode(answer) for answer in answers]


def _written(file: ComputedFile, values: ComputedValues, source: _Source | None) -> FileAnswer:
    new = functools.partial(_new_values, file, values, source)
    reads = values.reads
    if source is not None:
        reads = pa.unify_schemas([reads, source.wanted.target])
    write = rewrite_with_values if any(file.update.leaving) else update_file
    return write(file.update, values.schema, new, values.limits, reads=reads)


def _new_values(
    file: ComputedFile, values: ComputedValues, source: _Source | None, rows: GroupRows
) -> tuple[Positions, pa.Table]:
    """Return positions and values of the changed rows of a row group."""
    found = [_places(words, bits, rows) for words, bits in file.rows]
    places: Positions = np.concatenate(found)
    if not len(places):
        return places, values.schema.empty_table()
    group = _Group(
        rows=rows,
        old=columns_of_group(rows.source, rows.group, values.reads),
        constants=dict(file.constants),
        source=source,
    )
    parts = [
        _evaluated(values, expressions, _Columns(group, at))
        for expressions, at in zip(values.clauses, found, strict=True)
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
    values: ComputedValues, new: Sequence[Expression], columns: _Columns
) -> pa.RecordBatch:
    """Return the new values of the rows of one clause."""
    column = functools.cache(columns.column)
    try:
        found = [
            _of_kind(evaluated_rows(one, column, len(columns.at)), field)
            for one, field in zip(new, values.schema, strict=True)
        ]
    except (pa.ArrowException, ArithmeticError, ValueError) as failure:
        raise OnlySparkError(f"new values: {failure}") from failure
    rows = pa.RecordBatch.from_arrays(found, schema=values.schema)
    for name in values.required:
        if rows[name].null_count:
            raise OnlySparkError(f"a NULL in column {name}, which has none")
    return rows


def _of_kind(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type != field.type:
        raise OnlySparkError(f"new values of {field.name} are {values.type}, not {field.type}")
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A row group with changed rows."""

    rows: GroupRows
    old: Mapping[str, pa.Array]
    """The columns that values read."""
    constants: Mapping[str, object]
    source: _Source | None


class _Columns:
    """The columns of the rows of one clause in a row group, each read when a value asks for it."""

    def __init__(self, group: _Group, at: Positions) -> None:
        self._group = group
        self._paired: pa.Array | None = None
        self.at = at

    def column(self, column: InputColumn) -> pa.Array:
        """Return a column of the file, or of the source rows that the rows are paired with."""
        name = str(column.name)
        if column.side == "target":
            return self._group.old[name].take(pa.array(self.at))
        if (source := self._group.source) is None:
            raise OnlySparkError("a value of a source that is not there")
        if self._paired is None:
            self._paired = self._source_rows(source)
        return source.columns[name].take(self._paired)

    def _source_rows(self, source: _Source) -> pa.Array:
        group, rows = self._group, self._group.rows
        columns = columns_of_group(rows.source, rows.group, source.wanted.target)
        known = {name: column.take(pa.array(self.at)) for name, column in columns.items()}
        for name, value in group.constants.items():
            known[name] = pa.repeat(pa.scalar(value), len(self.at))
        return pa.array(source.rows_of(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The rows of a source by their keys."""

    wanted: MatchedSource
    limits: Limits
    index: KeyIndex | RangeIndex
    kinds: tuple[pa.DataType, ...]
    """Of the key's columns."""
    columns: Mapping[str, pa.Array]
    """Those that values read."""
    read_by_conditions: tuple[pa.Array, ...]

    @classmethod
    def read(cls, wanted: MatchedSource, limits: Limits) -> _Source:
        """Read the matched rows; their memory was planned by the driver."""
        read = () if wanted.on is None else wanted.on.source_columns
        keys = wanted.searched.source_names
        names = list(dict.fromkeys([*keys, *wanted.columns.names, *(name for name, _ in read)]))
        marks = wanted.rows or [None] * len(wanted.files)
        tables = [
            _rows_of_file(path, names, wanted.columns, mark, limits)
            for path, mark in zip(wanted.files, marks, strict=True)
        ]
        whole = {name: one_column(tables, name) for name in names}
        del tables
        columns = [key_column(whole[name]) for name in keys]
        return cls(
            wanted=wanted,
            limits=limits,
            index=wanted.searched.index(columns),
            kinds=wanted.searched.kinds(columns),
            columns={f.name: in_type(f.type, in_one_array(whole[f.name])) for f in wanted.columns},
            read_by_conditions=tuple(
                in_one_array(compared_column(kind, whole[name])) for name, kind in read
            ),
        )

    def rows_of(self, target: Mapping[str, pa.Array]) -> Numbers:
        """Return the source row of each target row, given the columns that find it.

        Raises:
            OnlySparkError: a target row has none or several.
        """
        searched = self.wanted.searched
        keys = [
            cast_to(kind, searched_values(searched, place, target[name]))
            for place, (name, kind) in enumerate(
                zip(searched.target_names, self.kinds, strict=True)
            )
        ]
        num_rows = len(keys[0])
        found, numbers = self.index.lookup(keys)
        if (num_pairs := int(self.index.counts[numbers].sum())) > self.limits.lookup_pairs:
            raise OnlySparkError(f"{num_pairs} pairs of equal keys at a time")
        at, rows = self.index.source_rows(numbers)
        at = found[at]
        if len(at) > len(found) and self.wanted.on is not None:
            fits = self._fitting(self.wanted.on, target, at, rows)
            at, rows = at[fits], rows[fits]
        if len(at) != num_rows or np.any(at != np.arange(num_rows)):
            raise OnlySparkError("changed rows that have no source row, or several")
        return rows

    def _fitting(
        self, on: ResidualConditions, target: Mapping[str, pa.Array], at: Numbers, rows: Numbers
    ) -> Numbers:
        """Return the places of the pairs for which the conditions beside equal keys are true."""
        columns = [cast_to(kind, target[name]) for name, kind in on.target_columns]
        row_bytes = 1 + sum(map(longest_text, (*columns, *self.read_by_conditions)))
        pairs = Pairs(
            target=_RowColumns(columns),
            target_rows=at,
            source=self.read_by_conditions,
            source_rows=rows,
            at_a_time=max(1, LIMITS.read_bytes // row_bytes),
        )
        return np.flatnonzero(pairs.is_true(on.on))


@dataclass(frozen=True, slots=True)
class _RowColumns(TargetColumns):
    """The columns of the changed rows that conditions read."""

    columns: Sequence[pa.Array]

    def take(self, place: int, rows: Numbers) -> pa.Array:
        """Return the values of one column in some rows."""
        values = self.columns[place].take(pa.array(rows))
        require_one_calendar(values)
        return values

    def cost(self, place: int, rows: Numbers) -> int:  # noqa: ARG002 - they are read
        """Return 0: the values are there."""
        return 0


def _rows_of_file(
    path: DataPath,
    names: Sequence[str],
    columns: pa.Schema,
    marked: tuple[bytes, bytes] | None,
    limits: Limits,
) -> pa.Table:
    """Return the marked rows of a file of the source, or all of them."""
    file = opened(path, describes=True)
    require_columns(path, file.schema_arrow, names)
    require_stored_as(file, list(zip(columns.names, columns.types, strict=True)), limits)
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    kept = [pa.RecordBatch.from_pylist([], schema=schema)]
    first_row = 0
    for batch in read_batches(file, None, columns=names, batch_rows=limits.read_rows):
        chosen = batch.select(list(names))
        if marked is not None:
            flags = dropped_rows(*marked, first_row, batch.num_rows)
            chosen = chosen.slice(0, 0) if flags is None else chosen.filter(pa.array(flags))
        first_row += batch.num_rows
        kept.append(chosen)
    return pa.Table.from_batches(kept)
