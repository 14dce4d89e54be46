"""The bytes of column chunks in a footer, as patterns that find their statistics at once.

A footer is a struct in Thrift's compact protocol. Files of one program have the same fields in the
same order and differ in numbers and bounds alone. So the bytes of one column chunk are walked
once, field by field; from then on a regular expression, which knows every field and takes any
number, reads what has the same shape. What does not match is read another way, never guessed.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from puredelta.worker.footers.thrift_compact import (
    BINARY,
    BYTE,
    DEPTH_MAX,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    SET,
    STRUCT,
    TRUE,
    UnsupportedLayoutError,
    field_at,
    list_at,
    signed,
    varint,
)

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_SHAPES_MAX = 16
_DOUBLE_BYTES = 8
_KEPT_BYTES = 2
_BYTES_AT_ONCE = 4

NULLS, HIGH, LOW = (3, 12, 3), (3, 12, 5), (3, 12, 6)
"""``ColumnChunk.meta_data.statistics``: ``null_count``, ``max_value``, ``min_value``."""
_BOUNDS = frozenset({HIGH, LOW, (3, 12, 1), (3, 12, 2)})
"""The deprecated ``max`` and ``min``, too: they are stepped over."""
_LITERAL = frozenset({(3, 1), (3, 4)})
"""``ColumnChunk.meta_data.type``, which is that of the schema, and ``.codec``."""
_GROUP_ROWS = (3,)
"""``RowGroup.num_rows``."""
PLACES = ((3, 5), (3, 6), (3, 7), (3, 9), (3, 11))
"""``ColumnChunk.meta_data.num_values``, ``.total_uncompressed_size``, ``.total_compressed_size``,
``.data_page_offset`` and, if there is one, ``.dictionary_page_offset``."""

NUMBERS: Mapping[str, str] = {"INT32": "i", "INT64": "q", "FLOAT": "f", "DOUBLE": "d"}
"""By physical type: how `struct` calls bounds that are numbers."""

Raw: TypeAlias = int | float | bytes
"""A bound as Parquet has it: what it means is up to the type of its column."""
Path: TypeAlias = tuple[int, ...]
Found: TypeAlias = "tuple[int, int | None, Raw | None, Raw | None]"
"""Where the next field begins, the number of NULLs (or of rows), minimum and maximum."""
ReadShape: TypeAlias = Callable[[bytes, int, int], "Found | None"]
"""Reads what begins at a position; ``None`` if it has another shape, or if it describes a column
chunk that does not end before a place in the file.

Raises:
    IndexError: the bytes end too early.
