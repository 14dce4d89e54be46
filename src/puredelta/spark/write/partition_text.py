"""Partition values as text: in the directory names of a write job, and then in the log.

Spark's writer partitions by a text *copy* of each column, made here, and the text comes
back with the listing of the job's directory. So the spelling in the log (X-83) does not depend
on the session's time zone or on how Spark would write odd values.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.protocol.schema.types import BINARY, STRING, TIMESTAMP, DataType, DecimalType
from puredelta.protocol.values.partition_escape import HIVE_NULL
from puredelta.protocol.values.partition_values import encode_partition_value

_MICRO_DIGITS = 6


def partition_text(value: Column, data_type: DataType) -> Column:
    """Return the text that stands for the value in a directory name; NULL stays NULL.

    The empty string becomes NULL, as a partition value always does (M-108).
    """
    if data_type == STRING:
        # Spark would read the name of its own NULL directory as NULL: make it longer.
        return F.when(value.startswith(HIVE_NULL), F.concat(value, F.lit("_"))).otherwise(value)
    if data_type == BINARY:
        return F.hex(value)
    if data_type == TIMESTAMP:
        # The time in UTC, computed without any time zone.
        origin = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        value = F.timestamp_add("MICROSECOND", F.unix_micros(value), origin)
    return value.cast("string")


def log_value(text: str | None, data_type: DataType) -> str | None:
    """Return the spelling of the log for an unescaped directory text, ``None`` for NULL.

    >>> log_value("2020-01-01 10:11:12.5", TIMESTAMP)
    '2020-01-01T10:11:12.500000Z'
    """
    if text is None or text in {"", HIVE_NULL}:
        return None
    match data_type:
        case DecimalType():
            return f"{Decimal(text):f}"
        case _ if data_type == STRING:
            return text[:-1] if text.startswith(HIVE_NULL) else text
        case _ if data_type == TIMESTAMP:
            seconds, _, fraction = text.partition(".")
            return f"{seconds.replace(' ', 'T')}.{fraction.ljust(_MICRO_DIGITS, '0')}Z"
        case _ if data_type == BINARY:
            return encode_partition_value(bytes.fromhex(text), data_type)
        case _:
            return text
