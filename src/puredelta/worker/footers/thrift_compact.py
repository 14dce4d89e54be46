"""Thrift's compact protocol, as far as footers of Parquet files and headers of pages need it.

`Struct` reads the values of known fields; `RawStruct` keeps all fields as bytes, to write them.

The header of a field is its number less that of the field before, and its kind. Whole numbers have
seven bits in a byte, least ones first; numbers that may be negative are doubled. Bytes that are no
Thrift raise `UnsupportedLayoutError` or IndexError, and never take more time or memory than there
are bytes: nothing is made before the bytes of it are there, and structs are nested eight deep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

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
"""The length of a list whose length is written after its header."""
_BITS, _MORE = 0x7F, 0x80
_KIND = 0x0F
_DOUBLE_BYTES = 8
_SHIFT_MAX = 63
DEPTH_MAX = 8
"""Of structs and lists within each other; those of Parquet are six deep."""


class UnsupportedLayoutError(Exception):
    """A file, or bytes of it, in a layout that this code does not read."""


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a whole number and the place after it."""
    number = shift = 0
    while (byte := content[at]) & _MORE:
        number |= (byte & _BITS) << shift
        shift += 7
        at += 1
        if shift > _SHIFT_MAX:
            raise UnsupportedLayoutError("a number of more than ten bytes")
    return number | byte << shift, at + 1


def signed(number: int) -> int:
    """Return the number that `varint` has found where it might be negative.

    >>> [signed(number) for number in range(4)]
    [0, -1, 1, -2]
    """
    return (number >> 1) ^ -(number & 1)


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
    length, at = header >> 4, at + 1
    if length == _LONG:
        length, at = varint(content, at)
    if length > len(content) - at:  # an element takes a byte at least
        raise UnsupportedLayoutError("a list longer than its bytes")
    return length, header & _KIND, at


def field_at(content: bytes, at: int, number: int) -> tuple[int, int, int]:
    """Return number and kind of the field after that of ``number``, and where its value is.

    The kind is 0 where the struct ends.
    """
    header = content[at]
    at += 1
    if header >> 4:
        return number + (header >> 4), header & _KIND, at
    if header:
        number, at = varint(content, at)
        return signed(number), header, at
    return number, 0, at


def passed(content: bytes, at: int, kind: int, depth: int = 0) -> int:
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
    if depth >= DEPTH_MAX:
        raise UnsupportedLayoutError("nested too deep")
    if kind in (LIST, SET):
        length, element, at = list_at(content, at)
        for _ in range(length):
            at = at + 1 if element in (TRUE, FALSE) else passed(content, at, element, depth + 1)
        return at
    if kind == STRUCT:
        return struct_fields(content, at, depth + 1)[1]
    raise UnsupportedLayoutError(f"a value of kind {kind}")


