"""Partition values as text: in the directory names of a write job, and then in the log.

Spark's writer partitions by a text *copy* of each column, made here, and the text comes
back with the listing of the job's directory. So the spelling in the log (X-83) does not depend
on the session's time zone or on how Spark would write odd values.

Where a file system takes ``p=A`` for ``p=a`` the directories of both values would be one, and the
listing would give one of them to the rows of both. There a text that could be meant goes by the
digits of its bytes, which no other text has in any spelling.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from puredelta.protocol.schema.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from puredelta.protocol.values.partition_escape import HIVE_NULL
from puredelta.protocol.values.partition_values import encode_partition_value
from puredelta.spark.session.types import to_spark_type
from puredelta.store.base import NameRule

_MICRO_DIGITS = 6
_DIGITS = "%"
"""Before the digits of a text. A text with this character goes by its digits, too."""
_AMBIGUOUS = rf"[A-Z{_DIGITS}]|[^\x00-\x7f]|[. ]$|^{HIVE_NULL.lower()}"
"""Texts that some other text may be taken for; Windows drops blanks and full stops at the end."""


def partition_text(value: Column, data_type: DataType, names: NameRule = NameRule.EXACT) -> Column:
    """Return the text that stands for the value in a directory name; NULL stays NULL.

    The empty string becomes NULL, as a partition value always does (M-108).
    """
    if data_type == STRING:
        # Spark would read the name of its own NULL directory as NULL: make it longer.
        text = F.when(value.startswith(HIVE_NULL), F.concat(value, F.lit("_"))).otherwise(value)
        if names is NameRule.EXACT:
            return text
        digits = F.concat(F.lit(_DIGITS), F.lower(F.hex(value)))
        return F.when(value.rlike(_AMBIGUOUS), digits).otherwise(text)
    if data_type == BINARY:
        return F.hex(value)
    if data_type in (FLOAT, DOUBLE):
        # -0.0 is 0.0 wherever Spark compares them: one value has one text.
        value = F.when(value == 0, F.lit(0).cast(to_spark_type(data_type))).otherwise(value)
    if data_type == TIMESTAMP:
        # The time in UTC, computed without any time zone.
        origin = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        value = F.timestamp_add("MICROSECOND", F.unix_micros(value), origin)
    return value.cast("string")


def log_value(
    text: str | None, data_type: DataType, names: NameRule = NameRule.EXACT
) -> str | None:
    """Return the spelling of the log for an unescaped directory text, ``None`` for NULL.

    >>> log_value("2020-01-01 10:11:12.5", TIMESTAMP)
    '2020-01-01T10:11:12.500000Z'
    """
    if text is None or text in {"", HIVE_NULL}:
        return None
    match data_type:
        case DecimalType():
            return f"{Decimal(text):f}"
        case _ if data_type == STRING and names is NameRule.FOLDED and text.startswith(_DIGITS):
            return bytes.fromhex(text.removeprefix(_DIGITS)).decode()
        case _ if data_type == STRING:
            return text[:-1] if text.startswith(HIVE_NULL) else text
        case _ if data_type == TIMESTAMP:
            seconds, _, fraction = text.partition(".")
            return f"{seconds.replace(' ', 'T')}.{fraction.ljust(_MICRO_DIGITS, '0')}Z"
        case _ if data_type == BINARY:
            return encode_partition_value(bytes.fromhex(text), data_type)
        case _:
            return text
