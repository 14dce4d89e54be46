"""A copy of some rows in files of their own, for the length of one command.

A plan that is costly or not deterministic is run once and read back as often as needed.
The directory lies under the table root, so a user who can write the table can stage. Its name is
hidden, so no reader and no VACUUM takes its files for the table's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from puredelta.errors import DeltaError
from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.file_stats import StatisticsReader, combined
from puredelta.log.maintenance.garbage import STAGING_PREFIX
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.session.data_access import DataIo, data_io
from puredelta.spark.session.session import is_connect, seen_files
from puredelta.spark.session.types import from_spark
from puredelta.spark.write.arrow_job import ArrowJob, run_arrow_job
from puredelta.spark.write.parquet_job import (
    FileOptions,
    ParquetJob,
    named_failures,
    note_plain_files,
    removed_on_failure,
    run_parquet_job,
    write_session,
)
from puredelta.spark.write.writer_settings import WriterSettings, parquet_settings_of_server
from puredelta.store.base import Store
from puredelta.store.registry import open_store

_WHOLE_TEXTS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"})
"""Encodings of texts one after the other, and of levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Rows in hidden files under the table root; `remove` them in any case.

    Or rows in files of the user, which stay (`puredelta.commands.dml.staged_source`).
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
    text_bytes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    """What the texts of a column take in each file, decoded; ``None`` where its footer does not
    tell."""
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
        return _staged_by_arrow(rows, directory, store, options or {})
    with write_session(rows) as bound:
        job = _run(bound, directory, store, options or {})
    reader = StatisticsReader(from_spark(rows.schema))
    with removed_on_failure([directory], store), named_failures(f"{store.root_uri}/{directory}"):
        described = job.described(
            job.files,
            store,
            by_footer=lambda _, footer: (
                group_rows(footer),
                reader.leaves(footer),
                text_bytes(footer),
            ),
            by_count=lambda _, num_rows: ((num_rows,), None, {}),
        )
        job.require_rows(sum(sum(groups) for groups, *_ in described))
    seen_files(rows.sparkSession).update(f"{store.root_uri}/{file.path}" for file in job.files)
    has_options = bool(options or _options_of_server.get(rows.sparkSession))
    if described and not has_options and all(leaves is not None for _, leaves, _ in described):
        note_plain_files(rows.sparkSession)
    full = [
        (file, groups, texts)
        for file, (groups, _, texts) in zip(job.files, described, strict=True)
        if sum(groups)
    ]
    return StagedRows(
        directory=directory,
        files=tuple(
            DataFile(
                uri=f"{store.root_uri}/{file.path}",
                size_bytes=file.size_bytes,
                modified_ms=file.modified_ms,
            )
            for file, *_ in full
        ),
        group_rows=tuple(groups for _, groups, _ in full),
        columns=combined((sum(groups), leaves or {}) for groups, leaves, _ in described),
        only_spark=any(leaves is None for _, leaves, _ in described),
        text_bytes=texts_of_files([texts for *_, texts in full]),
        open_at=store.at,
    )


_options_of_server: WeakKeyDictionary[SparkSession, Mapping[str, str]] = WeakKeyDictionary()
"""What a server's XML files make necessary, for servers that have refused staged rows."""


def _run(rows: DataFrame, directory: str, store: Store, options: Mapping[str, str]) -> ParquetJob:
    """Write staged rows by Spark, encrypted as a whole if a server names keys for columns.

    Its XML files are in no answer. They are asked for when it refuses rows, because a column is
    missing for which they name a key.
    """
    spark = rows.sparkSession
    known = _options_of_server.get(spark, {})
    try:
        return run_parquet_job(rows, directory, store=store, options={**known, **options})
    except (DeltaError, PySparkException):
        if not is_connect(spark) or spark in _options_of_server:
            raise
        found = WriterSettings.parse(parquet_settings_of_server(spark))
        if not found.encrypts:
            raise
        _options_of_server[spark] = more = found.staged
        return run_parquet_job(rows, directory, store=store, options={**more, **options})


def _staged_by_arrow(
    rows: DataFrame, directory: str, store: Store, options: Mapping[str, str]
) -> StagedRows:
    schema = from_spark(rows.schema)
    job = ArrowJob(
        store=store, directory=directory, schema=schema, files=FileOptions(parquet=options)
    )
    written = run_arrow_job(rows, job)
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
        text_bytes=texts_of_files([text_bytes(footer) for footer in footers]),
        open_at=store.at,
    )


def group_rows(footer: pq.FileMetaData) -> tuple[int, ...]:
    """Return how many rows each row group has."""
    return tuple(footer.row_group(n).num_rows for n in range(footer.num_row_groups))


def text_bytes(
    footer: pq.FileMetaData, leaves: Sequence[int] | None = None
) -> Mapping[str, int | None]:
    """Return what the texts of columns take, decoded; ``None`` where the footer tells less.

    ``leaves`` are the places of the columns; ``None``: all.

    A dictionary has each text once, and differences are shorter than texts.
    """
    found: dict[str, int | None] = {}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(footer.num_columns) if leaves is None else leaves):
            if chunk.physical_type == "BYTE_ARRAY":
                path = chunk.path_in_schema
                is_whole = _WHOLE_TEXTS.issuperset(chunk.encodings)
                before = found.get(path, 0)
                size = chunk.total_uncompressed_size if is_whole else None
                found[path] = None if before is None or size is None else before + size
    return found


def texts_of_files(
    files: Sequence[Mapping[str, int | None]],
) -> Mapping[str, tuple[int | None, ...]]:
    """Return what `text_bytes` tells of several files, by column."""
    names = dict.fromkeys(name for file in files for name in file)
    return {name: tuple(file.get(name) for file in files) for name in names}
