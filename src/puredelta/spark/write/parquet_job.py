"""One Spark job that writes Parquet files into a directory of its own.

The directory is new, nothing else writes there and nothing is renamed afterwards: the
files of the job are the listing of the directory once the job has succeeded. What the job
leaves when it fails is removed.

The driver's listing is believed, so executors must see the same directory. Where they are other
machines the rows that their tasks report are compared with those that are there. Over Connect it
is the client that lists: the server is asked first whether it sees what the client writes.

These settings are no writer options: Spark takes them from the session. A classic session
is cloned for the length of one job, so the user's own is never touched. In two cases they are
set and put back under a lock: on Spark Connect, where no session can be cloned, and for rows that
have an ``Observation``, which would get no metrics from a clone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from puredelta.errors import CorruptTableError, DeltaError, Message
from puredelta.log.files.clock import random_id
from puredelta.log.files.parquet_footer import NoFooterError, map_footers
from puredelta.log.maintenance.garbage import STAGING_PREFIX
from puredelta.protocol.actions.paths import short_uri
from puredelta.spark.connect.messages import not_streaming, settings_for_a_while
from puredelta.spark.jvm.frames import logical_plan, rebound
from puredelta.spark.jvm.gateway import JVM_ERRORS, insist
from puredelta.spark.jvm.jobs import CountedWrite
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.data_access import DataIo, as_glob, data_io, require_shared_root
from puredelta.spark.session.pyspark_errors import take_spark_class
from puredelta.spark.session.session import is_connect, runs_here, settings_of
from puredelta.spark.values.row_errors import decode_row_error
from puredelta.store.base import StorageError, Store, StoredFile

T = TypeVar("T")
CountRows = Callable[[Sequence[str]], Mapping[str, int]]

logger = logging.getLogger(__name__)

_ENCRYPTING_SERVERS: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
_SUFFIX = ".parquet"
_NUM_ROWS = "num_rows"
_PATH = "path"
_EVERY_ROW: Mapping[str, str] = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "recursiveFileLookup": "true",  # no columns from the names of directories
    "mergeSchema": "false",
}

_WRITER_OPTIONS: Mapping[str, str] = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Version 2 lets a retried task leave files twice, and the listing is what we believe.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "parquet.summary.metadata.level": "NONE",
    # Without it a column with one long value has neither bounds nor a count of its NULLs.
    "parquet.statistics.truncate.length": "1024",
}

_STORAGE_FAILURE = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"
    r"|Mkdirs failed to create [^\n]*|Parent path is not a directory[^\n]*"
    r"|File name too long|Input/output error"
)
_NAME_BYTES_MAX = 255
_SHOWN = 40
_MISSING_MODULE = re.compile(r"No module named '(pyarrow)\b[^\n]*")


@dataclass(frozen=True, slots=True)
class _ByFooter(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetJob:
    """The result of a write job."""

    files: tuple[StoredFile, ...]
    """By path."""
    location: str
    reported_rows: int | None = None
    """How many rows the tasks say they have written; None: they are threads of the driver, or
    the number is unknown."""
    count: CountRows | None = field(default=None, repr=False)
    """Counts the rows of files, given by URI, whose footers only Spark reads: they are encrypted.
    Runs one Spark job."""

    def described(
        self,
        files: Sequence[StoredFile],
        store: Store,
        *,
        by_footer: Callable[[StoredFile, pq.FileMetaData], T],
        by_count: Callable[[StoredFile, int], T],
    ) -> list[T]:
        """Describe files of the job by their footers, and encrypted ones by how many rows they
        have, which one Spark job counts. ``files`` may have been moved.

        Raises:
            CorruptTableError: a file is not Parquet.
        """

        def recover(file: StoredFile, error: CorruptTableError) -> StoredFile:
            if not (isinstance(why := error.__cause__, NoFooterError) and why.is_encrypted):
                raise error
            return file

        def described(file: StoredFile, footer: pq.FileMetaData) -> StoredFile | _ByFooter[T]:
            return _ByFooter(by_footer(file, footer))

        found: list[StoredFile | _ByFooter[T]] = list(
            map_footers(
                files,
                described,
                read_end=lambda file, num_bytes: store.read_end(file.path, num_bytes),
                name=lambda file: file.path,
                recover=recover,
            )
        )
        uris = [
            f"{store.root_uri}/{file.path}" for file in found if not isinstance(file, _ByFooter)
        ]
        counts = self.count(uris) if uris and self.count is not None else {}
        return [
            one.value
            if isinstance(one, _ByFooter)
            else by_count(one, counts.get(f"{store.root_uri}/{one.path}", 0))
            for one in found
        ]

    def require_rows(self, num_rows: int) -> None:
        """Check how many rows the files hold, by their footers.

        Raises:
            DeltaError: the tasks wrote others (WRITE_FAILED).
        """
        if self.reported_rows not in (None, num_rows):
            raise unseen(self.location, f"{self.reported_rows} rows", f"{num_rows} of them")


def unseen(location: str, written: str, there: str) -> DeltaError:
    """Return the error for files that executors have written and the driver does not see."""
    return DeltaError(Message.WRITE_FAILED_UNSEEN, path=location, written=written, there=there)


def run_parquet_job(
    rows: DataFrame,
    directory: str,
    *,
    store: Store,
    partition_columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> ParquetJob:
    """Write ``rows`` below ``directory`` of the store and list the files; runs one Spark job.

    The column and file layout is Spark's own: a directory ``column=value`` per partition
    column, and in each ``part-....parquet``. ``options`` are others of Spark's writer. Call
    it inside of `puredelta.spark.write.parquet_job.write_session`.

    Raises:
        DeltaError: the storage refused (WRITE_FAILED), or the rows themselves raised an
            error. No file is left.
    """
    location = f"{store.root_uri}/{directory}"
    if store.exists(directory):
        raise ValueError(f"{location} exists: a job needs a directory of its own")
    with removed_on_failure([directory], store), named_failures(location):
        store.name_rule()  # before rows are written that no commit could name
        require_shared_root(rows.sparkSession, store)
        whole = {**(options or {}), **_WRITER_OPTIONS}
        with tagged_jobs(rows.sparkSession):
            reported_rows = _write(rows, location, whole, partition_columns)
        files = (file for file in store.walk(directory) if _is_data_file(file.name))
        return ParquetJob(
            files=tuple(sorted(files, key=lambda file: file.path)),
            location=location,
            reported_rows=reported_rows,
            count=partial(_counted_by_spark, rows.sparkSession, options or {}),
        )


SERVER_ENCRYPTS = "the server encrypts Parquet files"
"""Why workers write no files of their own."""


def server_encrypts(spark: SparkSession, store: Store) -> bool:
    """Return whether a server of Spark Connect encrypts what it writes below the root of the store.

    Settings in Hadoop's XML files of a server are in no answer of it. So it writes a row, once per
    session, unless it has written other rows before: two small jobs at most. Of a classic session
    they are known, and Arrow writes where Spark does not: False, and no job.
    """
    if not is_connect(spark) or data_io(spark, [store.root_uri]) is DataIo.ARROW:
        return False
    if spark not in _ENCRYPTING_SERVERS:
        _ENCRYPTING_SERVERS[spark] = _encrypts_a_row(spark, store)
    return _ENCRYPTING_SERVERS[spark]


def note_plain_files(spark: SparkSession) -> None:
    """Note that a server has written files without options, and has not encrypted them."""
    _ENCRYPTING_SERVERS.setdefault(spark, False)


def _encrypts_a_row(spark: SparkSession, store: Store) -> bool:
    directory = f"{STAGING_PREFIX}{random_id()}"
    try:
        job = run_parquet_job(spark.range(0, 1, 1, 1), directory, store=store)
        return any(
            job.described(job.files, store, by_footer=lambda *_: False, by_count=lambda *_: True)
        )
    except (DeltaError, PySparkException):  # a key is for a column that this row lacks
        return True
    finally:
        with contextlib.suppress(OSError):
            store.delete_tree(directory)


def _write(
    rows: DataFrame, location: str, options: Mapping[str, str], partition_columns: Sequence[str]
) -> int | None:
    """Write the files; return how many rows the tasks report, where that says anything."""
    spark = rows.sparkSession
    if is_connect(spark):
        return _write_observed(rows, location, options, partition_columns)
    if not runs_here(spark.sparkContext.master):
        make = partial(
            CountedWrite, rows, location, options=options, partition_columns=partition_columns
        )
        if (counted := _unless_unknown(make)) is not None:
            counted.run()
            return _unless_unknown(counted.num_rows)
    _write_plainly(rows, location, options, partition_columns)
    return None


def _counted_by_spark(
    spark: SparkSession, options: Mapping[str, str], uris: Sequence[str]
) -> Mapping[str, int]:
    """Return how many rows each file has; a file without rows is absent."""
    reader = spark.read.options(**options, **_EVERY_ROW)
    rows = reader.schema(StructType([StructField(_NUM_ROWS, LongType())]))  # none of the files'
    path = F.col("_metadata.file_path")
    with tagged_jobs(spark):
        found = rows.parquet(*map(as_glob, uris)).groupBy(path.alias(_PATH)).count().collect()
    counts = {short_uri(unquote(row[_PATH])): int(row["count"]) for row in found}
    return {uri: counts[short_uri(uri)] for uri in uris if short_uri(uri) in counts}


def _write_observed(
    rows: DataFrame, location: str, options: Mapping[str, str], partition_columns: Sequence[str]
) -> int | None:
    """Write the files over Connect; return how many rows the server has counted in that job."""
    seen = Observation()
    counted = not_streaming(rows).observe(seen, F.count(F.lit(1)).alias(_NUM_ROWS))
    _write_plainly(counted, location, options, partition_columns)
    num_rows = seen.get.get(_NUM_ROWS)
    if num_rows is None:
        logger.warning("The server does not say how many rows it has written to %s", location)
    return num_rows


def _write_plainly(
    rows: DataFrame, location: str, options: Mapping[str, str], partition_columns: Sequence[str]
) -> None:
    writer = rows.write.options(**options).mode("error")
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    writer.parquet(location)


def _unless_unknown(ask: Callable[[], T]) -> T | None:
    """Return the answer of Spark's internals; None where they are not those that we know."""
    try:
        return ask()
    except JVM_ERRORS:
        logger.warning("Rows that executors write cannot be counted", exc_info=True)
        return None


