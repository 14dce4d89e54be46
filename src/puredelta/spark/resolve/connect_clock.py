"""The statement's timestamp in the plans of a Connect client, in place of the server's clock.

A client's plan is a protobuf message: functions are nodes of it, SQL text is text. A call
such as ``now()`` is replaced in both. The keywords without brackets (``current_timestamp``)
could be names of columns: they are replaced only where they stand in an expression and are
no part of a longer name. What a temporary view of the server reads stays out of reach.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

_TYPES = {
    "current_timestamp": "timestamp",
    "now": "timestamp",
    "current_date": "date",
    "curdate": "date",
    "localtimestamp": "timestamp_ntz",
    "unix_timestamp": "bigint",
}
"""Functions that read the clock when they have no argument, and their types."""

_KEYWORDS = ("current_timestamp", "current_date", "localtimestamp")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/"
_CALL = rf"(?<![\w.`])(?P<call>{'|'.join(_TYPES)})\s*\(\s*\)"
_WORD = rf"(?<![\w.`])(?P<word>{'|'.join(_KEYWORDS)})(?![\w.`]|\s*\()"
_CALLS = re.compile(f"{_QUOTED}|{_CALL}", re.IGNORECASE | re.DOTALL)
_READINGS = re.compile(f"{_QUOTED}|{_CALL}|{_WORD}", re.IGNORECASE | re.DOTALL)
_MENTIONED = re.compile("|".join(_TYPES).encode(), re.IGNORECASE)


def reads_clock(plan: Any) -> bool:
    """Return whether a plan might read the clock; a name in its data is a false alarm."""
    return _MENTIONED.search(plan.SerializeToString()) is not None


def with_timestamp(plan: Any, micros: int) -> Any:
    """Return a copy of a plan that reads ``micros`` since 1970 wherever it read the clock."""
    copy = type(plan)()
    copy.CopyFrom(plan)
    _bind(copy, micros)
    return copy


def plan_of(rows: DataFrame) -> Any:
    """Return the message a Connect frame would send."""
    session: Any = rows.sparkSession
    plan: Any = rows._plan  # noqa: SLF001 - there is no public way
    return plan.plan(session.client)


def rows_of(plan: Any, like: DataFrame) -> DataFrame:
    """Return a plan as a frame of the session of ``like``."""
    # Not imported at the top: needs packages that only Connect clients have.
    plans: Any = importlib.import_module("pyspark.sql.connect.plan")
    frame: Any = type(like)
    made: DataFrame = frame(plans.CachedRelation(plan), like.sparkSession)
    return made


def text_with_timestamp(text: str, micros: int, *, is_expression: bool) -> str:
    """Return SQL text in which readings of the clock are constants.

    >>> text_with_timestamp("now() > t.now AND 'now()' <> x", 5, is_expression=True)
    "CAST(timestamp_micros(5) AS timestamp) > t.now AND 'now()' <> x"
    """

    def constant(found: re.Match[str]) -> str:
        parts = found.groupdict()
        name = parts["call"] or parts.get("word")
        if name is None:
            return found[0]
        return f"CAST(timestamp_micros({micros}) AS {_TYPES[name.lower()]})"

    return (_READINGS if is_expression else _CALLS).sub(constant, text)


def _bind(message: Any, micros: int) -> None:
    kind = message.DESCRIPTOR.full_name
    if kind == "spark.connect.Expression":
        name = _called(message)
        if name is not None:
            message.Clear()
            message.cast.expr.literal.timestamp = micros
            message.cast.type_str = _TYPES[name]
            return
        if message.WhichOneof("expr_type") == "expression_string":
            string = message.expression_string
            string.expression = text_with_timestamp(string.expression, micros, is_expression=True)
    elif kind == "spark.connect.SQL":
        message.query = text_with_timestamp(message.query, micros, is_expression=False)
    elif kind == "spark.connect.Project":
        _keep_names(message)
    for part in parts_of(message):
        _bind(part, micros)


def _called(expression: Any) -> str | None:
    """Return the function an expression calls, if it reads the clock."""
    match expression.WhichOneof("expr_type"):
        case "unresolved_function":
            call = expression.unresolved_function
        case "call_function":
            call = expression.call_function
        case _:
            return None
    name = str(call.function_name).lower()
    return name if name in _TYPES and not call.arguments else None


def _keep_names(project: Any) -> None:
    """Give selected readings of the clock the names they have had."""
    for expression in project.expressions:
        name = _called(expression)
        if name is not None:
            reading = type(expression)()
            reading.CopyFrom(expression)
            expression.Clear()
            expression.alias.expr.CopyFrom(reading)
            expression.alias.name.append(f"{name}()")


def parts_of(message: Any) -> Iterator[Any]:
    """Yield the messages inside a message."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            kind = field.message_type.fields_by_name["value"]
            if kind.message_type is not None:
                yield from value.values()
        elif hasattr(value, "ListFields"):
            yield value
        else:
            yield from value
