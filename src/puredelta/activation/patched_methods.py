"""The table of PySpark methods that the activation replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from puredelta.activation import catalog_methods as of_catalog
from puredelta.activation import table_writing
from puredelta.activation.captured_options import CapturedOptions, TableOptions
from puredelta.activation.patches import Make, Method, Patches, session_behind
from puredelta.activation.reader_methods import (
    delta_call,
    delta_changes,
    delta_expression,
    delta_expressions,
    delta_load,
    delta_sql,
    delta_stream_changes,
    delta_stream_table,
    delta_table,
    load_rows,
    load_stream,
    named_by_client,
    rows_of_client,
    sql_of_client,
    sql_of_session,
    stream_load_by_client,
)
from puredelta.activation.writer_methods import (
    delta_create_table,
    delta_definition,
    delta_foreach_batch,
    delta_insert_into,
    delta_merge_into,
    delta_save,
    delta_save_as_table,
    delta_start,
    delta_table_write,
    delta_to_table,
    foreach_batch_on_server,
    start_in_session,
    start_on_server,
)
from puredelta.commands.create.create_table import CreateMode
from puredelta.spark.catalog.connect_entries import external_tables, with_source
from puredelta.spark.jvm.catalog import SESSION_CATALOG
from puredelta.spark.scan.log_answers import answered, counted, limited
from puredelta.spark.session.session import CONNECT
from puredelta.statements.names.stored_views import rows_of_name


def shorter(original: Method) -> Method:
    """``collect``, ``toPandas`` and the like: see `puredelta.spark.scan.log_answers`."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        rows = answered(self)
        return original(self if rows is None else rows, *args, **kwargs)

    return call


def shorter_show(original: Method) -> Method:
    """``df.show(n)``, which reads one row more than it shows."""

    def call(self: Any, n: Any = 20, *args: Any, **kwargs: Any) -> Any:
        rows = answered(self)
        if rows is None and type(n) is int:
            rows = limited(self, n + 1)
        return original(self if rows is None else rows, n, *args, **kwargs)

    return call


def shorter_count(original: Method) -> Method:
    """``df.count()``."""

    def call(self: Any) -> Any:
        number = counted(self)
        if number is not None:
            return number
        rows = answered(self)
        return original(self if rows is None else rows)

    return call


def shorter_is_empty(original: Method) -> Method:
    """``df.isEmpty()``."""

    def call(self: Any) -> Any:
        number = counted(self)
        if number is not None:
            return number == 0
        rows = answered(self)
        return original(self if rows is None else rows)

    return call


def knowing_entries(original: Method) -> Method:
    """A method of ``spark.catalog`` that reads or changes entries of tables."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        spark = self._sparkSession
        return with_source(spark, lambda: original(self, *args, **kwargs))

    return call


def listing_entries(original: Method) -> Method:
    """``spark.catalog.listTables`` and ``getTable``: a Connect server knows no external tables."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        spark, found = self._sparkSession, original(self, *args, **kwargs)
        tables = found if isinstance(found, list) else [found]
        name = "*" if isinstance(found, list) else found.name
        databases = {table.namespace[-1] for table in tables if _may_be_external(table)}
        external = {
            (database, table)
            for database in databases
            for table in external_tables(spark, database, name)
        }
        shown = [
            one._replace(tableType="EXTERNAL")
            if _may_be_external(one) and (one.namespace[-1], one.name) in external
            else one
            for one in tables
        ]
        return shown if isinstance(found, list) else shown[0]

    return call


def _may_be_external(table: Any) -> bool:
    is_of_session = table.catalog == SESSION_CATALOG and bool(table.namespace)
    return is_of_session and table.tableType == "MANAGED"


_OF_ENTRIES = (
    "tableExists",
    "listColumns",
    "cacheTable",
    "uncacheTable",
    "isCached",
    "refreshTable",
)
_OF_LISTS = ("getTable", "listTables")


class Owner(Enum):
    """A class of PySpark whose methods are replaced; classic and Connect have one each.
    Expressions are classes of Connect alone.

    The value is its module, below the package of a kind of session, and its name.
    """

    SESSION = ("session", "SparkSession")
    CATALOG = ("catalog", "Catalog")
    FRAME = ("dataframe", "DataFrame")
    READER = ("readwriter", "DataFrameReader")
    WRITER = ("readwriter", "DataFrameWriter")
    TABLE_WRITER = ("readwriter", "DataFrameWriterV2")
    TEXT = ("expressions", "SQLExpression")
    CALL = ("expressions", "CallFunction")
    STREAM_READER = ("streaming.readwriter", "DataStreamReader")
    STREAM_WRITER = ("streaming.readwriter", "DataStreamWriter")