@contextmanager
def removed_on_failure(directories: Sequence[str], store: Store) -> Iterator[None]:
    """Remove the directories if the block raises; the block's own error is the one raised."""
    try:
        yield
    except BaseException:
        for directory in directories:
            with contextlib.suppress(OSError):
                store.delete_tree(directory)
        raise


@contextmanager
def named_failures(location: str) -> Iterator[None]:
    """Raise the error of a row or of the storage instead of Spark's, which wraps it.

    Anything else, such as an error of a user's function, passes, with the class of its error.
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as failure:
        if (row_error := decode_row_error(failure)) is not None:
            raise row_error from failure
        if (reason := _storage_failure(failure)) is not None:
            if (refused := _refused_directory(reason)) is not None:
                raise DeltaError(
                    Message.WRITE_FAILED_EXECUTORS, path=location, reason=refused
                ) from failure
            raise DeltaError(
                Message.WRITE_FAILED_STORAGE, path=location, reason=reason
            ) from failure
        if (missing := _MISSING_MODULE.search(str(failure))) is not None:
            raise DeltaError(
                Message.WRITE_FAILED_MISSING_MODULE,
                missing=missing[1],
                path=location,
                reason=missing[0],
            ) from failure
        take_spark_class(failure)
        raise


def _storage_failure(failure: Exception) -> str | None:
    if isinstance(failure, StorageError | PermissionError):
        return str(failure)
    match = _STORAGE_FAILURE.search(str(failure))
    return None if match is None else match[0]


def _refused_directory(reason: str) -> str | None:
    """Return which value of a partition makes a directory that no file system has, if one does."""
    made = reason.removeprefix("Mkdirs failed to create ").partition(" (exists=")[0]
    for name in made.split("/"):
        column, equals, value = name.partition("=")
        shown = f"{value[:_SHOWN]!r}{'...' if len(value) > _SHOWN else ''} of the column {column!r}"
        if equals and (size := len(name.encode())) > _NAME_BYTES_MAX:
            return (
                f"the partition value {shown} makes the name of a directory {size} bytes long, and "
                f"file systems have at most {_NAME_BYTES_MAX}"
            )
        if equals and "\0" in name:
            return f"the partition value {shown} has the character NUL, which no directory can have"
    return None


def _is_data_file(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith((".", "_"))


_MB = 1024 * 1024
_FILTER_SIZES = {
    "parquet.bloom.filter.adaptive.enabled": "true",
    "parquet.bloom.filter.candidates.number": "8",
    "parquet.bloom.filter.max.bytes": str(4 * _MB),
}
"""The writer begins with filters of eight sizes and keeps the smallest that has the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """The options of one job; the defaults are what the session says."""

    rows_max: int = 0
    """A file has no more rows; 0: as many as the session says."""
    codec: str | None = None
    """By Spark's name; ``None``: the table's, or the session's."""
    parquet: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Parquet's writer by their own names, encryption among them."""
    filters: Mapping[str, float] = field(default_factory=dict)
    """Columns that get a Bloom filter, by physical name, with the rate of false positives."""
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
        codec = {} if self.codec is None else {"compression": self.codec}
        options = {**self._filter_options, **self.parquet, **codec}
        return {**options, "maxRecordsPerFile": str(self.rows_max)} if self.rows_max else options

    @property
    def _filter_options(self) -> dict[str, str]:
        options = dict(_FILTER_SIZES) if self.filters else {}
        for name, rate in self.filters.items():
            options[f"parquet.bloom.filter.enabled#{name}"] = "true"
            options[f"parquet.bloom.filter.fpp#{name}"] = str(rate)
        return options

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


