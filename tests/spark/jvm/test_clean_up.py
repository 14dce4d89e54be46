"""Clean-up of a session whose connection to the JVM an interrupt has closed."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from puredelta.spark.jvm.gateway import insist
from puredelta.spark.write.parquet_job import temporary_settings


class _Closing:
    """A connection that is closed a number of times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error, self.calls = times, error, 0

    def call(self) -> int:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return self.calls


def test_a_call_is_made_again_where_its_connection_was_closed() -> None:
    assert insist(_Closing(2, Py4JNetworkError("closed")).call) == 3
    gone = _Closing(9, Py4JError("closed"))
    with pytest.raises(Py4JError):
        insist(gone.call)
    assert gone.calls == 3
    refusing = _Closing(1, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        insist(refusing.call)
    assert refusing.calls == 1


def test_settings_are_put_back_after_an_interrupt(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed when they are to be put back."""
    key, more = "spark.sql.parquet.writeLegacyFormat", "spark.puredelta.progress"
    before = spark.conf.get(key)
    original, closing = type(spark.conf).unset, _Closing(1, Py4JNetworkError("closed"))

    def unset(conf: Any, name: str) -> None:
        closing.call()
        original(conf, name)

    def interrupted() -> None:
        monkeypatch.setattr(type(spark.conf), "unset", unset)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), temporary_settings(spark, {key: "true", more: "never"}):
        interrupted()
    assert (spark.conf.get(key), spark.conf.get(more, None)) == (before, None)


def test_a_setting_that_cannot_be_made_leaves_no_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ("spark.puredelta.a", "spark.puredelta.b")
    original = type(spark.conf).set

    def interrupted(conf: Any, name: str, value: str) -> None:
        if name == keys[1]:
            raise KeyboardInterrupt
        original(conf, name, value)

    monkeypatch.setattr(type(spark.conf), "set", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_settings(spark, dict.fromkeys(keys, "1")):
        pass
    assert [spark.conf.get(key, None) for key in keys] == [None, None]
