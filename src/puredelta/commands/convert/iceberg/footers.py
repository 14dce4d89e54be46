"""What the data files of an Iceberg table hold: ids and types of their columns, by their footers.

Iceberg's readers give columns without ids to files by a mapping of names. A Delta table has no such
mapping, so that the columns of such a file would be NULL for all: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as I
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, index_by_id

from puredelta.commands.convert.iceberg.schema import primitive
from puredelta.commands.convert.iceberg.store_io import located
from puredelta.errors import CorruptTableError, ErrorCode, UnsupportedError
from puredelta.log.footers.parquet_footer import map_footers, schema_message
from puredelta.protocol.features.type_widening import can_widen
from puredelta.protocol.schema.types import DATE, FLOAT, INTEGER, DataType, DecimalType
from puredelta.store.base import FileEnd, Store

_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The columns of files of one kind; shared by all such files."""

    types: Mapping[int, pa.DataType]
    """Of the leaves, by field id."""
    ids: frozenset[int]
    """Of all fields, nested ones too."""


def read_columns(store: Store, files: Sequence[tuple[str, DataFile]]) -> Sequence[FileColumns]:
    """Read the footers of data files, given by their locations, in their order.

    Raises:
        CorruptTableError: a file has another size or number of rows than Iceberg says, is missing
            or not Parquet.
        UnsupportedError: a file has columns without ids.
    """
    kinds: dict[str, FileColumns] = {}
    ends: dict[str, int] = {}

    def read_end(source: tuple[str, DataFile], num_bytes: int) -> FileEnd:
        directory, _, name = located(store, source[0]).rpartition("/")
        try:
            end = store.at(directory).read_end(name, num_bytes)
        except FileNotFoundError as missing:
            raise _broken(source[0], "is missing") from missing
        ends[source[0]] = end.size_bytes
        return end

    def describe(source: tuple[str, DataFile], footer: pq.FileMetaData) -> FileColumns:
        location, file = source
        size = ends.pop(location)
        if (size, footer.num_rows) != (file.file_size_in_bytes, file.record_count):
            raise _broken(
                location,
                f"has {size} bytes and {footer.num_rows} rows, and the manifest says "
                f"{file.file_size_in_bytes} and {file.record_count}",
            )
        message = schema_message(footer)
        if message not in kinds:
            kinds[message] = _columns(location, footer.schema.to_arrow_schema())
        return kinds[message]

    return list(map_footers(files, describe, read_end=read_end, name=lambda source: source[0]))


def _broken(location: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"The file {location} of the Iceberg table {reason}.",
        code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
        path=location,
    )


def _columns(location: str, schema: pa.Schema) -> FileColumns:
    types: dict[int, pa.DataType] = {}
    ids = set()
    for path, field in _fields(list(schema), ()):
        text = (field.metadata or {}).get(_ID)
        if text is None:
            raise UnsupportedError(
                "The Iceberg table cannot become a Delta table: the column "
                f"{'.'.join(path)} of the file {location} has no id, Iceberg finds it by its name "
                "(schema.name-mapping.default). Rewrite the table's data files in Iceberg "
                "(rewrite_data_files), then convert it again.",
                code=ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
                path=location,
                column=".".join(path),
            )
        ids.add(int(text))
        if not pa.types.is_nested(field.type):
            types[int(text)] = field.type
    return FileColumns(types=types, ids=frozenset(ids))


def _fields(
    fields: Sequence[pa.Field], prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """Yield all fields, nested ones too."""
    for field in fields:
        path = (*prefix, field.name)
        yield path, field
        kind = field.type
        if pa.types.is_struct(kind):
            yield from _fields([kind.field(n) for n in range(kind.num_fields)], path)
        elif pa.types.is_map(kind):
            yield from _fields([kind.key_field, kind.item_field], path)
        elif pa.types.is_nested(kind):
            yield from _fields([kind.value_field], path)


def narrowest_types(schema: Schema, columns: Sequence[FileColumns]) -> Mapping[int, DataType]:
    """Return the types of files that are narrower than the table's, by field id."""
    wanted = {
        field.field_id: primitive(field.field_type, (str(schema.find_column_name(field.field_id)),))
        for field in index_by_id(schema).values()
        if isinstance(field.field_type, I.PrimitiveType)
    }
    found: dict[int, DataType] = {}
    for kind in {id(known): known for known in columns}.values():
        for field_id, arrow in kind.types.items():
            narrow, wide = _widened(arrow), wanted.get(field_id)
            if narrow is None or wide is None or not can_widen(narrow, wide):
                continue
            if field_id not in found or can_widen(narrow, found[field_id]):
                found[field_id] = narrow
    return found


def _widened(kind: pa.DataType) -> DataType | None:
    """Return the type of a file's leaf if it is one that Iceberg widens."""
    if pa.types.is_int32(kind):
        return INTEGER
    if pa.types.is_float32(kind):
        return FLOAT
    if pa.types.is_date32(kind):
        return DATE
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    return None
