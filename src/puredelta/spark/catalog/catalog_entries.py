"""Entries of Delta tables in the session catalog. Classic sessions only.

An entry holds the table's name, its location and, for listings, the columns at the time of the
last update. Everything else is in the table's log. Tables of other catalogs (``cat.db.t``) are not
looked up.

Spark writes the entry from plain SQL, which does not pass the activated ``spark.sql``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import (
    CatalogError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.spark.jvm import catalog
from puredelta.spark.jvm.catalog import SESSION_CATALOG, CatalogTable, ViewEntry, find_entry
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.names import FORMAT, quote_name
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import quoted_text, struct_as_nullable, without_table_metadata
from puredelta.store.registry import has_scheme

_PARTS_MAX = 3


def find_table(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """Return the Delta table of a name; None for anything else, a view for example."""
    found = find_relation(spark, parts)
    return found if isinstance(found, CatalogTable) else None


def find_relation(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | ViewEntry | None:
    """Return the Delta table or the view that a name of one to three parts stands for, if any.

    A common table expression of the same name is not known here. Over Connect the answer is
    always None.
    """
    if is_connect(spark):
        return None
    names = names_in_session_catalog(spark, parts)
    if names is None:
        return None
    database = names[-2] if len(names) > 1 else None
    return find_entry(spark, database, names[-1], provider=FORMAT)


def names_in_session_catalog(spark: SparkSession, parts: Sequence[str]) -> Sequence[str] | None:
    """Return a name without its catalog, None if that is another one."""
    if len(parts) > _PARTS_MAX:
        return None
    if len(parts) == _PARTS_MAX:
        return parts[1:] if parts[0].lower() == SESSION_CATALOG else None
    return parts if spark.catalog.currentCatalog() == SESSION_CATALOG else None


logger = logging.getLogger(__name__)

_NAME = re.compile(r"\w+", re.ASCII)
"""What Spark's catalog takes for the name of a table."""
_CATALOG_CLASS = f"spark.sql.catalog.{SESSION_CATALOG}"
_KEEPS_ENTRIES_IN_SPARK = {
    None,
    "",
    "builtin",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",  # hands entries on to Spark's own
}
_NO_COLUMNS = T.StructType([T.StructField("none", T.IntegerType())])


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryName:
    """A place in the session catalog, or in another one of this library."""

    database: str
    name: str
    catalog: str = SESSION_CATALOG

    @property
    def parts(self) -> tuple[str, ...]:
        """The whole name in parts."""
        return (self.catalog, self.database, self.name)

    @property
    def quoted(self) -> str:
        """The whole name, safe in any text."""
        return quote_name(self.parts)

    def __str__(self) -> str:
        return self.quoted


def entry_name(spark: SparkSession, parts: tuple[str, ...]) -> EntryName | None:
    """Return where a name belongs; None if that is not the session catalog.

    Raises:
        UnsupportedError: another program replaces the session catalog.
    """
    other = spark.conf.get(_CATALOG_CLASS, None)
    is_of_session = len(parts) < _PARTS_MAX or parts[0].lower() == SESSION_CATALOG
    if other not in _KEEPS_ENTRIES_IN_SPARK and is_of_session:
        raise UnsupportedError(
            f"The table {quote_name(parts)} belongs to {SESSION_CATALOG}, which is {other} in this "
            f"session ({_CATALOG_CLASS}). Tables by name need Spark's own session catalog: start "
            "the session without this setting, or name the table by its path: delta.`/path`.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
            catalog=other,
        )
    names = names_in_session_catalog(spark, parts)
    if names is None:
        return None
    database = names[-2] if len(names) > 1 else spark.catalog.currentDatabase()
    return EntryName(database=database, name=names[-1])


def is_taken(spark: SparkSession, name: EntryName) -> bool:
    """Return whether there is a table or a view of the name."""
    return catalog.has_entry(spark, name.database, name.name)


def default_location(spark: SparkSession, name: EntryName) -> str:
    """Return where a table that names no location belongs, as a decoded URI."""
    return catalog.default_location(spark, name.database, name.name)


