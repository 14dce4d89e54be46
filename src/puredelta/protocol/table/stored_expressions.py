"""SQL expressions that a table stores: CHECK constraints, invariants, generated columns, defaults.

Every writer executes these expressions in its own session, so they are tokenized first, as Spark's
lexer does, and searched for calls of unsafe functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from puredelta.protocol.schema.sql_lexer import (
    IDENTIFIERS,
    Token,
    TokenKind,
    keywords,
    tokenize,
    unquoted,
)
from puredelta.protocol.table.table_config import TableConfig

_REFLECTION = keywords("REFLECT JAVA_METHOD TRY_REFLECT")
"""Functions that call any method of any class in the session's JVM."""
_QUERY = keywords("SELECT WITH TABLE FROM")
_BETWEEN_VALUES = keywords("AND OR IS IN NOT LIKE ILIKE RLIKE REGEXP BETWEEN DIV")


def in_brackets(sql: str) -> str:
    r"""Return an expression as a part of another one; it may end in a comment.

    >>> in_brackets("a > 0 -- positive")
    '(a > 0 -- positive\n)'
    """
    return f"({sql}\n)" if "--" in sql else f"({sql})"


def stored_expressions(config: TableConfig) -> Mapping[str, str]:
    """Return every expression that a table stores, by what it is."""
    return {
        **{f"CHECK constraint {name}": sql for name, sql in config.check_constraints.items()},
        **{f"invariant of {'.'.join(path)}": sql for path, sql in config.invariants.items()},
        **{f"generated column {name}": sql for name, sql in config.generated_columns.items()},
        **{f"default of {name}": sql for name, sql in config.column_defaults.items()},
    }


def find_reflection(sql: str) -> str | None:
    """Return the first function that an expression calls to reach the JVM, however it is spelled.

    ``IDENTIFIER('...')`` may make any name, so it counts.

    >>> find_reflection("system.builtin.`Java_Method` /* x */ ('java.lang.System', 'exit', 1)")
    'Java_Method'
    >>> find_reflection("name <> 'reflect(1)'") is None
    True
    """
    tokens = tokenize(sql)
    for token, following in itertools.pairwise(tokens):
        if following.means("(") and token.kind in IDENTIFIERS:
            name = unquoted(token)
            if name.upper() in _REFLECTION or token.means("IDENTIFIER"):
                return name
    return None


def reaches_out(sql: str) -> bool:
    """Return whether an expression has a query, or ends the brackets that it is put into.

    >>> reaches_out("coalesce((SELECT max(salary) FROM staff), 0)")
    True
    >>> reaches_out("0) UNION ALL TABLE staff --")
    True
    """
    tokens = tokenize(in_brackets(sql))
    depth = 0
    for index, token in enumerate(tokens):
        depth += token.means("(") - token.means(")")
        if depth <= 0 and index < len(tokens) - 1:
            return True
        if token.means("(") and _begins_query(tokens[index + 1 :]):
            return True
    return depth != 0


def _begins_query(tokens: Sequence[Token]) -> bool:
    if not tokens or tokens[0].kind is not TokenKind.WORD:
        return False
    word = tokens[0].text.upper()
    if word == "SELECT":
        return True
    if word in {"MAP", "REDUCE"}:  # a query that runs a program
        return any(token.means("USING") for token in tokens)
    following = tokens[1]  # at least the bracket that closes
    is_name = following.kind in IDENTIFIERS and following.text.upper() not in _BETWEEN_VALUES
    return word in _QUERY and is_name
