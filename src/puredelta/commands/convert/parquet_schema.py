"""The schema Spark gives to a Parquet file that carries no schema of Spark's own (C-33).

The rules are those of Spark's ``ParquetToSparkSchemaConverter`` for the shapes files have in
practice. A shape or annotation not known here is no error: the caller asks Spark itself,
which costs one job per distinct schema and is always right.

The input is the message type as pyarrow prints it, the only form in which it shows groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from puredelta.commands.convert.settings import ParquetTypes
from puredelta.protocol.schema.schema_json import DECIMAL_PRECISION_MAX
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
)

_LINE = re.compile(
    r"\s*(?P<repetition>required|optional|repeated)"
    r" (?P<physical>[a-z0-9_]+)(?:\((?P<length>\d+)\))?"
    r" field_id=-?\d+ (?P<name>[^\s,;{}()=]+)(?: \((?P<annotation>.*)\))?(?P<end> \{|;)"
)
_ANNOTATION = re.compile(r"(?P<name>\w+)(?:\((?P<arguments>.*)\))?")
_ARGUMENT = re.compile(r"(\w+)=(\w+)")


class UnknownShapeError(Exception):
    """The printed schema holds something these rules do not cover."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One line of the message type and the lines nested in it."""

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
    """Read a nested group; one without fields is for Spark to judge."""
    if not group.children:
        raise UnknownShapeError(f"the group {group.name} is empty")
    return StructType(tuple(_field(child, settings) for child in group.children))


def _field(node: _Node, settings: ParquetTypes) -> StructField:
    data_type = _type(node, settings)
    if node.repetition == "repeated":
        # Neither in a LIST nor in a MAP: a list of required elements.
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
    """Read the three-level form and the older two-level ones, where the repeated node is the
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
"""By physical type and annotation, where nothing else decides."""
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
"""By physical type, width, and whether there is a sign."""
_DIGITS_MAX = {"int32": 9, "int64": 18, "binary": 38}


def _leaf(node: _Node, settings: ParquetTypes) -> DataType:
    plain = _PLAIN.get((node.physical, node.annotation))
    data_type = _described(node, settings) if plain is None else plain
    if data_type is None:
        raise UnknownShapeError(f"{node.physical} {node.annotation}")
    return data_type


def _described(node: _Node, settings: ParquetTypes) -> DataType | None:
    """Return the type of a leaf where settings or an annotation's arguments decide."""
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
        # The digits that fit into so many bytes of two's complement.
        digits_max = min(len(str(2 ** (8 * node.length - 1) - 1)) - 1, DECIMAL_PRECISION_MAX)
    precision, scale = int(node.arguments["precision"]), int(node.arguments["scale"])
    if not (0 < precision <= digits_max and 0 <= scale <= precision):
        return None
    return DecimalType(precision, scale)
