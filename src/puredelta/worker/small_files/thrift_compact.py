"""Thrift's compact protocol, as far as footers of Parquet files need it.

The header of a field is its number less that of the field before, and its kind. Whole numbers have
seven bits in a byte, least ones first; numbers that may be negative are doubled. Bytes that are no
Thrift raise `UnsupportedLayoutError` or IndexError.
"""

from __future__ import annotations

from collections.abc import Sequence

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""Kinds of fields."""

NEXT_I32, NEXT_I64, NEXT_LIST, NEXT_STRUCT = (
    bytes([1 << 4 | kind]) for kind in (I32, I64, LIST, STRUCT)
)
SECOND_I64, SECOND_BINARY = (bytes([2 << 4 | kind]) for kind in (I64, BINARY))
"""Headers of fields with a number left out before them."""
ONE_BINARY, ONE_I32, ONE_STRUCT = (bytes([1 << 4 | kind]) for kind in (BINARY, I32, STRUCT))
"""Headers of lists of one element."""
ZERO = STOP = b"\x00"

_LONG = 15
"""The length of a list whose length stands after its header."""
_BITS, _MORE = 0x7F, 0x80
_KIND = 0x0F
_DOUBLE_BYTES = 8


class UnsupportedLayoutError(Exception):
    """A file, or bytes of it, in a layout that this code does not read."""


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a whole number and the place after it."""
    number = shift = 0
    while (byte := content[at]) & _MORE:
        number |= (byte & _BITS) << shift
        shift += 7
        at += 1
    return number | byte << shift, at + 1


def i64_at(content: bytes, at: int) -> tuple[int, int]:
    """Return a number that might be negative, and is not, and the place after it."""
    number, at = varint(content, at)
    return number >> 1, at


def i64_of(content: bytes) -> int:
    """Return a number that is alone in ``content``, might be negative, and is not."""
    number = 0
    for byte in reversed(content):
        number = number << 7 | byte & _BITS
    return number >> 1


def list_at(content: bytes, at: int) -> tuple[int, int, int]:
    """Return how many elements of what kind a list has, and where the first is."""
    header = content[at]
    if header >> 4 < _LONG:
        return header >> 4, header & _KIND, at + 1
    length, at = varint(content, at + 1)
    return length, header & _KIND, at


def passed(content: bytes, at: int, kind: int) -> int:
    """Return the place after a field's value."""
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    if kind in (I16, I32, I64):
        return varint(content, at)[1]
    if kind == DOUBLE:
        return at + _DOUBLE_BYTES
    if kind == BINARY:
        length, at = varint(content, at)
        return at + length
    if kind in (LIST, SET):
        length, element, at = list_at(content, at)
        for _ in range(length):
            at = at + 1 if element in (TRUE, FALSE) else passed(content, at, element)
        return at
    if kind == STRUCT:
        return struct_fields(content, at)[1]
    raise UnsupportedLayoutError


def struct_fields(content: bytes, at: int) -> tuple[dict[int, int], int]:
    """Return where the values of a struct's fields are, by number, and the place after it."""
    found: dict[int, int] = {}
    number = 0
    while header := content[at]:
        at += 1
        if not header >> 4:
            raise UnsupportedLayoutError
        number += header >> 4
        found[number] = at
        at = passed(content, at, header & _KIND)
    return found, at + 1


def unsigned(number: int) -> bytes:
    """Encode a whole number."""
    content = []
    while number > _BITS:
        content.append(number & _BITS | _MORE)
        number >>= 7
    content.append(number)
    return bytes(content)


def i64(number: int) -> bytes:
    """Encode a number that might be negative, and is not."""
    return unsigned(number << 1)


def structs(elements: Sequence[bytes]) -> bytes:
    """Encode a list."""
    count = len(elements)
    long = count >= _LONG
    header = bytes([min(count, _LONG) << 4 | STRUCT])
    return b"".join([header, unsigned(count) if long else b"", *elements])
