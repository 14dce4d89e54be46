"""Footers of one schema, read by the shapes of their column chunks.

Version and schema are the same, byte for byte, and chunks of any number of row groups have known
shapes (`puredelta.worker.footers.chunk_shapes`). After the row groups come key-value pairs, of
which readers of data heed those of Spark alone: pandas, for one, writes the number of rows there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from puredelta.worker.footers.chunk_shapes import Found, KnownShapes, Walk
from puredelta.worker.footers.sound_footer import PHYSICAL_NAMES, leaves_of, spark_pairs
from puredelta.worker.footers.thrift_compact import (
    LIST,
    NEXT_I32,
    NEXT_I64,
    NEXT_LIST,
    STRUCT,
    UnsupportedLayoutError,
    list_at,
    list_header,
    signed,
    varint,
)


class Group(NamedTuple):
    """A row group."""

    rows: int
    chunks: list[Found]


class Ending(NamedTuple):
    """What follows the row groups, as far as it says how data is read."""

    pairs: tuple[tuple[bytes, bytes | None], ...]
    """Spark's keys and their values."""
    rest: bytes
    """The writer, the orders of columns, and all else."""


_NO_ENDING = Ending((), b"")


@dataclass(slots=True, kw_only=True)
class FooterShapes:
    """Footers of one schema; the shapes that their chunks have had."""

    prefix: bytes
    """Version and schema, and the header of the number of rows."""
    columns: bytes
    """How a row group begins."""
    parts: tuple[KnownShapes, ...]
    group_end: KnownShapes
    _closing: bytes = b""
    _ending: Ending = _NO_ENDING

    @classmethod
    def of(cls, content: bytes, wanted: Collection[int] = ()) -> FooterShapes:
        """Return those of a sound footer's schema; no shape is known yet.

        ``wanted`` are the leaves whose statistics are read; all others are stepped over.
        """
        leaves = leaves_of(content)
        return cls(
            prefix=_prefix_of(content),
            columns=NEXT_LIST + list_header(len(leaves)),
            parts=tuple(
                KnownShapes(PHYSICAL_NAMES[leaf.physical], is_wanted=number in wanted)
                for number, leaf in enumerate(leaves)
            ),
            group_end=KnownShapes(""),
        )

    def copy(self) -> FooterShapes:
        """Return the same, to which more shapes can be added."""
        parts = tuple(replace(part, shapes=[*part.shapes]) for part in self.parts)
        end = replace(self.group_end, shapes=[*self.group_end.shapes])
        return FooterShapes(prefix=self.prefix, columns=self.columns, parts=parts, group_end=end)

    def has_schema_of(self, content: bytes) -> bool:
        """Return whether a footer has the same schema."""
        return content.startswith(self.prefix)

    def read(
        self, content: bytes, data_end: int, *, learns: bool = False
    ) -> tuple[list[Group], Ending] | None:
        """Return what a footer says that begins at ``data_end`` in its file; ``None`` if it has
        another schema or an unknown shape, or a chunk that is not before it.

        With ``learns`` its shapes become known.

        Raises:
            UnsupportedLayoutError: it is unlike any footer that can be known.
            IndexError: it ends too early.
        """
        if not content.startswith(self.prefix):
            return None
        rows, at = varint(content, len(self.prefix))
        if content[at : at + 1] != NEXT_LIST:
            return None
        count, kind, at = list_at(content, at + 1)
        if kind != STRUCT:
            return None
        groups: list[Group] = []
        missing = signed(rows)
        for _ in range(count):
            if not content.startswith(self.columns, at):
                return None
            at += len(self.columns)
            find = self._learnt if learns else self._known
            chunks = find(content, at, data_end)
            if chunks is None:
                return None
            at = chunks[-1][0]
            end = self.group_end.read(content, at, data_end)
            if end is None and learns:
                end = self.group_end.learn(content, at, data_end, number=1)
            if end is None:
                return None
            at = end[0]
            group_rows = end[1]
            if group_rows is None or group_rows < 0:
                return None
            groups.append(Group(group_rows, chunks))
            missing -= group_rows
        return None if missing else (groups, self._ending_at(content, at))

    def _known(self, content: bytes, at: int, data_end: int) -> list[Found] | None:
        chunks = []
        for part in self.parts:  # the latest shape is asked without a call in between
            found = part.shapes[0](content, at, data_end) or part.read(content, at, data_end)
            if found is None:
                return None
            chunks.append(found)
            at = found[0]
        return chunks

    def _learnt(self, content: bytes, at: int, data_end: int) -> list[Found]:
        chunks = []
        for part in self.parts:
            found = part.read(content, at, data_end)
            found = found or part.learn(content, at, data_end, number=0)
            chunks.append(found)
            at = found[0]
        return chunks

    def _ending_at(self, content: bytes, at: int) -> Ending:
        closing = content[at:]
        if closing != self._closing:
            pairs: tuple[tuple[bytes, bytes | None], ...] = ()
            end = 0
            if closing.startswith(NEXT_LIST):
                pairs, end = spark_pairs(closing, 1)
            self._ending, self._closing = Ending(pairs, closing[end:]), closing
        return self._ending


def _prefix_of(content: bytes) -> bytes:
    """Return the bytes of version and schema."""
    walk = Walk(content)
    for header, kind in ((NEXT_I32, NEXT_I32[0] & 15), (NEXT_LIST, LIST)):
        if content[walk.position : walk.position + 1] != header:
            raise UnsupportedLayoutError("an unusual footer")
        walk.position += 1
        walk.value(kind, (0,))
    if content[walk.position : walk.position + 1] != NEXT_I64:
        raise UnsupportedLayoutError("an unusual footer")
    return content[: walk.position + 1]
