"""Footers of one schema, read by the shapes of their column chunks.

Version and schema are the same, byte for byte, and chunks of any number of row groups have known
shapes (`puredelta.worker.footers.chunk_shapes`). After the row groups come key-value pairs, of
which readers of data heed those of Spark alone: pandas, for one, writes the number of rows there.

Most files have one row group. Once enough of them were alike, their shapes are put together to one
pattern, which reads and checks all chunks in half the time.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, itemgetter
from typing import Any, NamedTuple, TypeAlias

from puredelta.worker.footers.chunk_shapes import (
    DOUBLES,
    HIGH,
    LOW,
    NULLS,
    NUMBERS,
    PLACES,
    Found,
    KnownShapes,
    Path,
    Raw,
    Walk,
    number_in,
)
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
    """A row group; of each chunk the number of NULLs, minimum and maximum, where known."""

    rows: int
    nulls: Sequence[int | None]
    low: Sequence[Raw | None]
    high: Sequence[Raw | None]


class Ending(NamedTuple):
    """What follows the row groups, as far as it says how data is read."""

    pairs: tuple[tuple[bytes, bytes | None], ...]
    """Spark's keys and their values."""
    rest: bytes
    """The writer, the orders of columns, and all else."""


_NO_ENDING = Ending((), b"")
_ALIKE_MIN = 200
"""Files after which it pays to make one pattern of all chunks; twice as many before the next."""
*_ONLY_CHECKED, _STORED_BYTES, _BEGIN, _DICTIONARY = PLACES
_ENCODINGS = ((3, 2), (3, 13, 1), (3, 13, 2))
"""``ColumnChunk.meta_data.encodings``, ``.encoding_stats``: the same in nearly all files."""
_EVEN, _POSITIVE, _EVEN_MORE = (
    re.escape(bytes(numbers))
    for numbers in (range(0, 128, 2), range(2, 128, 2), range(128, 256, 2))
)
_NOT_NEGATIVE = rb"(?:[%b]|[%b][\x80-\xff]{0,8}[\x00-\x7f])" % (_EVEN, _EVEN_MORE)
_PLACE_PATTERNS: Mapping[Path, bytes] = {
    **dict.fromkeys(PLACES, _NOT_NEGATIVE),
    _DICTIONARY: rb"(?:[%b]|[%b][\x80-\xff]{0,8}[\x01-\x7f])" % (_POSITIVE, _EVEN_MORE),
}
_SHORT_TEXT_MAX = 127
"""The greatest length that is one byte."""
_NO_NULLS = b"\x00"

_Pick: TypeAlias = Callable[[Sequence[Any]], tuple[Any, ...]]


class _OneGroup:
    """Footers of one row group, whose chunks have certain shapes: one pattern up to each text.

    It takes no footer that the patterns of the chunks do not take, and leaves unusual ones to them.
    """

    def __init__(self, columns: bytes, parts: Sequence[KnownShapes]) -> None:
        """``parts`` are the chunks and the end of the group, which begins with ``columns``."""
        patterns, places = _patterns_of(columns, parts)
        first, *others = (re.compile(pattern, re.DOTALL).match for pattern in patterns)
        self._first, self._after_texts = first, others
        chunks = range(len(parts) - 1)
        self._stored = _pick(places[chunk, _STORED_BYTES] for chunk in chunks)
        self._begins = _pick(
            places[chunk, _DICTIONARY] if (chunk, _DICTIONARY) in places else places[chunk, _BEGIN]
            for chunk in chunks
        )
        # After the values that are caught come None, and then the bounds that are numbers.
        absent = len(places) + 1
        bounds = [
            ((chunk, path), NUMBERS[parts[chunk].physical])
            for path in (LOW, HIGH)
            for chunk in chunks
            if parts[chunk].physical in NUMBERS and (chunk, path) in places
        ]
        self._numbers = _pick(places[bound] for bound, _ in bounds) if bounds else None
        self._format = "<" + "".join(code for _, code in bounds)
        places.update((bound, absent + 1 + n) for n, (bound, _) in enumerate(bounds))
        self._nulls, self._low, self._high = (
            _pick(places.get((chunk, path), absent) for chunk in chunks)
            for path in (NULLS, LOW, HIGH)
        )
        has_nulls = [(chunk, NULLS) in places for chunk in chunks]
        self._usual_nulls = tuple(_NO_NULLS if has else None for has in has_nulls)
        self._usual_numbers = tuple(0 if has else None for has in has_nulls)

    def read(self, content: bytes, at: int, data_end: int) -> tuple[Group, int] | None:
        """Read from the number of rows on; return the row group and the place after it."""
        found = self._first(content, at)
        if found is None:
            return None
        values: list[Any] = [*found.groups()]
        for match in self._after_texts:
            begin = found.end() + 1
            end = begin + content[begin - 1]
            found = match(content, end)
            if found is None or end - begin > _SHORT_TEXT_MAX:
                return None
            values.append(content[begin:end])
            values += found.groups()
        if values[0] != values[-1] or not self._is_before(values, data_end << 1):
            return None
        rows = DOUBLES[values[0]] >> 1
        values.append(None)
        if self._numbers is not None:
            values += struct.unpack(self._format, b"".join(self._numbers(values)))
        nulls = self._nulls(values)
        if nulls == self._usual_nulls:
            nulls = self._usual_numbers
        else:
            nulls = tuple(None if number is None else number_in(number) for number in nulls)
        return Group(rows, nulls, self._low(values), self._high(values)), found.end()

    def _is_before(self, values: Sequence[Any], end_doubled: int) -> bool:
        """Tell whether the pages of all chunks are before a place.

        A dictionary after the first page would be refused too often, never too rarely.
        """
        doubled = DOUBLES.__getitem__
        begins, stored = map(doubled, self._begins(values)), map(doubled, self._stored(values))
        return bool(max(map(add, begins, stored)) <= end_doubled)


