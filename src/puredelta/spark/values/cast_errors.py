"""Spark's errors of values that could not be cast, with the messages of delta-spark (M-60)."""

from __future__ import annotations

import re

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError

_OVERFLOW = re.compile(
    r'\[CAST_OVERFLOW_IN_TABLE_INSERT\] Fail to assign a value of ("[^"]*") type to the ("[^"]*") '
    r"type column or variable `((?:[^`]|``)*)`"
)
_MALFORMED = re.compile(r"\[CAST_INVALID_INPUT\] (.*?)(?: SQLSTATE: \w{5}|$)", re.DOTALL)


def overflow_message(source_type: str, target_type: str, column: str) -> str:
    """Return the text of DELTA_CAST_OVERFLOW_IN_TABLE_WRITE."""
    quoted = column.replace("`", "``")
    return (
        f"Failed to write a value of {source_type} type into the {target_type} type column "
        f"`{quoted}` due to an overflow. Use `try_cast` on the input value to tolerate overflow "
        "and return NULL instead. If necessary, set spark.sql.storeAssignmentPolicy to "
        '"LEGACY" to bypass this error.'
    )


def decode_cast_error(text: str) -> DeltaError | None:
    """Return the error that the message of a failed Spark job names, if it is one of a cast."""
    if overflow := _OVERFLOW.search(text):
        source_type, target_type, quoted = overflow.groups()
        column = quoted.replace("``", "`")
        return InvalidRequestError(
            overflow_message(source_type, target_type, column),
            code=ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE,
            source_type=source_type,
            target_type=target_type,
            column_name=column,
        )
    if malformed := _MALFORMED.search(text):
        return InvalidRequestError(malformed[1].strip(), code=ErrorCode.CAST_INVALID_INPUT)
    return None
