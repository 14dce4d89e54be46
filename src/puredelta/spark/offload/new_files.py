"""New data files as the log describes them, by what the workers that wrote them answer."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.footers.file_stats import TableStatistics
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.paths import encode_path
from puredelta.worker.write_file import FileAnswer


def added_file(
    answer: FileAnswer,
    path: str,
    partition_values: Mapping[str, str | None],
    statistics: TableStatistics,
) -> Add:
    """Return the action that adds a file; ``path`` is relative to the table root, unescaped."""
    footer = pq.read_metadata(pa.BufferReader(answer.footer))
    return Add(
        path=encode_path(path),
        partition_values=partition_values,
        size_bytes=answer.size_bytes,
        modified_ms=answer.modified_ms,
        data_change=True,
        stats=statistics.encode(footer, nan_leaves=answer.nan_columns),
    )
