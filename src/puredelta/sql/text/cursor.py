"""A reading position in statement text: keywords, names and bracketed groups.

The text has passed Spark's parser before (`puredelta.spark.statements.sql_syntax`) where Spark
knows the statement, so errors here are rare: they are what a statement of our own can get wrong.
"""

from __future__ import annotations

from itertools import islice

from puredelta.sql.text.lexer import Token, TokenKind, read_tokens
from puredelta.sql.text.syntax_error import SqlSyntaxError, syntax_error
from puredelta.sql.text.table_name import ComputedName, TableName, TableReference


class Cursor:
    """Walks over the tokens of one text, which may be long: no further than is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._coming = read_tokens(text)
        self._tokens: list[Token] = []
        self._at = 0

    # looking

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a token that is still to come, or None behind the last."""
        at = self._at + ahead
        missing = at + 1 - len(self._tokens)
        if missing > 0:
            self._tokens.extend(islice(self._coming, missing))
        return self._tokens[at] if at < len(self._tokens) else None

    def sees(self, *words: str) -> bool:
        """Tell whether these keywords (upper case) or symbols come next."""
        coming = ((self.peek(ahead), word) for ahead, word in enumerate(words))
        return all(token is not None and token.means(word) for token, word in coming)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.peek() is None

    # moving

    def accept(self, *words: str) -> bool:
        """Step over these keywords or symbols if they come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over these keywords or symbols.

        Raises:
            SqlSyntaxError: something else comes next.
        """
        if not self.accept(*words):
            raise self.error(expected=" ".join(words))

    def skip(self) -> None:
        """Step over one token."""
        self._at += 1

    def expect_end(self) -> None:
        """Require that nothing but semicolons is left.

        Raises:
            SqlSyntaxError: something is left.
        """
        while self.accept(";"):
            pass
        if not self.is_done:
            raise self.error(expected="the end of the statement")

    # names

    def identifier(self) -> str:
        """Read one identifier, without its quotes.

        Raises:
            SqlSyntaxError: something else comes next.
        """
        return unquoted(self._identifier())

    def column(self) -> str:
        """Read a column name; its parts keep the quotes they need, space between them is gone.

        Raises:
            SqlSyntaxError: something else comes next.
        """
        return ".".join(_spelling(token) for token in self._parts())

    def table(self) -> TableReference:
        """Read the name of a table.

        Raises:
            SqlSyntaxError: something else comes next.
        """
        if self.sees("IDENTIFIER", "("):
            self.skip()
            return ComputedName(self.group())
        return TableName(tuple(unquoted(token) for token in self._parts()))

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
        self._at += 1
        return token

    # text

    def group(self) -> str:
        """Step over ``( ... )`` and return what is between the brackets.

        Raises:
            SqlSyntaxError: there is no bracket, or it is not closed.
        """
        start = self._at
        self.expect("(")
        depth = 1
        while depth:
            token = self.peek()
            if token is None:
                raise self.error(expected="')'")
            depth += token.means("(") - token.means(")")
            self._at += 1
        return self._slice(start + 1, self._at - 1)

    def between(self, start: int) -> str:
        """Return the text from a token (`position`) to the one before the next."""
        return self._slice(start, self._at)

    @property
    def position(self) -> int:
        """The number of the next token."""
        return self._at

    @property
    def offset(self) -> int:
        """Where the last token passed ends in the text."""
        return self._tokens[self._at - 1].end if self._at else 0

    def error(self, *, expected: str) -> SqlSyntaxError:
        """Return the error for what comes next."""
        token = self.peek()
        if token is None:
            end = self._tokens[-1].end if self._tokens else len(self.text)
            return syntax_error(self.text, end, near="end of input", expected=expected)
        return syntax_error(self.text, token.start, near=f"'{token.text}'", expected=expected)

    def _slice(self, first: int, behind: int) -> str:
        if first >= behind:
            return ""
        return self.text[self._tokens[first].start : self._tokens[behind - 1].end]


def unquoted(token: Token) -> str:
    """Return an identifier without its quotes."""
    match token.kind:
        case TokenKind.QUOTED:
            return token.text[1:-1].replace("``", "`")
        case TokenKind.DOUBLE_QUOTED:
            return token.text[1:-1].replace('""', '"')
        case _:
            return token.text


def _spelling(token: Token) -> str:
    """Return an identifier as the analyzer reads names: plain, or in back-ticks."""
    if token.kind is TokenKind.DOUBLE_QUOTED:
        return "`" + unquoted(token).replace("`", "``") + "`"
    return token.text


def is_identifier(token: Token) -> bool:
    """Tell a token that may be an identifier, a keyword included."""
    return token.kind in {TokenKind.WORD, TokenKind.QUOTED, TokenKind.DOUBLE_QUOTED}
