"""Footers and statistics of the data files of an Iceberg table.

Values that a manifest does not prove are left out: bounds of a column with a NaN, or without a
count of NaNs, and counts of NULLs inside structs, which writers count differently.

Iceberg's readers assign columns to files without ids by a mapping of names. A Delta table has no
such mapping, so all readers would see NULL in those columns: such a file is refused.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as I
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, index_by_id

from puredelta.commands.convert.iceberg_schema import Leaf, primitive
from puredelta.errors import CorruptTableError, Message, UnsupportedError
from puredelta.log.files.parquet_footer import map_footers, schema_message
from puredelta.protocol.actions.paths import absolute_uri, encode_uri
from puredelta.protocol.features.type_widening import can_widen
from puredelta.protocol.schema.types import DATE, FLOAT, INTEGER, DataType, DecimalType
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.store.base import FileEnd, Store

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a zone
_FLOATS = (I.FloatType, I.DoubleType)
_WITHOUT_BOUNDS = (I.BooleanType, I.BinaryType, I.FixedType)


def file_statistics(
    leaves: Iterable[Leaf], file: DataFile, ids: Collection[int]
) -> Mapping[LeafPath, LeafStatistics]:
    """Return the known statistics of a file's leaves; ``ids`` are those of its fields."""
    return {leaf.path: _leaf(leaf, file, ids) for leaf in leaves}


def _leaf(leaf: Leaf, file: DataFile, ids: Collection[int]) -> LeafStatistics:
    if leaf.field_id not in ids:
        return LeafStatistics(None, None, file.record_count)
    nulls = (file.null_value_counts or {}).get(leaf.field_id) if len(leaf.path) == 1 else None
    if nulls == file.record_count or isinstance(leaf.type, _WITHOUT_BOUNDS):
        return LeafStatistics(None, None, nulls)
    if isinstance(leaf.type, _FLOATS) and (file.nan_value_counts or {}).get(leaf.field_id) != 0:
        return LeafStatistics(None, None, nulls)
    minimum = _bound(leaf.type, (file.lower_bounds or {}).get(leaf.field_id))
    maximum = _bound(leaf.type, (file.upper_bounds or {}).get(leaf.field_id))
    if isinstance(leaf.type, _FLOATS):  # both zeros are equal
        minimum = -0.0 if minimum == 0 else minimum
        maximum = 0.0 if maximum == 0 else maximum
    return LeafStatistics(minimum, maximum, nulls)


def _bound(kind: I.PrimitiveType, content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        value = python_value(kind, from_bytes(kind, content))
    except (struct.error, UnicodeDecodeError, OverflowError):
        return None  # of a former type of the column
    return None if isinstance(value, float) and math.isnan(value) else value


def python_value(kind: I.PrimitiveType, value: Any) -> Any:
    """Return a value as Python represents it: Iceberg counts days and microseconds."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    match kind:
        case I.DateType():
            return date.fromordinal(_EPOCH.toordinal() + value)
        case I.TimestampType():
            return _EPOCH + timedelta(microseconds=value)
        case I.TimestamptzType():
            return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=timezone.utc)
        case _:
            return value


class StoreInputFile(InputFile):
    """One file, by its location."""

    def __init__(self, location: str, store: Store) -> None:
        super().__init__(location)
        directory, _, self._name = located(store, location).rpartition("/")
        self._store = store.at(directory)

    def __len__(self) -> int:
        """Return the size in bytes."""
        return self._store.read_end(self._name, 1).size_bytes

    def exists(self) -> bool:
        """Tell whether the file is there."""
        return self._store.exists(self._name)

    def open(self, seekable: bool = True) -> BinaryIO:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's
        """Open the file for reading."""
        return self._store.open(self._name)


class StoreFileIO(FileIO):
    """Read access to all of Iceberg's files."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def new_input(self, location: str) -> StoreInputFile:
        """Return a file to read."""
        return StoreInputFile(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        """Refuse: a conversion leaves Iceberg's files as they are."""
        raise PermissionError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse: a conversion leaves Iceberg's files as they are."""
        raise PermissionError(location)


def located(store: Store, location: str) -> str:
    """Return a location of Iceberg's metadata as an absolute, decoded URI."""
    return absolute_uri(store.root_uri, encode_uri(location))


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
    return CorruptTableError(Message.UNSUPPORTED_ICEBERG_TABLE_FILE, reason=reason, path=location)


def _columns(location: str, schema: pa.Schema) -> FileColumns:
    types: dict[int, pa.DataType] = {}
    ids = set()
    for path, file_field in _fields(list(schema), ()):
        text = (file_field.metadata or {}).get(_ID)
        if text is None:
            raise UnsupportedError(
                Message.UNSUPPORTED_ICEBERG_TABLE_FIELD_IDS, path=location, column=".".join(path)
            )
        ids.add(int(text))
        if not pa.types.is_nested(file_field.type):
            types[int(text)] = file_field.type
    return FileColumns(types=types, ids=frozenset(ids))


def _fields(
    fields: Sequence[pa.Field], prefix: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """Yield all fields, nested ones too."""
    for file_field in fields:
        path = (*prefix, file_field.name)
        yield path, file_field
        kind = file_field.type
        if pa.types.is_struct(kind):
            yield from _fields([kind.field(n) for n in range(kind.num_fields)], path)
        elif pa.types.is_map(kind):
            yield from _fields([kind.key_field, kind.item_field], path)
        elif pa.types.is_nested(kind):
            yield from _fields([kind.value_field], path)


def narrowest_types(schema: Schema, columns: Sequence[FileColumns]) -> Mapping[int, DataType]:
    """Return the types of files that are narrower than the table's, by field id."""
    wanted = {
        file_field.field_id: primitive(
            file_field.field_type, (str(schema.find_column_name(file_field.field_id)),)
        )
        for file_field in index_by_id(schema).values()
        if isinstance(file_field.field_type, I.PrimitiveType)
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
