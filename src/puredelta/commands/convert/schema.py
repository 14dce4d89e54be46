"""Schemas of Parquet files, from their footers (C-33).

The rules are those of Spark's ``ParquetToSparkSchemaConverter`` for the shapes of files in
practice. A shape or annotation unknown here is no error: the caller asks Spark itself,
which costs one job per distinct schema and is always right.

The input is the message type as pyarrow prints it, the only form in which it shows groups.

A text (`schema_text`) identifies equal footers, so that ten thousand files of one kind cost
one conversion. Different schemas are merged in the order of the files' paths, so that the
order of columns is the same on every run (W-28a).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from puredelta.commands.convert.conversion_plan import ParquetTypes
from puredelta.errors import DeltaError, InvalidRequestError, Message
from puredelta.protocol.schema.schema_json import DECIMAL_PRECISION_MAX, parse_type, simple_string
from puredelta.protocol.schema.spatial import SpatialName
from puredelta.protocol.schema.traversal import all_fields, as_nullable, map_fields, primitive_names
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    kind_of,
)
from puredelta.protocol.table.schema_merge import merge_schemas

_LINE = re.compile(
    r"\s*(?P<repetition>required|optional|repeated)"
    r" (?P<physical>[a-z0-9_]+)(?:\((?P<length>\d+)\))?"
    r" field_id=-?\d+ (?P<name>[^\s,;{}()=]+)(?: \((?P<annotation>.*)\))?(?P<end> \{|;)"
)
_ANNOTATION = re.compile(r"(?P<name>\w+)(?:\((?P<arguments>.*)\))?")
_ARGUMENT = re.compile(r"(\w+)=(\w+)")


class UnknownShapeError(Exception):
    """The printed schema has a shape that these rules do not cover."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One line of the message type, with the lines nested in it."""

    name: str
    repetition: str
    physical: str
    length: int
    annotation: str
    arguments: Mapping[str, str]
    children: list[_Node] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.physical == "group"


def schema_of_message(text: str, settings: ParquetTypes) -> StructType:
    """Return the schema of a printed message type (`schema_message`).

    Raises:
        UnknownShapeError: ask Spark.
    """
    lines = iter(text.splitlines())
    for line in lines:
        if match := _LINE.fullmatch(line.rstrip()):
            root = _node(match)
            root.children.extend(_children(lines))
            return StructType(tuple(_field(child, settings) for child in root.children))
    raise UnknownShapeError(text[:200])


# --- the text ---------------------------------------------------------------------------------


def _children(lines: Iterator[str]) -> Iterator[_Node]:
    """Parse the lines up to the brace that closes the group they belong to."""
    for line in lines:
        if line.strip() == "}":
            return
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise UnknownShapeError(line)
        node = _node(match)
        if node.is_group:
            node.children.extend(_children(lines))
        yield node
    raise UnknownShapeError("the message type is not closed")


def _node(match: re.Match[str]) -> _Node:
    annotation = _ANNOTATION.fullmatch(match["annotation"] or "None")
    if annotation is None or (match["physical"] == "group") != (match["end"] == " {"):
        raise UnknownShapeError(match[0])
    return _Node(
        name=match["name"],
        repetition=match["repetition"],
        physical=match["physical"],
        length=int(match["length"] or 0),
        annotation=annotation["name"],
        arguments=dict(_ARGUMENT.findall(annotation["arguments"] or "")),
    )


# --- groups -----------------------------------------------------------------------------------


def _struct(group: _Node, settings: ParquetTypes) -> StructType:
    """Read a nested group; one without fields is left to Spark."""
    if not group.children:
        raise UnknownShapeError(f"the group {group.name} is empty")
    return StructType(tuple(_field(child, settings) for child in group.children))


def _field(node: _Node, settings: ParquetTypes) -> StructField:
    data_type = _type(node, settings)
    if node.repetition == "repeated":
        # A repeated group outside LIST and MAP: a list of required elements.
        data_type = ArrayType(data_type, contains_null=False)
    return StructField(node.name, data_type, nullable=node.repetition == "optional")