def stated_location(spark: SparkSession, name: EntryName, location: str) -> str:
    """Return where a table is that is stated to be at a location.

    As Spark has it of every format, a relative location is one below that of the database.
    """
    if not location or location.startswith("/") or has_scheme(location):
        return location
    return catalog.below_database(spark, name.database, location)


def register(
    spark: SparkSession,
    name: EntryName,
    columns: T.StructType,
    *,
    location: str | None,
    comment: str | None = None,
) -> None:
    """Make an entry; without a location Spark owns the directory, which must be empty."""
    listed = listed_columns(columns)
    # Without columns Spark would ask the format for those of a table that is there already.
    ddl = f" ({(listed if columns.fields else _NO_COLUMNS).toDDL()})"
    where = "" if location is None else f" LOCATION {quoted_text(location)}"
    says = "" if comment is None else f" COMMENT {quoted_text(comment)}"
    catalog.run_command(spark, f"CREATE TABLE {name.quoted}{ddl} USING delta{says}{where}")
    if not columns.fields:
        update_columns(spark, name, listed)


def register_written(
    spark: SparkSession,
    name: EntryName,
    columns: T.StructType,
    *,
    location: str,
    comment: str | None = None,
) -> None:
    """Make the entry of a table whose rows or definition were written right before.

    Raises:
        CatalogError: the catalog refuses; the table exists.
    """
    try:
        register(spark, name, columns, location=location, comment=comment)
    except JVM_ERRORS as refused:
        raise CatalogError(
            f"The table is written, {location}, but the catalog has no entry {name} for it: "
            f"{refused}. Do not write its rows again: give it the name with CREATE TABLE {name} "
            f"USING delta LOCATION '{location}' when the catalog allows it.",
            code=ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
            name=str(name),
            path=location,
        ) from refused


def require_possible(spark: SparkSession, name: EntryName) -> None:
    """Refuse a name that no entry can have, before anything is written.

    Raises:
        InvalidRequestError: Spark's catalog takes no such names (INVALID_SCHEMA_OR_RELATION_NAME).
        TableNotFoundError: there is no such database (SCHEMA_NOT_FOUND).
    """
    if _NAME.fullmatch(name.name) is None:
        raise InvalidRequestError(
            f"`{name.name}` is not a valid name for tables/schemas. Valid names only contain "
            "alphabet characters, numbers and _. Name the table differently, or by its path: "
            "delta.`/path`.",
            code=ErrorCode.INVALID_SCHEMA_OR_RELATION_NAME,
            name=name.name,
        )
    if not catalog.has_database(spark, name.database):
        raise TableNotFoundError(
            f"The schema `{SESSION_CATALOG}`.`{name.database}` cannot be found. Verify the "
            "spelling, or create it: CREATE SCHEMA.",
            code=ErrorCode.SCHEMA_NOT_FOUND,
            name=name.database,
        )


def update_columns(spark: SparkSession, name: EntryName, columns: T.StructType) -> None:
    """List other columns for an entry. The table's definition is in its log, not here."""
    catalog.update_entry_columns(spark, name.database, name.name, listed_columns(columns))


def follow_columns(spark: SparkSession, name: EntryName, columns: T.StructType) -> None:
    """List the columns of a table after a commit that may have changed them; raises nothing.

    The commit is final, and the table's definition is in its log.
    """
    try:
        update_columns(spark, name, columns)
    except JVM_ERRORS as refused:
        logger.warning("The catalog lists the old columns of %s: %s", name, refused)


def created_ms(spark: SparkSession, name: EntryName) -> int:
    """Return when an entry was made: another one of the same name has another time."""
    return catalog.entry_created_ms(spark, name.database, name.name)


def unregister(spark: SparkSession, name: EntryName) -> None:
    """Take an entry back; its directory stays, also where the catalog owns it."""
    catalog.disown_directory(spark, name.database, name.name)
    catalog.run_command(spark, f"DROP TABLE IF EXISTS {name.quoted}")


def listed_columns(columns: T.StructType) -> T.StructType:
    """Return the columns of a table as its entry lists them."""
    return struct_as_nullable(without_table_metadata(columns))
