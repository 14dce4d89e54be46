"""Spark SQL text as tokens, each with its position in the text.

The rules are those of Spark's ``SqlBaseLexer`` as far as they decide where a token ends:
quotes and their escapes, raw strings, nested comments, numbers that would otherwise hide a
dot. Nothing is refused here: what is no token (a quote that is never closed) comes out as a
symbol, and Spark's parser says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class TokenKind(Enum):
    """The kind of a token, independent of its meaning."""

    WORD = "word"
    """A keyword or a plain identifier."""
    QUOTED = "quoted"
    """An identifier in back-ticks."""
    DOUBLE_QUOTED = "double"
    """A string, or an identifier where the session says so."""
    STRING = "string"
    """``'...'``, ``r'...'``, ``r"..."``, or the text of a routine between ``$$``."""
    NUMBER = "number"
    SYMBOL = "symbol"
    """An operator, a bracket, or a character that is no token."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``start`` and ``end`` are offsets into the text."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after the last character."""
        return self.start + len(self.text)

    def means(self, word: str) -> bool:
        """Tell whether the token is this keyword (in upper case) or this symbol."""
        match self.kind:
            case TokenKind.WORD:
                return self.text.upper() == word
            case TokenKind.SYMBOL:
                return self.text == word
            case _:
                return False


IDENTIFIERS = frozenset({TokenKind.WORD, TokenKind.QUOTED, TokenKind.DOUBLE_QUOTED})
"""Kinds of tokens that may be an identifier, a keyword included."""


def unquoted(token: Token) -> str:
    """Return an identifier without its quotes."""
    match token.kind:
        case TokenKind.QUOTED:
            return token.text[1:-1].replace("``", "`")
        case TokenKind.DOUBLE_QUOTED:
            return token.text[1:-1].replace('""', '"')
        case _:
            return token.text


# Alternatives are tried in this order. A number must not run into a word: ``db.1st`` is
# ``db``, a dot and ``1st``, and not ``db`` and ``.1``. A hint is no comment.
_TOKEN = re.compile(
    r"""
    (?P<space>   [ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+
               | --(?:\\\n|[^\r\n])* )
    | (?P<comment> /\*(?!\+) )
    | (?P<string>  '(?:[^'\\]|\\.|'')*' | [rR]'[^']*' | [rR]"[^"]*"
                 | \$(?P<tag>[A-Za-z]*)\$.*?\$(?P=tag)\$ )
    | (?P<double>  "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted>  `(?:[^`]|``)*` )
    | (?P<number>  (?: (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
                   (?:[bB][dD]|[fFdD])? (?!\w)
                 | \d+(?:[bB][dD]|[lLsSyYfFdD])? (?!\w) )
    | (?P<word>    [^\W\d_]+://[\w/\-.?=&\#%]+ | \w+ )
    | (?P<symbol>  <=> | :: | -> | => | == | <= | >= | <> | != | \|\| | \|> | /\*\+ | \*/ | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")


def tokenize(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text without white space and comments.

    >>> [t.text for t in tokenize("SELECT 'it''s' /* a /* b */ c */ -- d")]
    ['SELECT', "'it''s'"]
    """
    return tuple(read_tokens(text))


def read_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of `tokenize`, reading no further than is asked for."""
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        match match.lastgroup:
            case "space":
                continue
            case "comment":
                at = _comment_end(text, at)
            case group:
                yield Token(TokenKind(group), match.group(), match.start())


def _comment_end(text: str, at: int) -> int:
    """Return where a bracketed comment ends; comments nest, an open one takes all the rest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            return edge.end()
    return len(text)


def keywords(text: str) -> frozenset[str]:
    """Return words and symbols that stand in one line as a set."""
    return frozenset(text.split())
