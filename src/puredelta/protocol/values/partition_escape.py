"""Partition columns and values as names of directories, escaped as Hive and Spark do (X-84).

Directory names are cosmetic: readers take the values from the log. Only CONVERT reads them back,
because it finds nothing else. Paths in the log are percent-encoded on top of this escaping
(`puredelta.protocol.actions.paths.encode_path`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory name that stands for null, as Hive and Spark write it (C-43)."""

_ESCAPED = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")


def escape_partition_text(text: str) -> str:
    """Return a column name or value as it stands inside a directory name.

    >>> escape_partition_text("10:30 a/b")
    '10%3A30 a%2Fb'
    """
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def unescape_partition_text(text: str) -> str:
    """Undo `escape_partition_text`; a ``%`` without two hex digits is kept (C-42)."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)


def partition_directory(values: Iterable[tuple[str, str | None]]) -> str:
    """Return ``col=value/...`` for column names and values in partitioning order (X-84).

    >>> partition_directory([("p", "a b"), ("q", None)])
    'p=a b/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{escape_partition_text(name)}={escape_partition_text(text) if text else HIVE_NULL}"
        for name, text in values
    )
