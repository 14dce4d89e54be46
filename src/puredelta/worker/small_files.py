"""Many small Parquet files decoded as one, inside a Spark worker.

Only the first footer is walked field by field, which takes Python longer than Arrow. What it says
becomes a template: in the other footers, bytes are compared with the template, and the few
numbers that differ are found by searching. Parquet's own parser would parse every column of every
file, which is what takes the time.

Trap this module knows: a footer may say in what types of Arrow its writer had the columns
(``ARROW:schema``). They may be others than those of Parquet's own description, which is all that a
merged file has. So the types of the first file are compared with those of a merged file.

Two columns of a file of a thousand rows are decoded in less time than Arrow takes to open the
file: its footer describes every column, and all that is made of the description is thrown away
again. So files whose schemas are the same, byte by byte, become row groups of one file in memory:
the columns' chunks as they lie in the files, and a footer that describes nothing else. Arrow opens
that file once and decodes it, whatever encodings and codecs are in it.

A file of any other layout is not added; the caller reads it alone.

Trap this module knows: in a footer a column is found by its path (field 3 of ColumnMetaData: a
list of one name) and the header of the codec (field 4), which must follow. As statistics may hold
any bytes, a file in which these occur twice is not added.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from puredelta.worker.files import DataPath
from puredelta.worker.footers.sound_footer import MAGIC, UnsoundFooterError, footer_length
from puredelta.worker.footers.thrift_compact import (
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
from puredelta.worker.range_file import RangeFile
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.wire import LIMITS

_TAIL_BYTES = 8 * 1024
"""Read at first from a file's end; most footers are smaller."""


class FooterFile:
    """An open file and the bytes of its footer; to be closed."""

    def __init__(self, path: DataPath) -> None:
        self._file = io.FileIO(path) if isinstance(path, str) else RangeFile(path)
        try:
            size = self._file.seek(0, io.SEEK_END)
            self.tail, needed = self._read_tail(size)
        except BaseException:
            self._file.close()
            raise
        self.footer_at = len(self.tail) - needed
        """Where it begins in ``tail``."""
        self.data_end = size - len(self.tail) + self.footer_at
        """Where it begins in the file."""

    @classmethod
    def opened(cls, path: DataPath) -> FooterFile | None:
        """Open a file; ``None`` if it has no footer that could be read."""
        try:
            return cls(path)
        except (UnsupportedLayoutError, UnsoundFooterError):
            return None

    def _read_tail(self, size: int) -> tuple[bytes, int]:
        """Return the last bytes, and how long the footer is with what follows it."""
        tail = self.read(max(0, size - _TAIL_BYTES), size)
        needed = footer_length(tail, size)
        return tail if needed <= len(tail) else self.read(size - needed, size), needed

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


NOT_A_FOOTER = (UnsupportedLayoutError, IndexError, KeyError, UnicodeDecodeError)
"""What is raised by a footer of another layout, and by bytes that are no footer."""

# Numbers of fields (parquet.thrift).
_VERSION, _SCHEMA, _NUM_ROWS, _METADATA, _CREATED_BY = 1, 2, 3, 5, 6
_PHYSICAL_TYPE, _REPETITION, _NAME, _NUM_CHILDREN = 1, 3, 4, 5
_REPEATED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTemplate:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterTemplate:
    """The common parts of small files that can be decoded together."""

    begin: bytes
    """How their footers begin: version, schema, the header of the number of rows."""
    version: bytes
    created_by: bytes
    """Readers know the defects of old writers."""
    ending: bytes
    """What a merged footer says after its row groups."""
    is_whole: bool
    """Whether their footers must say the same there: keys and values, too."""
    columns: tuple[ColumnTemplate, ...]
    """In the order of the files."""

    @classmethod
    def of(cls, path: DataPath, names: set[str] | None) -> FooterTemplate | None:
        """Return what other files must share with one; ``None`` if its layout is not supported.

        Without ``names`` all columns are meant, and what a footer says besides. Raises errors
        of Arrow and of the system.
        """
        file = FooterFile.opened(path)
        if file is None:
            return None
        with closing(file):
            footer = file.tail[file.footer_at :]
        try:
            template = cls._of_footer(footer, names)
        except NOT_A_FOOTER:
            return None
        alone = OpenFile(path).schema_arrow
        merged = template.file_of([MAGIC], [], 0).schema_arrow
        if names is None:
            alike = alone.equals(merged, check_metadata=True)
        else:
            alike = all(alone.field(name).type == merged.field(name).type for name in names)
        return template if alike else None

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

    def is_ending_of(self, tail: bytes) -> bool:
        """Return whether a footer ends as it must; only the last mention of a writer is one."""
        at = tail.rfind(self.created_by)
        if not self.is_whole:
            return at >= 0
        return at >= 0 and tail.endswith(self.ending, 0, at + len(self.created_by))

    def file_of(
        self, contents: Sequence[bytes], row_groups: Sequence[bytes], num_rows: int
    ) -> OpenFile:
        """Return a file in memory: what is in it before its footer, and what that describes.

        Raises Arrow's errors.
        """
        elements = [column.element for column in self.columns]
        footer = [
            *(NEXT_I32, self.version),
            *(NEXT_LIST, structs([_root(len(elements)), *elements])),
            *(NEXT_I64, i64(num_rows)),
            *(NEXT_LIST, structs(row_groups)),
            *(self.ending, STOP),
        ]
        length = sum(map(len, footer)).to_bytes(4, "little")
        return OpenFile(pa.BufferReader(b"".join([*contents, *footer, length, MAGIC])))


