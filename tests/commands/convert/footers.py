"""Parquet files without rows whose schema is spelt out node by node.

No writer at hand makes old two-level lists, maps of the wrong shape or annotations of the
future. A footer is a Thrift structure; this writes the few fields a reader asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BINARY, FIXED = range(8)

_BYTE_I32, _BYTE_I64, _BYTE_BINARY, _BYTE_LIST, _BYTE_STRUCT, _BYTE_TRUE, _BYTE_FALSE, _BYTE_I8 = (
    5, 6, 8, 9, 12, 1, 2, 3,
)  # fmt: skip


@dataclass(frozen=True)
class Logical:
    """One variant of the union LogicalType: field number and the fields of its struct."""

    number: int
    fields: tuple[tuple[int, object], ...] = ()


STRING = Logical(1)
MAP = Logical(2)
LIST = Logical(3)
ENUM = Logical(4)
DATE = Logical(6)
UNKNOWN = Logical(11)
JSON = Logical(12)
BSON = Logical(13)
UUID = Logical(14)
FLOAT16 = Logical(15)


def decimal(precision: int, scale: int) -> Logical:
    return Logical(5, ((1, scale), (2, precision)))


def timestamp(unit: int, *, utc: bool) -> Logical:
    """Unit 1 is milli, 2 micro, 3 nano."""
    return Logical(8, ((1, utc), (2, Logical(unit))))


def time(unit: int, *, utc: bool) -> Logical:
    return Logical(7, ((1, utc), (2, Logical(unit))))


def integer(bits: int, *, signed: bool) -> Logical:
    return Logical(10, ((1, bits.to_bytes(1, "little")), (2, signed)))


@dataclass(frozen=True)
class Node:
    """One element of the schema; with children it is a group."""

    name: str
    physical: int | None = None
    repetition: int = OPTIONAL
    logical: Logical | None = None
    converted: int | None = None
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    children: tuple[Node, ...] = ()


def group(name: str, *children: Node, **others: object) -> Node:
    return Node(name, children=children, **others)


def empty_file(*columns: Node, created_by: str = "test") -> bytes:
    """Return a Parquet file of no rows with these columns."""
    elements = list(_flatten(group("schema", *columns, repetition=None)))
    metadata = _struct(
        [
            (1, _BYTE_I32, _zigzag(1)),
            (2, _BYTE_LIST, _list(_BYTE_STRUCT, [_element(node) for node in elements])),
            (3, _BYTE_I64, _zigzag(0)),
            (4, _BYTE_LIST, _list(_BYTE_STRUCT, [])),
            (6, _BYTE_BINARY, _text(created_by)),
        ]
    )
    return b"PAR1" + metadata + len(metadata).to_bytes(4, "little") + b"PAR1"


def _flatten(node: Node):
    yield node
    for child in node.children:
        yield from _flatten(child)


def _element(node: Node) -> bytes:
    fields: list[tuple[int, int, bytes]] = []
    for number, value in (
        (1, node.physical),
        (2, node.length),
        (3, node.repetition),
    ):
        if value is not None:
            fields.append((number, _BYTE_I32, _zigzag(value)))
    fields.append((4, _BYTE_BINARY, _text(node.name)))
    if node.children:
        fields.append((5, _BYTE_I32, _zigzag(len(node.children))))
    for number, value in ((6, node.converted), (7, node.scale), (8, node.precision)):
        if value is not None:
            fields.append((number, _BYTE_I32, _zigzag(value)))
    if node.logical is not None:
        fields.append((10, _BYTE_STRUCT, _union(node.logical)))
    return _struct(fields)


def _union(logical: Logical) -> bytes:
    fields: list[tuple[int, int, bytes]] = []
    for number, value in logical.fields:
        match value:
            case bool():
                fields.append((number, _BYTE_TRUE if value else _BYTE_FALSE, b""))
            case int():
                fields.append((number, _BYTE_I32, _zigzag(value)))
            case bytes():
                fields.append((number, _BYTE_I8, value))
            case Logical():
                fields.append((number, _BYTE_STRUCT, _union(value)))
    return _struct([(logical.number, _BYTE_STRUCT, _struct(fields))])


def _struct(fields: Sequence[tuple[int, int, bytes]]) -> bytes:
    out, last = bytearray(), 0
    for number, kind, content in fields:
        out.append((number - last) << 4 | kind)
        out += content
        last = number
    return bytes(out) + b"\0"


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    size = len(items)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
    return head + b"".join(items)


def _text(text: str) -> bytes:
    raw = text.encode()
    return _varint(len(raw)) + raw


def _zigzag(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
