"""What attributes of Spark's plans print: a call into the JVM for all of them, not for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_BETWEEN = "\N{UNIT SEPARATOR}\n"
"""In no name of a column that anybody would choose."""
_EXPR_ID = re.compile(r"#(\d+)L?$")


def texts(seq: Any) -> list[str]:
    """Return the text of every element of a Scala ``Seq``, none of which has an empty one."""
    text = str(seq.mkString(_BETWEEN))
    return text.split(_BETWEEN) if text else []


def expr_ids(attributes: Iterable[str]) -> list[int] | None:
    """Return the ids at the end of what attributes print; ``None`` if one has none. Pure.

    >>> expr_ids(["id#4L", "a#b#17"])
    [4, 17]
    """
    found = [_EXPR_ID.search(attribute) for attribute in attributes]
    return [int(match[1]) for match in found if match] if all(found) else None


def name_of(attribute: str) -> str:
    """Return what an attribute prints without its id.

    >>> name_of("a#b#17")
    'a#b'
    """
    return _EXPR_ID.sub("", attribute)
