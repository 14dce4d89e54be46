"""The two questions of a conversion that only Spark can answer, through public API.

Both are rare: the schema of a Parquet file with an unusual shape, and whether an oddly
spelled partition value is one. Each costs a small Spark job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.errors import CorruptTableError, ErrorCode, UnsupportedError
from puredelta.protocol.schema.types import DataType, StructType
from puredelta.spark.data_files.globs import as_glob
from puredelta.spark.jvm.classes import JVM_ERRORS
from puredelta.spark.session.pyspark_errors import plain_message
from puredelta.spark.session.types import from_spark, to_spark_type

_FOOTER = "FOOTER"
"""In Spark's error class of a file whose footer it cannot read."""
_CRYPTO = "rypto"
"""In the names of Parquet's classes for encryption, and of what they throw."""
_NEW_TEXT = "Write the file again with that column as text, a number or a timestamp."
_NEW_DECIMAL = "Write the file again with at most 38 digits, or with that column as text."
_WAYS_OUT = {
    "NANOS": (
        "Timestamps of nanoseconds are what pandas writes: write the file again with microseconds "
        "(pandas and pyarrow: coerce_timestamps='us'), or set "
        "spark.sql.legacy.parquet.nanosAsLong to true to have them as BIGINT."
    ),
    "FLOAT16": "Write the file again with that column as a 32-bit float.",
    "TIME": _NEW_TEXT,
    "DECIMAL": _NEW_DECIMAL,
    "precision": _NEW_DECIMAL,
    "INTERVAL": _NEW_TEXT,
}
"""What of Spark's reason tells, and what to do."""


def read_parquet_schema(spark: SparkSession, uri: str) -> StructType:
    """Return the schema Spark gives to one Parquet file; reads its footer in one job.

    Raises:
        UnsupportedError: Spark cannot read the file's types (PARQUET_TYPE_ILLEGAL).
    """
    try:
        return from_spark(spark.read.parquet(as_glob(uri)).schema)
    except PySparkException as refused:
        if _FOOTER in str(refused):
            raise _unreadable(uri, refused) from refused
        reason = plain_message(refused)
        raise UnsupportedError(
            f"Spark cannot read the schema of the file {uri}, so it cannot be part of a table: "
            f"{reason} {_way_out(reason)}",
            code=ErrorCode.PARQUET_TYPE_ILLEGAL,
            file=uri,
        ) from refused
    except JVM_ERRORS as refused:
        raise _unreadable(uri, refused) from refused


def require_read_by_spark(spark: SparkSession, uri: str) -> None:
    """Let Spark read a row of a Parquet file that Arrow does not read; runs one job.

    Raises:
        CorruptTableError: Spark does not read it either (DELTA_FAILED_READ_FILE_FOOTER).
    """
    try:
        spark.read.parquet(as_glob(uri)).limit(1).collect()
    except JVM_ERRORS as refused:
        raise _unreadable(uri, refused) from refused


def _unreadable(uri: str, refused: Exception) -> CorruptTableError:
    reason = next((line for line in str(refused).splitlines() if _CRYPTO in line), "")
    what = "It is damaged: remove it, or write it once more."
    if reason:
        what = (
            "It is encrypted, and this session has not its keys: set "
            "spark.hadoop.parquet.crypto.factory.class and what the factory needs to reach the "
            "keys, then convert."
        )
    return CorruptTableError(
        f"Could not read footer for file: {uri}. Neither Arrow nor Spark reads it. {what}",
        code=ErrorCode.FAILED_READ_FILE_FOOTER,
        file=uri,
    )


def _way_out(reason: str) -> str:
    """Return what a user can do about a type of Parquet that Spark does not read."""
    found = (way for mark, way in _WAYS_OUT.items() if mark in reason)
    return next(found, "Write the file again with types that Spark reads, or move it elsewhere.")


def cast_texts(
    spark: SparkSession, data_type: DataType, texts: Sequence[str]
) -> Mapping[str, str | None]:
    """Cast each text to a type and back to text; ``None`` where it is no value of the type.

    The cast is ``try_cast``: blanks around a number, ``yes`` for true and ``2024-1-1`` are
    understood. Timestamps come back in the session's time zone. Runs one job.
    """
    target = to_spark_type(data_type)
    given = spark.createDataFrame([(text,) for text in texts], "text string")
    cast = F.col("text").try_cast(target).cast("string")
    return {row[0]: row[1] for row in given.select("text", cast).collect()}
