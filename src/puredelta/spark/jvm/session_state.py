"""What the state of a classic session says: its settings, and its default file system."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import has_jvm, java_class, jvm_of, session_of

_DEFAULT_KEYS = ("fs.defaultFS", "fs.default.name")
"""Where Hadoop reads the default file system, by its name of today and its old one."""
_DEFAULTS: WeakKeyDictionary[SparkSession, tuple[tuple[str | None, ...], str]] = WeakKeyDictionary()
_JSON_WRITERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def session_settings(spark: SparkSession) -> Mapping[str, str] | None:
    """Return every setting that was made, by its key; ``None`` if the session has no JVM in reach.

    ``spark.conf.getAll`` of a classic session asks the JVM for each key and each value.
    """
    if not has_jvm(spark):
        return None
    every = session_of(spark).conf().getAllAsJava()
    settings: dict[str, str] = json.loads(_json_writer(jvm_of(spark)).writeValueAsString(every))
    return settings


def default_file_system(spark: SparkSession) -> str | None:
    """Return where Spark looks for a path without a scheme, as a URI; ``None`` without a JVM."""
    if not has_jvm(spark):
        return None
    session = session_of(spark)
    hadoop, own = session.sparkContext().hadoopConfiguration(), session.conf()
    said = (hadoop.get(_DEFAULT_KEYS[0]), *(own.get(key, None) for key in _DEFAULT_KEYS))
    known = _DEFAULTS.get(spark)
    if known is None or known[0] != said:
        # The whole configuration is copied: ten times what the three settings cost.
        conf = session.sessionState().newHadoopConf()
        uri = java_class(jvm_of(spark), "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf)
        known = _DEFAULTS[spark] = said, str(uri.toString())
    return known[1]


def _json_writer(jvm: Any) -> Any:
    """Return Jackson's mapper, one per JVM: a new one has to find out first what a map is."""
    if jvm not in _JSON_WRITERS:
        _JSON_WRITERS[jvm] = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    return _JSON_WRITERS[jvm]
