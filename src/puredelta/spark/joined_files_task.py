"""Decodes columns of many small Parquet files as if they were one, inside a Spark worker.

Of a file of a thousand rows, two columns are decoded in less time than Arrow takes to open it:
the footer describes every column, and all that is made of it is thrown away again. So files
whose schemas are the same, byte by byte, become row groups of one file in memory: the columns'
chunks as they lie in the files, and a footer that describes nothing else. Arrow opens that once
and decodes it, whatever encodings and codecs are in it.

A file that is unusual in any way is not taken; whoever asked reads it by itself. Shipped by
value: it knows the standard library, pyarrow and modules like it only.

Traps this module knows:

* Only the first footer is walked field by field, which takes Python longer than Arrow. In the
  others a column is found by its path (field 3 of ColumnMetaData: a list of one name) and the
  header of the codec (field 4), which must follow. As statistics may hold any bytes, a file in
  which these occur twice is not taken.
* A footer that says in what types of Arrow its writer had the columns (``ARROW:schema``) may mean
  others than Parquet's own description, which is all that the joined file has: the types of the
  first file are compared.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from puredelta.spark.compact_thrift_task import (
    BINARY,
    I32,
    NEXT_I32,
    NEXT_I64,
    NEXT_LIST,
    NEXT_STRUCT,
    ONE_BINARY,
    ONE_I32,
    ONE_STRUCT,
    SECOND_BINARY,
    SECOND_I64,
    STOP,
    ZERO,
    UnusualError,
    i64,
    i64_at,
    list_at,
    passed,
    struct_fields,
    structs,
    unsigned,
    varint,
)
from puredelta.spark.file_rows_task import OpenFile

SMALL_ROWS = 16_384
"""Opening a file of more is a small part of reading it."""

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8
_TAIL_BYTES = 8 * 1024
"""Read at first from a file's end; most footers are smaller."""

# Numbers of fields (parquet.thrift).
_VERSION, _SCHEMA, _NUM_ROWS, _CREATED_BY = 1, 2, 3, 6
_PHYSICAL_TYPE, _REPETITION, _NAME, _NUM_CHILDREN = 1, 3, 4, 5
_REPEATED = 2
_ONE_ROW_GROUP = NEXT_LIST + ONE_STRUCT
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_CHUNK = re.compile(
    # Fields 4 to 7 of ColumnMetaData, all of which must be there; 9; and 11, or none that is 10.
    rb"(?P<sizes>%b\x16(?P<values>%b)\x16%b\x16(?P<stored>%b))"
    rb"\x26(?P<data>%b)(?:\x26(?P<dictionary>%b)|(?!\x16))" % ((_NUMBER,) * 6)
)
"""How a chunk's description goes on behind the header of the codec."""

