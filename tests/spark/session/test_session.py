"""What is known of a session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from puredelta.spark.session.session import SessionInfo, StoreAssignment, is_connect


def test_settings_are_read_once(spark: SparkSession, conf: Any) -> None:
    before = SessionInfo.of(spark)
    assert not before.is_connect
    assert before.spark_version == spark.version
    assert before.time_zone == "UTC"
    assert before.store_assignment is StoreAssignment.ANSI
    conf("spark.sql.session.timeZone", "+01:00")
    conf("spark.sql.caseSensitive", "true")
    conf("spark.sql.ansi.enabled", "false")
    conf("spark.sql.storeAssignmentPolicy", "legacy")
    after = SessionInfo.of(spark)
    assert (after.time_zone, after.case_sensitive, after.ansi) == ("+01:00", True, False)
    assert after.store_assignment is StoreAssignment.LEGACY
    assert before.time_zone == "UTC"


def test_a_subclass_of_a_classic_session_is_classic(spark: SparkSession) -> None:
    class Mine(SparkSession):
        pass

    assert not is_connect(spark)
    assert not is_connect(object.__new__(Mine))