@dataclass(frozen=True, slots=True)
class PatchedMethod:
    """One method, and the function that makes its replacement from the original.

    Classes of Connect get ``connect``, if there is one. Without a function a method stays.
    """

    owner: Owner
    name: str
    make: Make | None
    connect: Make | None = None
    is_newer: bool = False
    """Whether the oldest PySpark lacks the method."""


Capture: TypeAlias = Callable[..., CapturedOptions]
"""Maps the options captured before, and the arguments of a call, to the new captured options."""


def _mode(known: CapturedOptions, saveMode: str | None) -> CapturedOptions:
    return known if saveMode is None else replace(known, mode=saveMode)


_OPTIONS: Mapping[str, Capture] = {
    "format": lambda known, source: replace(known, format=source, has_own_sink=False),
    "option": lambda known, key, value: known.with_options({key: value}),
    "options": lambda known, /, **options: known.with_options(options),
}
_LAYOUT: Mapping[str, Capture] = {
    "partitionBy": lambda known, *cols: known.with_partitions(_one_by_one(cols)),
    "clusterBy": lambda known, *cols: replace(known, cluster_by=tuple(_one_by_one(cols))),
}
_READER: Mapping[str, Capture] = {
    **_OPTIONS,
    "schema": lambda known, *_, **__: replace(known, has_schema=True),
}
_WRITER: Mapping[str, Capture] = {
    **_OPTIONS,
    **_LAYOUT,
    "mode": _mode,
    "bucketBy": lambda known, *_, **__: replace(known, layout="bucketBy"),
    "sortBy": lambda known, *_, **__: replace(known, layout="sortBy"),
}
_TABLE_WRITER: Mapping[str, Capture] = {
    "using": lambda known, provider: replace(known, format=provider),
    "option": _OPTIONS["option"],
    "options": _OPTIONS["options"],
    "tableProperty": CapturedOptions.with_property,
    "partitionedBy": lambda known, col, *cols: known.with_table(partition_by=(col, *cols)),
    "clusterBy": lambda known, col, *cols: known.with_table(cluster_by=(col, *cols)),
}
_STREAM_WRITER: Mapping[str, Capture] = {
    **_OPTIONS,
    **_LAYOUT,
    "outputMode": lambda known, outputMode: replace(known, output_mode=outputMode),
    "queryName": lambda known, queryName: replace(known, query_name=queryName),
    "trigger": lambda known, **trigger: replace(known, trigger=trigger),  # noqa: PLW0108 - a dict
    "foreach": lambda known, *_, **__: replace(known, has_own_sink=True),
}


def _one_by_one(columns: tuple[Any, ...]) -> Any:
    """Return columns given as several arguments, or as one list."""
    is_list = len(columns) == 1 and isinstance(columns[0], list | tuple)
    return columns[0] if is_list else columns


def _capturing(owner: Owner, captures: Mapping[str, Capture]) -> Iterable[PatchedMethod]:
    """Let methods of a builder capture their arguments, and do nothing else."""

    def make(capture: Capture, original: Method) -> Method:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(self, *args, **kwargs)  # first, so that refused options do not count
            capture(CapturedOptions.of(self), *args, **kwargs).keep(self)
            return answer

        return call

    return (PatchedMethod(owner, name, partial(make, how)) for name, how in captures.items())


def _capturing_table_writer(original: Method) -> Method:
    """Let ``df.writeTo(name)`` pass the frame and the name to the writer that it makes."""

    def call(self: Any, table: str) -> Any:
        made = original(self, table)
        CapturedOptions(table=TableOptions(rows=self, name=table, properties={})).keep(made)
        return made

    return call


_CATALOG: Mapping[str, Make] = {
    "cacheTable": of_catalog.own_cache_table,
    "currentCatalog": of_catalog.own_current_catalog,
    "currentDatabase": of_catalog.own_current_database,
    "databaseExists": of_catalog.own_database_exists,
    "functionExists": of_catalog.own_function,
    "getDatabase": of_catalog.own_get_database,
    "getFunction": of_catalog.own_function,
    "getTable": of_catalog.own_get_table,
    "isCached": of_catalog.own_is_cached,
    "listCatalogs": of_catalog.own_list_catalogs,
    "listColumns": of_catalog.own_list_columns,
    "listDatabases": of_catalog.own_list_databases,
    "listFunctions": of_catalog.own_function,
    "listTables": of_catalog.own_list_tables,
    "recoverPartitions": of_catalog.own_refresh_table,
    "refreshTable": of_catalog.own_refresh_table,
    "setCurrentCatalog": of_catalog.own_set_current_catalog,
    "setCurrentDatabase": of_catalog.own_set_current_database,
    "tableExists": of_catalog.own_table_exists,
    "uncacheTable": of_catalog.own_uncache_table,
}
"""Methods of ``spark.catalog`` that take or return names."""


