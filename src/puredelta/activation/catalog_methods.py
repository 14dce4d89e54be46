"""``spark.catalog`` for catalogs of this library.

Each function takes a method of PySpark and returns its replacement. Names of Spark's own catalogs
reach the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.catalog import CatalogMetadata, Column, Database, Table

from puredelta.activation.patches import Method, session_behind, table_name
from puredelta.catalogs.catalog import TableIdentifier, address_of
from puredelta.errors import TableNotFoundError
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.catalogs import (
    DEFAULT_SCHEMA,
    Namespace,
    current_namespace,
    describe_table,
    find_described,
    find_identifier,
    require_catalog,
    session_catalog,
    session_catalog_names,
    set_current_namespace,
)
from puredelta.spark.session.names import FORMAT, parse_name
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import to_spark
from puredelta.statements.execute.namespaces import (
    describe_schema,
    find_schema,
    is_like,
    list_tables,
    use_namespace,
)
from puredelta.statements.names.names import find_location
from puredelta.statements.parse.table_name import TableName


def own_current_catalog(original: Method) -> Method:
    """``currentCatalog()``."""

    def call(self: Any) -> Any:
        current = current_namespace(session_behind(self))
        return original(self) if current is None else current.catalog

    return call


def own_current_database(original: Method) -> Method:
    """``currentDatabase()``."""

    def call(self: Any) -> Any:
        current = current_namespace(session_behind(self))
        return original(self) if current is None else current.schema

    return call


def own_set_current_catalog(original: Method) -> Method:
    """``setCurrentCatalog(name)``."""

    def call(self: Any, catalogName: Any) -> Any:
        spark = session_behind(self)
        if not isinstance(catalogName, str) or session_catalog(spark, catalogName) is None:
            return _leaving(spark, lambda: original(self, catalogName))
        use_namespace(spark, Namespace(catalogName, DEFAULT_SCHEMA))
        return None

    return call


def own_set_current_database(original: Method) -> Method:
    """``setCurrentDatabase(name)``."""

    def call(self: Any, dbName: Any) -> Any:
        spark = session_behind(self)
        found = find_schema(spark, parse_name(dbName)) if isinstance(dbName, str) else None
        if found is None:
            return _leaving(spark, lambda: original(self, dbName))
        use_namespace(spark, found)
        return None

    return call


def _leaving(spark: SparkSession, change: Any) -> Any:
    """Change Spark's own current catalog; this library's is forgotten if that succeeds."""
    done = change()
    set_current_namespace(spark, None)
    return done


def own_list_catalogs(original: Method) -> Method:
    """``listCatalogs(pattern)``."""

    def call(self: Any, pattern: str | None = None) -> Any:
        known = original(self, pattern)
        names = {row.name for row in known}
        ours = session_catalog_names(session_behind(self))
        return [
            *known,
            *(
                CatalogMetadata(name=name, description=None)
                for name in ours
                if name not in names and is_like(name, pattern or "*")
            ),
        ]

    return call


def own_list_databases(original: Method) -> Method:
    """``listDatabases(pattern)``."""

    def call(self: Any, pattern: str | None = None) -> Any:
        spark = session_behind(self)
        current = current_namespace(spark)
        if current is None:
            return original(self, pattern)
        names = require_catalog(spark, current.catalog).schemas()
        return [
            Database(name=name, catalog=current.catalog, description=None, locationUri="")
            for name in names
            if is_like(name, pattern or "*")
        ]

    return call


def own_get_database(original: Method) -> Method:
    """``getDatabase(name)``."""

    def call(self: Any, dbName: str) -> Any:
        spark = session_behind(self)
        found = find_schema(spark, parse_name(dbName))
        if found is None:
            return original(self, dbName)
        said = describe_schema(spark, found)
        return Database(
            name=found.schema,
            catalog=found.catalog,
            description=said.comment or None,
            locationUri=said.location,
        )

    return call


def own_database_exists(original: Method) -> Method:
    """``databaseExists(name)``."""

    def call(self: Any, dbName: str) -> Any:
        spark = session_behind(self)
        try:
            found = find_schema(spark, parse_name(dbName))
            if found is None:
                return original(self, dbName)
            describe_schema(spark, found)
        except TableNotFoundError:
            return False
        return True

    return call


def own_list_tables(original: Method) -> Method:
    """``listTables(schema, pattern)``."""

    def call(self: Any, dbName: str | None = None, pattern: str | None = None) -> Any:
        spark = session_behind(self)
        found = find_schema(spark, () if dbName is None else parse_name(dbName))
        if found is None:
            return original(self, dbName, pattern)
        return list(_tables(spark, found, pattern or "*"))

    return call


def _tables(spark: SparkSession, namespace: Namespace, pattern: str) -> Iterator[Table]:
    for row in list_tables(spark, namespace, pattern):
        yield _table(row.name, row.kind)


def _table(name: TableIdentifier, kind: str, comment: str | None = None) -> Table:
    return Table(
        name=name.table,
        catalog=name.catalog,
        namespace=[name.schema],
        description=comment,
        tableType=kind,
        isTemporary=False,
    )


def own_get_table(original: Method) -> Method:
    """``getTable(name)``."""

    def call(self: Any, tableName: str) -> Any:
        identifier = _identifier(self, tableName)
        if identifier is None:
            return original(self, tableName)
        found = describe_table(session_behind(self), identifier)
        return _table(identifier, found.kind, found.comment or None)

    return call


def own_table_exists(original: Method) -> Method:
    """``tableExists(name, schema)``."""

    def call(self: Any, tableName: str, dbName: str | None = None) -> Any:
        identifier = _identifier(self, tableName, dbName)
        if identifier is None:
            if _is_too_long(self, tableName):
                return False
            return original(self, tableName, dbName)
        return find_described(session_behind(self), identifier) is not None

    return call


def _is_too_long(catalog: Any, table: Any) -> bool:
    """Return whether a name begins with a catalog of this library, and has too many parts."""
    name = table_name(table)
    if name is None or len(name.parts) <= _PARTS_MAX:
        return False
    return session_catalog(session_behind(catalog), name.parts[0]) is not None


_PARTS_MAX = 3


def own_list_columns(original: Method) -> Method:
    """``listColumns(name, schema)``."""

    def call(self: Any, tableName: str, dbName: str | None = None) -> Any:
        spark = session_behind(self)
        identifier = _identifier(self, tableName, dbName)
        if identifier is not None:
            return list(_columns(spark, identifier))
        location = _location(spark, tableName, dbName)
        if location is None:
            return original(self, tableName, dbName)
        return list(_logged_columns(open_log(spark, location).snapshot().config))

    return call


def _location(spark: SparkSession, table: Any, schema: str | None) -> str | None:
    """Return where a Delta table of the session catalog is, or one that is named by its path."""
    name = table_name(table)
    if name is not None and schema is not None and name.path is None:
        name = TableName((*parse_name(schema), *name.parts))
    return None if name is None else find_location(spark, name)


def _columns(spark: SparkSession, identifier: TableIdentifier) -> Iterator[Column]:
    found = describe_table(spark, identifier)
    if found.format == FORMAT:
        yield from _logged_columns(open_log(spark, address_of(identifier)).snapshot().config)
        return
    for name, kind in found.columns:
        yield _column(name, kind)


def _logged_columns(config: TableConfig) -> Iterator[Column]:
    """Yield the columns of the newest version, which an entry of a catalog may not have yet."""
    for field in to_spark(config.schema).fields:
        yield _column(
            field.name,
            field.dataType.simpleString(),
            comment=field.metadata.get("comment"),
            nullable=field.nullable,
            is_partition=field.name in config.partition_columns,
        )


def _column(
    name: str,
    kind: str,
    *,
    comment: str | None = None,
    nullable: bool = True,
    is_partition: bool = False,
) -> Column:
    return Column(
        name=name,
        description=comment,
        dataType=kind,
        nullable=nullable,
        isPartition=is_partition,
        isBucket=False,
        isCluster=False,
    )


def own_refresh_table(original: Method) -> Method:
    """``refreshTable(name)`` and ``recoverPartitions(name)``: each read asks the catalog anyway."""

    def call(self: Any, tableName: str) -> Any:
        identifier = _identifier(self, tableName)
        if identifier is None:
            return original(self, tableName)
        describe_table(session_behind(self), identifier)
        return None

    return call


def _identifier(catalog: Any, table: Any, schema: str | None = None) -> TableIdentifier | None:
    name = table_name(table)
    if name is None or name.path is not None:
        return None
    parts = name.parts if schema is None else (*parse_name(schema), *name.parts)
    return find_identifier(session_behind(catalog), parts)


def own_cache_table(original: Method) -> Method:
    """``cacheTable(name)``: the frame of the table, see `DataFrame.persist`."""

    def call(self: Any, tableName: str, storageLevel: Any = None) -> Any:
        if _identifier(self, tableName) is None:
            given = () if storageLevel is None else (storageLevel,)
            return original(self, tableName, *given)
        rows = session_behind(self).table(tableName)
        rows.cache() if storageLevel is None else rows.persist(storageLevel)
        return None

    return call


def own_uncache_table(original: Method) -> Method:
    """``uncacheTable(name)``."""

    def call(self: Any, tableName: str) -> Any:
        if _identifier(self, tableName) is None:
            return original(self, tableName)
        session_behind(self).table(tableName).unpersist()
        return None

    return call


def own_is_cached(original: Method) -> Method:
    """``isCached(name)``."""

    def call(self: Any, tableName: str) -> Any:
        if _identifier(self, tableName) is None:
            return original(self, tableName)
        level = session_behind(self).table(tableName).storageLevel
        return level.useMemory or level.useDisk

    return call


def own_function(original: Method) -> Method:
    """``functionExists``, ``getFunction`` and ``listFunctions``, whose errors name the catalog.

    Spark alone has functions, and it cannot load a catalog of this library.
    """

    def call(self: Any, *args: Any, **rest: Any) -> Any:
        return original(self, *args, **rest)

    return call
