"""What the footers of small files must share so that the files can be decoded as one.

Only the first footer is walked field by field, which takes Python longer than Arrow. What it says
becomes a template: in the other footers, bytes are compared with the template, and the few
numbers that differ are found by searching. Parquet's own parser would parse every column of every
file, which is what takes the time.

Trap this module knows: a footer may say in what types of Arrow its writer had the columns
(``ARROW:schema``). They may be others than those of Parquet's own description, which is all that a
merged file has. So the types of the first file are compared with those of a merged file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from puredelta.worker.files import DataPath
from puredelta.worker.footers.sound_footer import MAGIC
from puredelta.worker.footers.thrift_compact import (
    BINARY,
    I32,
    NEXT_I32,
    NEXT_I64,
    NEXT_LIST,
    NEXT_STRUCT,
    ONE_BINARY,
    ONE_I32,
    SECOND_BINARY,
    SECOND_I64,
    STOP,
    ZERO,
    UnsupportedLayoutError,
    i64,
    list_at,
    passed,
    struct_fields,
    structs,
    unsigned,
    varint,
)
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.small_files.footer_file import FooterFile

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
    """What small files have in common that can be decoded together."""

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
