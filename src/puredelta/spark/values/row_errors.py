"""Errors that a row raises inside a Spark job: code and values reach the driver with the message.

Spark's ``raise_error`` takes one text. It carries a marker and one line of JSON with the
code, the message and the values. The driver finds the marker in the exception that Spark, Py4J
or Spark Connect made of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, Message
from puredelta.spark.jvm.gateway import java_messages

_MARKER = "__puredelta_error__"
_RAISED = re.compile(rf"(?:^|\[USER_RAISED_EXCEPTION\] ){_MARKER}(?=\{{)")
"""Text of a row may have the marker, too; what a row raised is where Spark puts such text."""


def row_error(
    code: ErrorCode, message: Column, details: Mapping[str, Column] | None = None
) -> Column:
    """Return an expression of type void that raises the error wherever it is evaluated.

    Guard it with ``when``. ``message`` and ``details`` are texts of the row at hand.
    """
    parts = {"code": F.lit(code.name), "message": message}
    payload = F.struct(
        *(value.alias(key) for key, value in parts.items()),
        F.struct(
            F.lit("").alias("_"),  # a struct needs a field
            *(value.cast("string").alias(key) for key, value in (details or {}).items()),
        ).alias("details"),
    )
    return F.raise_error(F.concat(F.lit(_MARKER), F.to_json(payload)))


def row_error_text(code: ErrorCode, message: str, details: Mapping[str, str]) -> str:
    """Return `row_error` as SQL; so are ``message`` and the values of ``details``.

    Text takes one call into the JVM, and every part of a Column several.
    """
    named = "".join(f", CAST({value} AS STRING) AS {key}" for key, value in details.items())
    payload = (
        f"struct('{code.name}' AS code, {message} AS message, struct('' AS _{named}) AS details)"
    )
    return f"raise_error(concat('{_MARKER}', to_json({payload})))"


def decode_row_error(error: BaseException) -> DeltaError | None:
    """Return the error a row raised, if this exception of a Spark job carries one."""
    for text in _texts(error):
        if (raised := _RAISED.search(text)) is not None:
            try:
                payload, _ = json.JSONDecoder().raw_decode(text, raised.end())
                details = {key: value for key, value in payload["details"].items() if key != "_"}
                return InvalidRequestError(
                    payload["message"], code=ErrorCode[payload["code"]], **details
                )
            except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
                continue  # cut off, or not ours: another text of the chain may be whole
        if (cast_error := decode_cast_error(text)) is not None:
            return cast_error
    return None


def _texts(error: BaseException | None) -> Iterator[str]:
    """Yield the messages of an exception and of its causes, Java's included."""
    while error is not None:
        if isinstance(error, PySparkException):
            yield error.getMessage() or ""
        yield str(error)
        yield from java_messages(error)
        error = error.__cause__


_OVERFLOW = re.compile(
    r'\[CAST_OVERFLOW_IN_TABLE_INSERT\] Fail to assign a value of ("[^"]*") type to the ("[^"]*") '
    r"type column or variable `((?:[^`]|``)*)`"
)
_MALFORMED = re.compile(r"\[CAST_INVALID_INPUT\] (.*?)(?: SQLSTATE: \w{5}|$)", re.DOTALL)


def overflow_message(source_type: str, target_type: str, column: str) -> str:
    """Return the text of DELTA_CAST_OVERFLOW_IN_TABLE_WRITE."""
    return Message.CAST_OVERFLOW_IN_TABLE_WRITE.text(
        {
            "source_type": source_type,
            "target_type": target_type,
            "quoted_name": column.replace("`", "``"),
        }
    )


def decode_cast_error(text: str) -> DeltaError | None:
    """Return the error that the message of a failed Spark job names, if it is one of a cast."""
    if overflow := _OVERFLOW.search(text):
        source_type, target_type, quoted = overflow.groups()
        return InvalidRequestError(
            Message.CAST_OVERFLOW_IN_TABLE_WRITE,
            source_type=source_type,
            target_type=target_type,
            quoted_name=quoted,
            column_name=quoted.replace("``", "`"),
        )
    if malformed := _MALFORMED.search(text):
        return InvalidRequestError(malformed[1].strip(), code=ErrorCode.CAST_INVALID_INPUT)
    return None
