"""A copy of some rows in files of their own, for the length of one command.

A plan that is costly or not deterministic is run once and read back as often as needed.
The directory lies under the table root, so a user who can write the table can stage. Its name is
hidden, so no reader and no VACUUM takes its files for the table's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.file_stats import StatisticsReader, combined
from puredelta.log.maintenance.garbage import STAGING_PREFIX
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.types import from_spark
from puredelta.spark.write.arrow_job import ArrowJob, run_arrow_job
from puredelta.spark.write.parquet_job import (
    named_failures,
    removed_on_failure,
    run_parquet_job,
    write_session,
)
from puredelta.store.base import Store
from puredelta.store.registry import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Rows in hidden files under the table root; `remove` them in any case.

    Or rows in files of the user's, which stay (`puredelta.spark.source.in_place`).
    """

    directory: str | None
    """Relative to the table root; ``None``: the files are the user's."""
    files: tuple[DataFile, ...]
    """Files that hold rows."""
    group_rows: tuple[tuple[int, ...], ...]
    """How many rows each row group of each file has."""
    columns: Mapping[LeafPath, LeafStatistics]
    """The statistics of each leaf over all rows; a leaf without statistics is absent. Of the
    user's files only the leaves asked for are described."""
    only_spark: bool = False
    """Whether the files are encrypted: Arrow reads none, and nothing but the rows is known."""
    open_at: Callable[[str], Store] = field(default=open_store, repr=False)
    """Opens a directory with the settings of the session."""

    @property
    def row_counts(self) -> tuple[int, ...]:
        """How many rows each file has."""
        return tuple(map(sum, self.group_rows))

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


def stage_rows(
    rows: DataFrame,
    *,
    store: Store,
    options: Mapping[str, str] | None = None,
    new_id: IdSource = random_id,
) -> StagedRows:
    """Write ``rows`` once and describe them; runs one Spark job, and one that counts rows where
    the files are encrypted. ``options`` are those of Parquet's writer.
    """
    directory = f"{STAGING_PREFIX}{new_id()}"
    if data_io(rows.sparkSession, [store.root_uri]) is DataIo.ARROW:
        return _staged_by_arrow(rows, directory, store)
    with write_session(rows) as bound:
        job = run_parquet_job(bound, directory, store=store, options=options)
    reader = StatisticsReader(from_spark(rows.schema))
    with removed_on_failure([directory], store), named_failures(f"{store.root_uri}/{directory}"):
        described = job.described(
            job.files,
            store,
            by_footer=lambda _, footer: (group_rows(footer), reader.leaves(footer)),
            by_count=lambda _, num_rows: ((num_rows,), None),
        )
        job.require_rows(sum(sum(groups) for groups, _ in described))
    counted = zip(job.files, (groups for groups, _ in described), strict=True)
    full = [(file, groups) for file, groups in counted if sum(groups)]
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
        group_rows=tuple(groups for _, groups in full),
        columns=combined((sum(groups), leaves or {}) for groups, leaves in described),
        only_spark=any(leaves is None for _, leaves in described),
        open_at=store.at,
    )


def _staged_by_arrow(rows: DataFrame, directory: str, store: Store) -> StagedRows:
    schema = from_spark(rows.schema)
    written = run_arrow_job(rows, ArrowJob(store=store, directory=directory, schema=schema))
    reader = StatisticsReader(schema)
    footers = [pq.read_metadata(pa.BufferReader(one.footer)) for one in written.values()]
    nan_leaves = [one.nan_columns for one in written.values()]
    return StagedRows(
        directory=directory,
        files=tuple(
            DataFile(
                uri=f"{store.root_uri}/{path}",
                size_bytes=answer.size_bytes,
                modified_ms=answer.modified_ms,
            )
            for path, answer in written.items()
        ),
        group_rows=tuple(map(group_rows, footers)),
        columns=combined(
            (footer.num_rows, reader.leaves(footer, nan_leaves=leaves))
            for footer, leaves in zip(footers, nan_leaves, strict=True)
        ),
        open_at=store.at,
    )


def group_rows(footer: pq.FileMetaData) -> tuple[int, ...]:
    """Return how many rows each row group has."""
    return tuple(footer.row_group(n).num_rows for n in range(footer.num_row_groups))
