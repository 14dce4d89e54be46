"""The session catalog: its entries, and its cache of the relations they stand for.

Classic sessions only: the catalog has no public way to most of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.classes import (
    CATALYST,
    java_class,
    java_type,
    jvm_of,
    scala_some,
    session_of,
    text_items,
    text_option,
)
from puredelta.spark.jvm.plans import Plan

SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table of the session catalog."""

    database: str
    name: str
    location: str
    """Its root: an absolute, decoded URI or path."""
    is_managed: bool = False
    """Whether the catalog owns the directory."""
    owner: str = ""

    @property
    def full_name(self) -> str:
        """The name with its catalog and database, as the history has it."""
        return f"{SESSION_CATALOG}.{self.database}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEntry:
    """An entry of a view of SQL text: the tables it names are looked up where it was made."""

    text: str
    namespace: tuple[str, ...]
    database: str
    """Of the view itself; empty for a temporary one."""
    name: str


def find_entry(
    spark: SparkSession, database: str | None, name: str, *, provider: str
) -> CatalogTable | ViewEntry | None:
    """Return the entry of a table of this provider, or of a view; None for anything else.

    Without a database it is the current one, after temporary views.
    """
    catalog, identifier = catalog_of(spark), _identifier(spark, database, name)
    if not catalog.isTempView(identifier) and not catalog.tableExists(identifier):
        return None
    table = catalog.getTempViewOrPermanentTableMetadata(identifier)
    if (text := text_option(table.viewText())) is not None:
        shown = table.identifier()
        return ViewEntry(
            text=text,
            namespace=text_items(table.viewCatalogAndNamespace()),
            database=text_option(shown.database()) or "",
            name=str(shown.table()),
        )
    if (text_option(table.provider()) or "").lower() != provider:
        return None
    full = table.identifier()
    return CatalogTable(
        database=str(full.database().get()),
        name=str(full.table()),
        location=decoded_location(spark, table.location()),
        is_managed=str(table.tableType().name()) == "MANAGED",
        owner=str(table.owner() or ""),
    )


def has_entry(spark: SparkSession, database: str, name: str) -> bool:
    """Return whether there is a table or a view of the name."""
    return bool(catalog_of(spark).tableExists(_identifier(spark, database, name)))


def has_database(spark: SparkSession, database: str) -> bool:
    """Return whether there is a database of the name."""
    return bool(catalog_of(spark).databaseExists(database))


def default_location(spark: SparkSession, database: str, name: str) -> str:
    """Return where a table that names no location belongs, as a decoded URI."""
    return decoded_location(
        spark, catalog_of(spark).defaultTablePath(_identifier(spark, database, name))
    )


def below_database(spark: SparkSession, database: str, location: str) -> str:
    """Return a relative location as one below that of a database, as a decoded URI."""
    path = java_class(jvm_of(spark), "org.apache.hadoop.fs.Path")
    some_table = path(default_location(spark, database, "t"))
    return str(path(some_table.getParent(), location).toString())


def update_entry_columns(
    spark: SparkSession, database: str, name: str, columns: T.StructType
) -> None:
    """List other columns for an entry, whatever the case of the letters in its name.

    Only Spark's session catalog compares names as the session does; its other half takes the
    name as it was stored. Columns that partition the entry, as Hive keeps them of a table that
    was converted, stay as they are.
    """
    entry = stored_entry(spark, database, name)
    identifier, kept = entry.identifier(), set(text_items(entry.partitionColumnNames()))
    others = T.StructType([field for field in columns.fields if field.name not in kept])
    external_catalog_of(spark).alterTableDataSchema(
        identifier.database().get(), identifier.table(), java_type(jvm_of(spark), others)
    )


def entry_created_ms(spark: SparkSession, database: str, name: str) -> int:
    """Return when the entry of a table was made."""
    return int(stored_entry(spark, database, name).createTime())


def disown_directory(spark: SparkSession, database: str, name: str) -> None:
    """Make a table an external one, so that Spark drops its entry alone."""
    external = java_class(jvm_of(spark), f"{CATALYST}.catalog.CatalogTableType").EXTERNAL()
    stored = stored_entry(spark, database, name)
    external_catalog_of(spark).alterTable(with_fields(stored, tableType=external))


def with_fields(case_class: Any, **changed: Any) -> Any:
    """Return a copy of an object of a Scala case class, with other values in some fields."""
    names = map(case_class.productElementName, range(case_class.productArity()))
    values = (
        changed[name] if name in changed else case_class.productElement(n)
        for n, name in enumerate(names)
    )
    return case_class.copy(*values)


def run_command(spark: SparkSession, text: str) -> None:
    """Run a statement without ``spark.sql``, which an activated session has replaced."""
    session_of(spark).sql(text)


class RelationSlot:
    """The place of one table in the session's cache of relations, from which Spark takes them."""

    def __init__(self, spark: SparkSession, catalog: str, database: str, name: str) -> None:
        jvm = jvm_of(spark)
        self._catalog = catalog_of(spark)
        self._name = java_class(jvm, f"{CATALYST}.QualifiedTableName")(catalog, database, name)
        self.session_id = str(session_of(spark).sessionUUID())
        """Of the session whose cache it is."""

    def fill(self, plan: Plan) -> None:
        """Let the table stand for a plan."""
        self._catalog.cacheTable(self._name, plan.java)

    def clear(self) -> None:
        """Let Spark find out again what the table is."""
        self._catalog.invalidateCachedTable(self._name)


def catalog_of(spark: SparkSession) -> Any:
    """Return the session catalog, which knows temporary views and caches relations."""
    return session_of(spark).sessionState().catalog()


def external_catalog_of(spark: SparkSession) -> Any:
    """Return what keeps the entries: in memory, or a metastore."""
    return session_of(spark).sharedState().externalCatalog()


def stored_entry(spark: SparkSession, database: str, name: str) -> Any:
    """Return the entry of a table or a view, temporary ones aside."""
    return catalog_of(spark).getTableMetadata(_identifier(spark, database, name))


def _identifier(spark: SparkSession, database: str | None, name: str) -> Any:
    jvm = jvm_of(spark)
    return java_class(jvm, f"{CATALYST}.TableIdentifier")(name, scala_some(jvm, database))


def decoded_location(spark: SparkSession, uri: Any) -> str:
    """Return a URI of Java as decoded text."""
    return str(java_class(jvm_of(spark), "org.apache.hadoop.fs.Path")(uri).toString())
