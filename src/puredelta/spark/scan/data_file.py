"""Parquet files of a scan, the way to read them, and the files that Spark would lose silently."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, Message, UnsupportedError

is_odd_path = re.compile(r"^/|[%:\\]|//|(?:^|/)\.{1,2}(?:/|$)").search
"""Tells a path of the log that is more than names below the table's root."""
_QUOTED_BY_JAVA = re.compile(r"[^A-Za-z0-9_\-!.~'()*,;:$&+=/@\x80-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One Parquet file to read.

    ``size_bytes`` must be exact: Spark cuts a file into splits by it, and a size too small
    loses the rows at the end.
    """

    uri: str
    """Absolute and decoded, for example ``file:/data/my table/part-0.parquet``."""
    size_bytes: int
    modified_ms: int = 0
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    """By the scan's own column names; text as the log spells it (X-82, X-83)."""

    @property
    def name(self) -> str:
        """The last segment of the URI."""
        return self.uri.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLayout:
    """How files are read: which columns they have, and where each is found.

    Data columns are found by name (case ignored unless the session minds it), or by their
    metadata ``parquet.field.id``.
    """

    data_schema: T.StructType
    """The columns inside of the files."""
    partition_schema: T.StructType
    """The columns of `DataFile.partition_values`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of Spark's reader."""
    by_field_id: bool = False
    required: frozenset[str] = frozenset()
    """Columns that are NOT NULL: every row of every file has a value."""


def uri_in_java(uri: str) -> str:
    """Return a decoded URI as ``_metadata.file_path`` shows it: as Hadoop's ``Path.toUri`` does.

    >>> uri_in_java("file:/data/my table/x%.parquet")
    'file:/data/my%20table/x%25.parquet'
    """
    return _QUOTED_BY_JAVA.sub(lambda found: f"%{ord(found[0]):02X}", uri)


def with_required(schema: T.StructType, required: Collection[str]) -> T.StructType:
    """Return a schema in which these columns, and no others, are NOT NULL."""
    return T.StructType(
        [
            T.StructField(f.name, f.dataType, f.name not in required, f.metadata)
            for f in schema.fields
        ]
    )


def require_readable(files: Iterable[DataFile]) -> None:
    """Refuse files that Spark's file index drops silently or its file system cannot open.

    Raises:
        UnsupportedError: a hidden name, or a local name with a colon.
        CorruptTableError: a size that no Parquet file has.
    """
    for file in files:
        name = file.name
        # Spark's own rule: hidden, unless it looks like a partition directory.
        if name.startswith(".") or (name.startswith("_") and "=" not in name):
            raise UnsupportedError(Message.UNSUPPORTED_DATA_FILE_HIDDEN, path=file.uri)
        if ":" in name and file.uri.startswith("file:"):
            raise UnsupportedError(Message.UNSUPPORTED_DATA_FILE_COLON, path=file.uri)
        if file.size_bytes <= 0:
            raise CorruptTableError(
                Message.LOG_CORRUPTED_SMALL_FILE, path=file.uri, size_bytes=file.size_bytes
            )
