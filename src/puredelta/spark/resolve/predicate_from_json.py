"""Catalyst's JSON of an expression as the small tree of `puredelta.protocol.values.predicates`.

``TreeNode.toJSON`` writes an expression as the list of its nodes in preorder, each with
its number of children. What this module does not know becomes ``Opaque``, which costs
pruning and never rows. Traps it knows about:

* The JSON leaves out enumerations, so a ``Cast`` that returns NULL on failure looks like one
  that fails: every cast is ``Opaque`` but those that widen an integer, which change neither
  order nor equality.
* Collations are not in it either: a reference to a collated string has no type, and what
  compares it is ``Opaque``.
* A timestamp literal is printed in the session's zone; in the hour that autumn repeats it
  is ambiguous. Binary literals are printed as Java object names.
"""

from __future__ import annotations

import datetime as dt
import decimal
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import types as T

from puredelta.protocol.schema.types import DataType, PrimitiveType
from puredelta.protocol.values.predicates import (
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
from puredelta.spark.session.types import from_spark_type

Node: TypeAlias = Mapping[str, Any]

_INTEGERS = ("byte", "short", "integer", "long")

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - timestamp_ntz has no zone

_COMPARISONS = {
    "EqualTo": CompareOp.EQUAL,
    "EqualNullSafe": CompareOp.NULL_SAFE_EQUAL,
    "LessThan": CompareOp.LESS,
    "LessThanOrEqual": CompareOp.LESS_OR_EQUAL,
    "GreaterThan": CompareOp.GREATER,
    "GreaterThanOrEqual": CompareOp.GREATER_OR_EQUAL,
}


@dataclass(frozen=True, slots=True)
class SideColumn:
    """What an expression id stands for: a column of one side."""

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


def predicate_of(
    nodes: Sequence[Node], columns: Mapping[int, SideColumn], *, time_zone: str
) -> Predicate:
    """Translate one expression.

    The list is read from its end, children before parents: a condition may nest deeper
    than Python's stack.
    """
    stack: list[_Part] = []
    for node in reversed(nodes):
        kids = [stack.pop() for _ in range(node["num-children"])]
        stack.append(_part(node, kids, columns, time_zone))
    (whole,) = stack
    return whole.tree


def _part(
    node: Node, kids: Sequence[_Part], columns: Mapping[int, SideColumn], time_zone: str
) -> _Part:
    match class_name(node), kids:
        case "AttributeReference", []:
            known = columns.get(node["exprId"]["id"])
            if known is not None:
                return _Part(known.ref(), known.type)
        case "Literal", []:
            return _Part(_literal(node, time_zone))
        case "Alias", [child]:
            return child
        case "GetStructField", [_Part(Ref() as ref, T.StructType() as struct)]:
            field = struct.fields[node["ordinal"]]
            step = Ref(ref.side, (*ref.path, field.name), comparable_type(field.dataType))
            return _Part(step, field.dataType)
        case "Cast", [_Part(Ref(type=PrimitiveType(narrow)), _)] if _widens(narrow, node):
            return kids[0]
        case name, _:
            made = _known(name, [k.tree for k in kids])
            if made is not None:
                return _Part(made)
    return _Part(Opaque(_references_below(node, kids, columns)))


def _widens(narrow: str, cast: Node) -> bool:
    wide = cast["dataType"]
    both_integers = narrow in _INTEGERS and wide in _INTEGERS
    return both_integers and _INTEGERS.index(narrow) < _INTEGERS.index(wide)


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
    text, kind = node["value"], str(node["dataType"])
    if text is None:
        return Const(None)
    try:
        value = _timestamp(text, time_zone) if kind == "timestamp" else _value(text, kind)
    except (ValueError, ArithmeticError, zoneinfo.ZoneInfoNotFoundError):
        value = None  # the year 10000, a zone this machine does not know
    return Opaque(frozenset()) if value is None else Const(value)


def _value(text: str, kind: str) -> object:
    """Return the literal as a Python value, ``None`` for a type without one."""
    match kind:
        case _ if kind in _INTEGERS:
            return int(text)
        case "boolean":
            return text == "true"
        case "string":
            return text
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
