"""Delta tables in the session catalog: which they are, and where. Classic sessions only.

A table of the catalog is a name and a location; its columns and everything else are in the
log there. Tables of other catalogs (``cat.db.t``) are not looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from puredelta.spark.jvm.session_catalog import SESSION_CATALOG, CatalogTable, ViewEntry, find_entry
from puredelta.spark.session.formats import FORMAT
from puredelta.spark.session.session import is_connect

_PARTS_MAX = 3


def find_table(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """Return the Delta table of a name; None for anything else, a view for example."""
    found = find_relation(spark, parts)
    return found if isinstance(found, CatalogTable) else None


def find_relation(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | ViewEntry | None:
    """Return the Delta table or the view that a name of one to three parts stands for, if any.

    A common table expression of the same name is not known here. Over Connect the answer is
    always None.
    """
    if is_connect(spark):
        return None
    names = names_in_session_catalog(spark, parts)
    if names is None:
        return None
    database = names[-2] if len(names) > 1 else None
    return find_entry(spark, database, names[-1], provider=FORMAT)


def names_in_session_catalog(spark: SparkSession, parts: Sequence[str]) -> Sequence[str] | None:
    """Return a name without its catalog, None if that is another one."""
    if len(parts) > _PARTS_MAX:
        return None
    if len(parts) == _PARTS_MAX:
        return parts[1:] if parts[0].lower() == SESSION_CATALOG else None
    return parts if spark.catalog.currentCatalog() == SESSION_CATALOG else None
