"""Files between the keys of the source are not opened: neither by the plan nor by the lookup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.row_changes import positions
from puredelta.commands.row_changes import source as source_module
from puredelta.commands.row_changes.plan import Rule
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.fallback import NotApplicable
from tests.commands.merge.tables import delete_by_source, insert, lay_table, merge, update

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("v", pa.int64())])
FILES = [[{"id": n, "day": n // 100, "v": 0} for n in range(k, k + 10)] for k in (0, 100, 200)]
SKIPPING = "spark.databricks.delta.stats.skipping"


@pytest.fixture(autouse=True)
def many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan knows the keys by heart and would prune with them; of very many it does not."""
    monkeypatch.setattr(source_module, "_DISTINCT_ROWS_MAX", 0)


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
    probe = positions.look_up_keys

    def watched(*args: Any, **options: Any) -> Any:
        answers.append(probe(*args, **options))
        return answers[-1]

    monkeypatch.setattr(positions, "look_up_keys", watched)
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
    assert not isinstance(probed[0], NotApplicable)


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
    assert [isinstance(answer, NotApplicable) for answer in probed] == [True]


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
    assert [isinstance(answer, NotApplicable) for answer in probed] == [True]


@pytest.mark.parametrize("values_max", [0, 3])
def test_the_plan_skips_a_file_between_whole_numbers_however_many(
    spark: SparkSession,
    log: TableLog,
    source: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    values_max: int,
) -> None:
    monkeypatch.setattr(source_module, "_DISTINCT_ROWS_MAX", 3)
    monkeypatch.setattr(source_module, "_DISTINCT_VALUES_MAX", values_max)
    break_middle(log)
    outcome = merge(spark, log, source, "t.id = s.id", update(), insert())
    assert outcome.plan.skipped == {Rule.SOURCE_KEYS: 1}
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 1)


@pytest.mark.parametrize(("values_max", "skipped"), [(2, {}), (3, {Rule.SOURCE_KEYS: 1})])
def test_other_keys_are_known_by_heart_where_they_are_few(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    values_max: int,
    skipped: dict[Rule, int],
) -> None:
    monkeypatch.setattr(source_module, "_DISTINCT_ROWS_MAX", 5)
    monkeypatch.setattr(source_module, "_DISTINCT_VALUES_MAX", values_max)
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    files = [[{"id": f"{letter}{n}", "v": 0} for n in range(3)] for letter in "abc"]
    log = lay_table(tmp_path / "text", schema, files)
    rows = [("a1", 1), ("c1", 1), ("c9", 1), ("c9", 1), (None, 1)]
    source = spark.createDataFrame(rows, "id string, v long")
    outcome = merge(spark, log, source, "t.id = s.id", update(), insert())
    assert outcome.plan.skipped == skipped
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 3)
