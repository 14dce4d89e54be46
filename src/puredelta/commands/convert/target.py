"""The target of a conversion: a directory or a table of the session catalog.

The catalog gives a table's location, columns and partitioning; the files give the rest. An
identifier is parsed without storage or catalog; refusals have delta-spark's error classes and texts
(E-02). Nothing is changed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.commands.convert.iceberg_plan import IcebergTable, open_iceberg
from puredelta.commands.convert.partitions import INFER
from puredelta.commands.defined_columns import stored_columns
from puredelta.errors import (
    DeltaError,
    InvalidRequestError,
    Message,
    TableNotFoundError,
)
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.feature_usage import CURRENT_DEFAULT
from puredelta.protocol.schema.schema_json import simple_string
from puredelta.protocol.schema.sql_lexer import parse_identifier
from puredelta.protocol.schema.types import StructField, StructType
from puredelta.protocol.table.table_config import CHAR_VARCHAR
from puredelta.spark.catalog.catalog_entries import entry_formats, entry_name, is_taken
from puredelta.spark.jvm.catalog import SESSION_CATALOG, StoredEntry
from puredelta.spark.session.names import FORMAT, quote_name
from puredelta.spark.session.storage import open_log

# As Hadoop's Path.isAbsolute: the path after an optional scheme and host begins with a slash.
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")


@dataclass(frozen=True, slots=True)
class ParquetDirectory:
    """``parquet.`<location>` ``: a directory of Parquet files."""

    location: str


@dataclass(frozen=True, slots=True)
class DeltaDirectory:
    """``delta.`<location>` ``: a Delta table according to its identifier (C-05)."""

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
    """Parse an identifier, and refuse one that cannot be converted.

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
    parts = parse_identifier(identifier)
    if not parts:
        raise _no_identifier(identifier)
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
                Message.CONVERT_NON_PARQUET_TABLE_PATH,
                provider=provider,
                name=name,
                source_name=other,
                table=f"`{provider}`.`{name}`",
            )


def _require_absolute(parts: tuple[str, ...]) -> None:
    """Refuse a relative path, since its base directory is unknown."""
    match parts:
        case (provider, path) if provider.lower() in _FORMATS and "/" in path:
            raise InvalidRequestError(Message.PATH_NOT_FOUND_RELATIVE, provider=provider, path=path)


def _no_identifier(text: str) -> DeltaError:
    if _ABSOLUTE.match(text.strip()):
        return _missing_provider(text.strip())
    return InvalidRequestError(Message.PARSE_SYNTAX_ERROR, identifier=text)


def _missing_provider(name: str) -> DeltaError:
    return InvalidRequestError(Message.MISSING_PROVIDER_FOR_CONVERT_PATH, path=name)


EXISTS_DEFAULT = "EXISTS_DEFAULT"
"""Key for the value, in Spark's own tables, of a column added after a file was written."""

_HIVE = "hive"
_TRANSIENT = "transient_lastDdlTime"
_DEFAULTS_FEATURE = "delta.feature.allowColumnDefaults"
_PARTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyDelta:
    """A table that needs no conversion (C-05)."""

    location: str
    name: str | None = None
    """In the catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionTarget:
    """A directory to convert, with its catalog entry if it has one."""

    location: str
    partitions: StructType
    """The columns of its partition directories, outermost first."""
    stated: tuple[str, ...] = ()
    """The names of the partition columns that the caller has given (C-57)."""
    entry: StoredEntry | None = None
    iceberg: IcebergTable | None = None
    """The Iceberg table at the location; its metadata decides everything."""
    infers: bool = False
    """Whether the partition columns are inferred from directory names."""

    @property
    def full_name(self) -> str | None:
        """The name in the catalog, as in the history; None for a directory."""
        entry = self.entry
        return None if entry is None else quoted_entry_name(entry)

    @property
    def capability(self) -> Capability:
        """The kind of access to the new table; Iceberg's files may need any feature."""
        return Capability.CONVERT if self.iceberg is None else Capability.ADMINISTER

    @property
    def columns(self) -> StructType | None:
        """The columns in the catalog, all nullable; None for a directory (C-34)."""
        return None if self.entry is None else _columns(self.entry.columns)

    @property
    def late_columns(self) -> Mapping[str, str]:
        """Defaults of columns that older files may lack, by name."""
        if self.entry is None:
            return {}
        defaults = {f.name: f.metadata.get(EXISTS_DEFAULT) for f in self.entry.columns.fields}
        return {
            name: text for name, text in defaults.items() if text and text.strip().lower() != "null"
        }

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that the table inherits from the catalog (C-53)."""
        kept = {} if self.entry is None else dict(self.entry.properties)
        kept.pop(_TRANSIENT, None)
        columns = self.columns
        if columns is not None and any(CURRENT_DEFAULT in f.metadata for f in columns.fields):
            kept.setdefault(_DEFAULTS_FEATURE, "supported")
        return kept

    @property
    def description(self) -> str | None:
        """The table's comment in the catalog."""
        return None if self.entry is None else self.entry.comment


