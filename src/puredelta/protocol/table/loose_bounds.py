"""Statistics of a file that gets a deletion vector: tight bounds become loose (M-134, X-71).

If ``tightBounds`` is false, no row need reach the bounds, and a ``nullCount`` is exact only if it
is zero or the number of *physical* rows. The rest of the text is kept digit for digit.
"""

from __future__ import annotations

import json
from typing import Any

from puredelta.protocol.json_text import parse_json


class _Verbatim(str):
    """A number as its writer spelled it."""

    __slots__ = ()


def loosen_bounds(text: str, *, rows: int, num_deleted: int) -> str:
    """Return the statistics for a file that is about to get a deletion vector.

    ``rows`` is the number of rows in the file, which is all that is kept of broken statistics;
    ``num_deleted`` is the number of rows that the present vector deletes. A column that is NULL
    in all other rows gets the number of physical rows as its null count: with loose bounds,
    that means "only NULLs".

    >>> loosen_bounds('{"numRecords":3,"maxValues":{"a":0.10}}', rows=3, num_deleted=0)
    '{"numRecords":3,"maxValues":{"a":0.10},"tightBounds":false}'
    """
    try:
        parse_json(text)
    except ValueError:
        text = "{}"
    content = json.loads(text, parse_float=_Verbatim, parse_constant=_Verbatim)
    if num_deleted and content.get("tightBounds", True) and "nullCount" in content:
        content["nullCount"] = _null_counts(content["nullCount"], rows - num_deleted, rows)
    return _dumped({**content, "numRecords": rows, "tightBounds": False})


def _null_counts(counts: Any, visible: int, physical: int) -> Any:
    if isinstance(counts, dict):
        return {name: _null_counts(count, visible, physical) for name, count in counts.items()}
    return physical if counts == visible else counts


def _dumped(value: Any) -> str:
    match value:
        case _Verbatim():
            return str(value)
        case dict():
            members = (f"{_dumped(name)}:{_dumped(item)}" for name, item in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(_dumped, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
