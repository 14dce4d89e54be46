"""Data files in which some columns of some rows get other values, and every row keeps its place.

Only the changed columns of row groups with a changed row are decoded, and they are encoded if a new
value differs from the old one; all other chunks are copied as bytes. A column that the file lacks,
or stores in another way than Arrow would now, is written in all row groups.

Traps this module knows:

* Spark's own schema and Arrow's among the key-value pairs describe columns: they are left out where
  a column is added or its type changes.
* Dates and timestamps of a file that is marked as of the hybrid calendar are converted by its
  readers: new values would be, too. Such a file is left to Spark.
* A NULL where the file says that there is none changes the schema of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.worker.data_files.byte_ranges import ByteRanges, byte_ranges
from puredelta.worker.data_files.copied_groups import decimal_options
from puredelta.worker.data_files.spliced_file import (
    ParquetBytes,
    SplicedFile,
    encoded_rows,
    leaves_at,
    mistaken_leaves,
)
from puredelta.worker.data_files.write_file import (
    FileAnswer,
    columns_with_nan,
    copied_encodings,
    filter_options,
    filter_rates,
    float_leaves,
    in_new_file,
    known_options,
    new_encodings,
    refused,
    written_leaves,
)
from puredelta.worker.file_columns import ColumnRules, as_stored
from puredelta.worker.files import DataPath, NewFile, label
from puredelta.worker.footers.footer_parts import Chunk, FooterColumn
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError
from puredelta.worker.read_rows import (
    LEGACY_INT96,
    SPARK_VERSION,
    OnlySparkError,
    OpenFile,
    names_no_calendar,
    opened,
    read_batches,
    require_kept_rules,
    require_read_alike,
    unfaithful,
)
from puredelta.worker.wire import LIMITS, Limits

_RULES = ColumnRules(case_sensitive=True)
_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
_DESCRIPTIONS = (b"ARROW:schema", b"org.apache.spark.sql.parquet.row.metadata", b"pandas")
"""Keys of other descriptions of the columns."""
_CODECS = {"LZ4_RAW": "lz4", "UNCOMPRESSED": "none"}
_ARROW_CODECS = frozenset({"snappy", "gzip", "brotli", "zstd", "lz4"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUpdate:
    """A file of which some rows get new values of some columns."""

    ordinal: int
    source: DataPath
    directory: DataPath
    name_prefix: str
    num_updates: int
    """How many rows get new values."""
    leaving: tuple[bytes, bytes] = (b"", b"")
    """Words and bits of the rows that leave the file, as in `RewriteTask`."""
    touched: tuple[bytes, bytes] = (b"", b"")
    """The same of these and of the rows that get new values; only if some leave."""


Positions: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRows:
    """The rows of a row group."""

    source: OpenFile
    group: int
    first_row: int
    end: int


NewValues: TypeAlias = Callable[[GroupRows], tuple[Positions, pa.Table]]
"""Returns the positions, ascending, of the changed rows of a row group, and their values."""


def update_file(
    task: FileUpdate,
    schema: pa.Schema,
    values: NewValues,
    limits: Limits = LIMITS,
    *,
    reads: pa.Schema | None = None,
) -> FileAnswer:
    """Write a file again with new values in the columns of ``schema``, whose types the table has.

    ``reads`` are further columns that ``values`` reads.
    Memory is bounded by these columns of one row group. What only Spark can do is answered as a
    refusal, and a full disk is raised; nothing is left then.
    """
    try:
        source = opened(task.source, describes=True)
        require_known(source, schema, limits)
        require_kept_rules(source, limits)
        if reads is not None:
            require_known(source, reads, limits)
        old = ParquetBytes.of(byte_ranges(task.source, source.ranges))
        update = _Update(task=task, schema=schema, source=source, old=old, values=values)
        return in_new_file(task, update.codecs()[0], update.written)
    except (OnlySparkError, UnsupportedLayoutError, MemoryError) as failure:
        return refused(task.ordinal, f"{label(task.source)}: {failure}")


def require_known(source: OpenFile, schema: pa.Schema, limits: Limits) -> None:
    """Refuse a file whose values Spark reads otherwise, or whose columns are not found by name.

    Raises:
        OnlySparkError: it is such a file.
    """
    require_read_alike(source, limits.only_spark, schema.names)
    if (reason := unfaithful(source, schema.names)) is not None:
        raise OnlySparkError(reason)
    marks = source.metadata.metadata or {}
    has_times = any(map(_has_times, schema.types))
    if has_times and (_LEGACY_CALENDAR in marks or LEGACY_INT96 in marks):
        raise OnlySparkError("dates in the hybrid calendar")
    if has_times and names_no_calendar(source, limits.only_spark):
        raise OnlySparkError(f"dates without {SPARK_VERSION.decode()}")
    present = [name.lower() for name in source.schema_arrow.names]
    for name in schema.names:
        if present.count(name.lower()) > 1 or (
            name.lower() in present and name not in source.schema_arrow.names
        ):
            raise OnlySparkError(f"column {name} is spelled otherwise")


def _has_times(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) or any(
        _has_times(kind.field(n).type) for n in range(kind.num_fields)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The columns of the new file."""

    columns: tuple[FooterColumn, ...]
    everywhere: bool
    """Whether changed columns are encoded in all row groups: the file lacked one of them, or stored
    it in another way."""


