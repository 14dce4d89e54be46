"""Rows parked in files of our own for the length of one command.

A plan that is costly or not deterministic is run once and read back as often as needed.
The directory lies under the table root, so whoever can write the table can stage, and it
is hidden, so no reader and no VACUUM takes its files for the table's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from puredelta.log.clock import IdSource, random_id
from puredelta.log.file_stats import LeafPath, LeafStatistics, StatisticsReader, combined
from puredelta.log.parquet_footer import map_footers
from puredelta.spark.data_file import DataFile
from puredelta.spark.parquet_job import named_failures, removed_on_failure, run_parquet_job
from puredelta.spark.types import from_spark
from puredelta.spark.write_session import write_session
from puredelta.store.base import Store

STAGING_PREFIX = "_puredelta_staging-"
"""Of directories under the table root: hidden, and recognisable when a driver died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Rows in hidden files under the table root; `remove` them whatever happens.

    Or rows in files of somebody else, which stay (`puredelta.spark.source_files`).
    """

    directory: str | None
    """Relative to the table root; ``None``: the files are not ours."""
    files: tuple[DataFile, ...]
    """Files that hold rows."""
    row_counts: tuple[int, ...]
    """Of each file."""
    columns: Mapping[LeafPath, LeafStatistics]
    """What is known of each leaf over all rows; a leaf of which nothing is known is absent.
    Of files that are not ours only the leaves asked for are described."""

    @property
    def num_rows(self) -> int:
        """Of all files."""
        return sum(self.row_counts)

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)

    def remove(self, store: Store) -> None:
        """Delete the directory, as far as storage lets us."""
        if self.directory is None:
            return
        with contextlib.suppress(OSError):
            store.delete_tree(self.directory)


def stage_rows(rows: DataFrame, *, store: Store, new_id: IdSource = random_id) -> StagedRows:
    """Write ``rows`` once and describe them; runs one Spark job.

    Raises:
        DeltaError: the storage refused (WRITE_FAILED), or whatever the rows raised. Nothing
            is left behind.
    """
    directory = f"{STAGING_PREFIX}{new_id()}"
    with write_session(rows) as bound:
        stored = run_parquet_job(bound, directory, store=store)
    reader = StatisticsReader(from_spark(rows.schema))
    with removed_on_failure(directory, store), named_failures(f"{store.root_uri}/{directory}"):
        described = list(
            map_footers(
                stored,
                lambda _, footer: (footer.num_rows, reader.leaves(footer)),
                open_source=lambda file: store.open(file.path),
                name=lambda file: file.path,
            )
        )
    counted = zip(stored, (num_rows for num_rows, _ in described), strict=True)
    full = [(file, num_rows) for file, num_rows in counted if num_rows]
    return StagedRows(
        directory=directory,
        files=tuple(
            DataFile(
                uri=f"{store.root_uri}/{file.path}",
                size_bytes=file.size_bytes,
                modified_ms=file.modified_ms,
            )
            for file, _ in full
        ),
        row_counts=tuple(num_rows for _, num_rows in full),
        columns=combined(described),
    )
