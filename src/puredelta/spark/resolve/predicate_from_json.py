"""Catalyst's JSON of an expression as a predicate tree, with its literals.

A timestamp literal is printed in the session's zone; in the hour that autumn repeats it is
ambiguous. Binary literals are printed as Java object names. The elements of an ``InSet`` are
left out. Nodes of a scan's conditions bring what is missing as ``micros`` and ``elements``
(`puredelta.spark.jvm.file_index`).

``TreeNode.toJSON`` writes an expression as the list of its nodes in preorder, each with
its number of children. What this module does not know becomes ``Opaque``, which costs
pruning and never rows. Traps it knows about:

* The JSON leaves out enumerations, so a ``Cast`` that returns NULL on failure looks like one
  that fails: every cast is ``Opaque`` but those that widen a number or name the fields of a
  struct again, which change neither order nor equality.
* Collations are not in it either: a reference to a collated string has no type, and what
  compares it is ``Opaque``.
* Some literals are printed ambiguously or not at all.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import types as T

from puredelta.protocol.schema.predicates import (
    And,
    Compare,
    CompareOp,
    Const,
    IsNull,
    Not,
    OneOf,
    Opaque,
    Or,
    Predicate,
    Ref,
    Side,
    StartsWith,
    conjuncts,
    references,
)
from puredelta.protocol.schema.types import STRING, DataType, DecimalType, PrimitiveType
from puredelta.spark.session.types import from_spark_type

Node: TypeAlias = Mapping[str, Any]

SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery", "InSubquery"})
"""Classes of expressions that read other rows than their own."""

INTEGERS = ("byte", "short", "integer", "long")
"""Types of whole numbers, the narrowest first."""

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - timestamp_ntz has no zone


def literal_value(node: Node, time_zone: str) -> object:
    """Return the value of a ``Literal`` that is not NULL, ``None`` if Python has none like it."""
    text, kind = node["value"], str(node["dataType"])
    try:
        if "micros" in node:
            return _instant(node["micros"])
        return _timestamp(text, time_zone) if kind == "timestamp" else _value(text, kind)
    except (ValueError, ArithmeticError, zoneinfo.ZoneInfoNotFoundError):
        return None  # the year 10000, a zone this machine does not know


def element_values(texts: Sequence[str] | None, data_type: DataType) -> tuple[Any, ...] | None:
    """Return the elements of an ``InSet`` from the texts of Catalyst's own values."""
    if texts is None:
        return None
    try:
        return tuple(_element(text, data_type) for text in texts)
    except (ValueError, ArithmeticError):
        return None


def _element(text: str, data_type: DataType) -> object:
    if text == "null":
        if data_type == STRING:
            raise ValueError(text)  # or the word
        return None
    match data_type:
        case PrimitiveType("date"):
            return _EPOCH.date() + dt.timedelta(days=int(text))
        case PrimitiveType("timestamp"):
            return _instant(int(text))
        case PrimitiveType("float" | "double") if math.isnan(float(text)):
            raise ValueError(text)
        case PrimitiveType(kind):
            value = _value(text, kind)
        case DecimalType():
            value = decimal.Decimal(text)
        case _:
            value = None
    if value is None:
        raise ValueError(text)
    return value


_REPLACED = "\ufffd"
"""The character in the place of bytes that are no UTF-8: they compare in another way."""


def _value(text: str, kind: str) -> object:
    """Return the literal as a Python value, ``None`` for a type without one."""
    match kind:
        case _ if kind in INTEGERS:
            return int(text)
        case "boolean":
            return text == "true"
        case "string":
            return None if _REPLACED in text else text
        case "float" | "double":
            return float(text)
        case "date":
            return dt.date.fromisoformat(text)
        case "timestamp_ntz":
            return _EPOCH + dt.timedelta(microseconds=int(text))
        case _ if kind.startswith("decimal"):
            return decimal.Decimal(text)
        case _:
            return None


def _timestamp(text: str, time_zone: str) -> dt.datetime | None:
    """Return a timestamp printed in a zone, ``None`` in the hour that comes twice."""
    seconds, _, fraction = text.partition(".")
    local = dt.datetime.fromisoformat(seconds).replace(
        microsecond=int(fraction.ljust(6, "0") or 0), tzinfo=zoneinfo.ZoneInfo(time_zone)
    )
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return None
    return local.astimezone(dt.timezone.utc)


def _instant(micros: int) -> dt.datetime:
    return (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=dt.timezone.utc)


_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}

