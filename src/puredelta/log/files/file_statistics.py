"""The parsed statistics of some columns of many files, as a value.

A statement needs the same columns of the same files several times: for every rule that skips
files, and to look up keys in the files that are left. Each of these steps passes on what it has
parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import ReadStatistics, read_stats_columns
from puredelta.log.files.stats_json import Path, StatisticsColumn, StatsColumns
from puredelta.protocol.schema.types import DataType


@dataclass(frozen=True, slots=True, eq=False)
class FileStatistics:
    """Statistics of the files of one `FileTable`: every column has one element per file.

    Bounded by the columns that predicates refer to, three values a file each.
    """

    num_records: pa.Array | None = None
    """Physical rows; ``None`` before anything is parsed."""
    columns: Mapping[tuple[Path, DataType], StatisticsColumn] = field(default_factory=dict)

    def parsed(
        self,
        files: FileTable,
        leaves: Mapping[Path, DataType],
        *,
        parse: ReadStatistics = read_stats_columns,
    ) -> FileStatistics:
        """Return these statistics with the ones of ``leaves``; only missing ones are parsed.

        ``files`` are those that the statistics are of. ``leaves`` maps physical paths to the
        columns' current types.
        """
        missing = {path: kind for path, kind in leaves.items() if (path, kind) not in self.columns}
        if self.num_records is not None and not missing:
            return self
        new = parse(files.rows["stats"], missing)
        found = {(path, kind): new.leaves[path] for path, kind in missing.items()}
        return FileStatistics(new.num_records, {**self.columns, **found})

    def of(self, leaves: Mapping[Path, DataType]) -> StatsColumns:
        """Return the statistics of ``leaves``; all of them must be parsed."""
        found = {path: self.columns[path, kind] for path, kind in leaves.items()}
        return StatsColumns(self.num_records, found)

    def select(self, mask: pa.Array) -> FileStatistics:
        """Return the statistics of the files where ``mask`` is true."""
        if self.num_records is None:
            return self
        return FileStatistics(
            self.num_records.filter(mask),
            {
                key: StatisticsColumn(
                    low=None if column.low is None else column.low.filter(mask),
                    high=None if column.high is None else column.high.filter(mask),
                    null_count=column.null_count.filter(mask),
                )
                for key, column in self.columns.items()
            },
        )


NOTHING_PARSED = FileStatistics()
