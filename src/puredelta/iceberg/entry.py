"""Exports of a table to Iceberg, as calls that need pyiceberg only when they run."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.properties import TableProperties
from puredelta.protocol.table.iceberg_compat import ICEBERG
from puredelta.store.registry import NO_SESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A version of a table that readers of Iceberg see."""

    version: int
    """The Delta version."""
    snapshot_id: int
    """The snapshot of Iceberg."""
    metadata_location: str
    """The metadata file, which catalogs register."""
    is_new: bool
    """Whether this call has written the snapshot; it may have been exported before."""


def export(
    table: str | os.PathLike[str], *, storage_options: Mapping[str, object] | None = None
) -> Exported:
    """Export the newest version of a table to Iceberg; no Spark is needed.

    The metadata is written into the folder ``_iceberg`` of the table, and names the data files of
    the table where they are. Each exported version is a snapshot whose summary has the
    ``delta-version``. Readers by path open ``<table>/_iceberg``, catalogs register the
    ``metadata_location``. ``storage_options`` are those of `puredelta.read`.

    Raises:
        UnsupportedError: pyiceberg is not installed (DELTA_MISSING_ICEBERG_CLASS), or Iceberg
            cannot express the table (DELTA_UNIVERSAL_FORMAT_VIOLATION); nothing is written.
        TableNotFoundError: there is no table.
        ConflictError: other exporters were always faster.

    Examples:
        >>> from puredelta import iceberg
        >>> iceberg.export("/data/events").version  # doctest: +SKIP
        12
    """
    return export_log(_opened(table, storage_options))


def register(
    table: str | os.PathLike[str],
    catalog: Any,
    identifier: str,
    *,
    storage_options: Mapping[str, object] | None = None,
) -> Exported:
    """Export the newest version, and let a catalog of Iceberg name it.

    ``catalog`` is a catalog of pyiceberg, or the name of one in its configuration. A name that the
    table has already is moved to the newest version: in one step where the catalog can (REST, with
    pyiceberg 0.12), else the entry is dropped and made again, so for a moment there is none.
    Engines must not write to the table through the catalog.

    Raises:
        InvalidRequestError: the name is that of another table
            (DELTA_UNIVERSAL_FORMAT_VIOLATION).
        the errors of `export`, and those of the catalog.

    Examples:
        >>> from puredelta import iceberg
        >>> iceberg.register("/data/events", "glue", "sales.events").version  # doctest: +SKIP
        12
    """
    return register_log(_opened(table, storage_options), catalog, identifier)


def register_log(log: TableLog, catalog: Any, identifier: str) -> Exported:
    """Export the newest version of an open table and let a catalog name it, see `register`."""
    exported = export_log(log)
    if isinstance(catalog, str):
        catalog = importlib.import_module("pyiceberg.catalog").load_catalog(catalog)
    if catalog.table_exists(identifier):
        known = catalog.load_table(identifier)
        if known.metadata_location == exported.metadata_location:
            return exported
        if not exported.metadata_location.startswith(f"{known.location().rstrip('/')}/metadata/"):
            raise InvalidRequestError(
                Message.UNIVERSAL_FORMAT_VIOLATION_NAME,
                format="iceberg",
                name=identifier,
                location=known.location(),
                path=log.root_uri,
            )
        _move(catalog, identifier, known.metadata_location, exported.metadata_location)
    else:
        catalog.register_table(identifier, exported.metadata_location)
    return exported


def _move(catalog: Any, identifier: str, before: str, after: str) -> None:
    """Let the entry of a catalog name other metadata."""
    errors = importlib.import_module("pyiceberg.exceptions")
    if "overwrite" in inspect.signature(catalog.register_table).parameters:
        try:
            catalog.register_table(identifier, after, overwrite=True)
        except (RuntimeError, errors.TableAlreadyExistsError):
            pass  # a catalog of pyiceberg's, or a server, that cannot do it
        else:
            return
    catalog.drop_table(identifier)
    try:
        catalog.register_table(identifier, after)
    except BaseException:
        catalog.register_table(identifier, before)
        raise


def export_log(log: TableLog, *, expire_before_ms: int | None = None) -> Exported:
    """Export the newest version of an open table, see `export`.

    Snapshots older than ``expire_before_ms`` are dropped, by default those older than
    ``delta.deletedFileRetentionDuration``.
    """
    exported: Exported = _exporting(log).export_version(log, expire_before_ms=expire_before_ms)
    return exported


def require_exporter(configuration: Mapping[str, str], path: str) -> None:
    """Require pyiceberg for a table whose properties ask for Iceberg metadata.

    Raises:
        UnsupportedError: it is not installed (DELTA_MISSING_ICEBERG_CLASS).
    """
    if ICEBERG not in TableProperties.of(configuration).universal_formats:
        return
    if importlib.util.find_spec("pyiceberg") is None:
        raise UnsupportedError(
            Message.MISSING_ICEBERG_CLASS, missing="there is no module pyiceberg", path=path
        )


def is_exported(log: TableLog) -> bool:
    """Return whether a table has Iceberg metadata."""
    return log.store.exists(_HINT)


_EXPORTING = "puredelta.iceberg.exporting"
_HINT = "_iceberg/metadata/version-hint.text"


def _opened(
    table: str | os.PathLike[str], storage_options: Mapping[str, object] | None
) -> TableLog:
    storage = NO_SESSION.with_options(storage_options or {})
    return TableLog.open(os.fspath(table), storage=storage)


def _exporting(log: TableLog) -> ModuleType:
    try:
        return importlib.import_module(_EXPORTING)  # imports take a second, and few need them
    except ImportError as missing:
        raise UnsupportedError(
            Message.MISSING_ICEBERG_CLASS, missing=missing, path=log.root_uri
        ) from missing
