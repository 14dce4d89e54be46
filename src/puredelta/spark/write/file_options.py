"""How the rows of one job are cut into files, and how the files are compressed; no row changes."""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """The options of one job; the defaults are what the session says."""

    rows_max: int = 0
    """A file has no more rows; 0: as many as the session says."""
    codec: str | None = None
    """By Spark's name; ``None``: the table's, or the session's."""
    bin_bytes: int | None = None
    """Rows are brought together first, into files of about so many bytes of shuffled rows
    (M-141); ``None``: every task writes what it has.
    """

    @property
    def writer_options(self) -> dict[str, str]:
        """The options of Spark's Parquet writer.

        >>> FileOptions(rows_max=10, codec="zstd").writer_options
        {'compression': 'zstd', 'maxRecordsPerFile': '10'}
        """
        options = {} if self.codec is None else {"compression": self.codec}
        return {**options, "maxRecordsPerFile": str(self.rows_max)} if self.rows_max else options

    @property
    def session_settings(self) -> dict[str, str]:
        """What Spark's planner is told, so that files get the wanted size."""
        if self.bin_bytes is None:
            return {}
        smallest = min(self.bin_bytes, _MB)
        return {
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.adaptive.coalescePartitions.enabled": "true",
            "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{self.bin_bytes}b",
            "spark.sql.adaptive.coalescePartitions.minPartitionSize": f"{smallest}b",
            "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
        }


SESSION_FILES = FileOptions()
"""What the session says, and no more."""