_COMPARISONS = {
    "EqualTo": CompareOp.EQUAL,
    "EqualNullSafe": CompareOp.NULL_SAFE_EQUAL,
    "LessThan": CompareOp.LESS,
    "LessThanOrEqual": CompareOp.LESS_OR_EQUAL,
    "GreaterThan": CompareOp.GREATER,
    "GreaterThanOrEqual": CompareOp.GREATER_OR_EQUAL,
}
_EQUALITIES = (CompareOp.EQUAL, CompareOp.NULL_SAFE_EQUAL)


@dataclass(frozen=True, slots=True)
class SideColumn:
    """The column of one side that an expression id means."""

    side: Side
    name: str
    type: T.DataType

    def ref(self) -> Ref:
        """Return a reference to the whole column."""
        return Ref(self.side, (self.name,), comparable_type(self.type))


def comparable_type(data_type: T.DataType) -> DataType | None:
    """Return the protocol's type, or ``None`` where ``=`` and ``<`` go by a collation."""
    if isinstance(data_type, T.StringType) and not data_type.isUTF8BinaryCollation():
        return None
    return from_spark_type(data_type)


def class_name(node: Node) -> str:
    """Return the class of a node without its package."""
    return str(node["class"]).rsplit(".", 1)[-1]


def every_node(value: object) -> Iterator[Node]:
    """Walk all nodes of a JSON value, those of plans inside subqueries included."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, dict):
            if "class" in item:
                yield item
            pending.extend(v for v in item.values() if isinstance(v, list | dict))


def attribute_ids(value: object) -> frozenset[int]:
    """Return the expression ids of every attribute, those used inside subqueries included."""
    return frozenset(
        n["exprId"]["id"] for n in every_node(value) if class_name(n) == "AttributeReference"
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A translated subtree; ``type`` is known for references only."""

    tree: Predicate
    type: T.DataType | None = None
    is_widened: bool = False
    """Whether a cast stood above a reference: its values compare so with constants alone."""


def predicate_of(
    nodes: Sequence[Node], columns: Mapping[int, SideColumn], *, time_zone: str
) -> Predicate:
    """Translate one expression.

    The list is read from its end, children before parents: a condition may nest deeper
    than Python's stack.
    """
    return _translated(nodes, columns, time_zone).tree


