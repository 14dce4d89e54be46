"""A reading position in statement text: keywords, names, lists, groups and syntax errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark.errors import ParseException

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.schema.sql_lexer import (
    Token,
    TokenCursor,
    TokenKind,
    is_identifier,
    unquoted,
)


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

    Only for text that Spark's own parser cannot judge; the same handlers catch it.
    """

    def __init__(self, message: str, *, code: ErrorCode, **details: object) -> None:
        InvalidRequestError.__init__(self, message, code=code, **details)
        # PySpark's part of the object, for handlers that read the query context.
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


Item = TypeVar("Item")
_WHOLE_NUMBER = re.compile(r"\d+")
_NUMBER = re.compile(r"\d+(?:\.\d*)?")


class Cursor(TokenCursor):
    """Cursor that expects tokens: methods that read or expect one raise `SqlSyntaxError` for
    any other.
    """

    def expect(self, *words: str) -> None:
        """Step over these keywords or symbols."""
        if not self.accept(*words):
            raise self.error(expected=" ".join(words))

    def expect_end(self) -> None:
        """Require that nothing but semicolons is left."""
        while self.accept(";"):
            pass
        if not self.is_done:
            raise self.error(expected="the end of the statement")

    # names

    def identifier(self) -> str:
        """Read one identifier, without its quotes."""
        return unquoted(self._identifier())

    def column(self) -> str:
        """Read a column name; its parts keep necessary quotes, space between them is removed."""
        return ".".join(_as_column(token) for token in self._parts())

    def name(self) -> tuple[str, ...]:
        """Read the name of a table, a column or a nested field: its parts without quotes."""
        return tuple(map(unquoted, self._parts()))

    def alias(self, *, unless: str) -> str | None:
        """Read ``[AS] name`` if there is one; ``unless`` is the keyword that may follow."""
        if self.accept("AS"):
            return self.identifier()
        token = self.peek()
        if token is None or token.means(unless) or not is_identifier(token):
            return None
        return self.identifier()

    def _parts(self) -> list[Token]:
        parts = [self._identifier()]
        while self.accept("."):
            parts.append(self._identifier())
        return parts

    def _identifier(self) -> Token:
        token = self.peek()
        if token is None or not is_identifier(token):
            raise self.error(expected="an identifier")
        self.position += 1
        return token

    # numbers, lists and text

    def number(self, *, whole: bool = False) -> str:
        """Read a number without a sign."""
        token, kind = self.peek(), _WHOLE_NUMBER if whole else _NUMBER
        if token is None or kind.fullmatch(token.text) is None:
            raise self.error(expected="a whole number" if whole else "a number")
        self.position += 1
        return token.text

    def items(self, read: Callable[[Cursor], Item]) -> list[Item]:
        """Read one item or more, separated by commas."""
        items = [read(self)]
        while self.accept(","):
            items.append(read(self))
        return items

    def items_in_brackets(self, read: Callable[[Cursor], Item], *, optional: bool) -> list[Item]:
        """Read items between brackets, which may be missing if ``optional``."""
        if optional and not self.sees("("):
            return self.items(read)
        self.expect("(")
        items = self.items(read)
        self.expect(")")
        return items

    def skip_to(self, *words: str) -> None:
        """Step on to the first of these keywords outside of brackets, or to the end."""
        while not (self.is_done or any(self.sees(word) for word in words)):
            if self.sees("("):
                self.group()
            else:
                self.skip()

    def group(self) -> str:
        """Parse ``( ... )`` and return the text between the brackets."""
        start = self.position
        self.expect("(")
        depth = 1
        while depth:
            token = self.peek()
            if token is None:
                raise self.error(expected="')'")
            depth += token.means("(") - token.means(")")
            self.position += 1
        return self._slice(start + 1, self.position - 1)

    def between(self, start: int) -> str:
        """Return the text from a token (`position`) to the one before the next."""
        return self._slice(start, self.position)

    @property
    def start(self) -> int:
        """The position of the next token in the text."""
        token = self.peek()
        return len(self.text) if token is None else token.start

    @property
    def end(self) -> int:
        """The end of the last token before the next."""
        return self._tokens[self.position - 1].end if self.position else 0

    def error(self, *, expected: str) -> SqlSyntaxError:
        """Return the error for the next token."""
        token = self.peek()
        if token is None:
            end = self._tokens[-1].end if self._tokens else len(self.text)
            return syntax_error(self.text, end, near="end of input", expected=expected)
        return syntax_error(self.text, token.start, near=f"'{token.text}'", expected=expected)

    def _slice(self, first: int, end: int) -> str:
        if first >= end:
            return ""
        return self.text[self._tokens[first].start : self._tokens[end - 1].end]


def _as_column(token: Token) -> str:
    """Return an identifier as Spark's analyzer reads names: plain, or in back-ticks."""
    if token.kind is TokenKind.DOUBLE_QUOTED:
        return "`" + unquoted(token).replace("`", "``") + "`"
    return token.text
