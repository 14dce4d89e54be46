"""What a CONVERT TO DELTA is asked to convert: the identifier, taken apart and judged.

Nothing is looked up here: neither storage nor a catalog. Refusals carry delta-spark's
classes and texts (E-02).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError, UnsupportedError

_PART = r"(?:`((?:[^`]|``)+)`|(\w+))"
_IDENTIFIER = re.compile(rf"\s*{_PART}(?:\s*\.\s*{_PART})?\s*", re.ASCII)

# As Hadoop's Path.isAbsolute: what follows an optional scheme and host begins with a slash.
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")

_ICEBERG_HELP = (
    "https://docs.delta.io/latest/delta-utility.html#convert-a-parquet-table-to-a-delta-table"
)


@dataclass(frozen=True, slots=True)
class ParquetDirectory:
    """``parquet.`<location>` ``: a directory of Parquet files."""

    location: str


@dataclass(frozen=True, slots=True)
class DeltaDirectory:
    """``delta.`<location>` ``: said to be a Delta table already (C-05)."""

    location: str


ConvertSource: TypeAlias = ParquetDirectory | DeltaDirectory


def parse_source(identifier: str) -> ConvertSource:
    """Take an identifier apart and refuse what cannot be converted.

    Paths are absolute, plain or URIs; the format's name may be in any case (C-01, C-05).

    >>> parse_source("parquet.`/data/events`")
    ParquetDirectory(location='/data/events')

    Raises:
        InvalidRequestError: not an identifier, a path without its format
            (DELTA_MISSING_PROVIDER_FOR_CONVERT), or a format that is not Parquet
            (DELTA_CONVERT_NON_PARQUET_TABLE).
        UnsupportedError: an Iceberg table, or a table of the catalog.
    """
    match = _IDENTIFIER.fullmatch(identifier)
    if match is None:
        raise _no_identifier(identifier)
    first, second = _unquote(match[1], match[2]), _unquote(match[3], match[4])
    if second is None:
        raise _missing_provider(first or "")
    provider, name = first or "", second
    if not _ABSOLUTE.match(name):
        raise _catalog_table(f"`{provider}`.`{name}`")
    match provider.lower():
        case "parquet":
            return ParquetDirectory(name)
        case "delta":
            return DeltaDirectory(name)
        case "iceberg":
            raise UnsupportedError(
                "Iceberg class was not found. Please ensure Delta Iceberg support is installed. "
                f"This library converts Parquet directories only. Please refer to {_ICEBERG_HELP} "
                "for more details.",
                code=ErrorCode.MISSING_ICEBERG_CLASS,
                path=name,
            )
        case other:
            raise InvalidRequestError(
                "CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
                f"{other} source: `{provider}`.`{name}`",
                code=ErrorCode.CONVERT_NON_PARQUET_TABLE,
                source_name=other,
                table=f"`{provider}`.`{name}`",
            )


def _unquote(quoted: str | None, plain: str | None) -> str | None:
    return plain if quoted is None else quoted.replace("``", "`")


def _no_identifier(text: str) -> DeltaError:
    if _ABSOLUTE.match(text.strip()):
        return _missing_provider(text.strip())
    return InvalidRequestError(
        f"{text!r} is not the name of a table. Name a Parquet directory as parquet.`/path`, with "
        "backticks around the path.",
        code=ErrorCode.PARSE_SYNTAX_ERROR,
        identifier=text,
    )


def _missing_provider(name: str) -> DeltaError:
    if not _ABSOLUTE.match(name):
        return _catalog_table(f"`{name}`")
    return InvalidRequestError(
        "CONVERT TO DELTA only supports parquet tables. Please rewrite your target as "
        f"parquet.`{name}` if it's a parquet directory.",
        code=ErrorCode.MISSING_PROVIDER_FOR_CONVERT,
        path=name,
    )


def _catalog_table(name: str) -> DeltaError:
    return UnsupportedError(
        f"CONVERT TO DELTA of the catalog table {name} is not supported, only of parquet "
        "directories named by their absolute path. Please rewrite your target as "
        "parquet.`<path>` if it's a parquet directory.",
        code=ErrorCode.MISSING_PROVIDER_FOR_CONVERT,
        table=name,
    )
