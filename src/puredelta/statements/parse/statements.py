"""The statements of a text, such as a file: split at semicolons as in Spark's shell.

A semicolon does not end a statement in text, in a name, in a comment (also nested ones), or between
BEGIN and END of a script.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from puredelta.protocol.schema.sql_lexer import Token, TokenKind, keywords, read_tokens

_COMPOUND = keywords("IF WHILE FOR LOOP REPEAT")
"""Keywords that begin a statement of a script that ends in END, beside BEGIN and CASE."""
_BEFORE_STATEMENTS = keywords("BEGIN DO LOOP REPEAT ; :")
_BRANCHES = keywords("THEN ELSE")


def split_statements(text: str) -> list[str]:
    """Return the statements without the semicolons between them; empty ones are left out.

    Comments stay with the statement that they are in or before.

    >>> split_statements("SELECT ';' /* ; /* ; */ ; */ -- a; b" + chr(10) + "; SELECT 2;;")
    ["SELECT ';' /* ; /* ; */ ; */ -- a; b", 'SELECT 2']
    >>> split_statements("BEGIN SELECT 1; IF a THEN SELECT 2; END IF; END; SELECT 3")
    ['BEGIN SELECT 1; IF a THEN SELECT 2; END IF; END', 'SELECT 3']
    """
    return [part.strip() for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    start = 0
    script: _Script | None = None
    before: Token | None = None
    for token in read_tokens(text):
        if token.means(";") and (script is None or script.is_over):
            if before is not None:
                yield text[start : token.start]
            start, script, before = token.end, None, None
            continue
        if script is None and token.means("BEGIN") and (before is None or before.means(":")):
            script = _Script()
        if script is not None:
            script.read(token)
        before = token
    if before is not None:
        yield text[start:]


@dataclass(slots=True)
class _Script:
    """The open parts of a script after some tokens."""

    _open: list[bool] = field(default_factory=list)
    """For each missing END: whether it ends statements rather than an expression."""
    _before: str = ":"

    @property
    def is_over(self) -> bool:
        """Whether the END of the script has been read."""
        return not self._open

    def read(self, token: Token) -> None:
        """Read the next token."""
        is_plain = token.kind in {TokenKind.WORD, TokenKind.SYMBOL}
        word = token.text.upper() if is_plain and self._before != "." else ""
        begins = self._before in _BEFORE_STATEMENTS or (
            self._before in _BRANCHES and self._open[-1:] == [True]
        )
        if word == "END":
            del self._open[-1:]
        elif word == "BEGIN" or (word in _COMPOUND and begins):
            self._open.append(True)
        elif word == "CASE" and self._before != "END":
            self._open.append(begins)
        self._before = word