WRITE_SETTINGS: Mapping[str, str] = {
    # INT96 is Spark's default; it has no statistics and is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # The protocol knows the proleptic Gregorian calendar only.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Shredded variants are a table feature of their own.
    "spark.sql.variant.writeShredding.enabled": "false",
}

_ONLY_FOR = {
    "spark.sql.parquet.outputTimestampType": ("timestamp",),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("date", "timestamp"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("timestamp",),
    "spark.sql.variant.writeShredding.enabled": ("variant",),
}
"""The types of columns to which a setting matters, as a schema's JSON names them."""

ORDERED_SETTINGS: Mapping[str, str] = {
    # Else Spark sorts by the columns of directories, and drops the sort that was there.
    "spark.sql.maxConcurrentOutputFileWriters": "1",
}
"""For tasks whose rows go into one directory each, in an order they shall keep."""

_LOCK = threading.RLock()
"""Two writes must not put back each other's settings."""


@contextmanager
def write_session(
    rows: DataFrame, more: Mapping[str, str] | None = None, *, columns: StructType | None = None
) -> Iterator[DataFrame]:
    """Yield the same rows, bound to a session with `WRITE_SETTINGS` and ``more``; runs no job.

    Over Connect the settings are made for a while, as far as they matter to ``columns``, which are
    those of the rows.

    Everything that decides what the rows *are* stays: caches, temporary views, functions,
    the time zone, adaptive execution, job groups and tags of the calling thread.
    """
    spark, settings = rows.sparkSession, {**WRITE_SETTINGS, **(more or {})}
    if is_connect(spark):
        kinds = (rows.schema if columns is None else columns).json()
        with _LOCK, settings_for_a_while(spark, _needed(settings, kinds), settings_of(spark)):
            yield rows
    elif _is_observed(rows):
        with _LOCK, temporary_settings(spark, settings):
            yield rows
    else:
        yield rebound(rows, settings)


def _is_observed(rows: DataFrame) -> bool:
    """Return whether the plan holds an `Observation`: its ``get`` would wait for ever."""
    return "CollectMetrics" in logical_plan(rows).text()


@contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set what a session is asked to do, and put back what there was."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            insist(partial(_put_back, spark, key, old))


def _needed(settings: Mapping[str, str], kinds: str) -> Mapping[str, str]:
    matter = {key: any(kind in kinds for kind in only) for key, only in _ONLY_FOR.items()}
    return {key: value for key, value in settings.items() if matter.get(key, True)}


def _put_back(spark: SparkSession, key: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)
