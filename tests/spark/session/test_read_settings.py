"""The settings of Spark's reader: every one is known, and Arrow reads where it may."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.jvm.gateway import jvm_of
from puredelta.spark.offload.workers import WorkerSettings
from puredelta.spark.session.read_settings import (
    READER_SETTINGS,
    Follower,
    ReadSettings,
    require_every_row,
)
from puredelta.spark.write.writer_settings import WriterSettings
from puredelta.worker.wire import CHECKSUMS, INT96, OLD_TIMES

_OF_THE_READER = re.compile(r"spark\.sql\.(legacy\.)?(parquet|files)\.")
_READS = re.compile(
    r"/(\w*Read[\w$]*|ParquetInputFormat|ParquetMetadataConverter|Unmat\w*|Decr\w*Factory)\.class$"
)
_KEY = re.compile(rb"(?<![\w./])parquet\.[a-z][\w.-]+")
OF_KEYS = {"parquet.crypto.factory.class"}
"""Of files that are written as well."""
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


def keys_of_library() -> set[str]:
    """Return the keys in the classes of Parquet's library that read files."""
    found: set[str] = set()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("parquet-*.jar"):
        with zipfile.ZipFile(jar) as packed:
            for name in packed.namelist():
                if _READS.search(name):
                    found |= {key.decode() for key in _KEY.findall(packed.read(name))}
    return found


def test_every_key_by_which_the_library_reads_is_known() -> None:
    """A new one has to be classified, too: queries and commands must see the same rows."""
    found = keys_of_library()
    assert {"parquet.read.filter", "parquet.page.verify-checksum.enabled"} <= found
    assert found - READER_SETTINGS.keys() == set()
    assert not any(WriterSettings.parse({key: "1"}).only_spark for key in found - OF_KEYS)


@pytest.mark.parametrize("key", ["parquet.read.filter", "parquet.private.read.filter.predicate"])
@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
def test_filters_that_no_query_names_are_refused(prefix: str, key: str) -> None:
    made = {f"{prefix}{key}": "x"}
    with pytest.raises(UnsupportedError, match=re.escape(key)) as caught:
        require_every_row(made)
    assert caught.value.code is ErrorCode.UNSUPPORTED_SETTING
    assert ReadSettings.parse(made).may_leave_rows_out
    require_every_row({f"{prefix}{key}": " "})


def test_a_usual_value_is_that_of_spark(spark: SparkSession) -> None:
    left = [one for one in READER_SETTINGS.values() if one.follower is Follower.SPARK]
    assert len(left) == 7
    for one in left:
        if one.key.startswith("parquet."):  # of the library, whose defaults Spark does not know
            continue
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
        ("parquet.page.verify-checksum.enabled", "true", (CHECKSUMS,)),
        ("fieldId.read.enabled", "true", ()),
        ("enableVectorizedReader", "false", ()),
    ],
)
def test_unusual_settings_name_the_columns_that_only_spark_reads(
    key: str, value: str, words: tuple[str, ...]
) -> None:
    made = {key if key in READER_SETTINGS else f"spark.sql.parquet.{key}": value}
    assert ReadSettings.parse(made).only_spark == words
    for more in ({}, {"spark.puredelta.workers.mergeSmallFiles": "false"}):
        assert WorkerSettings.parse({**made, **more}).limits.only_spark == words


def test_lost_files_are_those_of_queries() -> None:
    assert not ReadSettings.parse({}).may_leave_rows_out
    for name in ("ignoreMissingFiles", "ignoreCorruptFiles"):
        assert ReadSettings.parse({f"spark.sql.files.{name}": "True"}).may_leave_rows_out


def test_every_row_of_the_table_says_why() -> None:
    assert all(one.reason for one in READER_SETTINGS.values())
    concerned = [one for one in READER_SETTINGS.values() if one.columns is not None]
    assert all(one.follower is Follower.SPARK for one in concerned)
