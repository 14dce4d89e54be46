"""Check of a Parquet footer, made before Arrow's Python classes use it.

Arrow's parser refuses bytes that are not Thrift. A footer that parses and is still wrong ends the
process when a column chunk is accessed (``RowGroupMetaData.column``, ``.statistics``): Cython
lets C++ exceptions of these through, which nothing can catch. So every cause of such an exception
is checked here. Also checked is whatever would make Arrow read other rows than Spark, or read
outside of the file: chunks of every column and of its type, values of as many rows as the row
group has, row groups of as many rows as the file, places before the footer.

A footer that is not sound does not tell whether Spark can read the file: Spark checks less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from puredelta.worker.footers.thrift_compact import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Fields,
    Struct,
    UnsupportedLayoutError,
    field_at,
    list_at,
    passed,
    signed,
    struct_fields,
    varint,
)

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TRAILER_BYTES = 8
"""The length of a footer, and the magic number, which follow it."""

_STATISTICS = Struct({1: BINARY, 2: BINARY, 3: I64, 4: I64, 5: BINARY, 6: BINARY, 7: TRUE, 8: TRUE})
_SIZES = Struct({1: I64, 2: (I64,), 3: (I64,)})
_PAIR = Struct({1: BINARY, 2: BINARY})
_ENCODED_PAGES = Struct({1: I32, 2: I32, 3: I32})
_METADATA = Struct(
    {
        **dict.fromkeys((1, 4, 15), I32),
        **dict.fromkeys((5, 6, 7, 9, 10, 11, 14), I64),
        2: (I32,),
        3: (BINARY,),
        8: (_PAIR,),
        12: _STATISTICS,
        13: (_ENCODED_PAGES,),
        16: _SIZES,
    }
)
_TYPE, _PATH, _CODEC, _NUM_VALUES, _UNCOMPRESSED, _COMPRESSED = 1, 3, 4, 5, 6, 7
_DATA_AT, _DICTIONARY_AT, _STATED, _BLOOM_AT, _BLOOM_BYTES, _SIZES_STATED = 9, 11, 12, 14, 15, 16
_CHUNK = Struct(
    {
        **dict.fromkeys((2, 4, 6), I64),
        **dict.fromkeys((5, 7), I32),
        1: BINARY,
        3: _METADATA,
        8: Struct({}),
        9: BINARY,
    }
)
_CHUNK_METADATA, _CRYPTO = 3, 8
_PAGE_INDEXES = ((4, 5), (6, 7))
"""The places of offset index and column index, and their lengths."""
_SORTING = Struct({1: I32, 2: TRUE, 3: TRUE})
_GROUP_FIELDS: Mapping[int, int] = {1: LIST, 2: I64, 3: I64, 4: LIST, 5: I64, 6: I64, 7: I16}
_GROUP_COLUMNS, _GROUP_ROWS = 1, 3
_ELEMENT = Struct({**dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9), I32), 4: BINARY, 10: Struct({})})
_PHYSICAL, _TYPE_LENGTH, _REPETITION, _NAME, _CHILDREN = range(1, 6)
_FILE_FIELDS: Mapping[int, int] = {
    1: I32,
    2: LIST,
    3: I64,
    4: LIST,
    5: LIST,
    6: BINARY,
    7: LIST,
    8: STRUCT,
    9: BINARY,
}
_SCHEMA, _FILE_ROWS, _GROUPS, _PAIRS, _CREATED_BY, _ENCRYPTION, _SIGNING_KEY = 2, 3, 4, 5, 6, 8, 9
_SPARK_KEYS = b"org.apache.spark"
"""What keys begin with whose values are read as text."""

_OPTIONAL, _REPEATED = 1, 2
_BYTE_ARRAY, _FIXED_LENGTH = 6, 7
_VALUE_BYTES = (1, 4, 8, 12, 4, 8, 0)
"""By physical type: how long a bound is at least; of `_FIXED_LENGTH` the schema says it."""
PHYSICAL_NAMES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
_CODECS = range(8)
_SCHEMA_DEPTH_MAX = 100
"""As Arrow has it."""
_ROWS_MAX = 1 << 62


class UnsoundFooterError(Exception):
    """Why a file has no footer that Arrow may look at."""


class EncryptedFileError(UnsoundFooterError):
    """A file, or columns of it, take keys to be read."""


def footer_length(tail: bytes, size: int) -> int:
    """Return how long a footer is with what follows it, by the last bytes of a file of ``size``.

    Raises:
        UnsoundFooterError: there is none.
        EncryptedFileError: it is encrypted.
    """
    magic = tail[-len(MAGIC) :]
    if magic == ENCRYPTED_MAGIC:
        raise EncryptedFileError("its footer is encrypted")
    if len(tail) < TRAILER_BYTES or magic != MAGIC:
        raise UnsoundFooterError("it does not end with the magic bytes PAR1")
    needed = int.from_bytes(tail[-TRAILER_BYTES : -len(MAGIC)], "little") + TRAILER_BYTES
    if needed > size:
        raise UnsoundFooterError(f"it claims a footer of {needed} bytes in a file of {size}")
    return needed


def require_sound(footer: bytes, data_end: int) -> None:
    """Check a footer that begins at ``data_end`` in its file; what follows it is ignored.

    Raises:
        UnsoundFooterError: something is wrong with it.
        EncryptedFileError: columns of the file are encrypted, or its footer is signed.
    """
    try:
        _Footer(footer, data_end).require_sound()
    except UnsupportedLayoutError as reason:
        raise UnsoundFooterError(f"its footer is damaged: {reason}") from None
    except IndexError:
        raise UnsoundFooterError("its footer is cut short") from None
    except UnicodeDecodeError:
        raise UnsoundFooterError("a name in its footer is no UTF-8") from None


def leaves_of(footer: bytes) -> tuple[FooterLeaf, ...]:
    """Return the columns of values of a sound footer."""
    places, _ = struct_fields(footer, 0)
    elements, _ = _structs(footer, places[_SCHEMA], _ELEMENT)
    return tuple(_leaves(elements))


def spark_pairs(content: bytes, at: int) -> tuple[tuple[tuple[bytes, bytes | None], ...], int]:
    """Return Spark's keys and values of a footer's list of pairs, and the place after the list."""
    pairs, at = _structs(content, at, _PAIR)
    if any(1 not in pair for pair in pairs):
        raise UnsupportedLayoutError("a pair without a key")
    found = tuple((pair[1], pair.get(2)) for pair in pairs if pair[1].startswith(_SPARK_KEYS))
    for _, value in found:
        (value or b"").decode()
    return found, at


class _Footer:
    """A footer whose fields are checked one after the other, in the order of the file."""

    def __init__(self, content: bytes, data_end: int) -> None:
        self._content = content
        self._data_end = data_end
        self._leaves: Sequence[FooterLeaf] | None = None
        self._rows: int | None = None
        self._counted: int | None = None
        self._readers: Mapping[int, Callable[[int], int]] = {
            _SCHEMA: self._schema,
            _FILE_ROWS: self._num_rows,
            _GROUPS: self._groups,
            _PAIRS: self._pairs,
            _CREATED_BY: self._created_by,
        }

    def require_sound(self) -> None:
        content, number, at = self._content, 0, 0
        seen: set[int] = set()
        while True:
            number, kind, at = field_at(content, at, number)
            if not kind:
                break
            _require_new(number, kind, _FILE_FIELDS, seen)
            read = self._readers.get(number)
            at = passed(content, at, kind) if read is None else read(at)
            if at > len(content):
                raise IndexError
        if not seen.isdisjoint((_ENCRYPTION, _SIGNING_KEY)):
            raise EncryptedFileError("its columns are encrypted, or its footer is signed")
        if self._counted is None or self._rows != self._counted:
            raise UnsupportedLayoutError(f"{self._rows} rows, {self._counted} in its row groups")

    def _schema(self, at: int) -> int:
        elements, at = _structs(self._content, at, _ELEMENT)
        self._leaves = tuple(_leaves(elements))
        return at

    def _num_rows(self, at: int) -> int:
        rows, at = varint(self._content, at)
        self._rows = signed(rows)
        return at

    def _groups(self, at: int) -> int:
        if self._leaves is None:
            raise UnsupportedLayoutError("row groups without a schema before them")
        self._counted, at = _require_groups(self._content, at, self._leaves, self._data_end)
        return at

    def _pairs(self, at: int) -> int:
        return spark_pairs(self._content, at)[1]

    def _created_by(self, at: int) -> int:
        length, at = varint(self._content, at)
        self._content[at : at + length].decode()
        return at + length


def _require_new(number: int, kind: int, kinds: Mapping[int, int], seen: set[int]) -> None:
    """Refuse a field that is there twice or of another kind: readers differ about these."""
    if number in seen or kinds.get(number, kind) != kind:
        raise UnsupportedLayoutError(f"field {number} is there twice, or of kind {kind}")
    seen.add(number)


def _structs(content: bytes, at: int, what: Struct) -> tuple[list[Fields], int]:
    length, kind, at = list_at(content, at)
    if kind != STRUCT:
        raise UnsupportedLayoutError(f"a list of kind {kind}")
    found = []
    for _ in range(length):
        fields, at = what.read(content, at)
        found.append(fields)
    return found, at


@dataclass(frozen=True, slots=True)
class FooterLeaf:
    """A column of values, and what a chunk of it may say."""

    path: tuple[bytes, ...]
    physical: int
    bound_bytes: int
    repetitions: int
    """The greatest level."""
    definitions: int


def _leaves(elements: Sequence[Fields]) -> Iterator[FooterLeaf]:
    """Yield the leaves of a schema, which is a tree in the order of its branches."""
    if not elements:
        raise UnsupportedLayoutError("an empty schema")
    # Of each group that is open: elements still to come, path, levels.
    open_groups: list[tuple[int, tuple[bytes, ...], int, int]] = [
        (elements[0].get(_CHILDREN, 0), (), 0, 0)
    ]
    for element in elements[1:]:
        while open_groups and not open_groups[-1][0]:
            open_groups.pop()
        if not open_groups:
            raise UnsupportedLayoutError("more columns than the schema says")
        left, path, repetitions, definitions = open_groups[-1]
        open_groups[-1] = left - 1, path, repetitions, definitions
        repetition, children = element.get(_REPETITION), element.get(_CHILDREN, 0)
        if repetition not in (0, _OPTIONAL, _REPEATED) or _NAME not in element:
            raise UnsupportedLayoutError("a column without a name, or of an unknown repetition")
        element[_NAME].decode()
        path = (*path, element[_NAME])
        repetitions += repetition == _REPEATED
        definitions += repetition in (_OPTIONAL, _REPEATED)
        physical = element.get(_PHYSICAL)
        if children or physical is None:
            if not 0 <= children <= len(elements) or len(path) > _SCHEMA_DEPTH_MAX:
                raise UnsupportedLayoutError("a column of too many columns")
            open_groups.append((children, path, repetitions, definitions))
            continue
        yield FooterLeaf(path, physical, _bound_bytes(element), repetitions, definitions)
    if any(left for left, *_ in open_groups):
        raise UnsupportedLayoutError("fewer columns than the schema says")


def _bound_bytes(element: Fields) -> int:
    physical = element[_PHYSICAL]
    if physical == _FIXED_LENGTH:
        length: int = element.get(_TYPE_LENGTH, 0)
        if length <= 0:
            raise UnsupportedLayoutError("values without a length")
        return length
    if not 0 <= physical < len(_VALUE_BYTES):
        raise UnsupportedLayoutError(f"a physical type {physical}")
    return _VALUE_BYTES[physical]


def _require_groups(
    footer: bytes, at: int, leaves: Sequence[FooterLeaf], data_end: int
) -> tuple[int, int]:
    """Return the rows of all row groups, and the place after them."""
    length, kind, at = list_at(footer, at)
    if length and kind != STRUCT:
        raise UnsupportedLayoutError(f"a list of kind {kind}")
    total = 0
    for _ in range(length):
        rows, at = _require_group(footer, at, leaves, data_end)
        total += rows
    return total, at


def _require_group(
    footer: bytes, at: int, leaves: Sequence[FooterLeaf], data_end: int
) -> tuple[int, int]:
    number = 0
    rows = None
    chunks: list[int] | None = None
    seen: set[int] = set()
    while True:
        number, kind, at = field_at(footer, at, number)
        if not kind:
            break
        _require_new(number, kind, _GROUP_FIELDS, seen)
        if number == _GROUP_COLUMNS:
            count, element, at = list_at(footer, at)
            if count != len(leaves) or (count and element != STRUCT):
                raise UnsupportedLayoutError(f"{count} columns instead of {len(leaves)}")
            chunks = []
            for leaf in leaves:
                fields, at = _CHUNK.read(footer, at)
                chunks.append(_require_chunk(fields, leaf, data_end))
        elif number == _GROUP_ROWS:
            value, at = varint(footer, at)
            rows = signed(value)
        else:
            at = passed(footer, at, kind)
    if chunks is None or rows is None or not 0 <= rows < _ROWS_MAX:
        raise UnsupportedLayoutError("a row group without columns or rows")
    for leaf, values in zip(leaves, chunks, strict=True):
        if values < rows or (values != rows and not leaf.repetitions):
            raise UnsupportedLayoutError(f"{values} values of {rows} rows")
    return rows, at


def _require_chunk(chunk: Fields, leaf: FooterLeaf, data_end: int) -> int:
    """Return how many values a chunk has."""
    if _CRYPTO in chunk:
        raise EncryptedFileError(f"column {_dotted(leaf)} is encrypted")
    fields = chunk.get(_CHUNK_METADATA)
    if fields is None:
        raise UnsupportedLayoutError("a column that is not described")
    try:
        if fields[_TYPE] != leaf.physical or fields[_CODEC] not in _CODECS:
            raise UnsupportedLayoutError(f"column {_dotted(leaf)} is of another type or codec")
        if tuple(fields[_PATH]) != leaf.path:
            raise UnsupportedLayoutError(f"column {_dotted(leaf)} has the chunk of another")
        values: int = fields[_NUM_VALUES]
        begin = data_at = fields[_DATA_AT]
        stored = fields[_COMPRESSED]
        is_counted = 0 <= values < _ROWS_MAX and fields[_UNCOMPRESSED] >= 0
    except KeyError:
        raise UnsupportedLayoutError("a column that is not described whole") from None
    if 0 < (dictionary_at := fields.get(_DICTIONARY_AT, 0)) < data_at:
        begin = dictionary_at
    if not is_counted or stored < 0 or begin < 0 or (values and begin + stored > data_end):
        raise UnsupportedLayoutError(f"column {_dotted(leaf)} is outside of the file")
    if (statistics := fields.get(_STATED)) is not None:
        _require_statistics(statistics, leaf)
    if (sizes := fields.get(_SIZES_STATED)) is not None:
        _require_sizes(sizes, leaf)
    _require_places(chunk, fields, data_end)
    return values


def _require_statistics(statistics: Fields, leaf: FooterLeaf) -> None:
    if not leaf.bound_bytes:
        return
    for number in (1, 2, 5, 6):
        bound = statistics.get(number)
        if bound is not None and len(bound) < leaf.bound_bytes:
            raise UnsupportedLayoutError(f"a bound of column {_dotted(leaf)} is cut short")


def _require_sizes(sizes: Fields, leaf: FooterLeaf) -> None:
    for number, level in ((2, leaf.repetitions), (3, leaf.definitions)):
        histogram = sizes.get(number)
        if histogram and len(histogram) != level + 1:
            raise UnsupportedLayoutError(f"a histogram of column {_dotted(leaf)} is too short")
    if 1 in sizes and leaf.physical != _BYTE_ARRAY:
        raise UnsupportedLayoutError(f"column {_dotted(leaf)} has no texts to be measured")


def _require_places(chunk: Fields, fields: Fields, data_end: int) -> None:
    """Check where what is beside the data is said to be: page indexes, a Bloom filter."""
    places = [(chunk[at], chunk.get(size, 0)) for at, size in _PAGE_INDEXES if at in chunk]
    if _BLOOM_AT in fields:
        places.append((fields[_BLOOM_AT], fields.get(_BLOOM_BYTES, 0)))
    for at, size in places:
        if at < 0 or size < 0 or at + size > data_end:
            raise UnsupportedLayoutError("an index is outside of the file")


def _dotted(leaf: FooterLeaf) -> str:
    return b".".join(leaf.path).decode(errors="replace")
