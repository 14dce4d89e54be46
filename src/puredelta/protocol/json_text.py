"""JSON of a log: text by anybody, which may be nested without end."""

from __future__ import annotations

import json
from typing import Any

NESTING_MAX = 100
"""Arrays and objects inside each other. What walks the values calls itself for every level."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or is nested more deeply than `NESTING_MAX`.
    """
    content = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise _too_deep() from error
    if content.count("{") + content.count("[") > NESTING_MAX:
        _require_shallow(value)
    return value


def _require_shallow(value: Any) -> None:
    level = [value]
    for _ in range(NESTING_MAX + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {NESTING_MAX} levels deep")
