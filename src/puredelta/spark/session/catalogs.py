"""Catalogs of a session, and the logs of their tables.

A table of a catalog is known by its address (`puredelta.catalogs.catalog.address_of`). So it takes
the way of every location, and its log is opened through the catalog.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.catalogs.catalog import (
    CatalogEntry,
    ListedCatalog,
    LoadedTable,
    TableIdentifier,
)
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.settings import (
    OWN_PREFIX,
    SESSION_CATALOG,
    SPARK_PREFIX,
    ConfiguredCatalog,
    catalog_names,
    find_catalog,
)
from puredelta.catalogs.tokens import variable_of
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError
from puredelta.log.managed.managed_store import ANSWER_S, NewManagedTable, is_newest_seen
from puredelta.log.replay.catalog_table import open_external, open_loaded, open_new
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.key_service import serve_keys
from puredelta.spark.session.names import PREFIX
from puredelta.spark.session.server import has_temporary_view
from puredelta.spark.session.session import asked_tables, is_connect, settings_of
from puredelta.store.registry import Storage

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_PARTS = 3


@dataclass(frozen=True, slots=True)
class _KnownCatalog:
    """A catalog with the settings that it was made of."""

    settings: Mapping[str, str] = field(repr=False)
    found: ConfiguredCatalog | None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A schema of a catalog of this library."""

    catalog: str
    schema: str

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}"


DEFAULT_SCHEMA = "default"
"""The current schema after a statement that names a catalog alone."""
_GLOBAL_TEMPORARY = "global_temp"

_known: WeakKeyDictionary[SparkSession, dict[str, _KnownCatalog]] = WeakKeyDictionary()
_current: WeakKeyDictionary[SparkSession, Namespace] = WeakKeyDictionary()
_vended: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""Roots of tables whose keys Spark does not have."""


def session_catalog(spark: SparkSession, name: str) -> ConfiguredCatalog | None:
    """Return a catalog of the session by its name, None if it is none of this library's.

    It is kept for as long as its settings stay as they are.

    Raises:
        InvalidRequestError: a setting of the catalog is wrong.
    """
    if name.lower() == SESSION_CATALOG:
        return None
    prefixes = tuple(f"{p}{name}{end}" for p in (SPARK_PREFIX, OWN_PREFIX) for end in (".", ""))
    settings = {k: v for k, v in settings_of(spark).items() if k.startswith(prefixes)}
    kept = _known.setdefault(spark, {})
    known = kept.get(name)
    if known is None or known.settings != settings:
        known = kept[name] = _KnownCatalog(settings, find_catalog(settings, name))
        _say_what_is_logged(spark, settings)
    return known.found


def _say_what_is_logged(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Warn of a secret that Spark writes into its event log as it is.

    Spark hides secrets among the settings that the session began with. Those that are set later go
    into the events of jobs with all settings of the session.
    """
    given = [key for key in settings if key.lower().endswith(_SECRET_KEYS)]
    if not given or is_connect(spark):
        return
    began_with = spark.sparkContext.getConf()
    is_logged = began_with.get("spark.eventLog.enabled", "false") == "true"
    for key in given if is_logged else ():
        if not began_with.contains(key):
            logger.warning(
                "%s was set while the session runs, so Spark writes it into its event log as is. "
                "Set it in the builder of the session, or use token_file, token_env or the "
                "variable %s.",
                key,
                variable_of("NAME"),
            )


_SECRET_KEYS = ("token", "clientsecret")


def session_catalog_names(spark: SparkSession) -> tuple[str, ...]:
    """Return the names of the session's catalogs of this library, sorted."""
    return catalog_names(settings_of(spark))


def current_namespace(spark: SparkSession) -> Namespace | None:
    """Return the current schema, if it is one of a catalog of this library.

    Spark's own current schema stays as it is meanwhile: Spark cannot load such a catalog.
    """
    found = _current.get(spark) if _current else None
    if found is not None and session_catalog(spark, found.catalog) is None:
        del _current[spark]  # the settings of the catalog have been removed
        return None
    return found


def set_current_namespace(spark: SparkSession, namespace: Namespace | None) -> None:
    """Let names without a catalog belong to a schema; None gives them back to Spark."""
    if namespace is None:
        _current.pop(spark, None)
    else:
        _current[spark] = namespace


def find_identifier(spark: SparkSession, parts: Sequence[str]) -> TableIdentifier | None:
    """Return a name as one of a catalog of this library, None for any other; nothing is asked.

    A name of one or two parts belongs to the current schema, if that is one of such a catalog. A
    temporary view comes first, as in Spark.
    """
    whole = tuple(parts) if len(parts) == _PARTS else _in_current(spark, tuple(parts))
    if whole is None or session_catalog(spark, whole[0]) is None:
        return None
    return TableIdentifier(*whole)


