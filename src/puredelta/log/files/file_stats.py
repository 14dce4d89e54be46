"""Statistics of data files from their Parquet footers, without reading a row (X-60 to X-72).

A wrong bound loses rows silently, for every reader and for MERGE's own skipping, so whatever
a footer does not prove is left out (X-72). Which bounds can be trusted depends on the program
that wrote the file (C-51b, `puredelta.log.files.leaf_values`). NULLs are counted by definition
level, so a field of a NULL struct counts as NULL, as in Delta. Inside arrays and maps the count
is known only when it is zero.

Most files of a directory have all bounds of all columns and differ in the bounds alone, so their
JSON is made together. A file that lacks a bound, or has a column of NULLs alone, is encoded column
by column instead.

The writer, CONVERT and MERGE use the same functions.

A directory has many files of few kinds. Arrow parses the first footer of each kind; its bytes are
learnt (`puredelta.worker.footers.chunk_shapes`), and what they give must be what Arrow gives. Later
files of the kind have the same schema and writer, byte for byte, and chunks of known shapes in any
number of row groups: their statistics are cut out of the bytes, in a third of the time. Any other
footer is parsed by Arrow. Arrow's own copy of the schema is not looked at, as Spark does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, NamedTuple, TypeAlias

import pyarrow.parquet as pq

from puredelta.log.files.leaf_values import Decode, LeafPlan, is_text, is_whole_number, plan_leaves
from puredelta.log.files.parquet_footer import (
    FooterEnd,
    ParquetWriter,
    parse_footer,
    schema_message,
    schema_text,
)
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.iceberg_compat import compat_tags
from puredelta.protocol.table.stats import (
    Bound,
    LeafPath,
    LeafStatistics,
    encode_maximum,
    encode_minimum,
    encode_statistics,
    indexed_leaves,
    quoted_name,
    statistics_object,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.worker.footers.chunk_shapes import Raw
from puredelta.worker.footers.footer_shapes import Ending, FooterShapes, Group
from puredelta.worker.footers.sound_footer import TRAILER_BYTES
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError

_Texts: TypeAlias = "Callable[[Raw, Raw], tuple[str, str] | None]"
"""Minimum and maximum as JSON; ``None`` if one has none."""

_GAP = "%s"


@dataclass(frozen=True, slots=True)
class StatsTemplate:
    """``add.stats`` of files of one row group whose columns are no structs, arrays or maps."""

    text: str
    leaves: tuple[int, ...]
    """The chunks of the columns, in their order."""
    bounded: tuple[tuple[int, _Texts | None], ...]
    """The chunks that have bounds, and how these are written; ``None``: as they are."""

    @classmethod
    def of(
        cls,
        plans: Sequence[LeafPlan],
        names: Sequence[str],
        *,
        prefix_length: int,
        tight_bounds: bool | None,
    ) -> StatsTemplate | None:
        """Return the template of columns; ``names`` are JSON. ``None`` if one is in no chunk."""
        if any(plan.absent or plan.nested for plan in plans):
            return None
        members = [f"{name.replace('%', '%%')}:{_GAP}" for name in names]
        bounds = []
        bounded = []
        for plan, member in zip(plans, members, strict=True):
            if plan.decode is not None and not plan.might_contain_nan:
                bounds.append(member)
                bounded.append((plan.leaves.start, _texts(plan.decode, prefix_length)))
        text = statistics_object(
            _GAP,
            minimum=",".join(bounds),
            maximum=",".join(bounds),
            null_count=",".join(members),
            tight_bounds=tight_bounds,
        )
        return cls(text, tuple(plan.leaves.start for plan in plans), tuple(bounded))

    def fill(self, group: Group) -> str | None:
        """Return the statistics of a file; ``None`` if it does not fill every gap."""
        rows, all_nulls, low_bounds, high_bounds = group
        nulls = [all_nulls[leaf] for leaf in self.leaves]
        if None in nulls or rows in nulls:
            return None
        lows: list[Raw | str] = []
        highs: list[Raw | str] = []
        for leaf, texts in self.bounded:
            low, high = low_bounds[leaf], high_bounds[leaf]
            if low is None or high is None:
                return None
            if texts is None:
                lows.append(low)
                highs.append(high)
            elif (pair := texts(low, high)) is not None:
                lows.append(pair[0])
                highs.append(pair[1])
            else:
                return None
        return self.text % (rows, *lows, *highs, *nulls)


def _texts(decode: Decode, prefix_length: int) -> _Texts | None:
    def bounds(low: Raw, high: Raw) -> tuple[str, str] | None:
        minimum, maximum = decode(low, high)
        least = encode_minimum(minimum, prefix_length)
        greatest = encode_maximum(maximum, prefix_length)
        return None if least is None or greatest is None else (least, greatest)

    def short_texts(low: Raw, high: Raw) -> tuple[str, str] | None:
        if not isinstance(low, bytes) or not isinstance(high, bytes):
            return None
        is_short = len(low) <= prefix_length and len(high) <= prefix_length
        if is_short and low.isascii() and high.isascii():
            return encode_basestring(low.decode()), encode_basestring(high.decode())
        return bounds(low, high)

    if is_whole_number(decode):
        return None
    return short_texts if is_text(decode) else bounds


_KINDS_REMEMBERED = 32
"""How many plans are kept: files of a table are nearly always of a few kinds."""


_UNKNOWN = LeafStatistics(None, None, None)
_NO_ROWS = LeafStatistics(None, None, 0)


def combined(
    files: Iterable[tuple[int, Mapping[LeafPath, LeafStatistics]]],
) -> dict[LeafPath, LeafStatistics]:
    """Return the statistics of each leaf over several files, given as (rows, leaves).

    What is unknown for one file is unknown for all of them. A file in which a leaf is all NULL
    does not affect the bounds of that leaf.
    """
    total: dict[LeafPath, LeafStatistics] = {}
    total_rows = 0
    for num_rows, leaves in files:
        if num_rows and total_rows:
            total = {
                path: LeafStatistics(*_both(total[path], total_rows, leaves[path], num_rows))
                for path in total
                if path in leaves
            }
        elif num_rows:
            total = dict(leaves)
        total_rows += num_rows
    return total


def _both(one: _Read, one_rows: int, other: _Read, other_rows: int) -> _Read:
    low, high, one_nulls = one
    other_low, other_high, other_nulls = other
    nulls = None if one_nulls is None or other_nulls is None else one_nulls + other_nulls
    if one_nulls == one_rows:
        return other_low, other_high, nulls
    if other_nulls == other_rows:
        return low, high, nulls
    return _least(low, other_low), _greatest(high, other_high), nulls


def _least(one: Any, other: Any) -> Any:
    return None if one is None or other is None else min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    return None if one is None or other is None else max(one, other)


class StatisticsReader:
    """Reads the footers of many files of one table; safe for use by several threads.

    ``schema`` has the columns of the files, under physical names and with the table's types,
    without partition columns. ``indexed`` are the leaves to describe; ``None`` means all.
    Columns are found by name, ignoring case if need be and not ``case_sensitive``; a column that a
    file lacks is NULL in it. A plan is made once per kind of file, so the cost of a file is that
    of its leaves.
    """

    def __init__(
        self,
        schema: StructType,
        *,
        indexed: Collection[LeafPath] | None = None,
        case_sensitive: bool = False,
    ) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive
        self._indexed = None if indexed is None else frozenset(indexed)
        self._kinds: list[FileKind] = []

    def leaves(
        self,
        footer: pq.FileMetaData,
        *,
        nan_leaves: Collection[LeafPath] | None = None,
        message: str | None = None,
    ) -> dict[LeafPath, LeafStatistics]:
        """Return what the footer proves, by leaf in schema order; unknown leaves are absent.

        ``nan_leaves`` is for callers that have seen every value: the float leaves with a NaN,
        so that the bounds of all others can be trusted. Without it, the writer of the file
        decides. ``message`` is the footer's `schema_message`, if the caller has it already.
        """
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        groups = [group for group in groups if group.num_rows]
        found = {}
        for plan in self.kind(footer, message).plans:
            leaf = _read_leaf(plan, groups, nan_leaves)
            if leaf != _UNKNOWN:
                found[plan.path] = leaf
        return found

    def kind(self, footer: pq.FileMetaData, message: str | None) -> FileKind:
        """Return the plans for files of this schema and writer; the first such file makes them."""
        writer, message = ParquetWriter.of(footer), message or schema_message(footer)
        for kind in reversed(self._kinds):
            if kind.message == message and kind.writer == writer:
                return kind
        plans = tuple(
            plan
            for plan in plan_leaves(
                self._schema, footer.schema, writer, case_sensitive=self._case_sensitive
            )
            if self._indexed is None or plan.path in self._indexed
        )
        kind = FileKind(message=message, writer=writer, plans=plans)
        self._kinds = [*self._kinds[-_KINDS_REMEMBERED:], kind]
        return kind


class TableStatistics:
    """Describes data files of one table as the log does: ``add.stats`` from a footer.

    Safe for use by several threads.
    """

    def __init__(self, config: TableConfig, *, case_sensitive: bool = False) -> None:
        """``case_sensitive``: a column that differs in case is another one, as Spark may be set."""
        self._reader = StatisticsReader(
            config.physical_data_schema(),
            indexed=indexed_leaves(config),
            case_sensitive=case_sensitive,
        )
        # Bounds of a new file are tight; the text says so if deletion vectors are supported.
        self._tight_bounds = True if config.supports("deletionVectors") else None
        self._prefix_length = config.properties.data_skipping_string_prefix_length
        self.file_tags = compat_tags(config)
        """The tags of a new file."""

    def encode(
        self,
        footer: pq.FileMetaData,
        *,
        nan_leaves: Collection[LeafPath] | None = None,
        message: str | None = None,
    ) -> str:
        """Return the JSON text; ``nan_leaves`` and ``message`` as for `StatisticsReader.leaves`."""
        kind = self._reader.kind(footer, message)
        if kind.names is not None and footer.num_row_groups == 1 and footer.num_rows:
            group = footer.row_group(0)
            reads = [_read_group(plan, group, nan_leaves) for plan in kind.plans]
            return self._encode_columns(kind.names, group.num_rows, reads)
        leaves = self._reader.leaves(footer, nan_leaves=nan_leaves, message=kind.message)
        return self._encode_leaves(leaves, footer.num_rows)

    def encode_count(self, num_rows: int) -> str:
        """Return the JSON text for a file of which no more than the number of rows is known."""
        return self._encode_leaves({}, num_rows)

    def kind(self, footer: pq.FileMetaData, message: str) -> FileKind:
        """Return how files of this schema and writer are read."""
        return self._reader.kind(footer, message)

    def chunk_encoder(self, kind: FileKind) -> Callable[[Sequence[Group]], str]:
        """Return what `encode_chunks` does for files of one kind, faster for most of them."""
        template = None
        if kind.names is not None:
            template = StatsTemplate.of(
                kind.plans,
                kind.names,
                prefix_length=self._prefix_length,
                tight_bounds=self._tight_bounds,
            )

        def encode(groups: Sequence[Group]) -> str:
            text = template.fill(groups[0]) if template is not None and len(groups) == 1 else None
            return self.encode_chunks(kind, groups) if text is None else text

        return encode

    def encode_chunks(self, kind: FileKind, groups: Sequence[Group]) -> str:
        """Return the JSON text of a file from what the chunks of its row groups say."""
        reads: Sequence[_Read] = [_of_chunks(plan, groups) for plan in kind.plans]
        num_rows = _rows_of(groups)
        if kind.names is not None:
            return self._encode_columns(kind.names, num_rows, reads)
        leaves = {
            plan.path: LeafStatistics(*read)
            for plan, read in zip(kind.plans, reads, strict=True)
            if read != _NOTHING
        }
        return self._encode_leaves(leaves, num_rows)

    def _encode_leaves(self, leaves: Mapping[LeafPath, LeafStatistics], num_rows: int) -> str:
        return encode_statistics(
            leaves,
            num_records=num_rows,
            tight_bounds=self._tight_bounds,
            string_prefix_length=self._prefix_length,
        )

    def _encode_columns(self, names: Sequence[str], num_rows: int, reads: Sequence[_Read]) -> str:
        """Encode a file of one row group and no structs directly, as most files are.

        This repeats the loop of `encode_statistics`: one loop for both costs 5 us a file.
        """
        minimum, maximum, null_count = [], [], []
        for name, (low, high, nulls) in zip(names, reads, strict=True):
            if low.__class__ is int:
                minimum.append(f"{name}:{low}")
            elif (text := encode_minimum(low, self._prefix_length)) is not None:
                minimum.append(f"{name}:{text}")
            if high.__class__ is int:
                maximum.append(f"{name}:{high}")
            elif (text := encode_maximum(high, self._prefix_length)) is not None:
                maximum.append(f"{name}:{text}")
            if nulls is not None:
                null_count.append(f"{name}:{nulls}")
        return statistics_object(
            num_rows,
            minimum=",".join(minimum),
            maximum=",".join(maximum),
            null_count=",".join(null_count),
            tight_bounds=self._tight_bounds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """Files of one schema and writer, which share their plans."""

    message: str
    writer: ParquetWriter
    plans: tuple[LeafPlan, ...]
    names: tuple[str, ...] | None = field(init=False)
    """The columns of the plans as JSON texts; ``None`` if some leaves are fields of structs."""

    def __post_init__(self) -> None:
        paths = [plan.path for plan in self.plans]
        flat = all(len(path) == 1 for path in paths)
        names = tuple(quoted_name(path[0]) for path in paths) if flat else None
        object.__setattr__(self, "names", names)


# --- one leaf -------------------------------------------------------------------------------

_Read: TypeAlias = "tuple[Bound | None, Bound | None, int | None]"
"""The values of `LeafStatistics`; a plain tuple takes a third of the time."""

_NOTHING: _Read = (None, None, None)


def _of_chunk(plan: LeafPlan, group: Group) -> _Read:
    """Return what `_read_group` does, of chunks that were read without Arrow."""
    if plan.absent:
        return None, None, group.rows
    if plan.nested:
        return (None, None, 0) if any(group.nulls[i] == 0 for i in plan.leaves) else _NOTHING
    leaf, decode = plan.leaves.start, plan.decode
    nulls, low, high = group.nulls[leaf], group.low[leaf], group.high[leaf]
    is_untrusted = plan.might_contain_nan or nulls == group.rows
    if decode is None or low is None or high is None or is_untrusted:
        return None, None, nulls
    return *decode(low, high), nulls


def _rows_of(groups: Sequence[Group]) -> int:
    return groups[0].rows if len(groups) == 1 else sum(group.rows for group in groups)


def _of_chunks(plan: LeafPlan, groups: Sequence[Group]) -> _Read:
    """Return the statistics of a leaf over the row groups of a file, none of them empty."""
    total = _of_chunk(plan, groups[0])
    rows = groups[0].rows
    for group in groups[1:]:
        total = _both(total, rows, _of_chunk(plan, group), group.rows)
        rows += group.rows
    return total


def _read_leaf(
    plan: LeafPlan,
    groups: Sequence[pq.RowGroupMetaData],
    nan_leaves: Collection[LeafPath] | None,
) -> LeafStatistics:
    """Return the statistics of a leaf over the row groups of a file, empty groups left out."""
    total: _Read = _NO_ROWS
    total_rows = 0
    for group in groups:
        part = _read_group(plan, group, nan_leaves)
        total = _both(total, total_rows, part, group.num_rows) if total_rows else part
        total_rows += group.num_rows
    return LeafStatistics(*total)


def _read_group(
    plan: LeafPlan, group: pq.RowGroupMetaData, nan_leaves: Collection[LeafPath] | None
) -> _Read:
    if plan.absent:
        return None, None, group.num_rows
    if plan.nested:
        return _read_nested(plan, group)
    statistics = group.column(plan.leaves.start).statistics
    if statistics is None:
        return _NOTHING
    nulls = statistics.null_count if statistics.has_null_count else None
    decode = plan.decode
    untrusted = plan.might_contain_nan if nan_leaves is None else plan.path in nan_leaves
    if decode is None or untrusted or nulls == group.num_rows or not statistics.has_min_max:
        return None, None, nulls
    return *decode(statistics.min_raw, statistics.max_raw), nulls


def _read_nested(plan: LeafPlan, group: pq.RowGroupMetaData) -> _Read:
    """A value inside an array or map is NULL whenever the array or map itself is."""
    inner = (group.column(i).statistics for i in plan.leaves)
    if any(s is not None and s.has_null_count and s.null_count == 0 for s in inner):
        return None, None, 0
    return _NOTHING


_KINDS_MAX = 32
_LESSONS_MAX = 64
"""Footers that may be learnt before it must have paid: some programs close each file otherwise."""


class FooterSummary(NamedTuple):
    """The facts of a footer that a conversion needs."""

    schema_text: str
    """Equal for two files exactly if they mean the same schema."""
    stats: str | None
    """The statistics as the log has them; ``None`` where none are wanted."""
    num_rows: int | None = None
    """``None`` where it is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Files of one schema and writer."""

    text: str
    shapes: FooterShapes
    ending: Ending
    columns: FileKind | None
    """How its statistics are read; ``None`` where none are wanted."""
    encode: Callable[[Sequence[Group]], str] | None
    """Writes its statistics."""

    def stats(self, groups: Sequence[Group]) -> str | None:
        """Return the statistics of a file; ``None`` where none are wanted."""
        return None if self.encode is None else self.encode(groups)

    def read(self, content: bytes, data_end: int) -> Sequence[Group] | None:
        """Return the row groups that have rows; ``None`` for a file of another kind."""
        if not content.endswith(self.ending.rest):
            return None
        try:
            found = self.shapes.read(content, data_end)
        except (UnsupportedLayoutError, IndexError, UnicodeDecodeError):
            return None
        if found is None or found[1] != self.ending:
            return None
        return [group for group in found[0] if group.rows] or None


class KnownFooters:
    """Describes the footers of one table's files; for one thread."""

    def __init__(self, statistics: TableStatistics | None) -> None:
        self._statistics = statistics
        self._kinds: list[_Kind] = []
        self._texts: dict[str, str] = {}
        self._lessons = self._recognized = 0

    def describe(self, end: FooterEnd) -> FooterSummary:
        """Describe a file by its footer."""
        content = end.content[:-TRAILER_BYTES]
        for number, kind in enumerate(self._kinds):
            found = kind.read(content, end.begins_at)
            if found is not None:
                if number:
                    self._kinds.insert(0, self._kinds.pop(number))
                self._recognized += 1
                return FooterSummary(kind.text, kind.stats(found), _rows_of(found))
        return self._parsed(end)

    def _parsed(self, end: FooterEnd) -> FooterSummary:
        """Let Arrow parse the footer, and learn it if that may pay."""
        footer = parse_footer(end)
        message = schema_message(footer)
        text = schema_text(footer, message)
        text = self._texts.setdefault(text, text)
        stats = None
        if self._statistics is not None:
            stats = self._statistics.encode(footer, message=message)
        if self._lessons < _LESSONS_MAX + self._recognized:
            self._lessons += 1
            self._learn(footer, end, FooterSummary(text, stats), message)
        return FooterSummary(text, stats, footer.num_rows)

    def _learn(
        self, footer: pq.FileMetaData, end: FooterEnd, summary: FooterSummary, message: str
    ) -> None:
        """Make the next file like this one quick, unless its bytes say anything else than Arrow."""
        if not footer.num_rows:
            return
        columns, encode = None, None
        if self._statistics is not None:
            columns = self._statistics.kind(footer, message)
            encode = self._statistics.chunk_encoder(columns)
        leaves = _leaves_of(columns)
        try:
            learnt = self._learnt(end, summary.schema_text, leaves)
        except (UnsupportedLayoutError, IndexError):
            return
        if learnt is None:
            return
        like, shapes, (groups, ending) = learnt
        kind = _Kind(
            text=summary.schema_text,
            shapes=shapes,
            ending=ending,
            columns=columns,
            encode=encode,
        )
        filled = [group for group in groups if group.rows]
        if _agrees(footer, kind, groups) and kind.stats(filled) == summary.stats:
            self._kinds = [kind, *(k for k in self._kinds if k is not like)][:_KINDS_MAX]

    def _learnt(
        self, end: FooterEnd, text: str, leaves: Collection[int]
    ) -> tuple[_Kind | None, FooterShapes, tuple[list[Group], Ending]] | None:
        """Return the kind of a footer, if it has one, its shapes with new ones, what it says."""
        content, data_end = end.content[:-TRAILER_BYTES], end.begins_at
        for kind in self._kinds:
            if kind.text == text and kind.shapes.has_schema_of(content):
                shapes = kind.shapes.copy()
                found = shapes.read(content, data_end, learns=True)
                if found is not None and found[1] == kind.ending:
                    return kind, shapes, found
        shapes = FooterShapes.of(content, leaves)
        found = shapes.read(content, data_end, learns=True)
        return None if found is None else (None, shapes, found)


