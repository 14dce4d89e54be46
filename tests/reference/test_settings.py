"""Every setting and option that delta-spark has is one that this library knows, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from puredelta.commands.write.options import REFUSED_OPTIONS, WRITE_OPTIONS
from puredelta.spark.session.delta_conf import (
    ALLOW_DROP,
    ALLOW_RENAME,
    ALLOW_RENAME_AND_DROP,
    ALLOW_TYPE_CHANGE,
    DROP_NULL_COLUMNS,
    HONOURED,
    PRESERVE_NULL_STRUCTS_STAR,
    PROPERTY_DEFAULTS,
    REFUSED,
    WITHOUT_EFFECT,
)

_FAMILIES = {
    conf.key
    for conf in (
        PROPERTY_DEFAULTS,
        ALLOW_RENAME,
        ALLOW_DROP,
        ALLOW_RENAME_AND_DROP,
        ALLOW_TYPE_CHANGE,
    )
}
"""Beginnings of names, which delta-spark does not register."""
_SAID_OTHERWISE = {
    DROP_NULL_COLUMNS.key,  # depends on the version of Spark
    PRESERVE_NULL_STRUCTS_STAR.key,  # that of another setting
}
_READER_OPTIONS = {
    "versionAsOf",
    "timestampAsOf",
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
    "path",
    "queryName",
    "checkpointLocation",
}
_STREAM_OPTIONS = {
    "excludeRegex",
    "failOnDataLoss",
    "ignoreFileDeletion",
    "ignoreChanges",
    "ignoreDeletes",
    "skipChangeCommits",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "schemaTrackingLocation",
    "schemaLocation",
    "streamingSourceTrackingId",
}
_WITHOUT_EFFECT = {
    "isDataFrameWriterV1SaveAsTableOverwrite",  # Spark says it to its catalogs
    "__v1_save_as_table_overwrite",
    "targetAlias",  # a name for the table in conditions of options that are refused
    "writePartitionColumns",  # files never repeat what the log says
    "parquet.writer.version",  # read by Spark's writer
    "spark.sql.parquet.outputTimestampType",
}


def _scala(items: Any) -> list[Any]:
    found, iterator = [], items.iterator()
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def _module(spark: SparkSession, name: str) -> Any:
    package, _, kind = name.rpartition(".")
    here = spark._jvm
    for part in package.split("."):
        here = getattr(here, part)
    return getattr(getattr(here, f"{kind}$"), "MODULE$")


def test_every_setting_is_known_with_its_default(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.format("delta").save(str(tmp_path / "t"))  # loads what registers them
    entries = _scala(_module(spark, "org.apache.spark.sql.internal.SQLConf").getConfigEntries())
    theirs = {
        entry.key(): entry.defaultValueString()
        for entry in entries
        if entry.key().startswith(("spark.databricks.", "spark.delta."))
    }
    refused = [conf for group in REFUSED for conf in group.confs]
    ours = {c.key: c.default for c in (*HONOURED, *WITHOUT_EFFECT, *refused)}
    assert set(theirs) == set(ours) - _FAMILIES
    differing = {
        key: (ours[key], theirs[key])
        for key in theirs
        if key not in _SAID_OTHERWISE and not _same(ours[key], theirs[key], theirs)
    }
    assert differing == {}


def _same(ours: str | None, text: str, others: dict[str, str]) -> bool:
    if text.startswith("<value of "):
        text = others[text.removeprefix("<value of ").rstrip(">")]
    if ours is None:
        return text == "<undefined>"
    sizes = {"512MB": "536870912b"}
    return sizes.get(ours, ours).lower() == text.lower()


def test_every_option_is_known(spark: SparkSession) -> None:
    theirs = set(
        _scala(_module(spark, "org.apache.spark.sql.delta.DeltaOptions").validOptionKeys())
    )
    known = {*WRITE_OPTIONS, *_STREAM_OPTIONS, *REFUSED_OPTIONS, *_READER_OPTIONS, *_WITHOUT_EFFECT}
    lower = {name.lower() for name in known}
    assert {name for name in theirs if name.lower() not in lower} == set()
