"""Partition values as directory names from which Spark parses exactly the same values.

The directories are virtual: `puredelta.spark.scan.native_scan` shows them to Spark for the time
it takes to parse them.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping

from pyspark.sql import types as T

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.protocol.values.partition_escape import HIVE_NULL, escape_partition_text


def spark_parses(data_type: T.DataType) -> bool:
    """Return whether Spark turns partition text of this type into the right value.

    It does not unescape binary, and knows no collation; such a column is carried as plain
    text and cast on top of the scan.
    """
    return not (
        isinstance(data_type, T.BinaryType)
        or (isinstance(data_type, T.StringType) and data_type != T.StringType())
    )


def virtual_directory(values: Mapping[str, str | None], fields: Iterable[T.StructField]) -> str:
    """Return ``/a=1/b=x%3Ay`` for the values of one file, ``""`` without partition columns.

    A value that is missing, ``None`` or ``""`` is NULL in a column of any type (X-82).

    Raises:
        CorruptTableError: text that is no number where a decimal is due.

    >>> virtual_directory({"p": "a b"}, T.StructType().add("p", "string").add("q", "integer"))
    '/p=a%20b/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "".join(f"/{_escape(f.name)}={_text(values, f)}" for f in fields)


def _text(values: Mapping[str, str | None], field: T.StructField) -> str:
    value = values.get(field.name)
    if value is None or value == "":
        return HIVE_NULL
    if value == HIVE_NULL:
        return f"%5F{HIVE_NULL[1:]}"  # a string that merely looks like Hive's NULL
    if isinstance(field.dataType, T.DecimalType):
        return _in_scale(value, field.name, field.dataType)
    return _escape(value)


def _in_scale(value: str, column: str, data_type: T.DecimalType) -> str:
    """Spell a decimal with all digits of its scale.

    Spark keeps the scale of the text, and its reader then copies the unscaled number.
    """
    try:
        step = decimal.Decimal(1).scaleb(-data_type.scale)
        fitting = decimal.Context(prec=data_type.precision, traps=[decimal.InvalidOperation])
        number = decimal.Decimal(value)
        if number.is_nan():
            raise decimal.InvalidOperation(value)  # noqa: TRY301 - one error for all bad text
        return f"{number.quantize(step, context=fitting):f}"
    except decimal.InvalidOperation as malformed:
        raise CorruptTableError(
            f"The log has the value {value!r} for the partition column {column!r}, which is no "
            f"{data_type.simpleString()}.",
            code=ErrorCode.FAILED_CAST_PARTITION_VALUE,
            column=column,
            value=value,
        ) from malformed


def _escape(text: str) -> str:
    """Escape what Hive does, and blanks, too."""
    return escape_partition_text(text).replace(" ", "%20")
