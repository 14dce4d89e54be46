"""Delta tables in the session catalog: which they are, and where. Classic sessions only.

A table of the catalog is a name and a location; its columns and everything else are in the
log there. Other catalogs (``cat.db.t``) are not ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.session.formats import FORMAT
from puredelta.spark.session.session import is_connect

SESSION_CATALOG = "spark_catalog"
_MANAGED = "MANAGED"
_PARTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A Delta table of the session catalog."""

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
class CatalogView:
    """A view of SQL text: the tables it names are looked up where it was made."""

    text: str
    namespace: tuple[str, ...]


def find_table(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """Return the Delta table of a name; None for anything else, a view for example."""
    found = find_relation(spark, parts)
    return found if isinstance(found, CatalogTable) else None


def find_relation(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | CatalogView | None:
    """Return what a name of one to three parts stands for, if it concerns us.

    A common table expression of the same name is not known here. Over Connect the answer is
    always None.
    """
    if is_connect(spark):
        return None
    names = names_in_session_catalog(spark, parts)
    if names is None:
        return None
    jvm: Any = spark._jvm  # noqa: SLF001 - the catalog has no public door for this
    catalog: Any = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
    database = jvm.scala.Option.apply(names[-2] if len(names) > 1 else None)
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(names[-1], database)
    if not catalog.isTempView(identifier) and not catalog.tableExists(identifier):
        return None
    table = catalog.getTempViewOrPermanentTableMetadata(identifier)
    if table.viewText().isDefined():
        where = table.viewCatalogAndNamespace()
        namespace = tuple(str(where.apply(n)) for n in range(where.size()))
        return CatalogView(text=str(table.viewText().get()), namespace=namespace)
    provider = table.provider()
    if not provider.isDefined() or str(provider.get()).lower() != FORMAT:
        return None
    full = table.identifier()
    return CatalogTable(
        database=str(full.database().get()),
        name=str(full.table()),
        location=str(jvm.org.apache.hadoop.fs.Path(table.location()).toString()),
        is_managed=str(table.tableType().name()) == _MANAGED,
        owner=str(table.owner() or ""),
    )


def names_in_session_catalog(spark: SparkSession, parts: Sequence[str]) -> Sequence[str] | None:
    """Return a name without its catalog, None if that is another one."""
    if len(parts) > _PARTS_MAX:
        return None
    if len(parts) == _PARTS_MAX:
        return parts[1:] if parts[0].lower() == SESSION_CATALOG else None
    return parts if spark.catalog.currentCatalog() == SESSION_CATALOG else None
