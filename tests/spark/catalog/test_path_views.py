"""Tables at paths: views in their place, and names that the catalog is not asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.catalog.relation_cache import find_relations
from puredelta.spark.catalog.table_views import path_view
from puredelta.spark.jvm import catalog


def test_rows_of_no_table_share_no_view(spark: SparkSession) -> None:
    """Each frame is gone when the next one is made, and may lie where it lay."""
    names = [path_view(spark.range(n), is_global=False) for n in range(40)]
    assert len(set(names)) == 40
    assert [spark.table(name).count() for name in names[:3]] == [0, 1, 2]


def test_the_catalog_is_not_asked_for_paths(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed look-up takes as long as ten others."""
    asked = []
    monkeypatch.setattr(catalog, "find_entry", lambda _, parts, **__: asked.append(parts))
    paths = [str(tmp_path), f"file:{tmp_path}", "s3a://bucket/t"]
    names = [("delta", path) for path in paths] + [("spark_catalog", "DELTA", paths[0])]
    others = [("delta", "events"), ("other", paths[0])]
    found = find_relations(spark, [*names, *others])
    assert (found.tables, found.views) == ((), ())
    assert sorted(asked) == sorted(others)
