"""Footers of files that are alike, read without a parser of Parquet once their kind is known.

A directory has many files of few kinds. Of each kind the first footer is parsed by Arrow, which
says what it means; its bytes are learnt (`puredelta.worker.footers.chunk_shapes`), and what they
give must be what Arrow gives. Later files of the kind have the same schema and the same closing
bytes, byte for byte, and chunks of known shapes: their statistics are cut out of the bytes. Any
other footer goes to Arrow. So a file costs a third of the time, and no answer differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
from puredelta.worker.footers.chunk_shapes import Found, KnownShapes, Walk, number_in
from puredelta.worker.footers.sound_footer import TRAILER_BYTES
from puredelta.worker.footers.thrift_compact import NEXT_LIST, UnsupportedLayoutError, list_header

_KINDS_MAX = 32
_LESSONS_MAX = 64
"""Footers that may be learnt before it must have paid: some programs close each file otherwise."""

_HEAD = rb"\x16([\x80-\xff]{0,9}[\x00-\x7f])\x19\x1c"
"""``num_rows``, and a list of one row group."""


class FooterSummary(NamedTuple):
    """What a conversion wants of a footer."""

    schema_text: str
    """Equal for two files exactly if they mean the same schema."""
    stats: str | None
    """The statistics as the log has them; ``None`` where none are wanted."""


@dataclass(slots=True, kw_only=True)
class _Kind:
    """Files with the same bytes before and after the row group."""

    text: str
    head: re.Pattern[bytes]
    closing: bytes
    chunks: tuple[KnownShapes, ...]
    group_end: KnownShapes
    columns: FileKind | None
    """How its statistics are read; ``None`` where none are wanted."""
    encode: Callable[[int, Sequence[Found]], str] | None
    """Writes its statistics."""

    def stats(self, rows: int, chunks: Sequence[Found]) -> str | None:
        """Return the statistics of a file; ``None`` where none are wanted."""
        return None if self.encode is None else self.encode(rows, chunks)

    def read(self, content: bytes) -> tuple[int, list[Found]] | None:
        """Return the rows and what each chunk says; ``None`` for a file of another kind."""
        if not content.endswith(self.closing):
            return None
        start = self.head.match(content)
        if start is None:
            return None
        position, chunks = start.end(), []
        try:
            for part in self.chunks:
                found = part.shapes[0](content, position) or part.read(content, position)
                if found is None:
                    return None
                chunks.append(found)
                position = found[0]
            end = self.group_end.read(content, position)
        except IndexError:
            return None
        return self._checked(content, chunks, end, number_in(start[1]))

    def _checked(
        self, content: bytes, chunks: list[Found], end: Found | None, rows: int
    ) -> tuple[int, list[Found]] | None:
        if end is None or end[0] != len(content) - len(self.closing):
            return None
        return (rows, chunks) if rows > 0 and end[1] == rows else None


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
                return FooterSummary(kind.text, kind.stats(*found))
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
        self, footer: pq.FileMetaData, content: bytes, known: FooterSummary, message: str
    ) -> None:
        """Make the next file like this one quick, unless its bytes say anything else than Arrow."""
        if footer.num_row_groups != 1 or not footer.num_rows:
            return
        parts = [part for kind in self._kinds for part in (*kind.chunks, kind.group_end)]
        before = [list(part.shapes) for part in parts]
        try:
            kind, found = self._learnt(footer, content, known.schema_text, message)
            proven = (
                kind.read(content) is not None
                and _agrees(footer, kind, found)
                and kind.stats(footer.num_rows, found) == known.stats
            )
            if proven:
                self._kinds = [kind, *(k for k in self._kinds if k is not kind)][:_KINDS_MAX]
                return
        except (UnsupportedLayoutError, IndexError):
            pass
        for part, shapes in zip(parts, before, strict=True):
            part.shapes = shapes

    def _learnt(
        self, footer: pq.FileMetaData, content: bytes, text: str, message: str
    ) -> tuple[_Kind, list[Found]]:
        walk = Walk(content)
        for header in (0x15, 0x19):  # the format's version, and the schema
            if content[walk.position] != header:
                raise UnsupportedLayoutError("an unusual footer")
            walk.position += 1
            walk.value(header & 15, (0,))
        prefix, columns = content[: walk.position], footer.num_columns
        head = re.compile(
            re.escape(prefix) + _HEAD + re.escape(NEXT_LIST + list_header(columns)), re.DOTALL
        )
        start = head.match(content)
        if start is None:
            raise UnsupportedLayoutError("an unusual footer")
        known = [k for k in self._kinds if k.head == head and content.endswith(k.closing)]
        group = footer.row_group(0)
        types = [group.column(number).physical_type for number in range(columns)]
        parts = known[0].chunks if known else tuple(KnownShapes(physical) for physical in types)
        group_end = known[0].group_end if known else KnownShapes("")
        position, found = start.end(), []
        for part in parts:
            chunk = part.read(content, position) or part.learn(content, position, number=0)
            found.append(chunk)
            position = chunk[0]
        end = group_end.read(content, position) or group_end.learn(content, position, number=1)
        if known:
            return known[0], found
        columns, encode = None, None
        if self._statistics is not None:
            columns = self._statistics.kind(footer, message)
            encode = self._statistics.chunk_encoder(columns)
        kind = _Kind(
            text=text,
            head=head,
            closing=content[end[0] :],
            chunks=parts,
            group_end=group_end,
            columns=columns,
            encode=encode,
        )
        return kind, found


def _agrees(footer: pq.FileMetaData, kind: _Kind, chunks: Sequence[Found]) -> bool:
    """Return whether Arrow finds the same in every chunk that the table's statistics need."""
    group = footer.row_group(0)
    plans = () if kind.columns is None else kind.columns.plans
    for number in {leaf for plan in plans for leaf in plan.leaves}:
        statistics = group.column(number).statistics
        _, nulls, low, high = chunks[number]
        if statistics is None:
            if (nulls, low, high) != (None, None, None):
                return False
            continue
        if nulls != (statistics.null_count if statistics.has_null_count else None):
            return False
        decoded = any(plan.decode is not None and number in plan.leaves for plan in plans)
        if statistics.has_min_max != (low is not None):
            return False
        wanted = decoded and low is not None
        if wanted and (statistics.min_raw, statistics.max_raw) != (low, high):
            return False
    return True
