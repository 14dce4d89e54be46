"""Files between the keys of the source are not opened: what the lookup does with bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.row_changes import positions
from puredelta.commands.row_changes import source as source_module
from puredelta.log.table_log import TableLog
from puredelta.spark.rewriting import Refused
from tests.commands.merge.tables import delete_by_source, insert, lay_table, merge, update

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("v", pa.int64())])
FILES = [[{"id": n, "day": n // 100, "v": 0} for n in range(k, k + 10)] for k in (0, 100, 200)]
SKIPPING = "spark.databricks.delta.stats.skipping"


@pytest.fixture(autouse=True)
def many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan knows a few keys by heart and would prune with them; with many it does not."""
    monkeypatch.setattr(source_module, "_DISTINCT_VALUES_MAX", 0)


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", SCHEMA, FILES)


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    """Its bounds hold those of all files; its keys lie in the first and the last."""
    rows = [(3, 0, 7), (203, 2, 7), (250, 2, 7)]
    return spark.createDataFrame(rows, "id long, day int, v long")


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What came of every lookup."""
    answers: list[Any] = []
    probe = positions.probe_keys

    def watched(*args: Any, **options: Any) -> Any:
        answers.append(probe(*args, **options))
        return answers[-1]

    monkeypatch.setattr(positions, "probe_keys", watched)
    return answers


def break_middle(log: TableLog) -> None:
    root = Path(log.root_uri.removeprefix("file:"))
    (root / "part-00001.parquet").write_bytes(b"no Parquet")


@pytest.mark.parametrize("on", ["t.id = s.id", "t.day = s.day AND t.id = s.id"])
def test_a_file_between_the_keys_is_not_opened(
    spark: SparkSession, log: TableLog, source: DataFrame, probed: list[Any], on: str
) -> None:
    break_middle(log)
    outcome = merge(spark, log, source, on, update(), insert())
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 1)
    assert not isinstance(probed[0], Refused)


@pytest.mark.parametrize(
    "case",
    [
        ("t.id <=> s.id", (update(), insert())),
        ("t.id = s.id", (update(), delete_by_source("t.v = 0"))),
    ],
)
def test_a_file_that_may_matter_is_opened(
    spark: SparkSession, log: TableLog, source: DataFrame, probed: list[Any], case: Any
) -> None:
    on, clauses = case
    break_middle(log)
    with pytest.raises(Exception, match="part-00001"):
        merge(spark, log, source, on, *clauses)
    assert [isinstance(answer, Refused) for answer in probed] == [True]


def test_statistics_that_nobody_trusts_leave_nothing_out(
    spark: SparkSession, log: TableLog, source: DataFrame, probed: list[Any]
) -> None:
    break_middle(log)
    spark.conf.set(SKIPPING, "false")
    try:
        with pytest.raises(Exception, match="part-00001"):
            merge(spark, log, source, "t.id = s.id", update(), insert())
    finally:
        spark.conf.unset(SKIPPING)
    assert [isinstance(answer, Refused) for answer in probed] == [True]
