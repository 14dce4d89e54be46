"""Spark SQL text as tokens, each with its position in the text, and a cursor over them.

The rules are those of Spark's ``SqlBaseLexer`` as far as they decide where a token ends:
quotes and their escapes, raw strings, nested comments, numbers that would otherwise hide a
dot. Nothing is refused here: what is no token (a quote that is never closed) comes out as a
symbol, and Spark's parser says what is wrong with it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice


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
            return without_back_ticks(token.text)
        case TokenKind.DOUBLE_QUOTED:
            return token.text[1:-1].replace('""', '"')
        case _:
            return token.text


BACK_TICKED = "`(?:[^`]|``)*`"
"""The pattern of an identifier in back-ticks."""


def without_back_ticks(text: str) -> str:
    """Return the identifier that is written in back-ticks.

    >>> without_back_ticks("`a``b`")
    'a`b'
    """
    return text[1:-1].replace("``", "`")


# Alternatives are tried in this order. A number must not run into a word: ``db.1st`` is
# ``db``, a dot and ``1st``, and not ``db`` and ``.1``. A hint is no comment.
_TOKEN = re.compile(
    rf"""
    (?P<space>   [ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+
               | --(?:\\\n|[^\r\n])* )
    | (?P<comment> /\*(?!\+) )
    | (?P<string>  '(?:[^'\\]|\\.|'')*' | [rR]'[^']*' | [rR]"[^"]*"
                 | \$(?P<tag>[A-Za-z]*)\$.*?\$(?P=tag)\$ )
    | (?P<double>  "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted>  {BACK_TICKED} )
    | (?P<number>  (?: (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
                   (?:[bB][dD]|[fFdD])? (?!\w)
                 | \d+(?:[bB][dD]|[lLsSyYfFdD])? (?!\w) )
    | (?P<word>    [^\W\d_]+://[\w/\-.?=&\#%]+ | \w+ )
    | (?P<symbol>  <=> | :: | -> | => | == | <= | >= | <> | != | \|\| | \|> | /\*\+ | \*/ | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")


_KINDS: Mapping[str | None, TokenKind] = {kind.value: kind for kind in TokenKind}


def mentions(text: str, word: str) -> bool:
    """Tell whether a text has a word, given in lower case; texts without it need no lexer.

    Most texts do not have it: a regular expression alone would take ten times as long.

    >>> mentions("SELECT _METADATA.file_path", "_metadata"), mentions("SELECT profile", "of")
    (True, False)
    """
    return word in text.lower() and _word(word).search(text) is not None


@functools.cache
def _word(word: str) -> re.Pattern[str]:
    return re.compile(rf"\b{word}\b", re.IGNORECASE)


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
                yield Token(_KINDS[group], match.group(), match.start())


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


class TokenCursor:
    """A position among the tokens of one text, which are read only as far as needed.

    Nothing raises here: `puredelta.statements.parse.cursor` adds the syntax errors.
    """

    def __init__(self, text: str, tokens: Sequence[Token] | None = None) -> None:
        """``tokens`` are all of the text, if they are known."""
        self.text = text
        self._unread = read_tokens(text) if tokens is None else iter(())
        self._tokens = [] if tokens is None else list(tokens)
        self.position = 0
        """The number of the next token."""

    def peek(self, ahead: int = 0) -> Token | None:
        """Return a later token, or None after the last."""
        at = self.position + ahead
        missing = at + 1 - len(self._tokens)
        if missing > 0:
            self._tokens.extend(islice(self._unread, missing))
        return self._tokens[at] if at < len(self._tokens) else None

    def sees(self, *words: str, ahead: int = 0) -> bool:
        """Tell whether these keywords (upper case) or symbols come, ``ahead`` tokens from here."""
        found = ((self.peek(at), word) for at, word in enumerate(words, start=ahead))
        return all(token is not None and token.means(word) for token, word in found)

    def name_length(self) -> int:
        """Return the number of tokens in the name that comes next, with its dots."""
        length = 1
        while self.sees(".", ahead=length):
            length += 2
        return length

    @property
    def word(self) -> str:
        """The text of the next token in upper case, "" after the last."""
        token = self.peek()
        return "" if token is None else token.text.upper()

    @property
    def is_done(self) -> bool:
        """Whether no token is left."""
        return self.peek() is None

    def accept(self, *words: str) -> bool:
        """Step over these keywords or symbols if they come next."""
        if not self.sees(*words):
            return False
        self.position += len(words)
        return True

    def skip(self, count: int = 1) -> None:
        """Step over one token, or several."""
        self.position += count

    def accept_name(self) -> tuple[str, ...]:
        """Step over a name if one comes next; return its parts without quotes, or ()."""
        parts: list[str] = []
        while (token := self.peek()) is not None and is_identifier(token):
            parts.append(unquoted(token))
            self.position += 1
            after = self.peek(1)
            if not (self.sees(".") and after is not None and is_identifier(after)):
                break
            self.position += 1
        return tuple(parts)


def is_identifier(token: Token) -> bool:
    """Tell whether a token may be an identifier, a keyword included."""
    return token.kind in IDENTIFIERS


def parse_identifier(text: str) -> tuple[str, ...]:
    """Return the parts of the name that is the whole text, or () if it is no name.

    >>> parse_identifier("sales . `my events`")
    ('sales', 'my events')
    >>> parse_identifier("sales.")
    ()
    """
    cursor = TokenCursor(text)
    parts = cursor.accept_name()
    return parts if cursor.is_done and all(parts) else ()


def replaced(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    """Return the text with parts replaced: start, end, new text, from left to right.

    >>> replaced("SELECT a, b", [(7, 8, "1"), (10, 11, "2")])
    'SELECT 1, 2'
    """
    result: list[str] = []
    at = 0
    for start, end, new in parts:
        result += [text[at:start], new]
        at = end
    return "".join([*result, text[at:]])


_QUERIES = keywords("SELECT WITH FROM VALUES TABLE")
_AFTER_COLUMN = keywords(") , .")


def may_hold_query(text: str) -> bool:
    """Tell whether an expression may hold a query in brackets.

    >>> may_hold_query("a IN ( /* ids */ SELECT id FROM t)"), may_hold_query("'(SELECT 1)'")
    (True, False)
    """
    tokens = tokenize(text) if "(" in text else ()
    return any(
        bracket.means("(")
        and word.kind is TokenKind.WORD
        and word.text.upper() in _QUERIES
        and not (after.kind is TokenKind.SYMBOL and after.text in _AFTER_COLUMN)
        for bracket, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )
