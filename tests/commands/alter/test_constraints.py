"""ADD CONSTRAINT: the rows there are decide."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.alter.constraints import add_check_constraint
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.gateway import insist
from simulation.interrupts.ctrl_c import interrupted


def test_a_constraint_holds_for_old_and_new_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    puredelta.write(spark.sql("SELECT * FROM VALUES (1, 'x'), (2, NULL) AS t(a, b)"), path)
    log = TableLog.open(str(path))
    for name, expression, code in (
        ("c", "a > 1", ErrorCode.NEW_CHECK_CONSTRAINT_VIOLATION),
        ("c", "b = 'x'", ErrorCode.NEW_CHECK_CONSTRAINT_VIOLATION),  # NULL violates it
        ("c", "a", ErrorCode.NON_BOOLEAN_CHECK_CONSTRAINT),
        ("c", "nope > 1", ErrorCode.UNRESOLVED_COLUMN),
        ("c", "max(a) > 1", ErrorCode.AGGREGATE_IN_CHECK_CONSTRAINT),
        ("c", "rand() < 2", ErrorCode.NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT),
        ("__char_varchar_string_length_check__", "a > 0", ErrorCode.INVALID_CONSTRAINT_NAME),
    ):
        with pytest.raises(DeltaError) as error:
            add_check_constraint(spark, log, name, expression)
        assert error.value.code is code, expression
    assert log.latest_version() == 0
    add_check_constraint(spark, log, "Positive", "a > 0")
    snapshot = log.snapshot()
    assert snapshot.metadata.configuration == {"delta.constraints.positive": "a > 0"}
    assert snapshot.config.is_active("checkConstraints")
    with pytest.raises(DeltaError) as error:
        add_check_constraint(spark, log, "POSITIVE", "a > -1")
    assert error.value.code is ErrorCode.CONSTRAINT_ALREADY_EXISTS


@pytest.mark.thorough
def test_an_interrupt_ends_the_job_that_checks_the_rows(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    known = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, known))
    puredelta.write(spark.range(60_000).coalesce(1), tmp_path)
    log = TableLog.open(str(tmp_path))
    slow = "length(repeat(string(id), 100000)) > 0"
    sent, failed = interrupted(lambda: add_check_constraint(spark, log, "slow", slow), 1.5)
    assert sent
    assert failed is not None
    tracker = spark.sparkContext.statusTracker()
    ends = time.monotonic() + 3
    while insist(tracker.getActiveJobsIds) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()
    assert log.latest_version() == 0