_UNUSUAL = (UnusualError, IndexError, KeyError, UnicodeDecodeError)
"""The others come from bytes that are no footer."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the top level that is not repeated."""

    name: str
    element: bytes
    """What the schema says of it."""
    path: bytes
    """Its path and the header of the codec, as the description of a chunk has them."""
    description: bytes
    """How the description of a chunk begins, `path` included."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """What small files have in common that can be decoded together."""

    begin: bytes
    """How their footers begin: version, schema, the header of the number of rows."""
    version: bytes
    created_by: bytes
    """Readers know the defects of old writers."""
    columns: tuple[_Column, ...]
    """In the order of the files."""

    @classmethod
    def of(cls, path: str, names: set[str]) -> Likeness | None:
        """Return what other files must share with one; ``None`` if that one is unusual.

        Raises errors of Arrow and of the system.
        """
        file = SmallFile.opened(path)
        if file is None:
            return None
        with closing(file):
            footer = file.tail[file.footer_at :]
        try:
            likeness = cls._of_footer(footer, names)
        except _UNUSUAL:
            return None
        alone, joined = OpenFile(path).schema_arrow, JoinedFiles(likeness).opened().schema_arrow
        alike = all(alone.field(name).type == joined.field(name).type for name in names)
        return likeness if alike else None

    @classmethod
    def _of_footer(cls, footer: bytes, names: set[str]) -> Likeness:
        fields, _ = struct_fields(footer, 0)
        version, num_rows, writer = fields[_VERSION], fields[_NUM_ROWS], fields[_CREATED_BY]
        columns = [column for column in _columns(footer, fields[_SCHEMA]) if column.name in names]
        if footer[num_rows - 1 : num_rows] != NEXT_I64 or len(columns) != len(names):
            raise UnusualError
        return cls(
            begin=footer[:num_rows],
            version=footer[version : passed(footer, version, I32)],
            created_by=footer[writer : passed(footer, writer, BINARY)],
            columns=tuple(columns),
        )


class SmallFile:
    """A file and its footer, which nobody has looked into; to be closed."""

    def __init__(self, path: str) -> None:
        self._file = io.FileIO(path)
        try:
            size = self._file.seek(0, io.SEEK_END)
            self.tail = self._read_tail(size)
        except BaseException:
            self._file.close()
            raise
        self.footer_at = len(self.tail) - _footer_bytes(self.tail)
        """Where it begins in ``tail``."""
        self.data_end = size - len(self.tail) + self.footer_at
        """Where it begins in the file."""

    @classmethod
    def opened(cls, path: str) -> SmallFile | None:
        """Open a file; ``None`` if it has no footer that anybody may read.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return cls(path)
        except UnusualError:
            return None

    def _read_tail(self, size: int) -> bytes:
        tail = self.read(max(0, size - _TAIL_BYTES), size)
        needed = _footer_bytes(tail)
        if needed > size:
            raise UnusualError
        return tail if needed <= len(tail) else self.read(size - needed, size)

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes between two places."""
        self._file.seek(begin)
        content = self._file.read(end - begin)
        if len(content) != end - begin:
            raise UnusualError
        return content

    def close(self) -> None:
        """Close the file; ``tail`` stays."""
        self._file.close()


def _footer_bytes(tail: bytes) -> int:
    """Return how long a footer is with what follows it."""
    if not tail.endswith(_MAGIC):
        raise UnusualError
    return int.from_bytes(tail[-_TRAILER_BYTES : -len(_MAGIC)], "little") + _TRAILER_BYTES


class _Chunk(NamedTuple):
    """The values of a column, in a file."""

    sizes: bytes
    """The codec, how many values there are, their bytes, and those stored, as described there."""
    begin: int
    end: int
    data_at: int
    dictionary_at: int
    """0: none that comes before the data."""


class JoinedFiles:
    """Chunks of files that are alike, to be decoded together."""

    def __init__(self, likeness: Likeness) -> None:
        self._likeness = likeness
        self.num_rows = 0
        self._rows_of_files: list[int] = []
        self._row_groups: list[bytes] = []
        self._parts: list[bytes] = [_MAGIC]
        self._end = len(_MAGIC)

    def add(self, file: SmallFile) -> bool:
        """Take the columns of a file, unless it is unlike the first, or unusual.

        Raises:
            OSError: it cannot be read.
        """
        try:
            num_rows, chunks = self._chunks_of(file)
            contents = [file.read(one.begin, one.end) for one in chunks]
        except _UNUSUAL:
            return False
        described = []
        for column, chunk, content in zip(self._likeness.columns, chunks, contents, strict=True):
            described.append(_description(column, chunk, self._end - chunk.begin))
            self._parts.append(content)
            self._end += len(content)
        self._row_groups.append(_row_group(described, num_rows))
        self._rows_of_files.append(num_rows)
        self.num_rows += num_rows
        return True

    def _chunks_of(self, file: SmallFile) -> tuple[int, list[_Chunk]]:
        likeness, tail = self._likeness, file.tail
        rows_at = file.footer_at + len(likeness.begin)
        if not tail.startswith(likeness.begin, file.footer_at):
            raise UnusualError
        num_rows, groups_at = i64_at(tail, rows_at)
        alike = tail.startswith(_ONE_ROW_GROUP, groups_at) and tail.rfind(likeness.created_by) >= 0
        if not alike or not 0 < num_rows <= SMALL_ROWS:
            raise UnusualError
        rows = tail[rows_at:groups_at]
        chunks = [_chunk(tail, groups_at, column.path, rows) for column in likeness.columns]
        if any(not len(_MAGIC) <= one.begin <= one.end <= file.data_end for one in chunks):
            raise UnusualError
        return num_rows, chunks

    def opened(self) -> OpenFile:
        """Return one file of all that were taken. Raises Arrow's errors."""
        likeness = self._likeness
        elements = [column.element for column in likeness.columns]
        footer = [
            *(NEXT_I32, likeness.version),
            *(NEXT_LIST, structs([_root(len(elements)), *elements])),
            *(NEXT_I64, i64(self.num_rows)),
            *(NEXT_LIST, structs(self._row_groups)),
            *(SECOND_BINARY, likeness.created_by, STOP),
        ]
        length = sum(map(len, footer)).to_bytes(4, "little")
        return OpenFile(pa.BufferReader(b"".join([*self._parts, *footer, length, _MAGIC])))

    def read(self, names: Sequence[str]) -> Iterator[list[pa.Array]]:
        """Yield some of the columns of every file, in the order in which they were taken.

        Raises Arrow's errors.
        """
        file = self.opened()
        table = pa.Table.from_batches(
            file.read(max(1, self.num_rows)), file.schema_arrow
        ).combine_chunks()
        if table.num_rows != self.num_rows:
            raise pa.ArrowInvalid(f"{table.num_rows} rows instead of {self.num_rows}")
        whole = [column for name in names for column in table[name].chunks]
        first = 0
        for num_rows in self._rows_of_files:
            yield [column.slice(first, num_rows) for column in whole]
            first += num_rows


