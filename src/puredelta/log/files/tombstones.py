"""Tombstones: the action that removes a file of the table."""

from __future__ import annotations

from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add, Remove


def remove_file(file: Add, *, deleted_ms: int, data_change: bool = True) -> Remove:
    """Return the tombstone of an active file (X-13, X-14).

    It has everything that a later reader may need: size, partition values, deletion vector and
    row ids. Of the statistics it has the row count alone, as in delta-spark, because bounds of
    removed rows are useless.

    ``data_change=False`` promises that the same commit adds all rows of the file elsewhere.
    """
    rows = physical_rows(file)
    return Remove(
        path=file.path,
        deleted_ms=deleted_ms,
        data_change=data_change,
        extended_file_metadata=True,
        partition_values=file.partition_values,
        size_bytes=file.size_bytes,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )
