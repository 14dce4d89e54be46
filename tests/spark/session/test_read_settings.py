"""The settings of Spark's reader: every one is known, and Arrow reads where it may."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.jvm.gateway import jvm_of
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session.read_settings import READER_SETTINGS, Follower, ReadSettings
from puredelta.worker.wire import INT96, OLD_TIMES

_OF_THE_READER = re.compile(r"spark\.sql\.(legacy\.)?(parquet|files)\.")
_CLASS = "org.apache.spark.sql.internal.SQLConf$"


def settings_of_spark(spark: SparkSession) -> set[str]:
    """Return every setting that this Spark knows, internal ones included."""
    conf = jvm_of(spark).java.lang.Class.forName(_CLASS).getField("MODULE$").get(None)
    entries = conf.getConfigEntries().iterator()
    found = set()
    while entries.hasNext():
        found.add(str(entries.next().key()))
    return found


def test_every_setting_of_sparks_reader_is_known(spark: SparkSession) -> None:
    """A new one has to be classified, in `puredelta.spark.session.read_settings`."""
    every = settings_of_spark(spark)
    assert len(every) > 500
    of_reader = {key for key in every if _OF_THE_READER.match(key)}
    assert "spark.sql.parquet.int96TimestampConversion" in of_reader
    assert of_reader - READER_SETTINGS.keys() == set()


def test_a_usual_value_is_that_of_spark(spark: SparkSession) -> None:
    left = [one for one in READER_SETTINGS.values() if one.follower is Follower.SPARK]
    assert len(left) == 6
    for one in left:
        assert str(spark.conf.get(one.key)).lower() == one.usual, one.key


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("int96TimestampConversion", "TRUE", (INT96,)),
        ("int96RebaseModeInRead", "LEGACY", (INT96,)),
        ("int96RebaseModeInRead", "EXCEPTION", (INT96,)),
        ("datetimeRebaseModeInRead", "legacy", (INT96, OLD_TIMES)),
        ("int96TimestampConversion", " false ", ()),
        ("datetimeRebaseModeInRead", "Corrected", ()),
        ("fieldId.read.enabled", "true", ()),
        ("enableVectorizedReader", "false", ()),
    ],
)
def test_unusual_settings_name_the_columns_that_only_spark_reads(
    key: str, value: str, words: tuple[str, ...]
) -> None:
    made = {f"spark.sql.parquet.{key}": value}
    assert ReadSettings.parse(made).only_spark == words
    for more in ({}, {"spark.puredelta.workers.mergeSmallFiles": "false"}):
        assert WorkerSettings.parse({**made, **more}).limits.only_spark == words


def test_lost_files_are_those_of_queries() -> None:
    assert not ReadSettings.parse({}).may_leave_files_out
    for name in ("ignoreMissingFiles", "ignoreCorruptFiles"):
        assert ReadSettings.parse({f"spark.sql.files.{name}": "True"}).may_leave_files_out


def test_every_row_of_the_table_says_why() -> None:
    assert all(one.reason for one in READER_SETTINGS.values())
    concerned = [one for one in READER_SETTINGS.values() if one.columns is not None]
    assert all(one.follower is Follower.SPARK for one in concerned)