def _translated(nodes: Sequence[Node], columns: Mapping[int, SideColumn], time_zone: str) -> _Part:
    stack: list[_Part] = []
    for node in reversed(nodes):
        kids = [stack.pop() for _ in range(node["num-children"])]
        stack.append(_part(node, kids, columns, time_zone))
    (whole,) = stack
    return whole


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A conjunct, or one side of a comparison, that reads columns of the source alone."""

    steps: tuple[int, ...]
    """From the root down to it: which child at each step."""
    compared: tuple[Ref | TargetTree, CompareOp] | None
    """The other side, and how it compares: a column of the target, or where both sides must be
    equal, what reads the target alone; ``None``: this is the conjunct."""


@dataclass(frozen=True, slots=True)
class TargetTree:
    """One side of an equality, which reads columns of the target alone."""

    nodes: Sequence[Node]


def condition_trees(
    nodes: Sequence[Node], columns: Mapping[int, SideColumn], *, time_zone: str
) -> list[Predicate | SourceTree]:
    """Return the conjuncts of a condition, those that only Spark evaluates apart from the others.

    Nothing is said of what users' functions and subqueries give.
    """
    found: list[Predicate | SourceTree] = []
    pending: list[tuple[tuple[int, ...], Sequence[Node]]] = [((), nodes)]
    while pending:
        steps, some = pending.pop()
        if class_name(some[0]) in ("Alias", "And"):
            below = [((*steps, n), kid) for n, kid in enumerate(_kids(some))]
            pending += reversed(below)
            continue
        whole = predicate_of(some, columns, time_zone=time_zone)
        tree = None if _is_plain(whole) else _source_tree(steps, some, columns, time_zone)
        found += conjuncts(whole) if tree is None else [tree]
    return found


def _source_tree(
    steps: tuple[int, ...],
    nodes: Sequence[Node],
    columns: Mapping[int, SideColumn],
    time_zone: str,
) -> SourceTree | None:
    if _reads_alone(Side.SOURCE, nodes, columns):
        return SourceTree(steps, None)
    op = _COMPARISONS.get(class_name(nodes[0]))
    if op is None:
        return None
    one, other = _kids(nodes)
    for place, side, against, how in ((1, other, one, op), (0, one, other, op.flipped)):
        if not _reads_alone(Side.SOURCE, side, columns):
            continue
        found = _translated(against, columns, time_zone)
        if not isinstance(found.tree, Ref) or found.is_widened or found.tree.type is None:
            if how in _EQUALITIES and _reads_alone(Side.TARGET, against, columns):
                return SourceTree((*steps, place), (TargetTree(against), how))
        elif found.tree.side is Side.TARGET:
            return SourceTree((*steps, place), (found.tree, how))
    return None


def _reads_alone(side: Side, nodes: Sequence[Node], columns: Mapping[int, SideColumn]) -> bool:
    classes = {class_name(node) for node in every_node(list(nodes))}
    if classes & SUBQUERIES or any("UDF" in name for name in classes):
        return False
    read = {columns[i].side if i in columns else None for i in attribute_ids(list(nodes))}
    return read == {side}


def _kids(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    """Return the subtrees below the first node of a tree."""
    found: list[Sequence[Node]] = []
    start = 1
    for _ in range(nodes[0]["num-children"]):
        end, missing = start, 1
        while missing:
            missing += nodes[end]["num-children"] - 1
            end += 1
        found.append(nodes[start:end])
        start = end
    return found


def _is_plain(predicate: Predicate) -> bool:
    """Tell whether a predicate only compares columns of the source that are no fields of others."""
    if any(ref.side is Side.SOURCE and len(ref.path) > 1 for ref in references(predicate)):
        return False
    pending = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Not(child):
                pending.append(child)
            case Compare(_, left, right):
                pending += (left, right)
            case Opaque() | StartsWith() | OneOf():
                return False
            case Ref() | Const() | IsNull():
                pass
    return True


def _part(
    node: Node, kids: Sequence[_Part], columns: Mapping[int, SideColumn], time_zone: str
) -> _Part:
    match class_name(node), kids:
        case "AttributeReference", []:
            known = columns.get(node["exprId"]["id"])
            if known is not None and (read := _as_read(known.type, node["dataType"])) is not None:
                return _Part(known.ref(), read)
        case "Literal", []:
            return _Part(_literal(node, time_zone))
        case "Alias", [child]:
            return child
        case "GetStructField", [_Part(Ref() as ref, T.StructType() as struct)]:
            field = struct.fields[node["ordinal"]]
            step = Ref(ref.side, (*ref.path, field.name), comparable_type(field.dataType))
            return _Part(step, field.dataType)
        case "Cast", [child] if (cast := _cast(child, node)) is not None:
            return cast
        case "NaNvl" | "Greatest" | "If", _ if (column := _unpushed(kids)) is not None:
            return column
        case "InSet", [_Part(Ref(type=kind) as ref)] if kind is not None:
            values = element_values(node.get("elements"), kind)
            if values is not None:
                return _Part(OneOf(ref, values))
        case name, _:
            made = None if _compares_widened(kids) else _known(name, [k.tree for k in kids])
            if made is not None:
                return _Part(made)
    return _Part(Opaque(_references_below(node, kids, columns)))


def _as_read(known: T.DataType, declared: object) -> T.DataType | None:
    """Return the type of a column with those fields that a plan reads, under their known names.

    Spark numbers the fields of a struct among those that it reads; ``None`` if they are unlike.
    """
    if not isinstance(known, T.StructType):
        return known
    fields = declared.get("fields", ()) if isinstance(declared, dict) else ()
    whole = len(fields) == len(known.fields)  # then names inside of files may be others
    by_name = {field.name: field for field in known.fields}
    read = []
    for n, field in enumerate(fields):
        same = known.fields[n] if whole else by_name.get(field["name"])
        kind = None if same is None else _as_read(same.dataType, field["type"])
        if same is None or kind is None:
            return None
        read.append(T.StructField(same.name, kind))
    return T.StructType(read)


def _unpushed(kids: Sequence[_Part]) -> _Part | None:
    """Return what a scan makes of some columns, so that Spark pushes no condition on them into
    files: ``nanvl(x, x)``, ``greatest(x, x)``, and of those inside of s
    ``IF(s IS NULL, then, otherwise)``.
    """
    match [kid.tree for kid in kids]:
        case [Ref() as one, Ref() as other] if one == other:
            return kids[0]
        case [IsNull(Ref() as outer), Const(None), Ref(path=path)] if (
            path[: len(outer.path)] == outer.path
        ):
            return kids[2]
        case [IsNull() as is_null, Const(False), condition] if not isinstance(condition, Ref):
            return _Part(And((Not(is_null), *conjuncts(condition))))
        case [IsNull() as is_null, Const(True), condition] if not isinstance(condition, Ref):
            return _Part(Or((is_null, condition)))
        case _:
            return None


def _cast(child: _Part, node: Node) -> _Part | None:
    """Return what is as good as a cast of a column; None if its values become others."""
    match child.tree, child.type:
        case Ref(type=PrimitiveType(narrow)), _ if _widens(narrow, node):
            return child
        case Ref(type=PrimitiveType(narrow)) as ref, _ if _holds(narrow, node):
            return _Part(ref, is_widened=True)
        case Ref(), T.StructType() as struct if _renames(struct, node):
            return child
        case _:
            return None


def _widens(narrow: str, cast: Node) -> bool:
    wide = cast["dataType"]
    both_integers = narrow in INTEGERS and wide in INTEGERS
    return both_integers and INTEGERS.index(narrow) < INTEGERS.index(wide)


def _holds(narrow: str, cast: Node) -> bool:
    """Return whether a decimal or floating type holds all values of a type.

    A long that a double rounds lies beyond every constant that it is compared with
    (`puredelta.log.files.value_order`).
    """
    wide = str(cast["dataType"])
    if wide == "double":
        return narrow in (*INTEGERS, "float")
    found = _DECIMAL.fullmatch(wide)
    return found is not None and int(found[1]) - int(found[2]) >= _DIGITS.get(narrow, 39)


def _compares_widened(kids: Sequence[_Part]) -> bool:
    """Return whether a column under a cast meets another one, whose type may be any."""
    return any(k.is_widened for k in kids) and sum(isinstance(k.tree, Ref) for k in kids) > 1


def _renames(struct: T.StructType, cast: Node) -> bool:
    """Return whether a cast changes nothing but the names of fields.

    The struct is known by its new names already: those inside of files are physical.
    """
    wide = cast["dataType"]
    if not isinstance(wide, dict) or wide.get("type") != "struct":
        return False
    return _shape(T.StructType.fromJson(wide)) == _shape(struct)


def _shape(data_type: T.DataType) -> object:
    match data_type:
        case T.StructType():
            return [(field.name, _shape(field.dataType)) for field in data_type.fields]
        case T.ArrayType():
            return [_shape(data_type.elementType)]
        case T.MapType():
            return _shape(data_type.keyType), _shape(data_type.valueType)
        case _:
            return data_type


def _known(name: str, kids: Sequence[Predicate]) -> Predicate | None:
    match name, kids:
        case "And", _:
            return And(tuple(c for k in kids for c in conjuncts(k)))
        case "Or", _:
            return Or(tuple(d for k in kids for d in (k.parts if isinstance(k, Or) else (k,))))
        case "Not", [child]:
            return Not(child)
        case "IsNull", [Ref() as ref]:
            return IsNull(ref)
        case "IsNotNull", [Ref() as ref]:
            return Not(IsNull(ref))
        case "In", [Ref() as ref, *values] if ref.type is not None:
            constants = tuple(v.value for v in values if isinstance(v, Const))
            return OneOf(ref, constants) if len(constants) == len(values) else None
        case "StartsWith", [Ref() as ref, Const(str() as prefix)] if ref.type is not None:
            return StartsWith(ref, prefix)
        case name, [left, right] if name in _COMPARISONS:
            return comparison(_COMPARISONS[name], left, right)
    return None


def comparison(op: CompareOp, left: Predicate, right: Predicate) -> Predicate | None:
    """Return the comparison with its literal on the right; ``None`` if it is of another kind."""
    match left, right:
        case (Ref() as ref, Const()) if ref.type is not None:
            return Compare(op, left, right)
        case (Const(), Ref() as ref) if ref.type is not None:
            return Compare(op.flipped, right, left)
        case (Ref() as one, Ref() as other) if None not in (one.type, other.type):
            return Compare(op, left, right)
    return None


def _references_below(
    node: Node, kids: Iterable[_Part], columns: Mapping[int, SideColumn]
) -> frozenset[Ref]:
    inner = attribute_ids([v for v in node.values() if isinstance(v, list)])
    outer = frozenset(columns[i].ref() for i in inner if i in columns)
    return outer.union(*(references(k.tree) for k in kids))


def _literal(node: Node, time_zone: str) -> Predicate:
    if node["value"] is None:
        return Const(None)
    value = literal_value(node, time_zone)
    return Opaque(frozenset()) if value is None else Const(value)
