"""The schema of a directory of Parquet files, from the footers alone.

Footers are told apart by a text (`schema_text`), so that ten thousand files of one kind cost
one conversion. What differs is merged in the order of the files' paths, which makes the
order of columns the same on every run (W-28a).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from puredelta.commands.convert.parquet_schema import UnknownShapeError, schema_of_message
from puredelta.commands.convert.settings import ParquetTypes
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.protocol.schema.schema_json import parse_type, simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import all_fields, as_nullable, map_fields, primitive_names
from puredelta.protocol.schema.types import PRIMITIVE_NAMES, VARIANT, StructField, StructType
from puredelta.protocol.table.schema_merge import merge_schemas

_KEPT_METADATA = ("comment",)
"""What of a field's metadata belongs to the column and not to the job that wrote the file."""

_COLLATIONS = "__COLLATIONS"
"""Where Spark keeps the collations of a string column and of strings inside it."""

_DELTA_TYPES = PRIMITIVE_NAMES | {VARIANT.name}


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """One kind of footer and the first file, by path, that has it."""

    text: str
    file_uri: str


AskSpark = Callable[[str], StructType]
"""Returns the schema Spark reads from the file at a decoded URI; may run a job."""


class FileSchemas:
    """Turns texts of footers into schemas, each distinct one once."""

    def __init__(self, settings: ParquetTypes, ask_spark: AskSpark) -> None:
        self._settings = settings
        self._ask_spark = ask_spark
        self._known: dict[str, StructType] = {}

    def merge(self, files: Iterable[FoundSchema]) -> StructType:
        """Merge the schemas of all kinds of files, in this order (C-30, C-38).

        A column keeps the place and spelling it has first; byte, short and int widen into
        each other, everything else must agree.

        Raises:
            InvalidRequestError: two files disagree (DELTA_FAILED_MERGE_SCHEMA_FILE, with
                the reason as its cause), a type that no Delta table can have
                (DELTA_UNSUPPORTED_DATA_TYPES), or no column at all
                (DELTA_FAILED_INFER_SCHEMA).
        """
        merged = StructType(())
        for found in files:
            schema = self.read(found)
            try:
                merged = merge_schemas(merged, schema)
            except DeltaError as conflict:
                raise _unmergeable(found, schema, conflict) from conflict
        if not merged.fields:
            raise InvalidRequestError(
                "Failed to infer schema from the given list of files: none of them has a column.",
                code=ErrorCode.FAILED_INFER_SCHEMA,
            )
        return merged

    def read(self, found: FoundSchema) -> StructType:
        """Return the schema of one kind of file, all of it nullable (C-30, C-33).

        Raises:
            InvalidRequestError: a type that a Delta table cannot have
                (DELTA_UNSUPPORTED_DATA_TYPES).
        """
        schema = self._known.get(found.text)
        if schema is None:
            stated = _schema_of_text(found.text, self._settings)
            if stated is None:
                stated = self._ask_spark(found.file_uri)
            require_delta_types(stated, f"the file {found.file_uri}")
            schema = self._known[found.text] = _cleaned(stated)
        return schema


def _unmergeable(found: FoundSchema, schema: StructType, conflict: DeltaError) -> DeltaError:
    return InvalidRequestError(
        f"Failed to merge schema of file {found.file_uri}:\n{tree_string(schema)}\n"
        f"{conflict.message} Rewrite the file, or convert it apart from the others.",
        code=ErrorCode.FAILED_MERGE_SCHEMA_FILE,
        file=found.file_uri,
        schema=simple_string(schema),
    )


def with_partition_columns(
    data: StructType, partitions: Sequence[StructField], *, case_sensitive: bool
) -> StructType:
    """Return the table's schema: partition columns replace data columns of their name where
    those stand, the others come last (C-35).
    """

    def key(name: str) -> str:
        return name if case_sensitive else name.lower()

    by_name = {key(p.name): p for p in partitions}
    in_data = {key(f.name) for f in data.fields}
    return StructType(
        (
            *(by_name.get(key(f.name), f) for f in data.fields),
            *(p for p in partitions if key(p.name) not in in_data),
        )
    )


def tree_string(schema: StructType) -> str:
    """Show a schema as ``DataFrame.printSchema`` does, the top level only."""
    lines = [
        f" |-- {f.name}: {simple_string(f.type)} (nullable = {str(f.nullable).lower()})"
        for f in schema.fields
    ]
    return "\n".join(["root", *lines])


# --- Spark's JSON -----------------------------------------------------------------------------


def _schema_of_text(text: str, settings: ParquetTypes) -> StructType | None:
    """Return the schema behind a text, ``None`` where only Spark knows."""
    try:
        if not text.startswith("{"):
            return schema_of_message(text, settings)
        schema = parse_type(_without_user_types(json.loads(text)))
    except (UnknownShapeError, DeltaError, ValueError):
        return None
    return schema if isinstance(schema, StructType) else None


def _without_user_types(value: Any) -> Any:
    """Replace user-defined types by what they are stored as."""
    match value:
        case {"type": "udt", "sqlType": stored}:
            return _without_user_types(stored)
        case dict():
            return {key: _without_user_types(item) for key, item in value.items()}
        case list():
            return [_without_user_types(item) for item in value]
        case _:
            return value


def _cleaned(schema: StructType) -> StructType:
    """Return the schema all nullable and without the metadata of the job that wrote it."""

    def cleaned(field: StructField) -> StructField:
        metadata = {k: v for k, v in field.metadata.items() if k in _KEPT_METADATA}
        return StructField(field.name, as_nullable(field.type), nullable=True, metadata=metadata)

    return map_fields(schema, cleaned)


# --- what a Delta table can hold --------------------------------------------------------------


def require_delta_types(schema: StructType, where: str) -> None:
    """Refuse columns that no Delta table can have; ``where`` they were found.

    Raises:
        InvalidRequestError: there are some (DELTA_UNSUPPORTED_DATA_TYPES).
    """
    bad = [f"{f.name}: {kind}" for f in schema.fields for kind in _foreign_types(f)]
    if bad:
        raise InvalidRequestError(
            f"Found columns using unsupported data types: [{', '.join(bad)}] in {where}. A Delta "
            "table cannot hold them: cast the columns to another type and rewrite the file.",
            code=ErrorCode.UNSUPPORTED_DATA_TYPES,
            found_in=where,
        )


def _foreign_types(field: StructField) -> list[str]:
    """Return what of a field's type, at any depth, a Delta table cannot hold."""
    collations = [f.metadata.get(_COLLATIONS, {}) for f in (field, *all_fields(field.type))]
    return [
        *(f"string collate {name}" for known in collations for name in known.values()),
        *(name for _, name in primitive_names(field.type) if not _is_delta_type(name)),
    ]


def _is_delta_type(name: str) -> bool:
    spatial = SpatialName.parse(name)
    return name in _DELTA_TYPES or (spatial is not None and not spatial.is_mixed)
