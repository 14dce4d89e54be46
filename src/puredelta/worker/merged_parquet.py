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

import pyarrow as pa

from puredelta.worker.read_rows import OpenFile
from puredelta.worker.thrift_compact import (
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
    UnsupportedLayoutError,
    i64,
    i64_at,
    i64_of,
    list_at,
    passed,
    struct_fields,
    structs,
    unsigned,
    varint,
)

SMALL_ROWS = 16_384
"""Opening a file of more is a small part of reading it."""

_MAGIC = b"PAR1"
_TRAILER_BYTES = 8
_TAIL_BYTES = 8 * 1024
"""Read at first from a file's end; most footers are smaller."""

# Numbers of fields (parquet.thrift).
_VERSION, _SCHEMA, _NUM_ROWS, _METADATA, _CREATED_BY = 1, 2, 3, 5, 6
_PHYSICAL_TYPE, _REPETITION, _NAME, _NUM_CHILDREN = 1, 3, 4, 5
_REPEATED = 2
_ONE_ROW_GROUP = NEXT_LIST + ONE_STRUCT
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_SIZES_AND_PLACES = re.compile(
    # Fields 6, 7 and 9 of ColumnMetaData, all of which must be there; and 11, or none that is 10.
    rb"(\x16%b\x16(%b))\x26(%b)(?:\x26(%b)|(?!\x16))" % ((_NUMBER,) * 4)
)
"""How a chunk's description goes on behind the number of its values: its sizes, of which the
second says how many bytes are stored; where its data begins, and its dictionary.
"""

_UNUSUAL = (UnsupportedLayoutError, IndexError, KeyError, UnicodeDecodeError)
"""The others come from bytes that are no footer."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the top level that is not repeated."""

    name: str
    element: bytes
    """What the schema says of it."""
    path: bytes
    """Its path and the header of the codec, as the description of a chunk has them."""
    codec: bytes
    """The codec and the header of the number of values, which follow."""
    description: bytes
    """How the description of a chunk begins, up to the number of values."""


@dataclass(frozen=True, slots=True)
class FooterTemplate:
    """What small files have in common that can be decoded together."""

    begin: bytes
    """How their footers begin: version, schema, the header of the number of rows."""
    version: bytes
    created_by: bytes
    """Readers know the defects of old writers."""
    ending: bytes
    """What a footer for all of them says behind its row groups."""
    is_whole: bool
    """Whether theirs must say the same there: keys and values, too."""
    columns: tuple[_Column, ...]
    """In the order of the files."""

    @classmethod
    def of(cls, path: str, names: set[str] | None) -> FooterTemplate | None:
        """Return what other files must share with one; ``None`` if that one is unusual.

        Without ``names`` all columns are meant, and what a footer says besides. Raises errors
        of Arrow and of the system.
        """
        file = FooterFile.opened(path)
        if file is None:
            return None
        with closing(file):
            footer = file.tail[file.footer_at :]
        try:
            likeness = cls._of_footer(footer, names)
        except _UNUSUAL:
            return None
        alone, joined = OpenFile(path).schema_arrow, MergedParquet(likeness).opened().schema_arrow
        if names is None:
            alike = alone.equals(joined, check_metadata=True)
        else:
            alike = all(alone.field(name).type == joined.field(name).type for name in names)
        return likeness if alike else None

    @classmethod
    def _of_footer(cls, footer: bytes, names: set[str] | None) -> FooterTemplate:
        fields, _ = struct_fields(footer, 0)
        version, num_rows, writer = fields[_VERSION], fields[_NUM_ROWS], fields[_CREATED_BY]
        num_columns = list_at(footer, fields[_SCHEMA])[0] - 1 if names is None else len(names)
        columns = list(_columns(footer, fields[_SCHEMA], num_rows, names))
        if footer[num_rows - 1 : num_rows] != NEXT_I64 or len(columns) != num_columns:
            raise UnsupportedLayoutError
        created_by = footer[writer : passed(footer, writer, BINARY)]
        ending = SECOND_BINARY + created_by
        if names is None and _METADATA in fields:
            ending = footer[fields[_METADATA] - 1 : writer] + created_by
        return cls(
            begin=footer[:num_rows],
            version=footer[version : passed(footer, version, I32)],
            created_by=created_by,
            ending=ending,
            is_whole=names is None,
            columns=tuple(columns),
        )

    @property
    def has_one_codec(self) -> bool:
        """Whether all columns are compressed alike."""
        return len({column.codec for column in self.columns}) == 1

    def ends(self, tail: bytes) -> bool:
        """Tell whether a footer ends as it must; only the last mention of a writer is one."""
        at = tail.rfind(self.created_by)
        if not self.is_whole:
            return at >= 0
        return at >= 0 and tail.endswith(self.ending, 0, at + len(self.created_by))


