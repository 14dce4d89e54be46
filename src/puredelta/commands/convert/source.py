"""What a CONVERT TO DELTA is asked to convert: the identifier, taken apart and judged.

Nothing is looked up here: neither storage nor a catalog. Refusals carry delta-spark's
classes and texts (E-02).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError

_PART = r"(?:`((?:[^`]|``)+)`|(\w+))"
_IDENTIFIER = re.compile(rf"\s*{_PART}(?:\s*\.\s*{_PART})*\s*", re.ASCII)
_PARTS = re.compile(_PART, re.ASCII)

# As Hadoop's Path.isAbsolute: what follows an optional scheme and host begins with a slash.
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")


@dataclass(frozen=True, slots=True)
class ParquetDirectory:
    """``parquet.`<location>` ``: a directory of Parquet files."""

    location: str


@dataclass(frozen=True, slots=True)
class DeltaDirectory:
    """``delta.`<location>` ``: said to be a Delta table already (C-05)."""

    location: str


@dataclass(frozen=True, slots=True)
class IcebergLocation:
    """``iceberg.`<location>` ``: the root of an Iceberg table, or one of its metadata files."""

    location: str


@dataclass(frozen=True, slots=True)
class CatalogName:
    """A table of the catalog, by the parts of its name (C-02)."""

    parts: tuple[str, ...]


ConvertSource: TypeAlias = ParquetDirectory | DeltaDirectory | IcebergLocation | CatalogName

_FORMATS = ("parquet", "delta", "iceberg")


def parse_source(identifier: str) -> ConvertSource:
    """Take an identifier apart and refuse what cannot be converted.

    Paths are absolute, plain or URIs; the format's name may be in any case (C-01, C-05).

    >>> parse_source("parquet.`/data/events`")
    ParquetDirectory(location='/data/events')

    >>> parse_source("sales.events")
    CatalogName(parts=('sales', 'events'))

    Raises:
        InvalidRequestError: not an identifier, a path without its format
            (DELTA_MISSING_PROVIDER_FOR_CONVERT), or a format that is not Parquet
            (DELTA_CONVERT_NON_PARQUET_TABLE).
    """
    if _IDENTIFIER.fullmatch(identifier) is None:
        raise _no_identifier(identifier)
    parts = tuple(
        plain or quoted.replace("``", "`") for quoted, plain in _PARTS.findall(identifier)
    )
    if len(parts) == 1 and _ABSOLUTE.match(parts[0]):
        raise _missing_provider(parts[0])
    if len(parts) != 2 or not _ABSOLUTE.match(parts[1]):  # noqa: PLR2004
        _require_absolute(parts)
        return CatalogName(parts)
    provider, name = parts
    match provider.lower():
        case "parquet":
            return ParquetDirectory(name)
        case "delta":
            return DeltaDirectory(name)
        case "iceberg":
            return IcebergLocation(name)
        case other:
            raise InvalidRequestError(
                "CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
                f"{other} source: `{provider}`.`{name}`",
                code=ErrorCode.CONVERT_NON_PARQUET_TABLE,
                source_name=other,
                table=f"`{provider}`.`{name}`",
            )


def _require_absolute(parts: tuple[str, ...]) -> None:
    """Refuse what can only be a path, and is relative: nobody knows to what."""
    match parts:
        case (provider, path) if provider.lower() in _FORMATS and "/" in path:
            raise InvalidRequestError(
                f"Path does not exist: {path}. The path of {provider}.`{path}` must be absolute.",
                code=ErrorCode.PATH_NOT_FOUND,
                path=path,
            )


def _no_identifier(text: str) -> DeltaError:
    if _ABSOLUTE.match(text.strip()):
        return _missing_provider(text.strip())
    return InvalidRequestError(
        f"{text!r} is not the name of a table. Name a table of the catalog, or a Parquet directory "
        "as parquet.`/path`, with backticks around the path.",
        code=ErrorCode.PARSE_SYNTAX_ERROR,
        identifier=text,
    )


def _missing_provider(name: str) -> DeltaError:
    return InvalidRequestError(
        "CONVERT TO DELTA only supports parquet tables. Please rewrite your target as "
        f"parquet.`{name}` if it's a parquet directory.",
        code=ErrorCode.MISSING_PROVIDER_FOR_CONVERT,
        path=name,
    )
