"""The session catalog: its entries, their formats, and its cached relations.

Classic sessions only. The catalog has no public interface for most of this. Entries are read as
JSON that Jackson, which Spark includes, makes of Scala's objects: one call for any number of
partitions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.gateway import (
    CATALYST,
    JVM_ERRORS,
    chained,
    java_class,
    java_type,
    jvm_of,
    method_step,
    once_per_session,
    scala_map,
    scala_none,
    scala_object,
    scala_seq,
    scala_some,
    session_of,
    step,
    text_items,
    text_option,
)
from puredelta.spark.jvm.plans import Plan

SESSION_CATALOG = "spark_catalog"
_NO_SUCH_ENTRY = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table of the session catalog, or of another one of this library."""

    database: str
    name: str
    location: str
    """Its root: an absolute, decoded URI or path."""
    is_managed: bool = False
    """Whether the catalog owns the directory."""
    owner: str = ""
    catalog: str = SESSION_CATALOG

    @property
    def full_name(self) -> str:
        """The name with its catalog and database, as the history has it."""
        return f"{self.catalog}.{self.database}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewEntry:
    """An entry of a view of SQL text: the tables it names are looked up where it was made."""

    text: str
    namespace: tuple[str, ...]
    database: str
    """Of the view itself; empty for a temporary one."""
    name: str
    queried: tuple[str, ...] = ()
    """The columns that its query had when it was made, as far as a server tells."""


def current_namespace(spark: SparkSession) -> tuple[str, str]:
    """Return Spark's own current catalog and database, whatever `activate` has replaced."""
    return _current_catalog(spark), str(_catalogs_of(spark).currentDatabase())


@once_per_session
def _catalogs_of(spark: SparkSession) -> Any:
    return session_of(spark).catalog()


def _current_catalog(spark: SparkSession) -> str:
    return str(_catalogs_of(spark).currentCatalog())


def find_entry(
    spark: SparkSession, parts: Sequence[str], *, provider: str
) -> CatalogTable | ViewEntry | None:
    """Return the entry of a table of this provider, or of a view; None for anything else.

    The name has one part, two or three. Without a database it is the current one, after
    temporary views.
    """
    named, *parents = reversed(parts)
    database = parents[0] if parents else None
    outer = parents[1].lower() if len(parents) > 1 else None
    if outer not in (None, SESSION_CATALOG):
        return None
    if database is not None and _PATH.match(named) and database.lower() != _global_database(spark):
        return None  # files: the catalog takes no such name for a table or a view
    others = _names_of_others(spark)
    known = others.get((database, named))
    if known is not None and _is_of_others(spark, known, provider):
        return None
    if outer is None and _current_catalog(spark) != SESSION_CATALOG:
        return None
    identifier = _identifier(spark, database, named)
    others.pop((database, named), None)
    try:
        table = catalog_of(spark).getTempViewOrPermanentTableMetadata(identifier)
    except AnalysisException as refused:
        if refused.getCondition() in _NO_SUCH_ENTRY:
            return None
        raise
    named_provider = text_option(table.provider())  # a view has none
    text = None
    if named_provider is None:
        text = text_option(table.viewText())
    if text is not None:
        shown = table.identifier()
        return ViewEntry(
            text=text,
            namespace=text_items(table.viewCatalogAndNamespace()),
            database=text_option(shown.database()) or "",
            name=str(shown.table()),
        )
    if named_provider is None or named_provider.lower() != provider:
        if len(others) >= _OTHERS_MAX:
            others.clear()
        others[database, named] = identifier
        return None
    full = table.identifier()
    return CatalogTable(
        database=str(full.database().get()),
        name=str(full.table()),
        location=decoded_location(spark, table.location()),
        is_managed=str(table.tableType().name()) == "MANAGED",
        owner=str(table.owner() or ""),
    )


_PATH = re.compile(r"(?:[A-Za-z][\w+.-]*:)?/")
_OTHERS_MAX = 256
_NOTHING = "None"
"""What an empty ``Option`` of Scala prints."""


@once_per_session
def _names_of_others(_spark: SparkSession) -> dict[tuple[str | None, str], Any]:
    """Return the identifiers of names that were last neither Delta's nor views of SQL text.

    Such a name is looked up in one call, which gives the format that its entry has now.
    """
    return {}


