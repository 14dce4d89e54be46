"""Entries of Delta tables in the session catalog, made and removed. Classic sessions only.

Spark itself writes the entry, from plain SQL that does not pass the activated ``spark.sql``. What
the table is stands in its log; the entry holds its name, its location and, for listings, the
columns it had when they were last listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.catalog.catalog_tables import names_in_session_catalog
from puredelta.spark.jvm import session_catalog
from puredelta.spark.jvm.session_catalog import SESSION_CATALOG
from puredelta.spark.session.identifiers import quote_name
from puredelta.spark.session.types import quoted_text, struct_as_nullable, without_table_metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryName:
    """A place in the session catalog."""

    database: str
    name: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The whole name in parts."""
        return (SESSION_CATALOG, self.database, self.name)

    @property
    def quoted(self) -> str:
        """The whole name, safe in any text."""
        return quote_name(self.parts)

    def __str__(self) -> str:
        return self.quoted


def entry_name(spark: SparkSession, parts: tuple[str, ...]) -> EntryName | None:
    """Return where a name belongs; None if that is not the session catalog."""
    names = names_in_session_catalog(spark, parts)
    if names is None:
        return None
    database = names[-2] if len(names) > 1 else spark.catalog.currentDatabase()
    return EntryName(database=database, name=names[-1])


def is_taken(spark: SparkSession, name: EntryName) -> bool:
    """Return whether there is a table or a view of the name."""
    return session_catalog.has_entry(spark, name.database, name.name)


def default_location(spark: SparkSession, name: EntryName) -> str:
    """Return where a table that names no location belongs, as a decoded URI."""
    return session_catalog.default_location(spark, name.database, name.name)


def register(
    spark: SparkSession,
    name: EntryName,
    columns: T.StructType,
    *,
    location: str | None,
    comment: str | None = None,
) -> None:
    """Make an entry; without a location Spark owns the directory, which must be empty.

    Raises:
        pyspark.errors.AnalysisException: there is such a table, no such database, ...
    """
    ddl = f" ({listed_columns(columns).toDDL()})" if columns.fields else ""
    where = "" if location is None else f" LOCATION {quoted_text(location)}"
    says = "" if comment is None else f" COMMENT {quoted_text(comment)}"
    session_catalog.run_command(spark, f"CREATE TABLE {name.quoted}{ddl} USING delta{says}{where}")


def update_columns(spark: SparkSession, name: EntryName, columns: T.StructType) -> None:
    """List other columns for an entry. What the table is stands in its log, not here."""
    session_catalog.update_entry_columns(spark, name.database, name.name, listed_columns(columns))


def created_ms(spark: SparkSession, name: EntryName) -> int:
    """Return when an entry was made: another one of the same name has another time."""
    return session_catalog.entry_created_ms(spark, name.database, name.name)


def unregister(spark: SparkSession, name: EntryName) -> None:
    """Take an entry back; its directory stays, also where the catalog owns it."""
    session_catalog.disown_directory(spark, name.database, name.name)
    session_catalog.run_command(spark, f"DROP TABLE IF EXISTS {name.quoted}")


def listed_columns(columns: T.StructType) -> T.StructType:
    """Return the columns of a table as its entry lists them."""
    return struct_as_nullable(without_table_metadata(columns))
