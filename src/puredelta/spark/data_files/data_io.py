"""Who reads and writes data files: Spark through Hadoop's file systems, or Arrow in workers.

The one place that decides it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.jvm.hadoop.hadoop_files import has_file_system
from puredelta.spark.session.delta_conf import IO
from puredelta.spark.session.session import is_connect

_LOCAL = "file"


class DataIo(Enum):
    """The two ways to data files."""

    SPARK = "spark"
    """Spark's own Parquet reader and writer."""
    ARROW = "arrow"
    """Arrow, in Spark's Python workers."""


def data_io(spark: SparkSession, uris: Iterable[str]) -> DataIo:
    """Return the way to some files or directories, given by absolute URIs.

    Of a session of Spark Connect nobody knows which file systems its server has, so that Arrow has
    all but local files.

    Raises:
        InvalidRequestError: the session asks for a way that there is not.
    """
    chosen = str(spark.conf.get(IO.key, IO.default)).strip().lower()
    if chosen in {one.value for one in DataIo}:
        return DataIo(chosen)
    if chosen != IO.default:
        raise InvalidRequestError(
            f"{IO.key} is {chosen!r}: set it to 'auto', 'spark' or 'arrow'.",
            code=ErrorCode.INVALID_CONF_VALUE,
            key=IO.key,
            value=chosen,
        )
    schemes = {uri.partition(":")[0] for uri in uris} - {_LOCAL}
    if all(not is_connect(spark) and has_file_system(spark, scheme) for scheme in schemes):
        return DataIo.SPARK
    return DataIo.ARROW