def struct_fields(content: bytes, at: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """Return where the values of a struct's fields are, by number, and the place after it."""
    found: dict[int, int] = {}
    number = 0
    while True:
        number, kind, at = field_at(content, at, number)
        if not kind:
            return found, at
        found[number] = at
        at = passed(content, at, kind, depth)


Fields: TypeAlias = dict[int, Any]
"""The values of a struct by the numbers of their fields: int, bool, bytes, list, or `Fields`."""


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of a struct that are read; all others are passed."""

    kinds: Mapping[int, int | Struct | tuple[int | Struct]]
    """By number: a kind; a struct; or a list, as the tuple of what its elements are."""

    def read(self, content: bytes, at: int) -> tuple[Fields, int]:
        """Return the values of the fields that are there, and the place after the struct.

        A field of another kind than it should have, and one that is there twice, are no Thrift of
        this struct: readers differ in what they make of it.
        """
        found: Fields = {}
        known = self.kinds
        number = 0
        while header := content[at]:
            at += 1
            if header >> 4:
                number += header >> 4
                kind = header & _KIND
            else:
                number, kind, at = field_at(content, at - 1, number)
            wanted = known.get(number)
            if wanted is None:
                at = passed(content, at, kind)
                continue
            if number in found:
                raise UnsupportedLayoutError(f"field {number} is there twice")
            if kind == wanted and I16 <= kind <= I64:
                value = content[at]
                at += 1
                if value & _MORE:
                    value, at = varint(content, at - 1)
                found[number] = (value >> 1) ^ -(value & 1)
            else:
                found[number], at = _value(content, at, kind, wanted)
        return found, at + 1


def _value(
    content: bytes, at: int, kind: int, wanted: int | Struct | tuple[int | Struct]
) -> tuple[Any, int]:
    if isinstance(wanted, Struct):
        if kind == STRUCT:
            return wanted.read(content, at)
    elif isinstance(wanted, tuple):
        if kind == LIST:
            return _elements(content, at, wanted[0])
    elif kind == wanted or (wanted == TRUE and kind == FALSE):
        if kind == BINARY:
            length, at = varint(content, at)
            if length > len(content) - at:
                raise UnsupportedLayoutError("a text longer than its bytes")
            return content[at : at + length], at + length
        if kind in (I16, I32, I64):
            number, at = varint(content, at)
            return signed(number), at
        return kind == TRUE, passed(content, at, kind)
    raise UnsupportedLayoutError(f"a field of kind {kind} instead of {wanted}")


def _elements(content: bytes, at: int, wanted: int | Struct) -> tuple[list[Any], int]:
    length, kind, at = list_at(content, at)
    if length and kind != (STRUCT if isinstance(wanted, Struct) else wanted):
        raise UnsupportedLayoutError(f"a list of kind {kind}")
    values: list[Any] = []
    for _ in range(length):
        value, at = _value(content, at, kind, wanted)
        values.append(value)
    return values, at


Reader: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
"""Takes bytes, a place and a kind; returns what was read there, and the place after it."""


def structs_at(
    content: bytes, at: int, kind: int, read: Callable[[bytes, int], tuple[T, int]]
) -> tuple[list[T], int]:
    """Read each struct of a list; return them, and the place after the list."""
    length, element, at = list_at(content, at)
    if kind != LIST or (length and element != STRUCT):
        raise UnsupportedLayoutError("a value that is no list of structs")
    found: list[T] = []
    for _ in range(length):
        value, at = read(content, at)
        found.append(value)
    return found, at


class RawStruct:
    r"""A struct whose values are kept as bytes, so that what is not changed is written as it was.

    Examples:
        >>> raw, end = RawStruct.read(b"\x15\x02\x18\x01a\x00", 0)
        >>> raw.number(1), raw.raw(2), end
        (1, b'\x01a', 6)
        >>> raw.set_number(1, 300)
        >>> raw.encode().hex()
        '15d80418016100'
    """

    def __init__(self, fields: Mapping[int, tuple[int, bytes]] | None = None) -> None:
        """``fields``: kind and encoded value, by number."""
        self.fields: dict[int, tuple[int, bytes]] = dict(fields or {})
        self.parts: dict[int, Any] = {}

    @classmethod
    def read(
        cls, content: bytes, at: int, readers: Mapping[int, Reader] | None = None
    ) -> tuple[RawStruct, int]:
        """Return the struct that begins at a place, and the place after it.

        ``readers`` read fields by number into ``parts``: set these before the struct is encoded. A
        field that is there twice, or cut short, is no Thrift.
        """
        found = cls()
        fields = found.fields
        number, kind, at = field_at(content, at, 0)
        while kind:
            if number in fields:
                raise UnsupportedLayoutError(f"field {number} is there twice")
            if readers is not None and number in readers:
                found.parts[number], at = readers[number](content, at, kind)
                fields[number] = kind, b""
            else:
                end = passed(content, at, kind)
                if end > len(content):
                    raise IndexError
                fields[number] = kind, content[at:end]
                at = end
            number, kind, at = field_at(content, at, number)
        return found, at

    def encode(self) -> bytes:
        """Return the struct with its fields in ascending order."""
        parts: list[bytes] = []
        last = 0
        for number in sorted(self.fields):
            kind, value = self.fields[number]
            if 0 < number - last < _LONG + 1:
                parts.append(bytes([number - last << 4 | kind]))
            else:
                parts.append(bytes([kind]) + i64(number))
            parts.append(value)
            last = number
        return b"".join([*parts, STOP])

    def __contains__(self, number: int) -> bool:
        """Whether there is a field of this number."""
        return number in self.fields

    def raw(self, number: int) -> bytes | None:
        """Return the encoded value of a field, ``None`` without one."""
        found = self.fields.get(number)
        return None if found is None else found[1]

    def number(self, number: int, default: int = 0) -> int:
        """Return a whole number that might be negative."""
        found = self.fields.get(number)
        if found is None:
            return default
        if found[0] not in (I16, I32, I64):
            raise UnsupportedLayoutError(f"field {number} is no whole number")
        return signed(varint(found[1], 0)[0])

    def set_number(self, number: int, value: int, kind: int = I64) -> None:
        """Set a field to a whole number that is not negative; one that is there keeps its kind."""
        if value < 0:
            raise UnsupportedLayoutError(f"field {number} would be {value}")
        kept = self.fields.get(number, (kind, b""))[0]
        self.fields[number] = kept, i64(value)

    def struct(self, number: int) -> RawStruct | None:
        """Return the struct of a field, ``None`` without one."""
        found = self.fields.get(number)
        if found is None:
            return None
        if found[0] != STRUCT:
            raise UnsupportedLayoutError(f"field {number} is no struct")
        return RawStruct.read(found[1], 0)[0]

    def structs(self, number: int) -> list[RawStruct]:
        """Return the structs of a list; an empty list without one."""
        found = self.fields.get(number)
        if found is None:
            return []
        return structs_at(found[1], 0, found[0], RawStruct.read)[0]

    def set_structs(self, number: int, elements: Sequence[bytes]) -> None:
        """Set a field to a list of encoded structs."""
        self.fields[number] = LIST, structs(elements)

    def drop(self, *numbers: int) -> None:
        """Leave fields out."""
        for number in numbers:
            self.fields.pop(number, None)


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


def list_header(count: int) -> bytes:
    """Encode how many structs a list has."""
    long = count >= _LONG
    return bytes([min(count, _LONG) << 4 | STRUCT]) + (unsigned(count) if long else b"")


def structs(elements: Sequence[bytes]) -> bytes:
    """Encode a list."""
    return b"".join([list_header(len(elements)), *elements])
