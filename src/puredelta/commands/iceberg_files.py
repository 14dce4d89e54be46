"""Data files that do not keep the rules of IcebergCompat, found by their footers.

A table that begins to keep the rules has files from before: REORG ... UPGRADE UNIFORM writes them
again, and other statements refuse to begin while there are such files.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from puredelta.errors import Message, UnsupportedError
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.parquet_footer import map_footers, read_end_of
from puredelta.log.files.row_counts import physical_rows
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.iceberg_compat import is_tagged, require_iceberg_files
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import Store
from puredelta.worker.read_rows import lacking

_INT96 = "INT96"


def violating_files(
    files: FileTable, config: TableConfig, store: Store
) -> Iterator[tuple[Add, str]]:
    """Yield the files that do not keep the rules of a table, each with what it lacks.

    One request for a file without a deletion vector and with a row count, and none for a file
    whose writer says by a tag that it keeps the rules of the version; lazily.
    """
    rest = []
    for add in files.adds():
        if (reason := _shown_by_log(add)) is not None:
            yield add, reason
        elif not is_tagged(add, config.iceberg_compat):
            rest.append(add)
    found = map_footers(
        range(len(rest)),
        lambda _, footer: _lacking(footer, config),
        read_end=lambda n, num_bytes: read_end_of(rest[n], store, num_bytes),
        name=lambda n: rest[n].path,
    )
    for number, lacks in enumerate(found):
        if lacks is not None:
            yield rest[number], lacks


def require_kept_rules(files: FileTable, config: TableConfig, store: Store) -> None:
    """Require that each file keeps the rules of the table that is to begin with them.

    Raises:
        UnsupportedError: one does not (DELTA_ICEBERG_COMPAT_VIOLATION).
    """
    require_iceberg_files(files.adds(), config)
    first = next(violating_files(files, config, store), None)
    if first is not None:
        add, lacks = first
        raise UnsupportedError(
            Message.ICEBERG_COMPAT_CHANGE_VERSION_NEED_REWRITE,
            version=config.iceberg_compat,
            path=add.path,
            lacks=lacks,
        )


def _shown_by_log(add: Add) -> str | None:
    """Say why the log itself shows that a file does not keep the rules; ``None``: it does not."""
    if add.deletion_vector is not None:
        return "has a deletion vector"
    if physical_rows(add) is None:
        return "has no row count"
    return None


def _lacking(footer: pq.FileMetaData, config: TableConfig) -> str | None:
    with_ids = config.columns_with_ids
    columns = config.materialized_partition_columns
    schema = pq.ParquetSchema(footer)
    for leaf in (schema.column(n) for n in range(len(schema))):
        if leaf.physical_type == _INT96 and leaf.path.split(".", 1)[0] in with_ids:
            return f"has 96 bits in the timestamps of column {leaf.path}"
    return lacking(footer.schema.to_arrow_schema(), columns, with_ids)
