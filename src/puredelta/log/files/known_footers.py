"""Footers of files that are alike, read without a parser of Parquet once their kind is known.

A directory has many files of few kinds. Of each kind the first footer is parsed by Arrow, which
says what it means; its bytes are learnt (`puredelta.worker.footers.chunk_shapes`), and what they
give must be what Arrow gives. Later files of the kind have the same schema and writer, byte for
byte, and chunks of known shapes in any number of row groups: their statistics are cut out of the
bytes. Any other footer goes to Arrow. So a file costs a third of the time, and no answer differs.
Arrow's own copy of the schema is not looked at, as Spark does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.parquet as pq

from puredelta.log.files.file_stats import FileKind, TableStatistics
from puredelta.log.files.parquet_footer import (
    FooterEnd,
    parse_footer,
    schema_message,
    schema_text,
)
from puredelta.worker.footers.chunk_shapes import Found
from puredelta.worker.footers.footer_shapes import Ending, FooterShapes, Group
from puredelta.worker.footers.sound_footer import TRAILER_BYTES
from puredelta.worker.footers.thrift_compact import UnsupportedLayoutError

_KINDS_MAX = 32
_LESSONS_MAX = 64
"""Footers that may be learnt before it must have paid: some programs close each file otherwise."""


class FooterSummary(NamedTuple):
    """The facts of a footer that a conversion needs."""

    schema_text: str
    """Equal for two files exactly if they mean the same schema."""
    stats: str | None
    """The statistics as the log has them; ``None`` where none are wanted."""


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

    def read(self, content: bytes) -> Sequence[Group] | None:
        """Return the row groups that have rows; ``None`` for a file of another kind."""
        if not content.endswith(self.ending.rest):
            return None
        try:
            found = self.shapes.read(content)
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
            found = kind.read(content)
            if found is not None:
                if number:
                    self._kinds.insert(0, self._kinds.pop(number))
                self._recognized += 1
                return FooterSummary(kind.text, kind.stats(found))
        return self._parsed(end, content)

    def _parsed(self, end: FooterEnd, content: bytes) -> FooterSummary:
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
            self._learn(footer, content, FooterSummary(text, stats), message)
        return FooterSummary(text, stats)

    def _learn(
        self, footer: pq.FileMetaData, content: bytes, summary: FooterSummary, message: str
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
            learnt = self._learnt(content, summary.schema_text, leaves)
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
        self, content: bytes, text: str, leaves: Collection[int]
    ) -> tuple[_Kind | None, FooterShapes, tuple[list[Group], Ending]] | None:
        """Return the kind of a footer, if it has one, its shapes with new ones, what it says."""
        for kind in self._kinds:
            if kind.text == text and kind.shapes.has_schema_of(content):
                shapes = kind.shapes.copy()
                found = shapes.read(content, learns=True)
                if found is not None and found[1] == kind.ending:
                    return kind, shapes, found
        shapes = FooterShapes.of(content, leaves)
        found = shapes.read(content, learns=True)
        return None if found is None else (None, shapes, found)


def _leaves_of(columns: FileKind | None) -> frozenset[int]:
    plans = () if columns is None else columns.plans
    return frozenset(leaf for plan in plans for leaf in plan.leaves)


def _agrees(footer: pq.FileMetaData, kind: _Kind, groups: Sequence[Group]) -> bool:
    """Return whether Arrow finds the same in every chunk that the table's statistics need."""
    plans = () if kind.columns is None else kind.columns.plans
    decoded = {leaf for plan in plans if plan.decode is not None for leaf in plan.leaves}
    return footer.num_row_groups == len(groups) and all(
        _agrees_on(
            footer.row_group(number).column(leaf), group.chunks[leaf], is_decoded=leaf in decoded
        )
        for number, group in enumerate(groups)
        for leaf in _leaves_of(kind.columns)
    )


def _agrees_on(chunk: pq.ColumnChunkMetaData, found: Found, *, is_decoded: bool) -> bool:
    statistics = chunk.statistics
    _, nulls, low, high = found
    if statistics is None:
        return (nulls, low, high) == (None, None, None)
    if nulls != (statistics.null_count if statistics.has_null_count else None):
        return False
    if statistics.has_min_max != (low is not None):
        return False
    if not is_decoded or low is None:
        return True
    return (statistics.min_raw, statistics.max_raw) == (low, high)
