"""Tables that get a name in the catalog at a location of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.store.base import StorageError


def test_a_log_that_cannot_be_read_after_the_commit_keeps_no_name_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = TableLog.snapshot
    first = tmp_path / "t" / "_delta_log" / f"{0:020}.json"

    def unreadable(*given: Any, **named: Any) -> Any:
        if first.exists():
            raise StorageError("gone for a moment")
        return read(*given, **named)

    text = f"CREATE TABLE kept_name USING delta LOCATION '{tmp_path}/t' AS SELECT 1 AS id"
    try:
        with monkeypatch.context() as patched:
            patched.setattr(TableLog, "snapshot", unreadable)
            puredelta.sql(spark, text)
        assert spark.catalog.tableExists("kept_name")
        assert [column.name for column in spark.catalog.listColumns("kept_name")] == ["id"]
    finally:
        spark.sql("DROP TABLE IF EXISTS kept_name")
