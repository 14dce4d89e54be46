"""From a file of the table to the action that removes it."""

from __future__ import annotations

from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add, Remove


def remove_file(file: Add, *, deleted_ms: int, data_change: bool = True) -> Remove:
    """Build the tombstone of a file as the log knows it (X-13, X-14).

    Carries everything a later reader may need of it (size, partition, deletion vector, row
    ids), and of the statistics the row count alone, as the reference does: the bounds of
    rows that are gone serve nobody.

    ``data_change=False`` promises that all its rows are in files added by the same commit.
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
