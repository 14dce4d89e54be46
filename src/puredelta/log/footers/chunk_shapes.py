"""The bytes of column chunks in a footer, as patterns that find their statistics at once.

A footer is a struct in Thrift's compact protocol. Files of one program have the same fields in the
same order and differ in numbers and bounds alone. So the bytes of one column chunk are walked
once, field by field; from then on a regular expression, which knows every field and takes any
number, reads what has the same shape. What does not match is read another way, never guessed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.log.footers.leaf_values import Raw

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_DEPTH_MAX = 8
_LIST_SIZE_FOLLOWS = 15

_NULLS, _HIGH, _LOW = (3, 12, 3), (3, 12, 5), (3, 12, 6)
"""``ColumnChunk.meta_data.statistics``: ``null_count``, ``max_value``, ``min_value``."""
_BOUNDS = frozenset({_HIGH, _LOW, (3, 12, 1), (3, 12, 2)})
"""The deprecated ``max`` and ``min``, too: they are stepped over."""
_TYPE = (3, 1)
"""``ColumnChunk.meta_data.type``: it is that of the schema."""
_GROUP_ROWS = (3,)
"""``RowGroup.num_rows``."""

_UNPACK: Mapping[str, Callable[[bytes], tuple[Raw, ...]]] = {
    "INT32": struct.Struct("<i").unpack,
    "INT64": struct.Struct("<q").unpack,
    "FLOAT": struct.Struct("<f").unpack,
    "DOUBLE": struct.Struct("<d").unpack,
}

Path: TypeAlias = tuple[int, ...]
Found: TypeAlias = "tuple[int, int | None, Raw | None, Raw | None]"
"""Where the next field begins, the number of NULLs (or of rows), minimum and maximum."""
ReadShape: TypeAlias = Callable[[bytes, int], "Found | None"]
"""Reads what begins at a position; ``None`` if it has another shape.

Raises:
    IndexError: the bytes end too early.
"""


class UnknownBytesError(Exception):
    """Bytes that are no struct, or one that these patterns do not describe."""


@dataclass(frozen=True, slots=True)
class _Hole:
    """A text of any length: its length is not part of the shape."""

    path: Path


class Walk:
    """Steps over values of the compact protocol and notes their shape."""

    def __init__(self, content: bytes, position: int = 0, *, fixed_width: bool = False) -> None:
        self.position = position
        self._content = content
        self._fixed_width = fixed_width
        self._parts: list[bytes | _Hole] = []
        self._groups: list[Path] = []

    def struct(self, path: Path = (), *, field: int = 0) -> None:
        """Step over a struct, or what is left of it after ``field``."""
        if len(path) > _DEPTH_MAX:
            raise UnknownBytesError("nested too deep")
        while True:
            start = self.position
            header = self._byte()
            if header == 0:
                self._literal(start)
                return
            field = field + (header >> 4) if header >> 4 else _zigzag(self.varint())
            self._literal(start)
            self.value(header & 15, (*path, field))

    def value(self, kind: int, path: Path) -> None:
        """Step over a value of a type of the protocol."""
        match kind:
            case 1 | 2:
                pass  # a boolean field is its header
            case 3:
                self._any(1)
            case 4 | 5 | 6:
                start = self.position
                self.varint()
                if path == _TYPE:
                    self._literal(start)
                else:
                    self._number(path)
            case 7:
                self._any(8)
            case 8:
                self._text(path)
            case 9 | 10:
                self._list(path)
            case 12:
                self.struct(path)
            case _:
                raise UnknownBytesError(f"a value of type {kind}")

    def varint(self) -> int:
        """Return the number here, whose sign is still in its last bit."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 - the highest bit says that more follows
                return value
            shift += 7

    def shape(self, physical: str) -> ReadShape:
        """Return what reads bytes of the shape that was stepped over."""
        if [path for path in (_NULLS, _GROUP_ROWS, _HIGH, _LOW) if path in self._groups] != (
            self._groups
        ) or ((_HIGH in self._groups) != (_LOW in self._groups)):
            raise UnknownBytesError("statistics in an unusual order")
        steps: list[tuple[bytes, Path | None]] = []
        segment = b""
        for part in self._parts:
            if isinstance(part, _Hole):
                steps.append((segment, part.path))
                segment = b""
            else:
                segment += part
        steps.append((segment, None))
        if len(steps) == 1:
            return _read_fixed(segment, tuple(self._groups), _UNPACK.get(physical))
        if [path for _, path in steps] == [_HIGH, _LOW, None] and self._groups[0] == _NULLS:
            return _read_two_texts(steps)
        return _read_with_holes(steps)

    def _byte(self) -> int:
        byte = self._content[self.position]
        self.position += 1
        return byte

    def _literal(self, start: int) -> None:
        self._parts.append(re.escape(self._content[start : self.position]))

    def _any(self, length: int) -> None:
        self.position += length
        self._parts.append(b".{%d}" % length)

    def _number(self, path: Path) -> None:
        if path in (_NULLS, _GROUP_ROWS):
            self._groups.append(path)
            self._parts.append(b"(" + _VARINT + b")")
        else:
            self._parts.append(_VARINT)

    def _text(self, path: Path) -> None:
        start = self.position
        length = self.varint()
        if path not in _BOUNDS:
            self.position += length
            self._literal(start)
        elif self._fixed_width:
            self._literal(start)
            self.position += length
            wanted = path in (_HIGH, _LOW)
            if wanted:
                self._groups.append(path)
            self._parts.append((b"(.{%d})" if wanted else b".{%d}") % length)
        else:
            self.position += length
            if path in (_HIGH, _LOW):
                self._groups.append(path)
            self._parts.append(_Hole(path))
        if self.position > len(self._content):
            raise UnknownBytesError("cut short")

    def _list(self, path: Path) -> None:
        start = self.position
        header = self._byte()
        size = header >> 4
        if size == _LIST_SIZE_FOLLOWS:
            size = self.varint()
        self._literal(start)
        if size > len(self._content):
            raise UnknownBytesError("a list longer than the footer")
        kind = header & 15
        for _ in range(size):
            self.value(3 if kind in (1, 2) else kind, path)


def _read_fixed(
    pattern: bytes,
    groups: tuple[Path, ...],
    unpack: Callable[[bytes], tuple[Raw, ...]] | None,
) -> ReadShape:
    """Read a chunk whose bounds, if it has any, have the same length in every file."""
    match = re.compile(pattern, re.DOTALL).match

    def read_bounds(content: bytes, position: int) -> Found | None:
        found = match(content, position)
        if found is None:
            return None
        nulls, high, low = found.groups()
        number = 0 if nulls == b"\x00" else number_in(nulls)
        if unpack is None:
            return found.end(), number, low, high
        return found.end(), number, unpack(low)[0], unpack(high)[0]

    def read_number(content: bytes, position: int) -> Found | None:
        found = match(content, position)
        return None if found is None else (found.end(), number_in(found[1]), None, None)

    def read_nothing(content: bytes, position: int) -> Found | None:
        found = match(content, position)
        return None if found is None else (found.end(), None, None, None)

    match len(groups):
        case 0:
            return read_nothing
        case 1:
            return read_number
        case 3:
            return read_bounds
        case _:
            raise UnknownBytesError("bounds without a number of NULLs")


def _read_with_holes(steps: list[tuple[bytes, Path | None]]) -> ReadShape:
    """Read a chunk whose bounds are texts."""
    matches = tuple((re.compile(pattern, re.DOTALL).match, path) for pattern, path in steps)

    def read(content: bytes, position: int) -> Found | None:
        nulls: int | None = None
        low: bytes | None = None
        high: bytes | None = None
        for match, path in matches:
            found = match(content, position)
            if found is None:
                return None
            position = found.end()
            if found.lastindex:
                nulls = number_in(found[1])
            if path is None:
                continue
            length = content[position]
            position += 1
            if length > 127:  # noqa: PLR2004 - the highest bit says that more follows
                walk = Walk(content, position - 1)
                length, position = walk.varint(), walk.position
            if path == _HIGH:
                high = content[position : position + length]
            elif path == _LOW:
                low = content[position : position + length]
            position += length
        return position, nulls, low, high

    return read


def _read_two_texts(steps: list[tuple[bytes, Path | None]]) -> ReadShape:
    """Read what `_read_with_holes` does, where NULLs, maximum and minimum are all there is.

    This is the shape of most texts; without a loop it takes two thirds of the time.
    """
    at_nulls, at_low, at_end = (re.compile(pattern, re.DOTALL).match for pattern, _ in steps)
    read_any = _read_with_holes(steps)

    def read(content: bytes, position: int) -> Found | None:
        found = at_nulls(content, position)
        if found is None:
            return None
        start = found.end() + 1
        between = start + content[start - 1]
        middle = at_low(content, between)
        if middle is None:
            return read_any(content, position)
        low_start = middle.end() + 1
        end = low_start + content[low_start - 1]
        if between - start > 127 or end - low_start > 127:  # noqa: PLR2004 - as above
            return read_any(content, position)
        last = at_end(content, end)
        if last is None:
            return None
        nulls = found[1]
        number = 0 if nulls == b"\x00" else number_in(nulls)
        return last.end(), number, content[low_start:end], content[start:between]

    return read


def number_in(encoded: bytes) -> int:
    """Return the number that a pattern has found."""
    return _zigzag(Walk(encoded).varint()) if len(encoded) > 1 else _zigzag(encoded[0])


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
