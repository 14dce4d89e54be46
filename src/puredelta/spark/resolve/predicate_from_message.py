"""A condition of a Connect client's plan as a predicate tree.

A ``Column`` is a message: functions by name, literals with their types, columns by the text that
the user wrote. SQL text inside is read by `predicate_from_sql`. What is not surely understood is
`Opaque`; that costs pruning and never rows.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column

from puredelta.protocol.schema.predicates import (
    And,
    CompareOp,
    Const,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
    conjuncts,
)
from puredelta.protocol.schema.types import StructType
from puredelta.spark.connect.messages import Message
from puredelta.spark.resolve.predicate_from_sql import (
    Names,
    compare,
    like_prefix,
    one_of,
    opaque,
    parse_predicate,
)
from puredelta.spark.session.names import parse_name

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - timestamp_ntz has no zone
_COMPARISONS = {
    "==": CompareOp.EQUAL,
    "=": CompareOp.EQUAL,
    "<=>": CompareOp.NULL_SAFE_EQUAL,
    "<": CompareOp.LESS,
    "<=": CompareOp.LESS_OR_EQUAL,
    ">": CompareOp.GREATER,
    ">=": CompareOp.GREATER_OR_EQUAL,
}
_PLAIN_VALUES = ("boolean", "byte", "short", "integer", "long", "float", "double", "string")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesOfPlan:
    """The columns that a condition in a plan may name."""

    free: Names
    """By names alone."""
    bound: Mapping[int, Names] = field(default_factory=dict)
    """By names of the output of a part of the plan, which has this id."""

    def find(self, attribute: Message) -> Ref | None:
        """Return the column that an unresolved attribute certainly means."""
        if attribute.is_metadata_column:
            return None
        names = self.free
        if attribute.HasField("plan_id"):
            if attribute.plan_id not in self.bound:
                return None
            names = self.bound[attribute.plan_id]
        return names.find(parse_name(attribute.unparsed_identifier))


def predicate_of_column(column: Column, client: Any, names: NamesOfPlan) -> Predicate | None:
    """Return the tree of a Column of a client, if all of it is understood."""
    made: Any = column
    predicate = predicate_of_message(made.to_plan(client), names)
    return predicate if is_understood(predicate) else None


def predicate_of_message(expression: Message, names: NamesOfPlan) -> Predicate:
    """Return the tree of a condition; `Opaque` for parts that are not understood."""
    try:
        return _tree(expression, names)
    except RecursionError:
        return opaque()


def _tree(expression: Message, names: NamesOfPlan) -> Predicate:
    match expression.WhichOneof("expr_type"):
        case "literal":
            return literal_of_message(expression.literal)
        case "unresolved_attribute":
            return names.find(expression.unresolved_attribute) or opaque()
        case "expression_string":
            text = expression.expression_string.expression
            return parse_predicate(text, names.free) or opaque()
        case "alias":
            return _tree(expression.alias.expr, names)
        case "unresolved_extract_value":
            return _field(expression.unresolved_extract_value, names)
        case "unresolved_function":
            call = expression.unresolved_function
            if call.is_user_defined_function or call.is_distinct:
                return opaque()
            name = str(call.function_name).lower()
            return _called(name, [_tree(argument, names) for argument in call.arguments])
        case _:
            return opaque()


def literal_of_message(literal: Message) -> Predicate:
    """Return the constant of a literal; `Opaque` for one that has no Python value."""
    kind = literal.WhichOneof("literal_type")
    try:
        match kind:
            case "null":
                return Const(None)
            case "binary":
                return Const(bytes(literal.binary))
            case "decimal":
                return Const(decimal.Decimal(literal.decimal.value))
            case "date":
                return Const(_EPOCH.date() + dt.timedelta(days=literal.date))
            case "timestamp":
                moment = _EPOCH + dt.timedelta(microseconds=literal.timestamp)
                return Const(moment.replace(tzinfo=dt.timezone.utc))
            case "timestamp_ntz":
                return Const(_EPOCH + dt.timedelta(microseconds=literal.timestamp_ntz))
            case _ if kind in _PLAIN_VALUES:
                return Const(getattr(literal, kind))
            case _:
                return opaque()
    except (OverflowError, ArithmeticError):
        return opaque()  # the year 10000


def _field(extract: Message, names: NamesOfPlan) -> Predicate:
    """Return a field of a struct, which is named by a literal: ``column["field"]``."""
    match _tree(extract.child, names), _tree(extract.extraction, names):
        case Ref(type=StructType() as struct) as ref, Const(str() as name):
            found = struct.find_ignoring_case(name)
            if found is not None:
                return Ref(ref.side, (*ref.path, found.name), found.type)
        case inner, _:
            return opaque(inner)
    return opaque()


def _called(  # noqa: PLR0911 - one case for each function
    name: str, values: Sequence[Predicate]
) -> Predicate:
    match name, values:
        case "and", [_, _]:
            return And(tuple(part for value in values for part in conjuncts(value)))
        case "or", [one, other]:
            return Or((one, other))
        case (("not" | "!"), [one]):
            return Not(one)
        case "isnull", [Ref() as ref]:
            return IsNull(ref)
        case "isnotnull", [Ref() as ref]:
            return Not(IsNull(ref))
        case (("!=" | "<>"), [one, other]):
            return Not(compare(CompareOp.EQUAL, one, other))
        case "in", [one, *several]:
            return one_of(one, several)
        case "like", [one, pattern]:
            return like_prefix(one, pattern)
        case "startswith", [Ref(type=kind) as ref, Const(str() as prefix)] if kind is not None:
            return StartsWith(ref, prefix)
        case "negative", [Const(int() | float() | decimal.Decimal() as value)]:
            return Const(-value)
        case _, [one, other] if name in _COMPARISONS:
            return compare(_COMPARISONS[name], one, other)
    return opaque(*values)


def is_understood(predicate: Predicate) -> bool:
    """Return whether no part of a tree is `Opaque`."""
    match predicate:
        case Opaque():
            return False
        case Not(child):
            return is_understood(child)
        case And(parts) | Or(parts):
            return all(map(is_understood, parts))
        case _:
            return True