def _leaves_of(columns: FileKind | None) -> frozenset[int]:
    plans = () if columns is None else columns.plans
    return frozenset(leaf for plan in plans for leaf in plan.leaves)


def _agrees(footer: pq.FileMetaData, kind: _Kind, groups: Sequence[Group]) -> bool:
    """Return whether Arrow finds the same in every chunk that the table's statistics need."""
    plans = () if kind.columns is None else kind.columns.plans
    decoded = {leaf for plan in plans if plan.decode is not None for leaf in plan.leaves}
    return footer.num_row_groups == len(groups) and all(
        _agrees_on(footer.row_group(number).column(leaf), group, leaf, is_decoded=leaf in decoded)
        for number, group in enumerate(groups)
        for leaf in _leaves_of(kind.columns)
    )


def _agrees_on(chunk: pq.ColumnChunkMetaData, group: Group, leaf: int, *, is_decoded: bool) -> bool:
    statistics = chunk.statistics
    nulls, low, high = group.nulls[leaf], group.low[leaf], group.high[leaf]
    if statistics is None:
        return (nulls, low, high) == (None, None, None)
    if nulls != (statistics.null_count if statistics.has_null_count else None):
        return False
    if statistics.has_min_max != (low is not None):
        return False
    if not is_decoded or low is None:
        return True
    return (statistics.min_raw, statistics.max_raw) == (low, high)
