"""Files whose columns have the names that the table has for their field ids.

In a table with column mapping mode ``id`` a column is found in a file by its id. Writers name it as
the table does, so in nearly every file the name finds the same column. A Connect client cannot let
Spark find columns by id for one scan. So it reads the footers of the files, each once, and lets
Spark find the columns by name where that is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T

from puredelta.errors import CorruptTableError
from puredelta.log.files.parquet_footer import map_footers, schema_message
from puredelta.protocol.features.column_mapping import PARQUET_FIELD_ID
from puredelta.spark.scan.data_file import DataFile
from puredelta.store.base import FileEnd, Store
from puredelta.worker.read_rows import FIELD_ID

_KEPT_MAX = 100_000
_seen: dict[tuple[str, int, str], bool] = {}
"""Answers by file, size and columns; a file never changes."""


def have_names_of_ids(
    files: Sequence[DataFile], columns: T.StructType, open_at: Callable[[str], Store]
) -> bool:
    """Return whether in each file the ids of columns are at the names of these columns.

    ``columns`` have ids in their metadata, as far as the table gives them. One request for the
    footer of a file that has not been seen. False for a file without ids, which Spark refuses to
    read by id, and for one that cannot be read.
    """
    wanted = columns.json()
    keys = {(file.uri, file.size_bytes, wanted): file for file in files}
    new = [file for key, file in keys.items() if key not in _seen]
    if len(_seen) + len(new) > _KEPT_MAX:
        _seen.clear()
        new = list(keys.values())
    stores: dict[str, Store] = {}
    verdicts: dict[str, bool] = {}

    def read_end(file: DataFile, num_bytes: int) -> FileEnd:
        directory, _, name = file.uri.rpartition("/")
        store = stores.get(directory)
        if store is None:
            store = stores[directory] = open_at(directory)
        return store.read_end(name, num_bytes)

    def verdict(file: DataFile, footer: pq.FileMetaData) -> tuple[DataFile, bool]:
        message = schema_message(footer)
        if message not in verdicts:
            verdicts[message] = _has_names(columns, footer.schema.to_arrow_schema())
        return file, verdicts[message]

    def unknown(file: DataFile, _: CorruptTableError) -> tuple[DataFile, bool]:
        return file, False

    read = map_footers(new, verdict, read_end=read_end, name=_uri, recover=unknown)
    for file, answer in read:
        _seen[file.uri, file.size_bytes, wanted] = answer
    return all(_seen[key] for key in keys)


def _uri(file: DataFile) -> str:
    return file.uri


def _has_names(wanted: T.StructType, schema: pa.Schema) -> bool:
    return any(map(_id_of_stored, schema)) and _fits(wanted, list(schema))


def _fits(wanted: T.StructType, present: Sequence[pa.Field]) -> bool:
    """Return whether ids and names find the same fields, also inside of them."""
    by_id = {_id_of_stored(field): field for field in present}
    by_name = {field.name.lower(): field for field in present}
    if len(by_name) < len(present):
        return False
    for field in wanted.fields:
        number = field.metadata.get(PARQUET_FIELD_ID)
        named = by_name.get(field.name.lower())
        if number is not None and by_id.get(int(number)) is not named:
            return False
        if named is not None and not _fits_inside(field.dataType, named.type):
            return False
    return True


def _fits_inside(wanted: T.DataType, present: pa.DataType) -> bool:
    return all(_fits(kind, list(other)) for kind, other in _structs(wanted, present))


def _structs(
    wanted: T.DataType, present: pa.DataType
) -> Iterator[tuple[T.StructType, pa.StructType]]:
    """Yield the outermost structs in a type, also those of elements, keys and values, in both."""
    if isinstance(wanted, T.StructType) and pa.types.is_struct(present):
        yield wanted, present
    elif isinstance(wanted, T.ArrayType) and pa.types.is_list(present):
        yield from _structs(wanted.elementType, present.value_type)
    elif isinstance(wanted, T.MapType) and pa.types.is_map(present):
        yield from _structs(wanted.keyType, present.key_type)
        yield from _structs(wanted.valueType, present.item_type)


def _id_of_stored(field: pa.Field) -> int | None:
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)