def _is_of_others(spark: SparkSession, identifier: Any, provider: str) -> bool:
    """Return whether there is an entry of the name, of another format and no view of SQL text."""
    steps = _entry_steps(spark)
    if steps is None:
        return False
    formats, texts = steps
    try:
        named_provider = str(formats.transform(identifier))
        if named_provider == _NOTHING:
            return str(texts.transform(identifier)) == _NOTHING
    except JVM_ERRORS:
        return False  # it is gone: the whole look-up says what is wrong
    return named_provider.lower() != f"some({provider})"


@once_per_session
def _entry_steps(spark: SparkSession) -> tuple[Any, Any] | None:
    """Return what the JVM finds by an identifier in one call: an entry's format, a view's text.

    None for a catalog of a class that is not public.
    """
    jvm = jvm_of(spark)
    try:
        entry = method_step(
            catalog_of(spark),
            "getTempViewOrPermanentTableMetadata",
            returned=f"{CATALYST}.catalog.CatalogTable",
            parameter=f"{CATALYST}.TableIdentifier",
        )
    except JVM_ERRORS:
        return None
    printed = step(jvm, "toString")
    provider, text = step(jvm, "provider"), step(jvm, "viewText")
    return chained(jvm, entry, provider, printed), chained(jvm, entry, text, printed)


@once_per_session
def _global_database(spark: SparkSession) -> str:
    """Return the database of global temporary views, which take any name."""
    return str(catalog_of(spark).globalTempDatabase()).lower()


def has_temporary_view(spark: SparkSession, name: str) -> bool:
    """Return whether the session has a temporary view of the name."""
    return bool(catalog_of(spark).isTempView(_identifier(spark, None, name)))


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


def entry_mark(spark: SparkSession, database: str, name: str) -> str:
    """Return what another entry of the same name would have otherwise: when it was made."""
    return str(stored_entry(spark, database, name).createTime())


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


@once_per_session
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
    outer = _no_database(spark) if database is None else scala_some(jvm, database)
    return java_class(jvm, f"{CATALYST}.TableIdentifier")(name, outer)


@once_per_session
def _no_database(spark: SparkSession) -> Any:
    return scala_none(jvm_of(spark))


def decoded_location(spark: SparkSession, uri: Any) -> str:
    """Return a URI of Java as decoded text."""
    return str(java_class(jvm_of(spark), "org.apache.hadoop.fs.Path")(uri).toString())


_STORAGE = f"{CATALYST}.catalog.CatalogStorageFormat"
_HIVE = "hive"
_PROVIDER = "spark.sql.sources.provider"
_BUCKETS = f"{CATALYST}.catalog.BucketSpec"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """What the session catalog keeps of a table of any format."""

    database: str
    """Names are as the catalog spells them."""
    name: str
    is_view: bool
    provider: str | None
    """``hive`` where a serde of Hive says how the files are read."""
    serde: str | None
    location: str
    """An absolute, decoded URI; empty for a view."""
    columns: T.StructType
    """All of them; ``char(n)`` and ``varchar(n)`` are types of their own."""
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    comment: str | None
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPartition:
    """A partition that the catalog knows."""

    values: Mapping[str, str | None]
    """By column, as Hive writes them."""
    location: str | None
    """An encoded URI."""


def read_entry(spark: SparkSession, database: str, name: str) -> StoredEntry:
    """Return what the catalog says of a table or a view that is there, temporary ones aside."""
    stored = _raw_entry(spark, database, name)
    identifier = stored.identifier()
    is_view = str(stored.tableType().name()) == "VIEW"
    return StoredEntry(
        database=str(identifier.database().get()),
        name=str(identifier.table()),
        is_view=is_view,
        provider=text_option(stored.provider()),
        serde=text_option(stored.storage().serde()),
        location="" if is_view else decoded_location(spark, stored.location()),
        columns=T.StructType.fromJson(json.loads(stored.schema().json())),
        partition_columns=tuple(_plain(spark, stored.partitionColumnNames())),
        properties=_plain(spark, stored.properties()),
        comment=text_option(stored.comment()),
        created_ms=int(stored.createTime()),
    )


def list_partitions(spark: SparkSession, database: str, name: str) -> tuple[StoredPartition, ...]:
    """Return the partitions that the catalog has of a table."""
    none = scala_none(jvm_of(spark))
    found = _plain(spark, external_catalog_of(spark).listPartitions(database, name, none))
    return tuple(
        StoredPartition(values=one["spec"], location=one["storage"]["locationUri"]) for one in found
    )


def require_convertible(spark: SparkSession, database: str, name: str) -> None:
    """Refuse nothing: `make_delta` changes every entry in place."""


