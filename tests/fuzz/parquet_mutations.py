"""Changes of a Parquet file: of its bytes, and of the Thrift of its footer and of its pages."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from random import Random

from puredelta.worker.footers.thrift_compact import (
    BINARY,
    BYTE,
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
    unsigned,
    varint,
)
from tests.fuzz.parquet_files import any_file, large_files

_NUMBERS = (0, 1, -1, 2, 3, 5, 7, 127, 128, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)


def mutated_file(random: Random) -> tuple[str, bytes]:
    """Return one of the valid files with one to three changes, and what it was."""
    kind, content = any_file(random)
    return kind, changed_file(content, random)


def mutated_large_file(random: Random) -> tuple[str, bytes]:
    """Return as `mutated_file`, of the files above 32 MB."""
    kind, content = random.choice(sorted(large_files().items()))
    return kind, changed_file(content, random)


def changed_file(content: bytes, random: Random, *, pages: bool = True) -> bytes:
    """Return a file with one to three changes, of its footer alone without ``pages``."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = random.choice(_MUTATIONS if pages else _OF_FOOTERS)(content, random)
    return content


def footer_place(content: bytes) -> int:
    """Return where the footer begins."""
    length = int.from_bytes(content[-8:-4], "little")
    return max(4, len(content) - 8 - length)


def with_footer(content: bytes, footer: bytes) -> bytes:
    """Return a file with another footer, whose length is right."""
    length = len(footer).to_bytes(4, "little")
    return content[: footer_place(content)] + footer + length + content[-4:]


def _flip(content: bytes, random: Random, low: int, high: int) -> bytes:
    changed = bytearray(content)
    if low < high:
        at = random.randrange(low, high)
        if random.random() < 0.6:
            changed[at] ^= 1 << random.randrange(8)
        else:
            changed[at] = random.choice((0, 1, 2, 127, 128, 254, 255, random.randrange(256)))
    return bytes(changed)


def _flip_footer(content: bytes, random: Random) -> bytes:
    return _flip(content, random, footer_place(content), len(content))


def _flip_page(content: bytes, random: Random) -> bytes:
    return _flip(content, random, 4, footer_place(content))


def _cut(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    if random.random() < 0.5:
        return content[:at]
    return content[:at] + content[min(len(content), at + random.randrange(1, 40)) :]


def _insert(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    end = min(len(content), at + random.randrange(1, 60))
    return content[:at] + content[at:end] * random.choice((1, 2, 20)) + content[at:]


def _splice(content: bytes, random: Random) -> bytes:
    """Give a file the footer of another, or a part of it."""
    _, other = any_file(random)
    footer, foreign = (c[footer_place(c) : -8] for c in (content, other))
    if random.random() < 0.5:
        return with_footer(content, foreign)
    at, from_at = random.randrange(len(footer) + 1), random.randrange(len(foreign) + 1)
    return with_footer(content, footer[:at] + foreign[from_at:])


def _change_footer(content: bytes, random: Random) -> bytes:
    begin = footer_place(content)
    return with_footer(content, _changed_struct(content[begin:-8], 0, random))


def _change_page_header(content: bytes, random: Random) -> bytes:
    """Change a field of the header of a page, which is found where a struct of one begins."""
    starts = [found.start() for found in re.finditer(b"\x15", content[: footer_place(content)])]
    if not starts:
        return content
    at = random.choice(starts)
    changed = _changed_struct(content[at:], 0, random)
    if random.random() < 0.5:  # nothing moves
        changed = changed[: len(content) - at].ljust(len(content) - at, b"\x00")
    return content[:at] + changed


def _change_length(content: bytes, random: Random) -> bytes:
    length = random.choice((0, 1, 7, len(content), len(content) - 8, 2**31 - 1, 2**32 - 1))
    return content[:-8] + (length % 2**32).to_bytes(4, "little") + content[-4:]


def _change_magic(content: bytes, random: Random) -> bytes:
    return content[:-4] + random.choice((b"PARE", b"PAR2", b"\x00\x00\x00\x00"))


def _changed_struct(content: bytes, at: int, random: Random) -> bytes:
    """Change one value, header or list of a struct and what is in it, chosen at random."""
    places: list[tuple[int, int, int, int]] = []
    with contextlib.suppress(UnsupportedLayoutError, IndexError):
        _places(content, at, places, 0)
    if not places:
        return content
    header, begin, end, kind = random.choice(places)
    value = content[begin:end]
    match random.randrange(6):
        case 0 if kind in (I16, I32, I64):
            number = random.choice(_NUMBERS) * random.choice((1, 1, -1))
            value = unsigned(((number << 1) ^ (number >> 63)) & (2**64 - 1))
        case 0 if kind == BINARY:
            length, at = varint(content, begin)
            new = random.choice((b"", b"\xff" * 3, content[at : at + length] * 2, b"x" * 300))
            value = unsigned(len(new)) + new
        case 0 if kind in (LIST, SET):
            size = random.choice((0, 1, 14, 15, 2**20, 2**31 - 1, 2**62))
            element = content[begin] & 15
            value = bytes([0xF0 | element]) + unsigned(size) + content[begin + 1 : end]
        case 1:
            return content[:header] + content[end:]
        case 2:
            return content[:end] + content[header:end] + content[end:]
        case 3:
            kinds = (TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT, 0, 13)
            changed = bytes([content[header] & 0xF0 | random.choice(kinds)])
            return content[:header] + changed + content[header + 1 :]
        case 4:
            changed = bytes([content[header] & 15 | random.randrange(16) << 4])
            return content[:header] + changed + content[header + 1 :]
        case _:
            other = random.choice(places)
            value = content[other[1] : other[2]]
    return content[:begin] + value + content[end:]


def _places(content: bytes, at: int, found: list[tuple[int, int, int, int]], depth: int) -> int:
    """Note header, begin, end and kind of every value in a struct; return the place after it."""
    number = 0
    while True:
        header = at
        number, kind, at = field_at(content, at, number)
        if not kind:
            return at
        begin = at
        at = _value_places(content, at, kind, found, depth)
        found.append((header, begin, at, kind))


def _value_places(
    content: bytes, at: int, kind: int, found: list[tuple[int, int, int, int]], depth: int
) -> int:
    if kind == STRUCT and depth < 8:
        return _places(content, at, found, depth + 1)
    if kind in (LIST, SET):
        size, element, at = list_at(content, at)
        for _ in range(size):
            at = _value_places(content, at, element, found, depth + 1)
        return at
    if kind == BINARY:
        length, at = varint(content, at)
        return at + length
    if kind in (I16, I32, I64):
        return varint(content, at)[1]
    if kind in (TRUE, FALSE):
        return at
    if kind in (BYTE, DOUBLE):
        return at + (1 if kind == BYTE else 8)
    raise UnsupportedLayoutError


_OF_FOOTERS = (_flip_footer, _change_footer, _splice, _change_length, _change_magic)
_MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_flip_footer,) * 5,
    *(_flip_page,) * 5,
    *(_change_footer,) * 5,
    *(_change_page_header,) * 4,
    _cut,
    _insert,
    _splice,
    _change_length,
    _change_magic,
)
