"""Switch the activation on and off, for all sessions of one kind in this process."""

from __future__ import annotations

import importlib
import threading
import warnings
from typing import Any

from pyspark.sql import SparkSession

from puredelta.activation.doors import (
    open_insert_into,
    open_load,
    open_save,
    open_save_as_table,
    open_sql,
    open_table,
    own_session,
    reader_session,
)
from puredelta.activation.patches import Patches
from puredelta.activation.stream_doors import open_stream_reader, open_stream_writer
from puredelta.activation.table_doors import open_merge_into, open_table_writer
from puredelta.activation.told import record_reader, record_writer
from puredelta.activation.told_stream import record_stream_writer
from puredelta.activation.told_table import record_table_writer
from puredelta.spark.jvm.classes import has_class
from puredelta.spark.session.session import is_connect

_JAR_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS = "spark.sql.extensions"
_CLASSIC = (
    "pyspark.sql.session",
    "pyspark.sql.readwriter",
    "pyspark.sql.classic.dataframe",
    "pyspark.sql.streaming.readwriter",
)
_CONNECT = (
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.readwriter",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.streaming.readwriter",
)

_lock = threading.Lock()
_active: dict[tuple[str, ...], Patches] = {}
"""What is replaced, by the modules of the kind of session."""


def activate(spark: SparkSession) -> bool:
    """Let the session read, write and query Delta tables through PySpark's own calls.

    ``spark.read.format("delta")``, ``df.write.format("delta")``, ``df.writeTo``,
    ``df.mergeInto``, ``df.writeStream``, ``spark.sql`` and ``spark.table`` then work as with
    delta-spark; `docs/activation.md` lists what they take. Every other format and statement
    takes PySpark's own path. Methods of PySpark's classes are replaced, so every session of
    this process that is of the same kind (classic or Connect) is active; readers and writers
    made before are not. Activating twice is once.

    Returns:
        Whether the session is active. A session that has delta-spark's JAR is left alone,
        with a warning: it knows Delta already.

    Examples:
        >>> import puredelta
        >>> puredelta.activate(spark)  # doctest: +SKIP
        True
        >>> reader = spark.read.format("delta").option("versionAsOf", 3)  # doctest: +SKIP
        >>> events = reader.load("/data/events")  # doctest: +SKIP
    """
    if _has_jar(spark):
        warnings.warn(
            "This session has delta-spark's JAR, so puredelta.activate() changes nothing: its "
            "readers, writers and SQL are delta-spark's. Start the session without the JAR and "
            f"without {_EXTENSIONS} to use puredelta, or call puredelta.read, puredelta.write and "
            "puredelta.sql.",
            stacklevel=2,
        )
        return False
    modules = _CONNECT if is_connect(spark) else _CLASSIC
    with _lock:
        if modules not in _active:
            _active[modules] = _patched(*modules)
    return True


def deactivate() -> None:
    """Put back every method that `activate` has replaced, the very same function objects."""
    with _lock:
        while _active:
            _, patches = _active.popitem()
            patches.undo()


def _patched(sessions: str, builders: str, frames: str, streams: str) -> Patches:
    session: Any = importlib.import_module(sessions).SparkSession
    module: Any = importlib.import_module(builders)
    frame: Any = importlib.import_module(frames).DataFrame
    stream: Any = importlib.import_module(streams)
    patches = Patches()
    try:
        record_reader(patches, module.DataFrameReader)
        record_writer(patches, module.DataFrameWriter)
        open_load(patches, module.DataFrameReader)
        open_save(patches, module.DataFrameWriter)
        open_save_as_table(patches, module.DataFrameWriter)
        open_insert_into(patches, module.DataFrameWriter)
        record_table_writer(patches, frame, module.DataFrameWriterV2)
        open_table_writer(patches, module.DataFrameWriterV2)
        open_merge_into(patches, frame)
        record_reader(patches, stream.DataStreamReader)
        record_stream_writer(patches, stream.DataStreamWriter)
        open_stream_writer(patches, stream.DataStreamWriter)
        open_stream_reader(patches, stream.DataStreamReader)
        open_table(patches, module.DataFrameReader, reader_session)
        open_table(patches, session, own_session)
        open_sql(patches, session)
    except BaseException:
        patches.undo()
        raise
    return patches


def _has_jar(spark: SparkSession) -> bool:
    """Tell whether delta-spark is in the session, as configured or on its class path."""
    if _JAR_CLASS in (spark.conf.get(_EXTENSIONS, None) or ""):
        return True
    if is_connect(spark):
        return False  # a client cannot see the server's classes
    return has_class(spark, _JAR_CLASS)