def _type(node: _Node, settings: ParquetTypes) -> DataType:
    if not node.is_group:
        return _leaf(node, settings)
    match node.annotation:
        case "None":
            return _struct(node, settings)
        case "List":
            return _list(node, settings)
        case "Map":
            return _map(node, settings)
        case _:
            raise UnknownShapeError(node.annotation)


def _list(node: _Node, settings: ParquetTypes) -> ArrayType:
    """Read the three-level form, and the older two-level ones, in which the repeated node is the
    element itself.
    """
    repeated = _only_repeated(node)
    is_element = (
        not repeated.is_group
        or len(repeated.children) > 1
        or repeated.name in ("array", f"{node.name}_tuple")
    )
    if is_element:
        return ArrayType(_type(repeated, settings), contains_null=False)
    element = repeated.children[0]
    if element.repetition == "repeated":
        raise UnknownShapeError(f"the list {node.name} repeats twice")
    return ArrayType(_type(element, settings), contains_null=element.repetition == "optional")


def _map(node: _Node, settings: ParquetTypes) -> MapType:
    pair = _only_repeated(node)
    if len(pair.children) != 2 or any(c.repetition == "repeated" for c in pair.children):  # noqa: PLR2004
        raise UnknownShapeError(f"the map {node.name} has no key and value")
    key, value = pair.children
    return MapType(
        _type(key, settings),
        _type(value, settings),
        value_contains_null=value.repetition == "optional",
    )


def _only_repeated(node: _Node) -> _Node:
    if len(node.children) != 1 or node.children[0].repetition != "repeated":
        raise UnknownShapeError(f"{node.name} is no {node.annotation}")
    return node.children[0]


# --- leaves -----------------------------------------------------------------------------------

_PLAIN: Mapping[tuple[str, str], DataType] = {
    ("boolean", "None"): BOOLEAN,
    ("float", "None"): FLOAT,
    ("double", "None"): DOUBLE,
    ("int32", "None"): INTEGER,
    ("int32", "Date"): DATE,
    ("int64", "None"): LONG,
    ("binary", "String"): STRING,
    ("binary", "Enum"): STRING,
    ("binary", "JSON"): STRING,
    ("binary", "BSON"): BINARY,
    ("fixed_len_byte_array", "None"): BINARY,
}
"""By physical type and annotation, for types without special rules."""
_INTEGERS: Mapping[tuple[str, str, str], DataType] = {
    ("int32", "8", "true"): BYTE,
    ("int32", "16", "true"): SHORT,
    ("int32", "32", "true"): INTEGER,
    ("int32", "8", "false"): SHORT,
    ("int32", "16", "false"): INTEGER,
    ("int32", "32", "false"): LONG,
    ("int64", "64", "true"): LONG,
    ("int64", "64", "false"): DecimalType(20, 0),
}
"""By physical type, width and signedness."""
_DIGITS_MAX = {"int32": 9, "int64": 18, "binary": 38}


def _leaf(node: _Node, settings: ParquetTypes) -> DataType:
    plain = _PLAIN.get((node.physical, node.annotation))
    data_type = _described(node, settings) if plain is None else plain
    if data_type is None:
        raise UnknownShapeError(f"{node.physical} {node.annotation}")
    return data_type


def _described(node: _Node, settings: ParquetTypes) -> DataType | None:
    """Return the type of a leaf that depends on settings or on an annotation's arguments."""
    match node.physical, node.annotation:
        case "int96", _:
            return TIMESTAMP if settings.int96_as_timestamp else None
        case "binary", "None":
            return STRING if settings.binary_as_string else BINARY
        case "int32" | "int64", "Int":
            width, signed = node.arguments["bitWidth"], node.arguments["isSigned"]
            return _INTEGERS.get((node.physical, width, signed))
        case "int64", "Timestamp":
            return _timestamp(node, settings)
        case "int32" | "int64" | "binary" | "fixed_len_byte_array", "Decimal":
            return _decimal(node)
        case _:
            return None


