"""Catalogs of a session, and the logs of their tables.

A table of a catalog is known by its address (`puredelta.catalogs.catalog.address_of`). So it takes
the way of every location, and its log is opened through the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.catalogs.catalog import LoadedTable, TableIdentifier
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.settings import (
    OWN_PREFIX,
    SESSION_CATALOG,
    SPARK_PREFIX,
    ConfiguredCatalog,
    find_catalog,
)
from puredelta.errors import Message, TableNotFoundError
from puredelta.log.managed.managed_store import NewManagedTable
from puredelta.log.replay.catalog_table import open_external, open_loaded, open_new
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.session import settings_of
from puredelta.store.registry import Storage

_PARTS = 3


@dataclass(frozen=True, slots=True)
class _KnownCatalog:
    """A catalog with the settings that it was made of."""

    settings: Mapping[str, str] = field(repr=False)
    found: ConfiguredCatalog | None


_known: WeakKeyDictionary[SparkSession, dict[str, _KnownCatalog]] = WeakKeyDictionary()
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
    return known.found


def find_identifier(spark: SparkSession, parts: Sequence[str]) -> TableIdentifier | None:
    """Return a name as one of a catalog of this library, None for any other; nothing is asked."""
    if len(parts) != _PARTS or session_catalog(spark, parts[0]) is None:
        return None
    return TableIdentifier(*parts)


def find_loaded(spark: SparkSession, name: TableIdentifier) -> LoadedTable | None:
    """Return what the catalog says of a Delta table; None if there is no table of the name.

    Raises:
        CatalogRequestError: the catalog does not answer, or the table is of another format.
    """
    try:
        return _configured(spark, name).catalog.load(name)
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


def drop_catalog_table(spark: SparkSession, name: TableIdentifier, *, if_exists: bool) -> None:
    """Drop a table of any format.

    Raises:
        TableNotFoundError: there is none, unless ``if_exists``.
    """
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
