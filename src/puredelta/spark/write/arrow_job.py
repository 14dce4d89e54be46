"""One Spark job whose Python workers write Parquet files by Arrow, into a directory of its own.

For storage of which Spark itself has no file system. Files, their directories and their names are
like those of `puredelta.spark.write.parquet_job`. Tasks answer with what they wrote, footers
included, so that nothing is read again; files of tasks that failed or ran twice are in no answer,
and are removed.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.errors import DeltaError, InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.schema.partition_values import escape_partition_text
from puredelta.protocol.schema.types import StructType
from puredelta.spark.session.concurrent_jobs import tagged_jobs
from puredelta.spark.session.data_access import DataPaths, streamed, unreachable
from puredelta.spark.session.delta_conf import IO
from puredelta.spark.session.session import version_of_spark
from puredelta.spark.session.types import arrow_schema, quoted
from puredelta.spark.write.parquet_job import (
    SESSION_FILES,
    FileOptions,
    named_failures,
    removed_on_failure,
)
from puredelta.spark.write.writer_settings import WriterSettings
from puredelta.spark.write.written_files import keep_answered
from puredelta.store.base import Store
from puredelta.worker.data_files.write_file import FILE_ANSWERS, FileAnswer
from puredelta.worker.data_files.write_rows import (
    CHANGES,
    WRITE_ORDERS,
    WriteOrder,
    write_stream,
)
from puredelta.worker.files import DataPath
from puredelta.worker.wire import LIMITS

_ANSWERS = T.StructType([T.StructField("answer", T.BinaryType())])
_ESCAPES = {
    code: escaped
    for code in range(1, 128)
    if (escaped := escape_partition_text(chr(code))) != chr(code)
}
_CODECS = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
}
"""Arrow's name for each name of Spark's; Arrow has no LZO."""
_CODEC_KEY = "spark.sql.parquet.compression.codec"
_FILE_ROWS_KEY = "spark.sql.files.maxRecordsPerFile"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowJob:
    """The target directories of a job's files, and their content."""

    store: Store
    directory: str
    """Relative to the root of the store; new, and nothing else writes there."""
    schema: StructType
    """Of the files, by physical names: the first columns of the rows."""
    changes_directory: str | None = None
    """Where change files go. Then the next column says which rows are for them."""
    partition_columns: Sequence[str] = ()
    """The last columns, which are texts."""
    files: FileOptions = SESSION_FILES
    keeps_order: bool = False
    """Rows of a partition follow each other already, and stay in their order."""

    @property
    def location(self) -> str:
        """What errors name."""
        return f"{self.store.root_uri}/{self.directory}"


def run_arrow_job(rows: DataFrame, job: ArrowJob) -> dict[str, FileAnswer]:
    """Write ``rows`` and return the answers by path, relative to the root.

    Runs one Spark job. If it was refused and there are other keys by now, the rows are computed
    and kept on the disks of the executors, and then written in as many jobs as keys have to last.
    """
    spark = rows.sparkSession
    _require_plain(WriterSettings.of(spark), job)
    order = WriteOrder(
        schema=arrow_schema(job.schema).with_metadata(
            {"org.apache.spark.version": version_of_spark(spark)}
        ),
        **_directories(job),
        partition_columns=tuple(map(escape_partition_text, job.partition_columns)),
        escapes=_ESCAPES,
        codec=_codec(rows, job),
        limits=replace(LIMITS, filters=tuple(job.files.filters.items())),
        file_rows=job.files.rows_max or max(0, int(str(spark.conf.get(_FILE_ROWS_KEY)))),
    )
    num_stored = len(job.schema.fields)
    partitions = rows.columns[num_stored:]
    if partitions and not job.keeps_order:  # one open file at a time
        rows = rows.sortWithinPartitions(*map(quoted, partitions))
    trees = [tree for tree in (job.directory, job.changes_directory) if tree is not None]
    with removed_on_failure(trees, job.store), named_failures(job.location):
        job.store.name_rule()  # before rows are written that no commit could name
        answers = _answers(rows, order)
        if _is_refused(answers) and _order_of_now(job, order) != order:
            answers = _answers_in_parts(rows, job, order)
        written = _by_path(job, answers)
        for tree in trees:
            keep_answered(
                job.store,
                job.store.walk(tree),
                {path: one for path, one in written.items() if path.startswith(f"{tree}/")},
            )
    return written