def found_once(content: bytes, path: bytes, start: int) -> int:
    """Return the place after a column's path.

    Raises:
        UnsupportedLayoutError: it is not there, or twice: statistics may hold any bytes.
    """
    at = content.find(path, start)
    if at < 0 or content.find(path, at + 1) >= 0:
        raise UnsupportedLayoutError
    return at + len(path)


def _columns(
    footer: bytes, at: int, groups_at: int, names: set[str] | None
) -> Iterator[ColumnTemplate]:
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
) -> ColumnTemplate:
    kind_at, name_at = fields[_PHYSICAL_TYPE], fields[_NAME]
    kind = footer[kind_at : passed(footer, kind_at, I32)]
    written_name = footer[name_at : passed(footer, name_at, BINARY)]
    path = b"".join([NEXT_LIST, ONE_BINARY, written_name, NEXT_I32])
    codec_at = found_once(footer, path, groups_at)
    codec = footer[codec_at : passed(footer, codec_at, I32)] + NEXT_I64
    # A place that is not read; the physical type; a list of encodings that is not read.
    begin = [SECOND_I64, ZERO, NEXT_STRUCT, NEXT_I32, kind, NEXT_LIST, ONE_I32, ZERO]
    return ColumnTemplate(
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


_ONE_ROW_GROUP = NEXT_LIST + ONE_STRUCT
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_SIZES_AND_PLACES = re.compile(
    # Fields 6, 7 and 9 of ColumnMetaData, all of which must be there; and 11, or none that is 10.
    rb"(\x16%b\x16(%b))\x26(%b)(?:\x26(%b)|(?!\x16))" % ((_NUMBER,) * 4)
)
"""How a chunk's description goes on after the number of its values: its sizes, of which the
second says how many bytes are stored; where its data begins, and its dictionary.
"""


class MergedParquet:
    """Chunks of files that are alike, to be decoded together."""

    def __init__(self, template: FooterTemplate, *, rows_max: int = LIMITS.small_file_rows) -> None:
        """``rows_max``: files of more rows are not added."""
        self._template = template
        self._rows_max = rows_max
        self.rows_of_files: list[int] = []
        """How many rows every file has that was added."""
        self.num_rows = 0
        self._row_groups: list[bytes] = []
        self._contents: list[bytes] = [MAGIC]
        self._end = len(MAGIC)

    def add(self, file: FooterFile) -> bool:
        """Add the columns of a file, unless it is unlike the first, or of another layout."""
        try:
            num_rows, rows, groups_at = self._rows_of(file)
            chunks, runs = self._chunks(file.tail, groups_at, rows)
            if any(not len(MAGIC) <= begin <= end <= file.data_end for begin, end in runs):
                return False
            contents = [file.read(begin, end) for begin, end in runs]
        except NOT_A_FOOTER:
            return False
        self._contents += contents
        self._end += sum(map(len, contents))
        self._row_groups.append(_row_group(chunks, rows))
        self.rows_of_files.append(num_rows)
        self.num_rows += num_rows
        return True

    def add_path(self, path: DataPath) -> bool:
        """Open a file and add it, as `add`."""
        file = FooterFile.opened(path)
        if file is None:
            return False
        with closing(file):
            return self.add(file)

    def _rows_of(self, file: FooterFile) -> tuple[int, bytes, int]:
        """Return how many rows a file has, how its footer says so, and where its row group is."""
        template, tail = self._template, file.tail
        rows_at = file.footer_at + len(template.begin)
        if not tail.startswith(template.begin, file.footer_at) or not template.is_ending_of(tail):
            raise UnsupportedLayoutError
        num_rows, groups_at = i64_at(tail, rows_at)
        if not tail.startswith(_ONE_ROW_GROUP, groups_at) or not 0 < num_rows <= self._rows_max:
            raise UnsupportedLayoutError
        return num_rows, tail[rows_at:groups_at], groups_at

    def _chunks(
        self, tail: bytes, start: int, num_values: bytes
    ) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Describe the chunks of a file as if they had been added.

        Return also where they are in the file, those that follow each other as one.
        """
        chunks: list[bytes] = []
        runs: list[tuple[int, int]] = []
        run_begin = end = moved = 0
        merged_end = self._end
        for column in self._template.columns:
            at = found_once(tail, column.path, start)
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
                run_begin, merged_end = begin, merged_end + end - run_begin
                moved = merged_end - begin
            end = begin + i64_of(stored)
            places = [SECOND_I64, i64(data_at + moved)]
            if begin < data_at:
                places += [SECOND_I64, i64(begin + moved)]
            chunks.append(b"".join([column.description, num_values, sizes, *places, STOP, STOP]))
        return chunks, [*runs[1:], (run_begin, end)]

    def opened(self) -> OpenFile:
        """Return one file of all that were added. Raises Arrow's errors."""
        return self._template.file_of(self._contents, self._row_groups, self.num_rows)

    def read(self, names: Sequence[str]) -> Iterator[list[pa.Array]]:
        """Yield some of the columns of every file, in the order in which they were added.

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


def _row_group(chunks: Sequence[bytes], num_rows: bytes) -> bytes:
    """Describe a RowGroup; its size is not read."""
    return b"".join([NEXT_LIST, structs(chunks), NEXT_I64, ZERO, NEXT_I64, num_rows, STOP])
