"""Literals in statement text, and values as SQL literals.

The escapes are those of Spark's string literals. The legacy setting
``spark.sql.parser.escapedStringLiterals``, which switches them off, is not followed here.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from pyspark.sql import types as T

from puredelta.errors import Message, UnsupportedError
from puredelta.protocol.schema.sql_lexer import Token, TokenKind
from puredelta.statements.parse.cursor import Cursor

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC is written after it
_MICROSECOND = dt.timedelta(microseconds=1)

# Characters that a quoted literal cannot hold under every setting: escapes and raw literals depend
# on spark.sql.parser.escapedStringLiterals, and ${...} would be taken for a variable.
_DELICATE = re.compile(r"['\\]|\$\{")


def python_literal(value: object) -> str | None:
    """Return a plain Python value as SQL text; None where only Spark can.

    >>> python_literal(2**40), python_literal(1.5), python_literal("text")
    ('1099511627776L', '1.5D', "'text'")
    """
    match value:
        case None:
            return "NULL"
        case str():
            return string_literal(value)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case dt.date() | dt.timedelta():
            return _time_or_interval(value)
        case _:
            return _number(value)


def string_literal(value: str) -> str:
    """Return text as SQL that means the same under every setting of the parser.

    >>> string_literal("plain"), string_literal("it's")
    ("'plain'", "CAST(X'69742773' AS STRING)")
    """
    if _DELICATE.search(value):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    return f"'{value}'"


def typed_literal(value: Any, data_type: T.DataType) -> str:
    """Return a value that Spark computed as SQL text of that type."""
    return f"CAST({_nested(value, data_type)} AS {data_type.simpleString()})"


def _nested(value: Any, data_type: T.DataType) -> str:
    if value is None:
        return "NULL"
    match data_type:
        case T.ArrayType():
            return f"array({', '.join(_nested(item, data_type.elementType) for item in value)})"
        case T.MapType():
            return _map(value, data_type)
        case T.StructType():
            fields = zip(data_type.fields, value, strict=True)
            pairs = [(string_literal(f.name), _nested(v, f.dataType)) for f, v in fields]
            return f"named_struct({', '.join(text for pair in pairs for text in pair)})"
        case T.TimestampNTZType():
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case _:
            found = python_literal(value)
    if found is None:
        raise UnsupportedError(
            Message.UNSUPPORTED_DATA_TYPES_PARAMETER,
            value=value,
            data_type=data_type.simpleString(),
        )
    return found


def _map(value: Mapping[Any, Any], data_type: T.MapType) -> str:
    pairs = [
        f"{_nested(k, data_type.keyType)}, {_nested(v, data_type.valueType)}"
        for k, v in value.items()
    ]
    return f"map({', '.join(pairs)})"


def _number(value: object) -> str | None:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if value in _LONG:
            return _signed(str(value) if value in _INT else f"{value}L")
        case Decimal() if value.is_finite():
            return _signed(f"{value:f}BD")
        case float() if math.isfinite(value):
            return _signed(f"{value!r}D")
        case float():
            name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{name}' AS DOUBLE)"
        case _:
            return None


def _signed(number: str) -> str:
    """Return a number that is safe after any operator: ``a-(-1)`` is no comment."""
    return f"({number})" if number.startswith("-") else number


def _time_or_interval(value: dt.date | dt.timedelta) -> str:
    match value:
        case dt.datetime():
            # A value without a zone is local time, as in Spark.
            micros = T.TimestampType().toInternal(value)
            return f"TIMESTAMP_LTZ'{(_EPOCH + micros * _MICROSECOND).isoformat(sep=' ')}Z'"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case _:
            micros = value // _MICROSECOND
            seconds, micros = divmod(abs(micros), 10**6)
            minutes, seconds = divmod(seconds, 60)
            hours, minutes = divmod(minutes, 60)
            days, hours = divmod(hours, 24)
            sign = "-" if value < dt.timedelta() else ""
            text = f"{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}"
            return f"INTERVAL '{text}' DAY TO SECOND"


_STRINGS = frozenset({TokenKind.STRING, TokenKind.DOUBLE_QUOTED})
_ESCAPE = re.compile(
    r"\\(?:u(?P<short>[0-9A-Fa-f]{4})|U(?P<long>[0-9A-Fa-f]{8})|(?P<octal>[0-3][0-7]{2})|(?P<one>.))"
    r"|(?P<doubled>''|\"\")",
    re.DOTALL,
)
_ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}
"""Characters with another meaning after a backslash; all others mean themselves."""


def accept_text(cursor: Cursor) -> str | None:
    """Parse text in quotes and return its value; None if there is none."""
    token = cursor.peek()
    if token is None or token.kind not in _STRINGS:
        return None
    cursor.skip()
    return text_value(token)


def read_text(cursor: Cursor, *, expected: str = "text in quotes") -> str:
    """Parse text in quotes and return its value."""
    text = accept_text(cursor)
    if text is None:
        raise cursor.error(expected=expected)
    return text


def text_value(token: Token) -> str:
    r"""Return the value of one text token.

    >>> text_value(Token(TokenKind.STRING, r"'it\'s\tnew'", 0))
    "it's\tnew"
    """
    quote, text = token.text[0], token.text[1:-1]
    if quote in "rR":
        return text[1:]
    return _ESCAPE.sub(partial(_meant, quote), text)


def _meant(quote: str, found: re.Match[str]) -> str:
    if (doubled := found["doubled"]) is not None:
        return quote if doubled[0] == quote else doubled
    hexadecimal = found["short"] or found["long"]
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if found["octal"]:
        return chr(int(found["octal"], 8))
    return _ESCAPED.get(found["one"], found["one"])
