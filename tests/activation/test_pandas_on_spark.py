"""`pyspark.pandas` reads and writes tables of an activated session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.log.replay.table_log import TableLog

pytest.importorskip("pandas")


@pytest.mark.filterwarnings("ignore")
def test_pandas_on_spark_writes_and_reads_versions(active: SparkSession, tmp_path: Path) -> None:
    import pyspark.pandas as ps  # noqa: PLC0415 - it needs a session

    path = str(tmp_path / "t")
    frame = ps.DataFrame({"id": [1, 2, 3], "day": ["a", "b", "b"]})

    frame.to_delta(path, partition_cols="day")
    frame.to_delta(path, mode="append", userMetadata="twice")

    rows = ps.read_delta(path)
    assert sorted(zip(rows["id"].to_list(), rows["day"].to_list(), strict=True)) == [
        *[(1, "a")] * 2,
        *[(2, "b")] * 2,
        *[(3, "b")] * 2,
    ]
    assert len(ps.read_delta(path, version="0")) == 3
    assert ps.read_delta(path, index_col="id").index.name == "id"
    assert TableLog.open(path).snapshot().metadata.partition_columns == ("day",)

    rows["id"] = rows["id"] + 10
    rows.to_delta(path, mode="overwrite", partition_cols="day")
    assert sorted(ps.read_delta(path)["id"].to_list()) == [11, 11, 12, 12, 13, 13]
