"""A user's script as type checkers see it; `make release-check` checks it against the wheel."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from puredelta.tables import DeltaTable


def upsert(spark: SparkSession, path: str, news: DataFrame) -> int:
    active: bool = puredelta.activate(spark, delta_module=False)
    if not active:
        return 0
    rows: DataFrame = puredelta.read(spark, path, version=0)
    table: DeltaTable = DeltaTable.forPath(spark, path)
    try:
        result = (
            table.alias("t")
            .merge(news.alias("s"), "t.id = s.id")
            .whenMatchedUpdate(set={"v": "s.v"})
            .whenNotMatchedInsertAll()
            .execute()
        )
    except (ConcurrentAppendException, DeltaConcurrentModificationException) as conflict:
        return len(conflict.getCondition())
    result.show()
    history: DataFrame = table.history(limit=1)
    puredelta.write(rows, path + "-copy", mode="append", partition_by=["day"])
    return history.count()
