"""What a name on the command line means to SQL: a path, or a name of the catalog."""

from __future__ import annotations

import re
from pathlib import Path

from puredelta.store.registry import has_scheme

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


def quoted(name: str) -> str:
    """Return a name in backquotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def table_name(text: str) -> str:
    """Return a table as SQL names it; a path becomes absolute.

    >>> table_name("s3://b/t"), table_name("db.events"), table_name("delta.`/t`")
    ('delta.`s3://b/t`', '`db`.`events`', 'delta.`/t`')
    """
    return format_name(text, "delta")


def format_name(text: str, source: str) -> str:
    """Return a table, or files of a format, as SQL names them.

    >>> format_name("/data/a", "parquet")
    'parquet.`/data/a`'
    """
    if "`" in text:
        return text  # as SQL has it already
    if _NAME.fullmatch(text) and not Path(text).exists():
        return ".".join(quoted(part) for part in text.split("."))
    place = text if has_scheme(text) else str(Path(text).absolute())
    return f"{source}.{quoted(place)}"