def _chunk(tail: bytes, start: int, path: bytes, num_values: bytes) -> _Chunk:
    """Find what a footer says of the column of a path that has so many values."""
    at = tail.find(path, start)
    if at < 0 or tail.find(path, at + 1) >= 0:
        raise UnusualError
    found = _CHUNK.match(tail, at + len(path))
    if found is None or found["values"] != num_values:
        raise UnusualError
    data_at, _ = i64_at(found["data"], 0)
    dictionary_at, _ = i64_at(found["dictionary"] or ZERO, 0)
    if dictionary_at > data_at:
        dictionary_at = 0
    begin = dictionary_at or data_at
    end = begin + i64_at(found["stored"], 0)[0]
    return _Chunk(found["sizes"], begin, end, data_at, dictionary_at)


def _columns(footer: bytes, at: int) -> Iterator[_Column]:
    """Yield the columns of a schema that are leaves of the top level and not repeated."""
    count, _, at = list_at(footer, at)
    inside = 0  # how many elements of groups are still to come
    for place in range(count):
        fields, end = struct_fields(footer, at)
        children = varint(footer, fields[_NUM_CHILDREN])[0] >> 1 if _NUM_CHILDREN in fields else 0
        if place and not inside and _NUM_CHILDREN not in fields:
            repetition = varint(footer, fields[_REPETITION])[0] >> 1
            if repetition != _REPEATED:
                yield _column(footer, at, fields, end)
        if place:
            inside += children - (inside > 0)
        at = end


def _column(footer: bytes, at: int, fields: dict[int, int], end: int) -> _Column:
    kind_at, name_at = fields[_PHYSICAL_TYPE], fields[_NAME]
    _, text_at = varint(footer, name_at)
    name_end = passed(footer, name_at, BINARY)
    kind = footer[kind_at : passed(footer, kind_at, I32)]
    path = b"".join([NEXT_LIST, ONE_BINARY, footer[name_at:name_end], NEXT_I32])
    # A place that nobody reads; the physical type; a list of encodings that nobody reads.
    begin = [SECOND_I64, ZERO, NEXT_STRUCT, NEXT_I32, kind, NEXT_LIST, ONE_I32, ZERO]
    return _Column(
        name=footer[text_at:name_end].decode(),
        element=footer[at:end],
        path=path,
        description=b"".join([*begin, path]),
    )


def _root(num_children: int) -> bytes:
    """Describe the root of a schema."""
    name = b"schema"
    header = bytes([_NAME << 4 | BINARY])
    return b"".join([header, unsigned(len(name)), name, NEXT_I32, i64(num_children), STOP])


def _row_group(chunks: Sequence[bytes], num_rows: int) -> bytes:
    """Describe a RowGroup; nobody reads its size."""
    return b"".join(
        [*(NEXT_LIST, structs(chunks), NEXT_I64, ZERO), *(NEXT_I64, i64(num_rows), STOP)]
    )


def _description(column: _Column, chunk: _Chunk, moved: int) -> bytes:
    """Describe a ColumnChunk that has been moved by so many bytes."""
    parts = [column.description, chunk.sizes, SECOND_I64, i64(chunk.data_at + moved)]
    if chunk.dictionary_at:
        parts += [SECOND_I64, i64(chunk.dictionary_at + moved)]
    return b"".join([*parts, STOP, STOP])
