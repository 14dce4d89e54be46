"""Statistics of a file of which rows are hidden: true bounds become wide ones (M-134, X-71).

With ``tightBounds`` false a reader takes the bounds for limits that no row need reach, and
a ``nullCount`` for exact only where it is zero or the number of *physical* rows. Everything
else in the text stays as it is, digit for digit.
"""

from __future__ import annotations

import json
from typing import Any


class _Verbatim(str):
    """A number in the spelling of its writer."""

    __slots__ = ()


def wide_statistics(text: str, *, num_hidden: int) -> str:
    """Return the statistics for a file that is about to get a deletion vector.

    ``num_hidden`` is how many rows a vector hides from readers now: where the bounds were
    tight, a column with NULLs in all others is NULL in every row that counts, and says so
    with the number of physical rows.

    >>> wide_statistics('{"numRecords":3,"maxValues":{"a":0.10}}', num_hidden=0)
    '{"numRecords":3,"maxValues":{"a":0.10},"tightBounds":false}'
    """
    content = json.loads(text, parse_float=_Verbatim, parse_constant=_Verbatim)
    rows = content["numRecords"]
    if num_hidden and content.get("tightBounds", True) and "nullCount" in content:
        content["nullCount"] = _null_counts(content["nullCount"], rows - num_hidden, rows)
    content["tightBounds"] = False
    return _dumped(content)


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
