"""Parts of a text replaced by other text."""

from __future__ import annotations

from collections.abc import Iterable


def replaced(text: str, parts: Iterable[tuple[int, int, str]]) -> str:
    """Return the text with other text for its parts: start, end, new text, from left to right.

    >>> replaced("SELECT a, b", [(7, 8, "1"), (10, 11, "2")])
    'SELECT 1, 2'
    """
    result: list[str] = []
    at = 0
    for start, end, new in parts:
        result += [text[at:start], new]
        at = end
    return "".join([*result, text[at:]])
