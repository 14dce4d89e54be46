"""Logs of tables that a catalog knows, opened with the storage keys that it hands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from puredelta.catalogs.catalog import KeyUse, LoadedTable, address_of
from puredelta.catalogs.settings import ConfiguredCatalog
from puredelta.catalogs.table_keys import TableKeys
from puredelta.log.managed.managed_store import ManagedStore, NewManagedTable
from puredelta.log.replay.table_log import TableLog
from puredelta.store.base import Store
from puredelta.store.location import VendedOptions
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage


def open_loaded(configured: ConfiguredCatalog, table: LoadedTable, storage: Storage) -> TableLog:
    """Open the log of a table that the catalog has just been asked for.

    ``storage`` has the settings of the caller.

    Examples:
        >>> found = find_catalog(settings, "main")  # doctest: +SKIP
        >>> name = TableIdentifier("main", "sales", "orders")  # doctest: +SKIP
        >>> open_loaded(found, found.catalog.load(name), Storage()).history()  # doctest: +SKIP
    """
    catalog = configured.catalog
    keys = TableKeys(lambda use: catalog.keys(table, use))
    files = open_with_keys(configured, table.location, keys, storage)
    managed = ManagedStore(files, catalog, table) if table.is_catalog_managed else None
    if managed is not None:
        managed.list_once_with_answer()
    return TableLog(
        managed or files,
        address=address_of(table.name),
        before_writing=_writable(keys, files),
        has_vended_keys=bool(keys.options(table.location)),
    )


def open_new(configured: ConfiguredCatalog, new: NewManagedTable, storage: Storage) -> TableLog:
    """Open the empty log of a managed table that is to be created."""
    catalog = configured.catalog
    keys = TableKeys(lambda _: catalog.keys_of_stage(new.staged))
    files = open_with_keys(configured, new.staged.location, keys, storage)
    return TableLog(
        ManagedStore(files, catalog, new),
        address=address_of(new.name),
        has_vended_keys=bool(keys.options(new.staged.location)),
    )


def open_external(configured: ConfiguredCatalog, location: str, storage: Storage) -> TableLog:
    """Open the log at the location of an external table that the catalog does not know yet."""
    catalog = configured.catalog
    keys = TableKeys(lambda _: catalog.keys_of_path(location))
    files = open_with_keys(configured, location, keys, storage)
    return TableLog(files, has_vended_keys=bool(keys.options(location)))


def open_with_keys(
    configured: ConfiguredCatalog, location: str, keys: TableKeys, storage: Storage
) -> Store:
    """Open a location with the keys of a catalog; without any, as the storage says.

    The keys are asked for again when a request is refused. No file system of Hadoop gets them.
    """
    if not keys.options(location):
        return storage.open(location)
    again = storage.read_again

    def vended(at: str) -> VendedOptions:
        found = keys.find(at)
        return VendedOptions() if found is None else VendedOptions(found.options, found.expires_ms)

    def with_keys(plain: Storage) -> Storage:
        whole = plain.with_options(configured.storage_options)
        return replace(whole, keys_of=vended, file_systems=None, read_again=None)

    now = with_keys(storage)
    if again is not None:
        now = replace(now, read_again=lambda: with_keys(again()))
    return now.open(location)


def _writable(keys: TableKeys, files: Store) -> Callable[[], None]:
    def before_writing() -> None:
        if keys.use is KeyUse.READ:
            keys.allow_writes()
            if isinstance(files, ObjectStore):
                files.renew()

    return before_writing
