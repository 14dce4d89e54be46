"""Rows under a name of several parts, as tables of a catalog have it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from puredelta.spark.plans.catalyst import Catalyst
from puredelta.spark.session.session import is_connect


def qualified(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return rows whose columns may be called ``c.column``, ``b.c.column`` or ``a.b.c.column``.

    Over Connect an alias has one part, the last.
    """
    if is_connect(rows.sparkSession):
        return rows.alias(parts[-1])
    catalyst = Catalyst(rows.sparkSession)
    plans = catalyst.jvm.org.apache.spark.sql.catalyst
    *qualifier, name = parts
    identifier = plans.AliasIdentifier(name, catalyst.seq(qualifier))
    alias = plans.plans.logical.SubqueryAlias(identifier, catalyst.analyzed(rows))
    return catalyst.rows(alias)
