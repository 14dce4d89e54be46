"""Statements of a file of SQL, as Spark's own shell splits them."""

from __future__ import annotations

import re

_PART = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|;|[^;'"`\-/]+|.""",
    re.DOTALL,
)


def split_statements(text: str) -> list[str]:
    """Split at semicolons outside of text, names and comments; empty statements are left out.

    >>> split_statements("SELECT ';' -- a; b" + chr(10) + "; SELECT 2;")
    ["SELECT ';' -- a; b", 'SELECT 2']
    """
    found: list[str] = []
    words: list[str] = []
    is_empty = True
    for match in _PART.finditer(text):
        part = match[0]
        if part == ";":
            if not is_empty:
                found.append("".join(words).strip())
            words, is_empty = [], True
            continue
        words.append(part)
        is_empty = is_empty and (not part.strip() or part.startswith(("--", "/*")))
    if not is_empty:
        found.append("".join(words).strip())
    return found
