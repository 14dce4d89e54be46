"""One Spark job that writes Parquet files into a directory of its own.

The directory is new, nothing else writes there and nothing is renamed afterwards: the
files of the job are the listing of the directory once the job has succeeded. What the job
leaves when it fails is removed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame

from puredelta.errors import DeltaError, ErrorCode
from puredelta.spark.values.row_errors import decode_row_error
from puredelta.store.base import StorageError, Store, StoredFile

_SUFFIX = ".parquet"

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


def run_parquet_job(
    rows: DataFrame,
    directory: str,
    *,
    store: Store,
    partition_columns: Sequence[str] = (),
    compression: str | None = None,
) -> list[StoredFile]:
    """Write ``rows`` below ``directory`` of the store and list the files; runs one Spark job.

    The column and file layout is Spark's own: a directory ``column=value`` per partition
    column, and in each ``part-....parquet``. Call it inside of
    `puredelta.spark.write.write_session.write_session`.

    Raises:
        DeltaError: the storage refused (WRITE_FAILED), or the rows themselves raised an
            error. Nothing is left behind.
    """
    writer = rows.write.options(**_WRITER_OPTIONS)
    if compression is not None:
        writer = writer.option("compression", compression)
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    location = f"{store.root_uri}/{directory}"
    if store.exists(directory):
        raise ValueError(f"{location} exists: a job needs a directory of its own")
    with removed_on_failure(directory, store), named_failures(location):
        writer.mode("error").parquet(location)
        return sorted(
            (file for file in store.walk(directory) if _is_data_file(file.name)),
            key=lambda file: file.path,
        )


@contextmanager
def removed_on_failure(directory: str, store: Store) -> Iterator[None]:
    """Remove the directory if the block raises; the block's own error is the one raised."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            store.delete_tree(directory)
        raise


@contextmanager
def named_failures(location: str) -> Iterator[None]:
    """Raise the error of a row or of the storage instead of Spark's, which wraps it.

    Anything else, such as an error of a user's function, passes as it is.
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as failure:
        if (row_error := decode_row_error(failure)) is not None:
            raise row_error from failure
        if (reason := _storage_failure(failure)) is not None:
            raise DeltaError(
                f"The data could not be written to {location}: {reason}. The table is unchanged "
                "and what was written has been removed. Free space or grant access, then retry.",
                code=ErrorCode.WRITE_FAILED,
                path=location,
                reason=reason,
            ) from failure
        raise


def _storage_failure(failure: Exception) -> str | None:
    if isinstance(failure, StorageError | PermissionError):
        return str(failure)
    match = _STORAGE_FAILURE.search(str(failure))
    return None if match is None else match[0]


def _is_data_file(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith((".", "_"))
