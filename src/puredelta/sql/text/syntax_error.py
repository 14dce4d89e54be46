"""The error for text that is not the statement it begins as."""

from __future__ import annotations

from pyspark.errors import ParseException

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.sql.text.place import TextPosition, with_caret


class SqlSyntaxError(InvalidRequestError, ParseException):
    """A syntax error with its line, position and a caret, as Spark's parser prints them.

    Only for what Spark's own parser cannot judge; it is caught by the same handlers.
    """

    def __init__(self, message: str, *, code: ErrorCode, **details: object) -> None:
        InvalidRequestError.__init__(self, message, code=code, **details)
        # PySpark's part of the object, for handlers that ask for the query context.
        ParseException.__init__(
            self,
            message=message,
            errorClass=code.error_class,
            messageParameters={name: str(value) for name, value in details.items()},
        )
        text, place = details.get("sql"), details.get("place")
        if isinstance(text, str) and isinstance(place, TextPosition):
            shown = with_caret(text, place)
            self.args = (f"{self.args[0]} {place}\n\n== SQL ==\n{shown}\n",)

    def __str__(self) -> str:
        return str(self.args[0])


def syntax_error(text: str, offset: int, *, near: str, expected: str) -> SqlSyntaxError:
    """Return the error for ``text[offset:]``, where something else was expected."""
    return SqlSyntaxError(
        f"Syntax error at or near {near}: expected {expected}.",
        code=ErrorCode.PARSE_SYNTAX_ERROR,
        error=near,
        expected=expected,
        place=TextPosition.of(text, offset),
        sql=text,
    )