class FooterFile:
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
    def opened(cls, path: str) -> FooterFile | None:
        """Open a file; ``None`` if it has no footer that anybody may read.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return cls(path)
        except UnsupportedLayoutError:
            return None

    def _read_tail(self, size: int) -> bytes:
        tail = self.read(max(0, size - _TAIL_BYTES), size)
        needed = _footer_bytes(tail)
        if needed > size:
            raise UnsupportedLayoutError
        return tail if needed <= len(tail) else self.read(size - needed, size)

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes between two places."""
        self._file.seek(begin)
        content = self._file.read(end - begin)
        if len(content) != end - begin:
            raise UnsupportedLayoutError
        return content

    def close(self) -> None:
        """Close the file; ``tail`` stays."""
        self._file.close()


def _footer_bytes(tail: bytes) -> int:
    """Return how long a footer is with what follows it."""
    if not tail.endswith(_MAGIC):
        raise UnsupportedLayoutError
    return int.from_bytes(tail[-_TRAILER_BYTES : -len(_MAGIC)], "little") + _TRAILER_BYTES


class MergedParquet:
    """Chunks of files that are alike, to be decoded together."""

    def __init__(self, likeness: FooterTemplate) -> None:
        self._likeness = likeness
        self.rows_of_files: list[int] = []
        """How many rows were taken of every file."""
        self.num_rows = 0
        self._row_groups: list[bytes] = []
        self._parts: list[bytes] = [_MAGIC]
        self._end = len(_MAGIC)

    def add(self, file: FooterFile) -> bool:
        """Take the columns of a file, unless it is unlike the first, or unusual.

        Raises:
            OSError: it cannot be read.
        """
        try:
            num_rows, rows, groups_at = self._rows_of(file)
            chunks, runs = self._chunks(file.tail, groups_at, rows)
            if any(not len(_MAGIC) <= begin <= end <= file.data_end for begin, end in runs):
                return False
            contents = [file.read(begin, end) for begin, end in runs]
        except _UNUSUAL:
            return False
        self._parts += contents
        self._end += sum(map(len, contents))
        self._row_groups.append(_row_group(chunks, rows))
        self.rows_of_files.append(num_rows)
        self.num_rows += num_rows
        return True

    def add_path(self, path: str) -> bool:
        """Open a file and take it, as `add`."""
        file = FooterFile.opened(path)
        if file is None:
            return False
        with closing(file):
            return self.add(file)

    def _rows_of(self, file: FooterFile) -> tuple[int, bytes, int]:
        """Return how many rows a file has, how its footer says so, and where its row group is."""
        likeness, tail = self._likeness, file.tail
        rows_at = file.footer_at + len(likeness.begin)
        if not tail.startswith(likeness.begin, file.footer_at) or not likeness.ends(tail):
            raise UnsupportedLayoutError
        num_rows, groups_at = i64_at(tail, rows_at)
        if not tail.startswith(_ONE_ROW_GROUP, groups_at) or not 0 < num_rows <= SMALL_ROWS:
            raise UnsupportedLayoutError
        return num_rows, tail[rows_at:groups_at], groups_at

    def _chunks(
        self, tail: bytes, start: int, num_values: bytes
    ) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Describe the chunks of a file as if they had been taken.

        Return also where they are in the file, those that follow each other as one.
        """
        chunks: list[bytes] = []
        runs: list[tuple[int, int]] = []
        run_begin = end = moved = 0
        joined_end = self._end
        for column in self._likeness.columns:
            at = _found_once(tail, column.path, start)
            known = column.codec + num_values
            found = _SIZES_AND_PLACES.match(tail, at + len(known))
            if found is None or not tail.startswith(known, at):
                raise UnsupportedLayoutError
            sizes, stored, data, dictionary = found.groups()
            begin = data_at = i64_of(data)
            if dictionary is not None and 0 < (dictionary_at := i64_of(dictionary)) < data_at:
                begin = dictionary_at
            if begin != end:
                runs.append((run_begin, end))
                run_begin, joined_end = begin, joined_end + end - run_begin
                moved = joined_end - begin
            end = begin + i64_of(stored)
            places = [SECOND_I64, i64(data_at + moved)]
            if begin < data_at:
                places += [SECOND_I64, i64(begin + moved)]
            chunks.append(b"".join([column.description, num_values, sizes, *places, STOP, STOP]))
        return chunks, [*runs[1:], (run_begin, end)]

    def opened(self) -> OpenFile:
        """Return one file of all that were taken. Raises Arrow's errors."""
        likeness = self._likeness
        elements = [column.element for column in likeness.columns]
        footer = [
            *(NEXT_I32, likeness.version),
            *(NEXT_LIST, structs([_root(len(elements)), *elements])),
            *(NEXT_I64, i64(self.num_rows)),
            *(NEXT_LIST, structs(self._row_groups)),
            *(likeness.ending, STOP),
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
        for num_rows in self.rows_of_files:
            yield [column.slice(first, num_rows) for column in whole]
            first += num_rows


def _found_once(content: bytes, path: bytes, start: int) -> int:
    """Return the place behind a column's path."""
    at = content.find(path, start)
    if at < 0 or content.find(path, at + 1) >= 0:
        raise UnsupportedLayoutError
    return at + len(path)


def _columns(footer: bytes, at: int, groups_at: int, names: set[str] | None) -> Iterator[_Column]:
    """Yield the columns of a schema that are leaves of the top level and not repeated.

    ``None``: of any name.
    """
    count, _, at = list_at(footer, at)
    inside = 0  # how many elements of groups are still to come
    for place in range(count):
        fields, end = struct_fields(footer, at)
        children = varint(footer, fields[_NUM_CHILDREN])[0] >> 1 if _NUM_CHILDREN in fields else 0
        if place and not inside and _NUM_CHILDREN not in fields:
            repetition = varint(footer, fields[_REPETITION])[0] >> 1
            name = _text(footer, fields[_NAME])
            if repetition != _REPEATED and (names is None or name in names):
                yield _column(name, footer[at:end], footer, fields, groups_at)
        if place:
            inside += children - (inside > 0)
        at = end


def _text(footer: bytes, at: int) -> str:
    length, begin = varint(footer, at)
    return footer[begin : begin + length].decode()


def _column(
    name: str, element: bytes, footer: bytes, fields: dict[int, int], groups_at: int
) -> _Column:
    kind_at, name_at = fields[_PHYSICAL_TYPE], fields[_NAME]
    kind = footer[kind_at : passed(footer, kind_at, I32)]
    written_name = footer[name_at : passed(footer, name_at, BINARY)]
    path = b"".join([NEXT_LIST, ONE_BINARY, written_name, NEXT_I32])
    codec_at = _found_once(footer, path, groups_at)
    codec = footer[codec_at : passed(footer, codec_at, I32)] + NEXT_I64
    # A place that nobody reads; the physical type; a list of encodings that nobody reads.
    begin = [SECOND_I64, ZERO, NEXT_STRUCT, NEXT_I32, kind, NEXT_LIST, ONE_I32, ZERO]
    return _Column(
        name=name,
        element=element,
        path=path,
        codec=codec,
        description=b"".join([*begin, path, codec]),
    )


def _root(num_children: int) -> bytes:
    """Describe the root of a schema."""
    name = b"schema"
    header = bytes([_NAME << 4 | BINARY])
    return b"".join([header, unsigned(len(name)), name, NEXT_I32, i64(num_children), STOP])


def _row_group(chunks: Sequence[bytes], num_rows: bytes) -> bytes:
    """Describe a RowGroup; nobody reads its size."""
    return b"".join([NEXT_LIST, structs(chunks), NEXT_I64, ZERO, NEXT_I64, num_rows, STOP])
