"""Column names as text, helper columns, and the name of the Delta format.

Helper columns share one prefix that is refused for columns of users, so names never collide.
A stage that needs another helper column adds its name here.

Names are parsed by Spark's rules for attribute names
(``UnresolvedAttribute.parseAttributeName``), not those of SQL expressions: ``lower(a)`` is one odd
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.schema.sql_lexer import BACK_TICKED, without_back_ticks

PREFIX = "__puredelta_"

FILE_ORDINAL = "__puredelta_file"
"""The file of a row: index into the file table that was scanned (int)."""

ROW_INDEX = "__puredelta_row"
"""The position of a row in its file, deleted rows counted (long)."""

FILE_PATH = "__puredelta_file_path"
"""The location of a file as the session's own listing spells it."""

FILE_HASH = "__puredelta_file_hash"
"""Spark's ``xxhash64`` of `FILE_PATH` (long)."""

SOURCE_FILE = "__puredelta_source_file"
"""`FILE_ORDINAL` of a staged source row, beside that of a target row."""

SOURCE_ROW = "__puredelta_source_row"
"""`ROW_INDEX` of a staged source row; NULL where a target row has no match."""

CLAUSE = "__puredelta_clause"
"""The clause of a statement that fires for a row (int)."""

ROW_ID = "__puredelta_row_id"
"""The row id, which stays the same when a row moves (long)."""

ROW_COMMIT_VERSION = "__puredelta_row_commit_version"
"""The version in which such a table last changed a row (long)."""

BASE_ROW_ID = "__puredelta_base_row_id"
"""The row id of the first row of a file, as the log has it (long)."""

DEFAULT_COMMIT_VERSION = "__puredelta_default_commit_version"
"""The commit version of rows of a file that have none of their own (long)."""

DIRECTORY = "__puredelta_directory_"
"""Before the number of a partition column: its value as a directory has it, beside the column that
files of such a table hold (string)."""

METADATA = "_metadata"
"""Spark's hidden column of a row of files: a struct of what is known of its file."""

METADATA_OF_ROW = "__puredelta_metadata"
"""``_metadata`` with the id of a row, while a client's plan is sent (struct)."""

FILE_SIZE = "__puredelta_file_size"
"""The bytes of a file, as the log has them (long)."""

FILE_TIME = "__puredelta_file_time"
"""When a file was written, as the log has it: milliseconds since 1970 (long)."""

CHANGE = "__puredelta_change"
"""What a row of the change data feed tells; NULL in a row of the table (string)."""

IS_CHANGE = "__puredelta_is_change"
"""Tells files of the feed from files of the table while one job writes both (boolean)."""

MARK = "__puredelta_mark"
"""Prefix of boolean columns: whether a row is in a set of rows."""

ROW_SET = "__puredelta_row_set"
"""The set of rows that an aggregated record belongs to (int)."""

WORD = "__puredelta_word"
"""File ordinal and row index divided by 64, packed into one long."""

WORD_BITS = "__puredelta_bits"
"""The bits of the 64 rows of a word (long)."""

WORD_HITS = "__puredelta_hits"
"""The number of records in a word (long)."""

BIN = "__puredelta_bin"
"""The group of files of a row while files are brought together (int)."""

CURVE_PLACE = "__puredelta_curve_place"
"""The position of a row on a Z-order curve (long)."""


def require_no_helper_names(columns: Iterable[str]) -> None:
    """Refuse columns whose names start with our prefix (case ignored).

    Raises:
        InvalidRequestError: names the columns.
    """
    if taken := sorted(c for c in columns if c.lower().startswith(PREFIX)):
        raise InvalidRequestError(Message.RESERVED_COLUMN_NAME, prefix=PREFIX, columns=taken)


FAILED = "__puredelta_failed"
"""Whether a value that is computed for a source row while it is staged fails: 1, or NULL (int)."""


def staged_value_name(ordinal: int) -> str:
    """Return the name of the n-th value that is computed while source rows are staged."""
    return f"{PREFIX}k{ordinal}"


def source_column_name(ordinal: int) -> str:
    """Return the unique name of the n-th column of a MERGE source."""
    return f"{PREFIX}s{ordinal}"


def target_copy_name(ordinal: int) -> str:
    """Return the unique name of a second copy of the n-th column of a MERGE target."""
    return f"{PREFIX}t{ordinal}"


NO_SOURCE_COLUMN = "__puredelta_s"
"""The only column of a staged source of which nothing is read."""


_PART = re.compile(f"{BACK_TICKED}|[^.`]*")
_PLAIN = re.compile(r"(?!\d+\Z)[a-zA-Z0-9_]+")


def parse_name(text: str) -> tuple[str, ...]:
    """Split ``a.`b.c`.d`` into its parts.

    Raises:
        InvalidRequestError: a back-tick is misplaced.

    Examples:
        >>> parse_name("t.`a.b`")
        ('t', 'a.b')
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None:  # cannot be: the pattern matches the empty text
            break
        part = match[0]
        parts.append(without_back_ticks(part) if part.startswith("`") else part)
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    raise InvalidRequestError(Message.INVALID_ATTRIBUTE_NAME_SYNTAX, attribute_name=text)


def quote(part: str) -> str:
    """Return one part in back-ticks."""
    return "`" + part.replace("`", "``") + "`"


def quote_name(parts: Iterable[str]) -> str:
    """Return ``a.b.c`` with every part in back-ticks: safe in any position."""
    return ".".join(quote(p) for p in parts)


def display_name(parts: Iterable[str]) -> str:
    """Return ``a.b.c`` with back-ticks only where they are needed, as messages show names."""
    return ".".join(p if _PLAIN.fullmatch(p) else quote(p) for p in parts)


FORMAT = "delta"
"""As catalog entries spell it."""
_DEFAULT_FORMAT = "spark.sql.sources.default"


# As Hadoop's Path.isAbsolute: the path after an optional scheme and host begins with a slash.
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")
SESSION_CATALOG = "spark_catalog"


def path_in_name(parts: Sequence[str]) -> str | None:
    """Return the path of the parts of ``delta.`/path` ``; None for the name of a table.

    >>> path_in_name(("spark_catalog", "delta", "s3a://bucket/t"))
    's3a://bucket/t'
    """
    if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:  # noqa: PLR2004
        parts = parts[1:]
    match parts:
        case (format_name, path) if format_name.lower() == FORMAT and _ABSOLUTE.match(path):
            return path
        case _:
            return None


def is_delta(spark: SparkSession, *names: str | None) -> bool:
    """Return whether the format is Delta: the first that is named, or the session's default."""
    name = next((name for name in names if name is not None), None)
    if name is None:
        name = spark.conf.get(_DEFAULT_FORMAT, None)
    return (name or "").lower() == FORMAT