def format_text(spark: SparkSession, database: str, name: str) -> str:
    """Return as text all that `make_delta` takes away, for `restore_format`."""
    stored = _raw_entry(spark, database, name)
    return json.dumps(
        {
            "provider": text_option(stored.provider()),
            "schema": json.loads(stored.schema().json()),
            "partitionColumnNames": _plain(spark, stored.partitionColumnNames()),
            "properties": _plain(spark, stored.properties()),
            "storage": _plain(spark, stored.storage()),
            "bucketSpec": _plain(spark, stored.bucketSpec()),
        }
    )


def make_delta(spark: SparkSession, database: str, name: str, columns: T.StructType) -> None:
    """Make a table of the catalog a Delta table where it is: its log says the rest.

    Hive's metastore keeps schema and partition columns that an entry had.
    """
    jvm = jvm_of(spark)
    stored = _raw_entry(spark, database, name)
    none = scala_none(jvm)
    storage = with_fields(stored.storage(), inputFormat=none, outputFormat=none, serde=none)
    _alter(
        spark,
        with_fields(
            stored,
            provider=scala_some(jvm, "delta"),
            schema=java_type(jvm, columns),
            partitionColumnNames=scala_seq(jvm, ()),
            properties=scala_map(jvm, {}),
            bucketSpec=none,
            storage=storage,
        ),
    )


def restore_format(spark: SparkSession, database: str, name: str, text: str) -> None:
    """Make a table of the catalog again what `format_text` has said it was."""
    jvm = jvm_of(spark)
    was = json.loads(text)
    storage = _read(spark, was["storage"], _STORAGE)
    if was["provider"] == _HIVE:
        _restore_hive_table(spark, stored_entry(spark, database, name), storage, was["properties"])
        return
    buckets = None if was["bucketSpec"] is None else _read(spark, was["bucketSpec"], _BUCKETS)
    schema = java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(
        json.dumps(was["schema"])
    )
    _alter(
        spark,
        with_fields(
            _raw_entry(spark, database, name),
            provider=scala_some(jvm, was["provider"]),
            schema=schema,
            partitionColumnNames=scala_seq(jvm, was["partitionColumnNames"]),
            properties=scala_map(jvm, was["properties"]),
            bucketSpec=scala_some(jvm, buckets),
            storage=storage,
        ),
    )


def _restore_hive_table(
    spark: SparkSession, shown: Any, storage: Any, properties: Mapping[str, str]
) -> None:
    """Make a table one of Hive's own: those have no provider, and Spark's catalog adds one.

    Its columns are Hive's and have not changed.
    """
    identifier = shown.identifier()
    database, name = identifier.database().get(), identifier.table()
    metastore = external_catalog_of(spark).unwrapped()
    kept = metastore.getRawTable(database, name)
    whole = {**_plain(spark, kept.properties()), **properties}
    whole.pop(_PROVIDER, None)
    changed = with_fields(kept, properties=scala_map(jvm_of(spark), whole), storage=storage)
    metastore.client().alterTable(database, name, changed)
    catalog_of(spark).refreshTable(identifier)


def _raw_entry(spark: SparkSession, database: str, name: str) -> Any:
    """Return an entry as it is kept: Spark's own catalog shows ``char(n)`` as a string."""
    shown = stored_entry(spark, database, name).identifier()
    return external_catalog_of(spark).getTable(shown.database().get(), shown.table())


def _alter(spark: SparkSession, changed: Any) -> None:
    """Change the entry, in one call of the catalog, and forget what sessions know of it."""
    external_catalog_of(spark).alterTable(changed)
    catalog_of(spark).refreshTable(changed.identifier())


def _plain(spark: SparkSession, scala: Any) -> Any:
    """Return Scala's collections and case classes as Python's."""
    return json.loads(str(_mapper(spark).writeValueAsString(scala)))


def _read(spark: SparkSession, plain: Any, name: str) -> Any:
    """Return a case class whose fields are given as Python's values."""
    jvm = jvm_of(spark)
    thread = java_class(jvm, "java.lang.Thread").currentThread()
    kind = thread.getContextClassLoader().loadClass(name)
    return _mapper(spark).readValue(json.dumps(plain), kind)


def _mapper(spark: SparkSession) -> Any:
    jvm = jvm_of(spark)
    mapper = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    module = "com.fasterxml.jackson.module.scala.DefaultScalaModule"
    return mapper.registerModule(scala_object(jvm, module))
