"""What the state of a classic session says: its settings, and its default file system."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import has_jvm, java_class, jvm_of, session_of

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
    conf = session_of(spark).sessionState().newHadoopConf()
    uri = java_class(jvm_of(spark), "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf)
    return str(uri.toString())


def _json_writer(jvm: Any) -> Any:
    """Return Jackson's mapper, one per JVM: a new one has to find out first what a map is."""
    if jvm not in _JSON_WRITERS:
        _JSON_WRITERS[jvm] = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    return _JSON_WRITERS[jvm]