def find_target(
    spark: SparkSession, identifier: str, partition_schema: T.StructType | str | None
) -> ConversionTarget | AlreadyDelta:
    """Return the target of an identifier (C-01, C-02); nothing that the catalog has is inferred.

    Raises:
        InvalidRequestError: not an identifier, the name of a view or of a table that is not
            Parquet; partition columns that are invalid, or not those of the catalog.
        TableNotFoundError: the catalog has no such table (TABLE_OR_VIEW_NOT_FOUND).
        UnsupportedError: an Iceberg table without pyiceberg, another catalog, or a managed
            table in a Connect session.
    """
    source = parse_source(identifier)
    infers = isinstance(partition_schema, str) and partition_schema.strip().lower() == INFER
    given = parse_partition_schema(None if infers else partition_schema)
    match source:
        case DeltaDirectory(location):
            return AlreadyDelta(location=location)
        case ParquetDirectory(location):
            return ConversionTarget(
                location=location, partitions=given, stated=given.names, infers=infers
            )
        case IcebergLocation(location):
            if given.fields or infers:
                raise _partitions_of_iceberg()
            table = open_iceberg(open_log(spark, location).store)
            return ConversionTarget(
                location=table.location, partitions=StructType(()), iceberg=table
            )
        case CatalogName(parts):
            return _find_table(spark, parts, given)
        case _:
            assert_never(source)


def _partitions_of_iceberg() -> DeltaError:
    return InvalidRequestError(Message.PARTITION_SCHEMA_IN_ICEBERG_TABLES)


def parse_partition_schema(given: T.StructType | str | None) -> StructType:
    """Return the partition columns as a table stores them; no schema means no columns.

    Raises:
        InvalidRequestError: the text is a type but no list of columns.
        pyspark.errors.ParseException: the text is no DDL.
    """
    if given is None:
        return StructType(())
    schema = T.StructType.fromDDL(given) if isinstance(given, str) else given
    if not isinstance(schema, T.StructType):
        raise InvalidRequestError(
            Message.INVALID_PARTITION_COLUMN_TYPE_CONVERT, given=given, partition_schema=str(given)
        )
    return stored_columns(schema)


def quoted_entry_name(entry: StoredEntry) -> str:
    """Return the whole name of a table of the session catalog, every part quoted."""
    return quote_name((SESSION_CATALOG, entry.database, entry.name))


def _find_table(
    spark: SparkSession, parts: Sequence[str], given: StructType
) -> ConversionTarget | AlreadyDelta:
    entry = _read_entry(spark, parts)
    if entry.is_view:
        raise InvalidRequestError(
            Message.OPERATION_NOT_ALLOWED_DETAIL_VIEW, table=quote_name(parts)
        )
    if (entry.provider or "").lower() == FORMAT:
        return AlreadyDelta(location=entry.location, name=quoted_entry_name(entry))
    _require_parquet(entry, parts)
    entry_formats(spark).require_convertible(spark, entry.database, entry.name)
    partitions = _partition_columns(entry)
    if given.fields:
        _require_same_partitions(partitions, given)
    return ConversionTarget(
        location=entry.location, partitions=partitions, stated=given.names, entry=entry
    )


def _read_entry(spark: SparkSession, parts: Sequence[str]) -> StoredEntry:
    name = entry_name(spark, tuple(parts))
    if name is None and len(parts) >= _PARTS_MAX:
        raise InvalidRequestError(
            Message.REQUIRES_SINGLE_PART_NAMESPACE,
            session_catalog=SESSION_CATALOG,
            identifier=quote_name(parts),
        )
    if name is None or not is_taken(spark, name):
        place = spark.catalog.currentCatalog() if name is None else name
        raise TableNotFoundError(
            Message.TABLE_OR_VIEW_NOT_FOUND_CONVERT,
            place=place,
            session_catalog=SESSION_CATALOG,
            table=quote_name(parts),
        )
    return entry_formats(spark).read_entry(spark, name.database, name.name)


def _require_parquet(entry: StoredEntry, parts: Sequence[str]) -> None:
    provider = (entry.provider or "").lower()
    if provider == "parquet" or (provider == _HIVE and "parquet" in (entry.serde or "").lower()):
        return
    if not provider:
        raise InvalidRequestError(
            Message.MISSING_PROVIDER_FOR_CONVERT_TABLE,
            location=entry.location,
            table=quote_name(parts),
        )
    raise InvalidRequestError(
        Message.CONVERT_NON_PARQUET_TABLE_ENTRY, source_name=provider, table=quote_name(parts)
    )


def _columns(schema: T.StructType) -> StructType:
    return StructType(
        tuple(
            StructField(
                field.name,
                field.type,
                nullable=True,
                metadata={k: v for k, v in field.metadata.items() if k != EXISTS_DEFAULT},
            )
            for field in stored_columns(schema).fields
        )
    )


def _partition_columns(entry: StoredEntry) -> StructType:
    columns = _columns(entry.columns)
    found = map(columns.find_ignoring_case, entry.partition_columns)
    return StructType(tuple(column for column in found if column is not None))


def _require_same_partitions(catalog: StructType, given: StructType) -> None:
    """Compare names, types and order; case and comments are the catalog's."""

    def shape(schema: StructType) -> list[tuple[str, str, bool]]:
        return [(f.name.lower(), _shown_type(f), f.nullable) for f in schema.fields]

    if shape(catalog) != shape(given):
        raise _other_partitions(catalog, given)


def _other_partitions(catalog: StructType, given: StructType) -> DeltaError:
    return InvalidRequestError(
        Message.UNEXPECTED_PARTITION_SCHEMA_FROM_USER,
        catalog_partitions=_tree(catalog),
        provided_partitions=_tree(given),
    )


def _tree(schema: StructType) -> str:
    lines = [
        f" |-- {f.name}: {_shown_type(f)} (nullable = {str(f.nullable).lower()})"
        for f in schema.fields
    ]
    return "\n".join(["root", *lines])


def _shown_type(field: StructField) -> str:
    """Return the declared type, with ``char(n)`` and ``varchar(n)``."""
    return str(field.metadata.get(CHAR_VARCHAR, simple_string(field.type)))