def _layout(old: ParquetBytes, encoded: ParquetBytes) -> _Layout:
    """Choose the columns: those of the file, unless Arrow would store a changed one otherwise."""
    changed = {column.name: column for column in encoded.footer.columns}
    kept = {column.name: column for column in old.footer.columns}
    columns = tuple(
        changed[name] if name in changed and not column.is_like(changed[name]) else column
        for name, column in kept.items()
    )
    added = tuple(column for name, column in changed.items() if name not in kept)
    if len(kept) != len(old.footer.columns):
        raise UnsupportedLayoutError("two columns of one name")
    return _Layout(
        columns=(*columns, *added),
        everywhere=bool(added) or columns != old.footer.columns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    """One file in the making."""

    task: FileUpdate
    schema: pa.Schema
    source: OpenFile
    old: ParquetBytes
    values: NewValues

    def codecs(self) -> list[str]:
        """Return the codec of each leaf column, by Arrow's name."""
        if self.source.num_row_groups == 0:
            raise OnlySparkError("a file without row groups")
        group = self.source.metadata.row_group(0)
        chunks = [group.column(n) for n in range(group.num_columns)]
        codecs = [_CODECS.get(chunk.compression, chunk.compression.lower()) for chunk in chunks]
        for codec in {*codecs} - {"none"}:
            if codec not in _ARROW_CODECS or not pa.Codec.is_available(codec):
                raise OnlySparkError(f"only Spark writes the codec {codec}")
        return codecs

    def written(self, target: NewFile) -> FileAnswer:
        """Write the file; return the answer without its name."""
        empty = encoded_rows(self.schema.empty_table(), decimal_options(self.source))
        layout = _layout(self.old, empty)
        nan_columns: set[tuple[str, ...]] = set()
        num_updates = 0
        seen = {*self.schema.names}
        with target.stream() as sink:
            file = SplicedFile(self.old.footer, sink, layout.columns)
            options: Mapping[str, Any] = {}
            for number, table in enumerate(self._tables(everywhere=layout.everywhere)):
                group = self.old.footer.groups[number]
                num_updates += 0 if table is None else table.num_updates
                if table is None or not table.changed:
                    file.add(group, [(self.old.content, chunk) for chunk in group.chunks])
                    seen.clear()
                    continue
                seen &= table.changed
                options = options or self._options(table.rows)
                rows = table.rows.select([n for n in self.schema.names if n in table.changed])
                nan_columns |= self._add(file, layout, number, rows, options)
            footer = file.finish(without_pairs=_DESCRIPTIONS if layout.everywhere else ())
        size_bytes, modified_ms = target.finish(file.size_bytes)
        if num_updates != self.task.num_updates:
            raise OnlySparkError(f"{num_updates} new rows instead of {self.task.num_updates}")
        floats = float_leaves(self.source.schema_arrow)
        return FileAnswer(
            ordinal=self.task.ordinal,
            physical_rows=int(self.source.metadata.num_rows),
            kept_rows=file.num_rows,
            size_bytes=size_bytes,
            modified_ms=modified_ms,
            footer=footer,
            nan_columns=tuple(sorted(nan_columns)),
            unread=tuple(path for path in floats if path[0] not in seen),
        )

    def _tables(self, *, everywhere: bool) -> Iterator[_NewColumns | None]:
        """Yield the changed columns of each row group, ``None`` for one that stays as it is."""
        first_row = 0
        for number, group in enumerate(self.old.footer.groups):
            end = first_row + group.num_rows
            at, rows = self.values(
                GroupRows(source=self.source, group=number, first_row=first_row, end=end)
            )
            if not len(at) and not everywhere:
                yield None
            else:
                _require_positions(at, first_row, end)
                found, same = self._rows(number, at - first_row, rows)
                kept = set() if everywhere else same
                yield _NewColumns(found, len(at), frozenset(self.schema.names) - kept)
            first_row = end

    def _rows(self, group: int, at: Positions, rows: pa.Table) -> tuple[pa.Table, set[str]]:
        """Return the columns of a row group with new values at some positions, and the names of
        those in which these are the old ones.
        """
        num_rows = self.old.footer.groups[group].num_rows
        new = {f.name: whole_column(rows[f.name], f.type) for f in self.schema}
        if len(at) == num_rows:
            return pa.table(list(new.values()), schema=self.schema), set()
        old = columns_of_group(self.source, group, self.schema)
        same = {name for name, values in new.items() if _is_same(old[name], at, values)}
        columns = [
            old[name] if name in same else replaced(old[name], at, values)
            for name, values in new.items()
        ]
        return pa.table(columns, schema=self.schema), same

    def _options(self, rows: pa.Table) -> dict[str, Any]:
        """Choose what the file chose for the columns that it has."""
        footer, codecs = self.source.metadata, self.codecs()
        paths = {
            name: [path for path, _ in written_leaves(rows.select([name]))]
            for name in rows.column_names
        }
        leaves = {column.name.decode(): column.leaves for column in self.old.footer.columns}
        stays = [n for n, found in paths.items() if len(leaves.get(n, ())) == len(found)]
        added = [name for name in paths if name not in stays]
        numbers = [leaf for name in stays for leaf in leaves[name]]
        copied = copied_encodings(footer, rows.select(stays), numbers)
        new = new_encodings(rows.select(added))
        limit = "dictionary_pagesize_limit"
        known = dict(zip((p for name in stays for p in paths[name]), numbers, strict=True))
        return {
            **copied,
            "use_dictionary": [*(copied["use_dictionary"] or ()), *(new["use_dictionary"] or ())]
            or False,
            limit: max(copied[limit], new[limit]),
            "compression": {
                path: codecs[known.get(path, 0)] for found in paths.values() for path in found
            },
            **decimal_options(self.source),
            **filter_options(
                [one for one in filter_rates(footer) if one[0] in rows.column_names], rows.num_rows
            ),
            **known_options(write_page_index=footer.row_group(0).column(0).has_column_index),
        }

    def _add(
        self,
        file: SplicedFile,
        layout: _Layout,
        number: int,
        rows: pa.Table,
        options: Mapping[str, Any],
    ) -> set[tuple[str, ...]]:
        """Add a row group with these columns; return the float columns that hold a NaN."""
        nan_columns = set(columns_with_nan(rows))
        encoded = encoded_rows(rows, options)
        group, (new,) = self.old.footer.groups[number], encoded.footer.groups
        stays = {column.name: column for column in self.old.footer.columns}
        made = {column.name: column for column in encoded.footer.columns}
        with_nan, unsure = leaves_at(new, nan_columns), mistaken_leaves(encoded.footer)
        chunks: list[tuple[ByteRanges, Chunk]] = []
        replaced: list[int] = []
        marked: dict[str, list[int]] = {"nan_leaves": [], "mistaken": []}
        for column in layout.columns:
            if column.name not in made:
                leaves = stays[column.name].leaves
                chunks += [(self.old.content, group.chunks[leaf]) for leaf in leaves]
                continue
            for leaf in made[column.name].leaves:
                for name, those in (("nan_leaves", with_nan), ("mistaken", unsure)):
                    marked[name] += [len(chunks)] if leaf in those else []
                replaced.append(len(chunks))
                chunks.append((encoded.content, new.chunks[leaf]))
        every = range(len(chunks)) if layout.everywhere else replaced
        file.add(group, chunks, replaced=every, **marked)
        return nan_columns


@dataclass(frozen=True, slots=True)
class _NewColumns:
    rows: pa.Table
    num_updates: int
    changed: frozenset[str]
    """The columns that have a new value."""


def _require_positions(at: Positions, first_row: int, end: int) -> None:
    if len(at) and (at[0] < first_row or at[-1] >= end or np.any(np.diff(at) <= 0)):
        raise OnlySparkError(f"new rows that are none of those from {first_row} to {end}")


def columns_of_group(source: OpenFile, group: int, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return columns of a row group in the types of a schema, NULLs where the file lacks them.

    Raises:
        OnlySparkError: a column is too large.
    """
    present = [name for name in schema.names if name in source.schema_arrow.names]
    batches = list(read_batches(source, [group], columns=present)) if present else []
    rows = pa.Table.from_batches(batches).select(present) if batches else None
    num_rows = source.metadata.row_group(group).num_rows
    return {
        field.name: pa.nulls(num_rows, field.type)
        if rows is None or field.name not in present
        else whole_column(rows[field.name], field.type)
        for field in schema
    }


def whole_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a column in one array of a type of the table."""
    parts = [as_stored(chunk, kind, _RULES) for chunk in column.chunks]
    try:
        return pa.concat_arrays(parts) if parts else pa.nulls(0, kind)
    except pa.ArrowException as failure:
        raise OnlySparkError(f"a column of a row group is too large: {failure}") from failure


def _is_same(old: pa.Array, at: Positions, new: pa.Array) -> bool:
    """Tell whether new values are those that an array has at some positions, to the bit."""
    if pa.types.is_nested(old.type):
        return False  # there may be floats inside
    before = old.take(pa.array(at))
    if pa.types.is_floating(old.type):
        bits = pa.int32() if old.type == pa.float32() else pa.int64()
        before, new = before.view(bits), new.view(bits)
    return bool(before.equals(new))


def replaced(old: pa.Array, at: Positions, new: pa.Array) -> pa.Array:
    """Return an array with other values at some positions.

    Raises:
        OnlySparkError: it would be too large.
    """
    if not len(at):
        return old
    try:
        if pa.types.is_nested(old.type):
            places = np.arange(len(old))
            places[at] = np.arange(len(old), len(old) + len(new))
            return pa.concat_arrays([old, new]).take(pa.array(places))
        mask = np.zeros(len(old), np.bool_)
        mask[at] = True
        return pc.replace_with_mask(old, pa.array(mask), new)
    except pa.ArrowException as failure:
        raise OnlySparkError(f"a column of a row group is too large: {failure}") from failure
