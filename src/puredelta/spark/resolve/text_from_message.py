"""A Column of a Connect client as SQL text, which the server proves to mean the same.

A ``Column`` is a message, and the server never writes one as text. So the client writes it, and the
server compares both as analyzed plans. A form that is not known here, or a text that the server
does not find equal, is no text: that costs a feature and never rows.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.spark.connect.messages import Message, client_of
from puredelta.spark.session.names import quote
from puredelta.spark.session.types import quoted_text

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is in the text
_SUFFIXES = {"byte": "Y", "short": "S", "integer": "", "long": "L"}
_SAME = ("=", "<=>", ">", "<", ">=", "<=", "+", "-", "*", "/", "%", "!=", "&", "|", "^")
_WORDS = ("and", "or", "like", "ilike", "rlike")
_BETWEEN = {"==": "=", **{o: o for o in _SAME}, **{word: word.upper() for word in _WORDS}}
_BEFORE = {"not": "NOT", "!": "NOT", "negative": "-", "~": "~"}
_AFTER = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


class _NoTextError(Exception):
    """A part of an expression has no text."""


def proven_text(column: Column, rows: DataFrame) -> str | None:
    """Return a condition over rows of a Connect session as SQL; None if none is proven.

    At most one request, which runs nothing.

    Raises:
        pyspark.errors.AnalysisException: the condition itself is refused.
    """
    made: object = column
    try:
        text = _text(made.to_plan(client_of(rows.sparkSession)))  # type: ignore[attr-defined]
    except (_NoTextError, RecursionError, OverflowError, ArithmeticError):
        return None
    wanted = rows.where(column)
    try:
        is_same = wanted.sameSemantics(rows.where(F.expr(text)))
    except PySparkException:
        _ = wanted.schema  # raises if the condition is at fault, not its text
        return None
    return text if is_same else None


def _text(expression: Message) -> str:
    match expression.WhichOneof("expr_type"):
        case "literal":
            return _literal(expression.literal)
        case "unresolved_attribute":
            return str(expression.unresolved_attribute.unparsed_identifier)
        case "expression_string":
            return f"({expression.expression_string.expression})"
        case "alias":
            return _text(expression.alias.expr)
        case "cast":
            return _cast(expression.cast)
        case "unresolved_extract_value":
            return _extracted(expression.unresolved_extract_value)
        case "unresolved_function":
            call = expression.unresolved_function
            if call.is_distinct or call.is_user_defined_function:
                raise _NoTextError
            return _called(str(call.function_name), [_text(one) for one in call.arguments])
        case _:
            raise _NoTextError


def _cast(cast: Message) -> str:
    if cast.WhichOneof("cast_to_type") != "type_str":
        raise _NoTextError
    mode = cast.EvalMode.Name(cast.eval_mode) if hasattr(cast, "eval_mode") else ""
    word = "TRY_CAST" if mode.endswith("TRY") else "CAST"
    return f"{word}({_text(cast.expr)} AS {cast.type_str})"


def _extracted(extract: Message) -> str:
    if extract.extraction.WhichOneof("expr_type") != "literal":
        raise _NoTextError
    child, key = _text(extract.child), extract.extraction.literal
    is_column = extract.child.WhichOneof("expr_type") == "unresolved_attribute"
    if is_column and key.WhichOneof("literal_type") == "string":
        return f"{child}.{quote(key.string)}"
    return f"{child}[{_literal(key)}]"


def _called(name: str, arguments: Sequence[str]) -> str:
    lower = name.lower()
    match arguments:
        case [one, other] if lower in _BETWEEN:
            return f"({one} {_BETWEEN[lower]} {other})"
        case [one] if lower in _BEFORE:
            return f"({_BEFORE[lower]} {one})"
        case [one] if lower in _AFTER:
            return f"({one} {_AFTER[lower]})"
        case [one, *several] if lower == "in":
            return f"({one} IN ({', '.join(several)}))"
        case _ if lower == "when":
            pairs = zip(arguments[0::2], arguments[1::2], strict=False)
            cases = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
            otherwise = f" ELSE {arguments[-1]}" if len(arguments) % 2 else ""
            return f"(CASE{cases}{otherwise} END)"
    if not name.replace("_", "").isalnum():
        raise _NoTextError
    return f"{name}({', '.join(arguments)})"


def _literal(literal: Message) -> str:
    kind = literal.WhichOneof("literal_type")
    value = getattr(literal, kind or "", None)
    match kind:
        case "null":
            return "NULL"
        case "boolean":
            return str(value).lower()
        case "string":
            return quoted_text(literal.string)
        case "byte" | "short" | "integer" | "long":
            return f"{value}{_SUFFIXES[kind]}"
        case "float" | "double" if math.isfinite(getattr(literal, kind)):
            return f"{value!r}{'D' if kind == 'double' else 'F'}"
        case "decimal":
            return f"{decimal.Decimal(literal.decimal.value):f}BD"
        case "date":
            return f"DATE'{_EPOCH.date() + dt.timedelta(days=literal.date)}'"
        case "timestamp":
            return f"TIMESTAMP'{_EPOCH + dt.timedelta(microseconds=literal.timestamp)}Z'"
        case "timestamp_ntz":
            return f"TIMESTAMP_NTZ'{_EPOCH + dt.timedelta(microseconds=literal.timestamp_ntz)}'"
        case "binary":
            return f"X'{literal.binary.hex()}'"
        case _:
            raise _NoTextError
