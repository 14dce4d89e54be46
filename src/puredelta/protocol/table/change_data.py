"""The change data feed in the protocol: its columns, kinds of change and files.

Readers and writers of the feed share this module (sections "Change Data Files" and "Add CDC File").
If a commit has any change file, readers use its change files alone. So a writer that records one
change of a commit must record all of them (M-123).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum

from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.actions.actions import Add, AddChangeFile, CommitInfo
from puredelta.protocol.actions.log_paths import CHANGE_DATA_DIRECTORY
from puredelta.protocol.actions.paths import decode_path, encode_path, is_absolute_path
from puredelta.protocol.features.column_mapping import PHYSICAL_NAME
from puredelta.protocol.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType

CHANGE_TYPE = "_change_type"
"""What happened to a row. Change files have it as their last column, data files never."""

COMMIT_VERSION = "_commit_version"
"""The version that changed the row. Readers take it from the log, no file has it."""

COMMIT_TIMESTAMP = "_commit_timestamp"
"""When that version was committed. Readers take it from the log, no file has it."""

CHANGE_FILE_PREFIX = "cdc-"
_DATA_FILE_PREFIX = "part-"

_MERGE_CHANGE_COUNTS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


class ChangeType(Enum):
    """The values of `CHANGE_TYPE`."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"


CHANGE_TYPE_FIELD = StructField(CHANGE_TYPE, STRING)
COMMIT_FIELDS = (StructField(COMMIT_VERSION, LONG), StructField(COMMIT_TIMESTAMP, TIMESTAMP))


def change_schema(schema: StructType) -> StructType:
    """Return the columns of the feed of a table: its own and the three of the feed.

    The three have the same names in files, whatever the column mapping of the table.

    >>> change_schema(StructType((StructField("id", LONG),))).names
    ('id', '_change_type', '_commit_version', '_commit_timestamp')
    """
    own = (CHANGE_TYPE_FIELD, *COMMIT_FIELDS)
    named = (replace(field, metadata={PHYSICAL_NAME: field.name}) for field in own)
    return StructType((*schema.fields, *named))


def find_change_columns(columns: Collection[str]) -> list[str]:
    """Return the names among ``columns`` that are reserved for the feed, ignoring case."""
    reserved = {CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP}
    return [name for name in columns if name.lower() in reserved]


def require_no_change_columns(columns: Collection[str], *, was_enabled: bool) -> None:
    """Refuse a table with the feed if its own columns have names of the feed.

    Call it before the metadata of a table with the feed changes; ``was_enabled`` says whether the
    feed was on before.

    Raises:
        InvalidRequestError: names the columns (RESERVED_CDC_COLUMNS_ON_WRITE if the feed was
            on, else TABLE_ALREADY_CONTAINS_CDC_COLUMNS).
    """
    taken = find_change_columns(columns)
    if not taken:
        return
    if was_enabled:
        raise InvalidRequestError(
            Message.RESERVED_CDC_COLUMNS_ON_WRITE_CHANGE_COLUMNS, columns=taken
        )
    raise InvalidRequestError(Message.TABLE_ALREADY_CONTAINS_CDC_COLUMNS, columns=taken)


def change_file_path(data_path: str) -> str:
    """Return the path of a change file for the path of a data file (M-122).

    Both paths are real paths, relative to the table root. Directories are kept, so that files of
    several jobs do not collide and partition directories stay below ``_change_data``.

    >>> change_file_path("job-7/p=a b/part-00000-x.c000.snappy.parquet")
    '_change_data/job-7/p=a b/cdc-00000-x.c000.snappy.parquet'
    """
    directory, slash, name = data_path.rpartition("/")
    stem = name.removeprefix(_DATA_FILE_PREFIX)
    return f"{CHANGE_DATA_DIRECTORY}/{directory}{slash}{CHANGE_FILE_PREFIX}{stem}"


def change_file(written: Add, *, path: str | None = None) -> AddChangeFile:
    """Return the action for change rows that were written like a data file.

    ``path`` is the real path of the file, relative to the table root. The default is the
    `change_file_path` of the path that it was written to.

    Raises:
        ValueError: the file is outside of the table.
    """
    if path is None:
        if is_absolute_path(written.path):
            raise ValueError(f"a change file lies below its table, not at {written.path}")
        path = change_file_path(decode_path(written.path))
    return AddChangeFile(
        path=encode_path(path),
        partition_values=written.partition_values,
        size_bytes=written.size_bytes,
    )


def changed_no_rows(info: CommitInfo | None) -> bool:
    """Return whether the metrics of a commit say that it changed no row (M-125).

    MERGE may replace files without changing a row; then its counts are all ``"0"``. A missing
    count proves nothing.
    """
    if info is None or info.operation != "MERGE":
        return False
    metrics = info.operation_metrics or {}
    return all(metrics.get(name) == "0" for name in _MERGE_CHANGE_COUNTS)
