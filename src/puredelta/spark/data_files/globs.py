"""Paths for Spark's readers, which take every path for a glob pattern."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[\\{}\[\]*?]")


def as_glob(path: str) -> str:
    r"""Return the pattern that matches this path alone.

    >>> print(as_glob("file:/data/a[1]*.parquet"))
    file:/data/a\[1\]\*.parquet
    """
    return _SPECIAL.sub(r"\\\g<0>", path)
