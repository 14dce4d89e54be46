"""Files between the keys of the source are not opened: neither by the plan nor by the lookup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.search import look_up
from puredelta.commands.dml.search_plan import Rule
from puredelta.commands.dml.settings import ExecutionSettings, KeyLimits
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.tables import delete_by_source, insert, lay_table, merge, update

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("v", pa.int64())])
FILES = [[{"id": n, "day": n // 100, "v": 0} for n in range(k, k + 10)] for k in (0, 100, 200)]
SKIPPING = "spark.databricks.delta.stats.skipping"


def many_keys(settings: ExecutionSettings) -> ExecutionSettings:
    """Few keys are known by heart, and the plan would prune with them; very many are not."""
    return replace(settings, key_limits=KeyLimits(rows_max=0))


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "t", SCHEMA, FILES)


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    """Its bounds hold those of all files; its keys lie in the first and the last."""
    rows = [(3, 0, 7), (203, 2, 7), (250, 2, 7)]
    return spark.createDataFrame(rows, "id long, day int, v long")


class Lookups(list[Any]):
    """What came of every lookup."""

    def __call__(self, *args: Any) -> Any:
        self.append(look_up(*args))
        return self[-1]


@pytest.fixture
def lookups() -> Lookups:
    return Lookups()


def break_middle(log: TableLog) -> None:
    root = Path(log.root_uri.removeprefix("file:"))
    (root / "part-00001.parquet").write_bytes(b"no Parquet")


@pytest.mark.parametrize("on", ["t.id = s.id", "t.day = s.day AND t.id = s.id"])
def test_a_file_between_the_keys_is_not_opened(
    spark: SparkSession, log: TableLog, source: DataFrame, lookups: Lookups, on: str
) -> None:
    break_middle(log)
    outcome = merge(spark, log, source, on, update(), insert(), change=many_keys, look_up=lookups)
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 1)
    assert not isinstance(lookups[0], NotApplicable)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "case",
    [
        ("t.id <=> s.id", (update(), insert())),
        ("t.id = s.id", (update(), delete_by_source("t.v = 0"))),
    ],
)
def test_a_file_that_may_matter_is_opened(
    spark: SparkSession, log: TableLog, source: DataFrame, lookups: Lookups, case: Any
) -> None:
    on, clauses = case
    break_middle(log)
    with pytest.raises(Exception, match="part-00001"):
        merge(spark, log, source, on, *clauses, change=many_keys, look_up=lookups)
    assert [isinstance(answer, NotApplicable) for answer in lookups] == [True]


def test_statistics_that_nobody_trusts_leave_nothing_out(
    spark: SparkSession, log: TableLog, source: DataFrame, lookups: Lookups
) -> None:
    break_middle(log)
    spark.conf.set(SKIPPING, "false")
    try:
        with pytest.raises(Exception, match="part-00001"):
            merge(
                spark,
                log,
                source,
                "t.id = s.id",
                update(),
                insert(),
                change=many_keys,
                look_up=lookups,
            )
    finally:
        spark.conf.unset(SKIPPING)
    assert [isinstance(answer, NotApplicable) for answer in lookups] == [True]


@pytest.mark.parametrize("values_max", [0, 3])
def test_the_plan_skips_a_file_between_whole_numbers_however_many(
    spark: SparkSession,
    log: TableLog,
    source: DataFrame,
    values_max: int,
) -> None:
    limits = KeyLimits(rows_max=3, values_max=values_max)
    break_middle(log)
    outcome = merge(
        spark,
        log,
        source,
        "t.id = s.id",
        update(),
        insert(),
        change=lambda settings: replace(settings, key_limits=limits),
    )
    assert outcome.plan is not None
    assert outcome.plan.skipped_by_rule() == {Rule.SOURCE_KEYS: 1}
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 1)


@pytest.mark.parametrize(("values_max", "skipped"), [(2, {}), (3, {Rule.SOURCE_KEYS: 1})])
def test_other_keys_are_known_by_heart_where_they_are_few(
    spark: SparkSession,
    tmp_path: Path,
    values_max: int,
    skipped: dict[Rule, int],
) -> None:
    limits = KeyLimits(rows_max=5, values_max=values_max)
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    files = [[{"id": f"{letter}{n}", "v": 0} for n in range(3)] for letter in "abc"]
    log = lay_table(tmp_path / "text", schema, files)
    rows = [("a1", 1), ("c1", 1), ("c9", 1), ("c9", 1), (None, 1)]
    source = spark.createDataFrame(rows, "id string, v long")
    outcome = merge(
        spark,
        log,
        source,
        "t.id = s.id",
        update(),
        insert(),
        change=lambda settings: replace(settings, key_limits=limits),
    )
    assert outcome.plan is not None
    assert outcome.plan.skipped_by_rule() == skipped
    assert (outcome.rows.matched_updated, outcome.rows.inserted) == (2, 3)