def _in_current(spark: SparkSession, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    current = current_namespace(spark)
    match parts:
        case (table,) if current is not None:
            is_other = table.startswith(PREFIX) or has_temporary_view(spark, table)
            return None if is_other else (current.catalog, current.schema, table)
        case (schema, table) if current is not None:
            is_other = schema.lower() == _GLOBAL_TEMPORARY or "/" in table or ":" in table
            return None if is_other else (current.catalog, schema, table)
        case _:
            return None


def require_catalog(spark: SparkSession, name: str) -> ListedCatalog:
    """Return a catalog of the session.

    Raises:
        TableNotFoundError: the session has none of the name (CATALOG_NOT_FOUND).
    """
    found = session_catalog(spark, name)
    if found is None:
        raise TableNotFoundError(Message.CATALOG_NOT_FOUND, catalog=name)
    return found.catalog


def find_loaded(spark: SparkSession, name: TableIdentifier) -> LoadedTable | None:
    """Return what the catalog says of a Delta table; None if there is no table of the name.

    An answer serves all steps of a public call that follow at once.

    Raises:
        CatalogRequestError: the catalog does not answer, or the table is of another format.
    """
    kept, now = asked_tables(spark), time.monotonic()
    known: _Answered | None = kept.get(name)
    if known is not None and now - known.at <= ANSWER_S and is_newest_seen(known.table):
        return known.table
    table = _found(_configured(spark, name).catalog.load, name)
    if table is None:
        kept.pop(name, None)
    else:
        kept[name] = _Answered(table, now)
    return table


@dataclass(frozen=True, slots=True)
class _Answered:
    """What a catalog has said, and when it was asked."""

    table: LoadedTable
    at: float


def _found(ask: Callable[[TableIdentifier], _Answer], name: TableIdentifier) -> _Answer | None:
    """Return the answer of a catalog about a table; None if there is no table of the name."""
    try:
        return ask(name)
    except CatalogRequestError as failure:
        if failure.refusal is Refusal.NOT_FOUND:
            return None
        raise


def require_loaded(spark: SparkSession, name: TableIdentifier) -> LoadedTable:
    """Return what the catalog says of a Delta table.

    Raises:
        TableNotFoundError: there is no table of the name (TABLE_OR_VIEW_NOT_FOUND).
    """
    table = find_loaded(spark, name)
    if table is None:
        raise _missing(name)
    return table


def _missing(name: TableIdentifier) -> TableNotFoundError:
    return TableNotFoundError(
        Message.TABLE_OR_VIEW_NOT_FOUND_IN_CATALOG, catalog=name.catalog, table=str(name)
    )


def find_described(spark: SparkSession, name: TableIdentifier) -> CatalogEntry | None:
    """Return what the catalog says of a table of any format; None if there is none."""
    return _found(_configured(spark, name).catalog.describe, name)


def describe_table(spark: SparkSession, name: TableIdentifier) -> CatalogEntry:
    """Return what the catalog says of a table of any format.

    Raises:
        TableNotFoundError: there is no table of the name (TABLE_OR_VIEW_NOT_FOUND).
    """
    found = find_described(spark, name)
    if found is None:
        raise _missing(name)
    return found


def drop_catalog_table(spark: SparkSession, name: TableIdentifier, *, if_exists: bool) -> None:
    """Drop a table of any format.

    Raises:
        TableNotFoundError: there is none, unless ``if_exists``.
        InvalidRequestError: it is a view (EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE).
    """
    try:
        found = find_described(spark, name)
    except CatalogRequestError as odd:
        if odd.refusal is not Refusal.INVALID:
            raise
        found = None  # an entry that cannot be used can be removed
    if found is not None and found.is_view:
        raise InvalidRequestError(
            Message.EXPECT_TABLE_NOT_VIEW, operation="DROP TABLE", view=str(name)
        )
    asked_tables(spark).pop(name, None)
    try:
        _configured(spark, name).catalog.drop(name)
    except CatalogRequestError as failure:
        if failure.refusal is not Refusal.NOT_FOUND:
            raise
        if not if_exists:
            raise _missing(name) from None


def open_catalog_log(spark: SparkSession, name: TableIdentifier, storage: Storage) -> TableLog:
    """Open the log of a table by its name; ``storage`` has the settings of the session.

    Raises:
        TableNotFoundError: there is no table of the name.
        CatalogRequestError: the catalog refuses, or does not answer.
    """
    table = require_loaded(spark, name)
    return _noted(spark, open_loaded(_configured(spark, name), table, storage))


def open_new_log(spark: SparkSession, new: NewManagedTable, storage: Storage) -> TableLog:
    """Open the empty log of a managed table that is to be created."""
    return _noted(spark, open_new(_configured(spark, new.name), new, storage))


def open_external_log(
    spark: SparkSession, name: TableIdentifier, location: str, storage: Storage
) -> TableLog:
    """Open the log at the location of an external table that the catalog does not know yet."""
    return _noted(spark, open_external(_configured(spark, name), location, storage))


def _noted(spark: SparkSession, log: TableLog) -> TableLog:
    """Remember that files of a table are not for Spark, where they need keys of a catalog."""
    if log.has_vended_keys:
        _vended.setdefault(spark, set()).add(log.root_uri)
        serve_keys(spark)
    return log


def has_vended_keys(spark: SparkSession, uri: str) -> bool:
    """Return whether a file or directory is reached with keys of a catalog, so not by Spark."""
    roots = _vended.get(spark, ())
    return any(uri == root or uri.startswith(f"{root}/") for root in roots)


def _configured(spark: SparkSession, name: TableIdentifier) -> ConfiguredCatalog:
    found = session_catalog(spark, name.catalog)
    if found is None:
        raise TableNotFoundError(
            Message.TABLE_OR_VIEW_NOT_FOUND_NO_CATALOG, catalog=name.catalog, table=str(name)
        )
    return found
