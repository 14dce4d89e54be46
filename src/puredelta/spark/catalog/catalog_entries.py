"""Entries of Delta tables in the session catalog, in classic sessions and over Spark Connect.

An entry holds the table's name, its location and, for listings, the columns at the time of the
last update. Everything else is in the table's log. Tables of other catalogs (``cat.db.t``) are not
looked up.

Spark writes the entry from plain SQL, which does not pass the activated ``spark.sql``. The session
catalog has two implementations (`SessionCatalog`): calls into the JVM, and statements that a
Connect server runs. Their entries are the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import (
    CatalogError,
    DeltaError,
    InvalidRequestError,
    Message,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.spark.catalog import connect_entries, connect_formats
from puredelta.spark.jvm import catalog
from puredelta.spark.jvm.catalog import (
    SESSION_CATALOG,
    CatalogTable,
    StoredEntry,
    StoredPartition,
    ViewEntry,
)
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.names import FORMAT, path_in_name, quote_name
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.types import (
    quoted_text,
    struct_as_nullable,
    with_length,
    without_table_metadata,
)
from puredelta.store.registry import has_scheme

_PARTS_MAX = 3


def find_table(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """Return the Delta table of a name; None for anything else, a view for example."""
    found = find_relation(spark, parts)
    if not isinstance(found, CatalogTable):
        return None
    named = _named.setdefault(spark, {})
    if len(named) >= _NAMED_MAX:
        named.clear()
    named[found.location] = EntryName(database=found.database, name=found.name)
    return found


def find_relation(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | ViewEntry | None:
    """Return the Delta table or the view that a name of one to three parts stands for, if any.

    A common table expression of the same name is not known here. Over Connect it is one request.
    """
    if len(parts) > _PARTS_MAX or path_in_name(parts) is not None:
        return None
    return session_catalog(spark).find_entry(spark, parts, provider=FORMAT)


def look_up_together(spark: SparkSession, names: Collection[tuple[str, ...]]) -> None:
    """Let the names of a statement be found with one request over Connect, where that is known."""
    if is_connect(spark):
        connect_entries.look_up_together(spark, names)


class SessionCatalog(Protocol):
    """The session catalog, as two modules have it: `jvm.catalog` and `connect_entries`."""

    def current_namespace(self, spark: SparkSession, /) -> tuple[str, str]:
        """Return the current catalog and the current database."""

    def find_entry(
        self, spark: SparkSession, /, parts: Sequence[str], *, provider: str
    ) -> CatalogTable | ViewEntry | None:
        """Return the entry of a table of this provider, or of a view; None for anything else."""

    def has_entry(self, spark: SparkSession, /, database: str, name: str) -> bool:
        """Return whether there is a table or a view of the name."""

    def has_database(self, spark: SparkSession, /, database: str) -> bool:
        """Return whether there is a database of the name."""

    def default_location(self, spark: SparkSession, /, database: str, name: str) -> str:
        """Return where a table that names no location belongs, as a decoded URI."""

    def below_database(self, spark: SparkSession, /, database: str, location: str) -> str:
        """Return a relative location as one below that of a database, as a decoded URI."""

    def update_entry_columns(
        self, spark: SparkSession, /, database: str, name: str, columns: T.StructType
    ) -> None:
        """List other columns for an entry."""

    def entry_mark(self, spark: SparkSession, /, database: str, name: str) -> str:
        """Return what another entry of the same name would have otherwise."""

    def disown_directory(self, spark: SparkSession, /, database: str, name: str) -> None:
        """Let Spark drop an entry without the directory of its table."""

    def run_command(self, spark: SparkSession, /, text: str) -> None:
        """Run a statement about entries, which does not pass the activated ``spark.sql``."""


def session_catalog(spark: SparkSession) -> SessionCatalog:
    """Return the session catalog of a session."""
    if is_connect(spark):  # no conditional expression: mypy would not check the modules
        return connect_entries
    return catalog


class EntryFormats(Protocol):
    """Entries of all formats, as two modules have them: `jvm.catalog` and `connect_formats`."""

    def read_entry(self, spark: SparkSession, /, database: str, name: str) -> StoredEntry:
        """Return what the catalog says of a table or a view that is there."""

    def list_partitions(
        self, spark: SparkSession, /, database: str, name: str
    ) -> tuple[StoredPartition, ...]:
        """Return the partitions that the catalog has of a table."""

    def require_convertible(self, spark: SparkSession, /, database: str, name: str) -> None:
        """Refuse a table that `make_delta` cannot change."""

    def format_text(self, spark: SparkSession, /, database: str, name: str) -> str:
        """Return as text all that `make_delta` takes away, for `restore_format`."""

    def make_delta(
        self, spark: SparkSession, /, database: str, name: str, columns: T.StructType
    ) -> None:
        """Make a table of the catalog a Delta table where it is: its log says the rest."""

    def restore_format(self, spark: SparkSession, /, database: str, name: str, text: str) -> None:
        """Make a table of the catalog again what `format_text` has said it was."""


def entry_formats(spark: SparkSession) -> EntryFormats:
    """Return the entries of all formats in the session catalog of a session."""
    if is_connect(spark):
        return connect_formats
    return catalog


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
            Message.OPERATION_NOT_ALLOWED_OTHER_CATALOG_CLASS,
            table=quote_name(parts),
            session_catalog=SESSION_CATALOG,
            setting=_CATALOG_CLASS,
            catalog=other,
        )
    if len(parts) >= _PARTS_MAX:
        of_session = len(parts) == _PARTS_MAX and is_of_session
        return EntryName(database=parts[1], name=parts[2]) if of_session else None
    current, database = session_catalog(spark).current_namespace(spark)
    if current != SESSION_CATALOG:
        return None
    return EntryName(database=parts[0] if len(parts) > 1 else database, name=parts[-1])


def is_taken(spark: SparkSession, name: EntryName) -> bool:
    """Return whether there is a table or a view of the name."""
    return session_catalog(spark).has_entry(spark, name.database, name.name)


def default_location(spark: SparkSession, name: EntryName) -> str:
    """Return where a table that names no location belongs, as a decoded URI."""
    return session_catalog(spark).default_location(spark, name.database, name.name)


def stated_location(spark: SparkSession, name: EntryName, location: str) -> str:
    """Return where a table is that is stated to be at a location.

    As Spark has it of every format, a relative location is one below that of the database.
    """
    if not location or location.startswith("/") or has_scheme(location):
        return location
    return session_catalog(spark).below_database(spark, name.database, location)


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
    session_catalog(spark).run_command(
        spark, f"CREATE TABLE {name.quoted}{ddl} USING delta{says}{where}"
    )
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
            Message.CATALOG_ENTRY_NOT_UPDATED, refused=refused, name=str(name), path=location
        ) from refused


def require_possible(spark: SparkSession, name: EntryName) -> None:
    """Refuse a name that no entry can have, before anything is written.

    Raises:
        InvalidRequestError: Spark's catalog takes no such names (INVALID_SCHEMA_OR_RELATION_NAME).
        TableNotFoundError: there is no such database (SCHEMA_NOT_FOUND).
    """
    if _NAME.fullmatch(name.name) is None:
        raise InvalidRequestError(Message.INVALID_SCHEMA_OR_RELATION_NAME, name=name.name)
    if not session_catalog(spark).has_database(spark, name.database):
        raise TableNotFoundError(
            Message.SCHEMA_NOT_FOUND_SESSION, catalog=SESSION_CATALOG, name=name.database
        )


def update_columns(spark: SparkSession, name: EntryName, columns: T.StructType) -> None:
    """List other columns for an entry. The table's definition is in its log, not here."""
    listed = T.StructType([with_length(field) for field in listed_columns(columns).fields])
    session_catalog(spark).update_entry_columns(spark, name.database, name.name, listed)