"""


class Hole(NamedTuple):
    """A value that differs from file to file."""

    path: Path
    pattern: bytes
    """Empty for a text of any length, which is not part of the shape."""
    example: bytes = b""
    """The bytes of a number."""
    is_read: bool = True


class Shape(NamedTuple):
    """What is known of bytes of one shape."""

    read: ReadShape
    parts: tuple[bytes | Hole, ...]
    """Patterns of the bytes in their order, and the values between them."""


class Walk:
    """Steps over values of the compact protocol and notes their shape."""

    def __init__(self, content: bytes, position: int = 0, *, fixed_width: bool = False) -> None:
        self.position = position
        self._content = content
        self._fixed_width = fixed_width
        self._parts: list[bytes | Hole] = []
        self._places: list[Path] = []
        self._groups: list[Path] = []

    def struct(self, path: Path = (), *, number: int = 0) -> None:
        """Step over a struct, or what is left of it after the field of this number."""
        if len(path) > DEPTH_MAX:
            raise UnsupportedLayoutError("nested too deep")
        while True:
            start = self.position
            number, kind, self.position = field_at(self._content, start, number)
            self._literal(start)
            if not kind:
                return
            self.value(kind, (*path, number))

    def value(self, kind: int, path: Path) -> None:
        """Step over a value of a type of the protocol."""
        match kind:
            case int() if kind in (TRUE, FALSE):
                pass  # a boolean field is its header
            case int() if kind in (I16, I32, I64):
                self._number(path)
            case int() if kind in (BYTE, DOUBLE):
                self._any(1 if kind == BYTE else _DOUBLE_BYTES)
            case int() if kind == BINARY:
                self._text(path)
            case int() if kind in (LIST, SET):
                self._list(path)
            case int() if kind == STRUCT:
                self.struct(path)
            case _:
                raise UnsupportedLayoutError(f"a value of kind {kind}")

    def shape(self, physical: str, *, is_wanted: bool = True) -> Shape:
        """Return the shape of the bytes that were stepped over."""
        return Shape(self._reader(physical, is_wanted=is_wanted), tuple(self._parts))

    def _reader(self, physical: str, *, is_wanted: bool) -> ReadShape:
        if [path for path in (NULLS, _GROUP_ROWS, HIGH, LOW) if path in self._groups] != (
            self._groups
        ) or ((HIGH in self._groups) != (LOW in self._groups)):
            raise UnsupportedLayoutError("statistics in an unusual order")
        if tuple(self._places) not in (PLACES, PLACES[:-1], ()):
            raise UnsupportedLayoutError("places in an unusual order")
        num_places = len(self._places)
        steps: list[tuple[bytes, Path | None]] = []
        segment = b""
        for part in self._parts:
            if isinstance(part, bytes):
                segment += part
            elif part.pattern:
                segment += b"(" + part.pattern + b")" if part.is_read else part.pattern
            else:
                steps.append((segment, part.path))
                segment = b""
        steps.append((segment, None))
        if len(steps) == 1:
            groups = tuple(self._groups) if is_wanted else ()
            code = NUMBERS.get(physical)
            unpack = None if code is None else functools.partial(struct.unpack, f"<{code}")
            return _read_fixed(segment, groups, unpack, num_places)
        if [path for _, path in steps] == [HIGH, LOW, None] and self._groups[0] == NULLS:
            return _read_two_texts(steps, num_places)
        return _read_with_holes(steps, num_places)

    @property
    def has_places(self) -> bool:
        """Whether the places of a column chunk were stepped over."""
        return bool(self._places)

    def _literal(self, start: int) -> None:
        self._parts.append(re.escape(self._content[start : self.position]))

    def _any(self, length: int) -> None:
        self.position += length
        self._parts.append(b".{%d}" % length)

    def _number(self, path: Path) -> None:
        start = self.position
        _, self.position = varint(self._content, start)
        if path in _LITERAL:
            self._literal(start)
            return
        if path in (NULLS, _GROUP_ROWS):
            self._groups.append(path)
        elif path in PLACES:
            if any(isinstance(part, Hole) and not part.pattern for part in self._parts):
                raise UnsupportedLayoutError("places after bounds")
            self._places.append(path)
        is_read = path in (NULLS, _GROUP_ROWS, *PLACES)
        example = self._content[start : self.position]
        self._parts.append(Hole(path, _VARINT, example, is_read))

    def _text(self, path: Path) -> None:
        start = self.position
        length, self.position = varint(self._content, start)
        if path not in _BOUNDS:
            self.position += length
            self._literal(start)
        elif self._fixed_width:
            self._literal(start)
            self.position += length
            pattern = b".{%d}" % length
            if path in (HIGH, LOW):
                self._groups.append(path)
                self._parts.append(Hole(path, pattern))
            else:
                self._parts.append(pattern)
        else:
            self.position += length
            if path in (HIGH, LOW):
                self._groups.append(path)
            self._parts.append(Hole(path, b""))
        if self.position > len(self._content):
            raise UnsupportedLayoutError("cut short")

    def _list(self, path: Path) -> None:
        start = self.position
        size, kind, self.position = list_at(self._content, start)
        self._literal(start)
        for _ in range(size):
            self.value(BYTE if kind in (TRUE, FALSE) else kind, path)


@dataclass(slots=True)
class KnownShapes:
    """A column chunk, or the end of a row group: the shapes it has had, the latest first."""

    physical: str
    shapes: list[Shape] = field(default_factory=list)
    is_wanted: bool = True
    """Whether its numbers and bounds are read."""

    def read(self, content: bytes, position: int, data_end: int) -> Found | None:
        """Read what begins at a position; ``None`` if it has none of the known shapes."""
        for number, shape in enumerate(self.shapes):
            found = shape.read(content, position, data_end)
            if found is not None:
                if number:
                    self.shapes.insert(0, self.shapes.pop(number))
                return found
        return None

    def learn(self, content: bytes, position: int, data_end: int, *, number: int) -> Found:
        """Note the shape of what begins here, after the field of this number."""
        walk = Walk(content, position, fixed_width=self.physical != "BYTE_ARRAY")
        walk.struct(number=number)
        if not number and not walk.has_places:
            raise UnsupportedLayoutError("a column chunk without places")
        shape = walk.shape(self.physical, is_wanted=self.is_wanted)
        try:
            found = shape.read(content, position, data_end)
        except struct.error as other:
            raise UnsupportedLayoutError("a bound of another length") from other
        if found is None or found[0] != walk.position:
            raise UnsupportedLayoutError("the pattern does not match what it was made of")
        self.shapes = [shape, *self.shapes[: _SHAPES_MAX - 1]]
        return found


def _read_fixed(
    pattern: bytes,
    groups: tuple[Path, ...],
    unpack: Callable[[bytes], tuple[Raw, ...]] | None,
    num_places: int,
) -> ReadShape:
    """Read a chunk whose bounds, if it has any, have the same length in every file."""
    match = re.compile(pattern, re.DOTALL).match
    is_before = _IS_BEFORE[num_places]

    def read_bounds(content: bytes, position: int, data_end: int) -> Found | None:
        found = match(content, position)
        if found is None or not is_before(parts := found.groups(), data_end):
            return None
        nulls, high, low = parts[num_places:]
        number = 0 if nulls == b"\x00" else number_in(nulls)
        if unpack is None:
            return found.end(), number, low, high
        return found.end(), number, unpack(low)[0], unpack(high)[0]

    def read_number(content: bytes, position: int, data_end: int) -> Found | None:
        found = match(content, position)
        if found is None or not is_before(parts := found.groups(), data_end):
            return None
        return found.end(), number_in(parts[num_places]), None, None

    def read_nothing(content: bytes, position: int, data_end: int) -> Found | None:
        found = match(content, position)
        if found is None or not is_before(found.groups(), data_end):
            return None
        return found.end(), None, None, None

    match len(groups):
        case 0:
            return read_nothing
        case 1:
            return read_number
        case 3:
            return read_bounds
        case _:
            raise UnsupportedLayoutError("bounds without a number of NULLs")


def _read_with_holes(steps: list[tuple[bytes, Path | None]], num_places: int) -> ReadShape:
    """Read a chunk whose bounds are texts."""
    (first, first_path), *others = (
        (re.compile(pattern, re.DOTALL).match, path) for pattern, path in steps
    )
    is_before = _IS_BEFORE[num_places]

    def read(content: bytes, position: int, data_end: int) -> Found | None:
        found = first(content, position)
        if found is None or not is_before(parts := found.groups(), data_end):
            return None
        nulls = number_in(parts[num_places]) if len(parts) > num_places else None
        low: bytes | None = None
        high: bytes | None = None
        path = first_path
        for match, next_path in (*others, (None, None)):
            position = found.end()
            if path is not None:
                length, position = varint(content, position)
                if path == HIGH:
                    high = content[position : position + length]
                elif path == LOW:
                    low = content[position : position + length]
                position += length
            if match is None:
                break
            found = match(content, position)
            if found is None:
                return None
            if found.lastindex:
                nulls = number_in(found[1])
            path = next_path
        return position, nulls, low, high

    return read


def _read_two_texts(steps: list[tuple[bytes, Path | None]], num_places: int) -> ReadShape:
    """Read what `_read_with_holes` does, where NULLs, maximum and minimum are all there is.

    This is the shape of most texts; without a loop it takes two thirds of the time.
    """
    at_nulls, at_low, at_end = (re.compile(pattern, re.DOTALL).match for pattern, _ in steps)
    read_any = _read_with_holes(steps, num_places)
    is_before = _IS_BEFORE[num_places]

    def read(content: bytes, position: int, data_end: int) -> Found | None:
        found = at_nulls(content, position)
        if found is None or not is_before(parts := found.groups(), data_end):
            return None
        start = found.end() + 1
        between = start + content[start - 1]
        middle = at_low(content, between)
        if middle is None:
            return read_any(content, position, data_end)
        low_start = middle.end() + 1
        end = low_start + content[low_start - 1]
        if between - start > 127 or end - low_start > 127:  # noqa: PLR2004 - more bytes of length
            return read_any(content, position, data_end)
        last = at_end(content, end)
        if last is None:
            return None
        nulls = parts[num_places]
        number = 0 if nulls == b"\x00" else number_in(nulls)
        return last.end(), number, content[low_start:end], content[start:between]

    return read


class _Doubles(dict[bytes, int]):
    """Twice the number that bytes encode which a pattern has found, where it is not negative.

    Those of one or two bytes are kept: nearly all numbers of small files are.
    """

    def __missing__(self, encoded: bytes) -> int:
        if len(encoded) > _BYTES_AT_ONCE:
            return varint(encoded, 0)[0]
        number = int.from_bytes(encoded, "little")  # seven bits of each byte, without a loop
        number = (
            number & 0x7F | number >> 1 & 0x3F80 | number >> 2 & 0x1FC000 | number >> 3 & 0xFE00000
        )
        if len(encoded) <= _KEPT_BYTES:
            self[encoded] = number
        return number

    def __reduce__(self) -> tuple[type[_Doubles], tuple[()]]:
        """Send none to workers: their code has to be small."""
        return _Doubles, ()


DOUBLES = _Doubles()


def _is_before(parts: tuple[bytes, ...], data_end: int) -> bool:
    """Tell whether the pages of a chunk are before a place, by what `PLACES` are in it."""
    begin = parts[3]
    if (parts[0][0] | parts[1][0] | parts[2][0] | begin[0]) & 1:  # negative
        return False
    return DOUBLES[begin] + DOUBLES[parts[2]] <= data_end << 1


def _is_before_with_dictionary(parts: tuple[bytes, ...], data_end: int) -> bool:
    values, plain, stored, begin, dictionary = parts[:5]
    if (values[0] | plain[0] | stored[0] | begin[0]) & 1:
        return False
    first = DOUBLES[begin]
    if not dictionary[0] & 1 and 0 < (other := DOUBLES[dictionary]) < first:
        first = other
    return first + DOUBLES[stored] <= data_end << 1


_IS_BEFORE: Mapping[int, Callable[[tuple[bytes, ...], int], bool]] = {
    0: lambda _, __: True,
    len(PLACES) - 1: _is_before,
    len(PLACES): _is_before_with_dictionary,
}
"""By the number of places."""


def number_in(encoded: bytes) -> int:
    """Return the number that a pattern has found."""
    return signed(varint(encoded, 0)[0] if len(encoded) > 1 else encoded[0])