def _answers(rows: DataFrame, order: WriteOrder) -> list[FileAnswer]:
    with tagged_jobs(rows.sparkSession):
        found = streamed(rows, write_stream, WRITE_ORDERS.encode(order), _ANSWERS).toArrow()
    return [
        FILE_ANSWERS.decode(pickle.loads(packed))  # noqa: S301 - our own
        for packed in found["answer"].to_pylist()
    ]


def _answers_in_parts(rows: DataFrame, job: ArrowJob, order: WriteOrder) -> list[FileAnswer]:
    """Compute the rows first, then write them in jobs that keys outlive.

    A job that is refused while there are other keys is cut in two; one of a single partition is
    not, and its refusal is the answer.
    """
    found: list[FileAnswer] = []
    kept = rows.persist(StorageLevel.DISK_ONLY)
    try:
        with tagged_jobs(rows.sparkSession):
            numbers = kept.select(F.spark_partition_id().alias("n")).distinct().toArrow()
        left = sorted(numbers["n"].to_pylist())
        count = len(left)
        while left:
            order, part = _order_of_now(job, order), left[:count]
            answers = _answers(kept.where(F.spark_partition_id().isin(part)), order)
            if not _is_refused(answers):
                found, left = found + answers, left[count:]
            elif count == 1 or _order_of_now(job, order) == order:
                return answers
            else:
                count = (len(part) + 1) // 2
    finally:
        kept.unpersist()
    return found


def _is_refused(answers: Sequence[FileAnswer]) -> bool:
    return any(answer.refusal for answer in answers)


def _order_of_now(job: ArrowJob, order: WriteOrder) -> WriteOrder:
    return replace(order, **_directories(job))


def _directories(job: ArrowJob) -> dict[str, Any]:
    """Return the target directories as workers open them, with the keys of now."""
    return {
        "directory": _reached(job, job.directory),
        "changes_directory": job.changes_directory and _reached(job, job.changes_directory),
    }


def _by_path(job: ArrowJob, answers: Sequence[FileAnswer]) -> dict[str, FileAnswer]:
    reason = next((answer.refusal for answer in answers if answer.refusal), None)
    if reason is not None:
        raise DeltaError(Message.WRITE_FAILED_WORKER_PATHS, path=job.location, reason=reason)
    kinds = {CHANGES: job.changes_directory}
    return dict(
        sorted(
            (
                (f"{kinds.get(answer.ordinal, job.directory)}/{answer.name}", answer)
                for answer in answers
                if answer.name is not None
            ),
            key=lambda one: one[0],
        )
    )


def _require_plain(writer: WriterSettings, job: ArrowJob) -> None:
    """Refuse to write plain text where a session, or a write, asks for encryption."""
    own = WriterSettings.parse(job.files.parquet)
    if not (writer.encrypts or own.encrypts or any("encryption" in key for key in own.options)):
        return
    setting = writer.only_spark or own.only_spark or ""
    raise UnsupportedError(
        Message.UNSUPPORTED_STORAGE_ENCRYPTION,
        only_spark=setting,
        io_key=IO.key,
        path=job.store.root_uri,
        setting=setting,
    )


def _reached(job: ArrowJob, directory: str) -> DataPath:
    uri = f"{job.store.root_uri}/{directory}"
    path = DataPaths(job.store.at).find(uri)
    if path is None:
        raise unreachable(uri)
    return path


def _codec(rows: DataFrame, job: ArrowJob) -> str:
    name = (job.files.codec or str(rows.sparkSession.conf.get(_CODEC_KEY))).lower()
    codec = _CODECS.get(name)
    if codec is None or (codec != "none" and not pa.Codec.is_available(codec)):
        raise InvalidRequestError(
            Message.INVALID_CONF_VALUE_CODEC,
            root_uri=job.store.root_uri,
            codecs=sorted(_CODECS),
            key=_CODEC_KEY,
            value=name,
        )
    return codec
