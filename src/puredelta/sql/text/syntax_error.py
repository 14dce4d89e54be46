"""The error for text that is not the statement it begins as, with its position in the text."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import ParseException

from puredelta.errors import ErrorCode, InvalidRequestError


@dataclass(frozen=True, slots=True)
class TextPosition:
    """A line, counted from 1, and a position in it, counted from 0, as Spark counts."""

    line: int
    position: int

    @classmethod
    def of(cls, text: str, offset: int) -> TextPosition:
        r"""Return the position of an offset.

        >>> TextPosition.of("SELECT 1\nFROM", 9)
        TextPosition(line=2, position=0)
        """
        before = text[:offset]
        return cls(line=before.count("\n") + 1, position=offset - (before.rfind("\n") + 1))

    def __str__(self) -> str:
        return f"(line {self.line}, pos {self.position})"

    def pointed_out(self, text: str) -> str:
        """Return the text with a line that points at the position, as Spark prints it."""
        lines = text.split("\n")
        lines.insert(self.line, "-" * self.position + "^^^")
        return "\n".join(lines)


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
        text, position = details.get("sql"), details.get("place")
        if isinstance(text, str) and isinstance(position, TextPosition):
            pointed_out = position.pointed_out(text)
            self.args = (f"{self.args[0]} {position}\n\n== SQL ==\n{pointed_out}\n",)

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