def _of_catalog(name: str) -> Callable[[Method], Method]:
    """Return the replacement of a method: catalogs of this library first, then entries of Spark."""
    own = _CATALOG[name]
    if name in _OF_ENTRIES:
        return lambda original: own(knowing_entries(original))
    if name in _OF_LISTS:
        return lambda original: own(listing_entries(knowing_entries(original)))
    return own


def _tables(owner: Owner, session: Callable[[Any], SparkSession]) -> Iterable[PatchedMethod]:
    """Return the method ``table`` of a session or of its reader."""
    classic, connect = (delta_table(session, rows) for rows in (rows_of_name, named_by_client))
    return [PatchedMethod(owner, "table", classic, connect)]


PATCHED_METHODS: tuple[PatchedMethod, ...] = (
    *_capturing(Owner.READER, _READER),
    PatchedMethod(Owner.READER, "load", delta_load(load_rows)),
    *_tables(Owner.READER, session_behind),
    PatchedMethod(Owner.READER, "changes", delta_changes, is_newer=True),
    *_capturing(Owner.WRITER, _WRITER),
    PatchedMethod(Owner.WRITER, "save", delta_save),
    PatchedMethod(Owner.WRITER, "saveAsTable", delta_save_as_table),
    PatchedMethod(Owner.WRITER, "insertInto", delta_insert_into),
    PatchedMethod(Owner.FRAME, "writeTo", _capturing_table_writer),
    PatchedMethod(Owner.FRAME, "mergeInto", delta_merge_into),
    PatchedMethod(Owner.FRAME, "filter", delta_expressions),
    PatchedMethod(Owner.FRAME, "selectExpr", delta_expressions),
    PatchedMethod(Owner.FRAME, "count", shorter_count),
    PatchedMethod(Owner.FRAME, "isEmpty", shorter_is_empty),
    PatchedMethod(Owner.FRAME, "show", shorter_show),
    *(
        PatchedMethod(Owner.FRAME, name, shorter)
        for name in ("collect", "explain", "toArrow", "toLocalIterator", "toPandas")
    ),
    *_capturing(Owner.TABLE_WRITER, _TABLE_WRITER),
    PatchedMethod(Owner.TABLE_WRITER, "append", delta_table_write(table_writing.append)),
    PatchedMethod(Owner.TABLE_WRITER, "overwrite", delta_table_write(table_writing.overwrite)),
    PatchedMethod(
        Owner.TABLE_WRITER,
        "overwritePartitions",
        delta_table_write(table_writing.overwrite_partitions),
    ),
    PatchedMethod(Owner.TABLE_WRITER, "create", delta_definition(CreateMode.CREATE)),
    PatchedMethod(Owner.TABLE_WRITER, "replace", delta_definition(CreateMode.REPLACE)),
    PatchedMethod(
        Owner.TABLE_WRITER, "createOrReplace", delta_definition(CreateMode.CREATE_OR_REPLACE)
    ),
    *_capturing(Owner.STREAM_READER, _READER),
    PatchedMethod(Owner.STREAM_READER, "load", delta_load(load_stream), stream_load_by_client),
    PatchedMethod(Owner.STREAM_READER, "table", delta_stream_table),
    PatchedMethod(Owner.STREAM_READER, "changes", delta_stream_changes, is_newer=True),
    *_capturing(Owner.STREAM_WRITER, _STREAM_WRITER),
    PatchedMethod(
        Owner.STREAM_WRITER, "foreachBatch", delta_foreach_batch, foreach_batch_on_server
    ),
    *(
        PatchedMethod(Owner.STREAM_WRITER, name, make(start_in_session), make(start_on_server))
        for name, make in (("start", delta_start), ("toTable", delta_to_table))
    ),
    PatchedMethod(Owner.CATALOG, "createTable", delta_create_table),
    *(PatchedMethod(Owner.CATALOG, name, _of_catalog(name)) for name in _CATALOG),
    *_tables(Owner.SESSION, lambda session: session),
    PatchedMethod(Owner.TEXT, "to_plan", delta_expression),
    PatchedMethod(Owner.CALL, "to_plan", delta_call),
    PatchedMethod(Owner.SESSION, "createDataFrame", None, rows_of_client),
    PatchedMethod(Owner.SESSION, "sql", delta_sql(sql_of_session), delta_sql(sql_of_client)),
)


def patched(owners: Mapping[Owner, type], package: str) -> Patches:
    """Replace the methods of these classes of a kind of session; if one fails, undo all."""
    patches = Patches()
    try:
        for method in PATCHED_METHODS:
            owner = owners.get(method.owner)
            if owner is None or (method.is_newer and method.name not in vars(owner)):
                continue
            make = method.connect if package == CONNECT and method.connect else method.make
            if make is not None:
                patches.replace(owner, method.name, make)
    except BaseException:
        patches.undo()
        raise
    return patches