def _patterns_of(
    columns: bytes, parts: Sequence[KnownShapes]
) -> tuple[list[bytes], dict[tuple[int, Path], int]]:
    """Return the patterns between texts of any length, and which value is what field of a part.

    The first value is the number of rows of the file, the last one that of the row group.
    """
    patterns = [b"(" + _NOT_NEGATIVE + b")" + re.escape(NEXT_LIST + list_header(1) + columns)]
    places: dict[tuple[int, Path], int] = {}
    for number, known in enumerate(parts):
        for part in known.shapes[0].parts:
            if isinstance(part, bytes):
                patterns[-1] += part
                continue
            pattern = _PLACE_PATTERNS.get(part.path, part.pattern)
            is_bound = part.path in (NULLS, LOW, HIGH)
            if not pattern:
                patterns.append(b"")
            elif part.path in _ENCODINGS:
                patterns[-1] += re.escape(part.example)
                continue
            elif (
                not part.is_read or part.path in _ONLY_CHECKED or (is_bound and not known.is_wanted)
            ):
                patterns[-1] += pattern
                continue
            else:
                patterns[-1] += b"(" + pattern + b")"
            places[number, part.path] = len(places) + 1
    return patterns, places


def _pick(places: Iterable[int]) -> _Pick:
    """Return what takes the values at these places."""
    first, *others = places
    if others:
        return itemgetter(first, *others)
    return lambda values: (values[first],)


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
    _whole: _OneGroup | None = None
    _num_wholes: int = 0
    _num_unlike: int = 0
    """Footers of one row group that were read by chunk since."""

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
        return replace(self, parts=parts, group_end=end)

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
        if not learns and self._whole is not None:
            whole = self._whole.read(content, len(self.prefix), data_end)
            if whole is not None:
                group, at = whole
                return [group], self._ending_at(content, at)
        found = self._by_chunk(content, data_end, learns=learns)
        if found is not None and not learns and len(found[0]) == 1:
            self._num_unlike += 1
            if self._num_unlike >= _ALIKE_MIN << self._num_wholes:
                self._whole = _OneGroup(self.columns, (*self.parts, self.group_end))
                self._num_wholes, self._num_unlike = self._num_wholes + 1, 0
        return found

    def _by_chunk(
        self, content: bytes, data_end: int, *, learns: bool
    ) -> tuple[list[Group], Ending] | None:
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
            _, nulls, low, high = zip(*chunks, strict=True)
            groups.append(Group(group_rows, nulls, low, high))
            missing -= group_rows
        return None if missing else (groups, self._ending_at(content, at))

    def _known(self, content: bytes, at: int, data_end: int) -> list[Found] | None:
        chunks = []
        for part in self.parts:  # the latest shape is asked without a call in between
            found = part.shapes[0].read(content, at, data_end) or part.read(content, at, data_end)
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