def _timestamp(node: _Node, settings: ParquetTypes) -> DataType | None:
    match node.arguments["timeUnit"]:
        case "milliseconds" | "microseconds":
            is_instant = node.arguments["isAdjustedToUTC"] == "true"
            return TIMESTAMP if is_instant or not settings.infer_timestamp_ntz else TIMESTAMP_NTZ
        case "nanoseconds" if settings.nanos_as_long:
            return LONG
        case _:
            return None


def _decimal(node: _Node) -> DataType | None:
    digits_max = _DIGITS_MAX.get(node.physical)
    if digits_max is None:
        # The digits that fit into that many bytes of two's complement.
        digits_max = min(len(str(2 ** (8 * node.length - 1) - 1)) - 1, DECIMAL_PRECISION_MAX)
    precision, scale = int(node.arguments["precision"]), int(node.arguments["scale"])
    if not (0 < precision <= digits_max and 0 <= scale <= precision):
        return None
    return DecimalType(precision, scale)


_KEPT_METADATA = ("comment",)
"""Keys of a field's metadata that describe the column, not the job that wrote the file."""

_COLLATIONS = "__COLLATIONS"
"""Spark's key for the collations of a string column and of strings inside it."""


@dataclass(frozen=True, slots=True)
class FoundSchema:
    """One kind of footer, and the first file by path that has it."""

    text: str
    file_uri: str


AskSpark = Callable[[str], StructType]
"""Returns Spark's schema of the file at a decoded URI; may run a job."""


class FileSchemas:
    """Conversion of footer texts into schemas, once per distinct text."""

    def __init__(self, settings: ParquetTypes, ask_spark: AskSpark) -> None:
        self._settings = settings
        self._ask_spark = ask_spark
        self._known: dict[str, StructType] = {}

    def merge(self, files: Iterable[FoundSchema]) -> StructType:
        """Merge the schemas of all kinds of files, in this order (C-30, C-38).

        A column keeps its first position and spelling; byte, short and int widen into
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
            raise InvalidRequestError(Message.FAILED_INFER_SCHEMA)
        return merged

    def read(self, found: FoundSchema) -> StructType:
        """Return the schema of one kind of file, all of it nullable (C-30, C-33)."""
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
        Message.FAILED_MERGE_SCHEMA_FILE,
        schema_text=tree_string(schema),
        reason=conflict.message,
        file=found.file_uri,
        schema=simple_string(schema),
    )


def with_partition_columns(
    data: StructType, partitions: Sequence[StructField], *, case_sensitive: bool
) -> StructType:
    """Return the table's schema: a partition column takes the position of the data column of its
    name, other partition columns come last (C-35).
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
    """Return the schema in a text, ``None`` where only Spark knows it."""
    try:
        if not text.startswith("{"):
            return schema_of_message(text, settings)
        schema = parse_type(_without_user_types(json.loads(text)))
    except (UnknownShapeError, DeltaError, ValueError):
        return None
    return schema if isinstance(schema, StructType) else None


def _without_user_types(value: Any) -> Any:
    """Replace user-defined types by their storage types."""
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


# --- types of Delta tables --------------------------------------------------------------------


def require_delta_types(schema: StructType, where: str) -> None:
    """Refuse columns that no Delta table can have; ``where`` names their origin.

    Raises:
        InvalidRequestError: there are some (DELTA_UNSUPPORTED_DATA_TYPES).
    """
    bad = [f"{f.name}: {kind}" for f in schema.fields for kind in _foreign_types(f)]
    if bad:
        raise InvalidRequestError(
            Message.UNSUPPORTED_DATA_TYPES_CONVERT, columns=", ".join(bad), found_in=where
        )


def _foreign_types(field: StructField) -> list[str]:
    """Return the parts of a field's type, at any depth, that a Delta table cannot hold."""
    collations = [f.metadata.get(_COLLATIONS, {}) for f in (field, *all_fields(field.type))]
    return [
        *(f"string collate {name}" for known in collations for name in known.values()),
        *(name for _, name in primitive_names(field.type) if not _is_delta_type(name)),
    ]


def _is_delta_type(name: str) -> bool:
    kind, spatial = kind_of(name), SpatialName.parse(name)
    is_mixed = spatial is not None and spatial.is_mixed
    return kind is not None and kind.is_storable and kind.feature != "collations" and not is_mixed
