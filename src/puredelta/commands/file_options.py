"""What a session, a table and the options of one write say about the files that are written.

The options of a write stand among the settings of its command, where those of the session are.
"""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.settings import parse_bytes
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.features.properties import TableProperties
from puredelta.spark.session.delta_conf import OPTIMIZE_WRITE, OPTIMIZE_WRITE_BIN_SIZE
from puredelta.spark.write.file_options import FileOptions

FILE_ROWS = "spark.sql.files.maxRecordsPerFile"
"""Spark's setting; the option ``maxRecordsPerFile`` takes its place."""
CODEC = "option compression"
"""Where the option ``compression`` stands: above the table's codec, and that above Spark's."""


def file_options(settings: Mapping[str, str], properties: TableProperties) -> FileOptions:
    """Return how files of a table are written (M-141, M-143).

    Raises:
        InvalidRequestError: a value is none of its setting.

    >>> file_options({FILE_ROWS: "10"}, TableProperties.of({})).rows_max
    10
    """
    optimizes = OPTIMIZE_WRITE.text(settings)
    wanted = properties.optimize_write if optimizes is None else _flag(optimizes)
    return FileOptions(
        rows_max=parse_rows(FILE_ROWS, settings.get(FILE_ROWS, "0")),
        codec=settings.get(CODEC, properties.compression_codec),
        bin_bytes=_bin_bytes(settings) if wanted else None,
    )


def parse_rows(key: str, text: str) -> int:
    """Read how many rows a file may have; 0, which is any number, for what is not positive.

    Raises:
        InvalidRequestError: the text is no whole number.

    >>> parse_rows("maxRecordsPerFile", "-5")
    0
    """
    try:
        return max(0, int(text))
    except ValueError:
        raise InvalidRequestError(
            f"{key} is a whole number of rows, not {text!r}.",
            code=ErrorCode.INVALID_WRITE_OPTION,
            option=key,
            value=text,
        ) from None


def _flag(text: str) -> bool:
    if text.strip().lower() in {"true", "false"}:
        return text.strip().lower() == "true"
    raise _invalid_conf(OPTIMIZE_WRITE.key, text, "true or false")


def _bin_bytes(settings: Mapping[str, str]) -> int:
    text = OPTIMIZE_WRITE_BIN_SIZE.text(settings) or ""
    size_bytes = parse_bytes(text)
    if size_bytes <= 0:
        raise _invalid_conf(OPTIMIZE_WRITE_BIN_SIZE.key, text, "a size such as 512MB")
    return size_bytes


def _invalid_conf(key: str, text: str, wanted: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{key} is {text!r}: set it to {wanted}.",
        code=ErrorCode.INVALID_CONF_VALUE,
        key=key,
        value=text,
    )