def follow_columns(spark: SparkSession, name: EntryName, columns: T.StructType) -> None:
    """List the columns of a table after a commit that may have changed them; raises nothing.

    The commit is final, and the table's definition is in its log.
    """
    try:
        update_columns(spark, name, columns)
    except JVM_ERRORS as refused:
        logger.warning("The catalog lists the old columns of %s: %s", name, refused)


def follow_named_entry(spark: SparkSession, location: str, columns: T.StructType) -> None:
    """`follow_columns` for a table that a statement of the session has named, if any has.

    The entry is looked up again: it may have another name or place by now.
    """
    name = _named.get(spark, {}).get(location)
    if name is None:
        return
    try:
        found = find_table(spark, name.parts)
    except (DeltaError, *JVM_ERRORS) as refused:
        logger.warning("The catalog was not asked for %s after a commit: %s", name, refused)
        return
    if found is not None and found.location == location:
        follow_columns(spark, name, columns)


_named: WeakKeyDictionary[SparkSession, dict[str, EntryName]] = WeakKeyDictionary()
"""By session and location: the entries of Delta tables that its statements have named."""
_NAMED_MAX = 10_000


def entry_mark(spark: SparkSession, name: EntryName) -> str:
    """Return when an entry was made: another one of the same name has another time."""
    return session_catalog(spark).entry_mark(spark, name.database, name.name)


def unregister(spark: SparkSession, name: EntryName) -> None:
    """Take an entry back; its directory stays, also where the catalog owns it."""
    session_catalog(spark).disown_directory(spark, name.database, name.name)
    session_catalog(spark).run_command(spark, f"DROP TABLE IF EXISTS {name.quoted}")


def listed_columns(columns: T.StructType) -> T.StructType:
    """Return the columns of a table as its entry lists them."""
    return struct_as_nullable(without_table_metadata(columns))
