"""Checks of a catalog: its settings, its server, the token, and the files of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from puredelta.catalogs.catalog import TableIdentifier
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.settings import (
    OWN_PREFIX,
    SPARK_PREFIX,
    ConfiguredCatalog,
    catalog_names,
    find_catalog,
)
from puredelta.errors import DeltaError, InvalidRequestError
from puredelta.inspection.environment import location_findings
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.replay.catalog_table import open_loaded
from puredelta.store.registry import Storage

_SCHEMAS_MAX = 20
"""Schemas in which a table is looked for."""
_MENDS = {
    Refusal.NO_ANSWER: "Check the address and the network: curl -v URI/api/2.1/unity-catalog/"
    "catalogs from this machine. Behind a proxy set HTTPS_PROXY, with an own certificate ca_file.",
    Refusal.NOT_ALLOWED: "Set another token (token, token_file, token_env or OAuth client "
    "credentials), and let the user have USE CATALOG, USE SCHEMA and SELECT.",
    Refusal.NOT_FOUND: "Name a catalog that the server has; it compares letters exactly.",
    Refusal.INVALID: "Let uri name the server itself, without a page behind it, version 0.5 or "
    "newer.",
}


def catalog_findings(settings: Mapping[str, str], name: str, storage: Storage) -> Iterator[Finding]:
    """Check a catalog that the settings name; stops at the first error.

    ``storage`` has the settings of stores that do not come from the catalog.
    """
    try:
        found = find_catalog(settings, name)
    except InvalidRequestError as wrong:
        yield _error("catalog-settings", wrong.message, "Change the setting that it names.")
        return
    if found is None:
        yield _unknown(settings, name)
        return
    try:
        schemas = list(islice(found.catalog.schemas(), _SCHEMAS_MAX))
    except DeltaError as failure:
        yield _refused("catalog-server", failure)
        return
    yield Finding(
        check="catalog-server",
        severity=Severity.OK,
        message=f"Catalog {name} answers, with {len(schemas)} schemas or more.",
    )
    yield from _table_findings(found, schemas, storage)


def _table_findings(
    found: ConfiguredCatalog, schemas: list[str], storage: Storage
) -> Iterator[Finding]:
    try:
        name = _first_table(found, schemas)
        if name is None:
            yield Finding(
                check="catalog-tables",
                severity=Severity.INFO,
                message=f"Catalog {found.catalog.name} shows no Delta table, so no file was read.",
            )
            return
        table = found.catalog.load(name)
        log = open_loaded(found, table, storage)
    except DeltaError as failure:
        yield _refused("catalog-tables", failure)
        return
    if table.location.startswith("s3") and "endpoint" not in found.storage_options:
        yield Finding(
            check="catalog-endpoint",
            severity=Severity.INFO,
            message=f"Table {name} is in S3, and no setting names an endpoint: it is looked for at "
            "AWS, since the server never says where a store is.",
            mend=f"For another store set {OWN_PREFIX}{found.catalog.name}.storage.endpoint and "
            ".storage.region.",
        )
    yield from location_findings(log)


def _first_table(found: ConfiguredCatalog, schemas: list[str]) -> TableIdentifier | None:
    rows = (row for schema in schemas for row in found.catalog.tables(schema))
    return next((row.name for row in rows if row.format == "delta"), None)


def _unknown(settings: Mapping[str, str], name: str) -> Finding:
    known = ", ".join(catalog_names(settings)) or "none"
    return _error(
        "catalog-settings",
        f"No setting names catalog {name}; known are: {known}.",
        f"Pass --conf {SPARK_PREFIX}{name}=io.unitycatalog.spark.UCSingleCatalog and --conf "
        f"{SPARK_PREFIX}{name}.uri=https://SERVER, or --conf {OWN_PREFIX}{name}.type=glue.",
    )


def _refused(check: str, failure: DeltaError) -> Finding:
    refusal = failure.refusal if isinstance(failure, CatalogRequestError) else None
    mend = None if refusal is None else _MENDS.get(refusal)
    return _error(check, failure.message, mend)


def _error(check: str, message: str, mend: str | None) -> Finding:
    return Finding(check=check, severity=Severity.ERROR, message=message, mend=mend)
