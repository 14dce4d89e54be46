"""The log at a location that a user names.

Spark takes a location without a scheme for one of its default file system, which on a cluster is
often HDFS or an object store. So does this library: it asks Spark what such a location means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.hadoop.hadoop_files import qualified
from puredelta.spark.jvm.session_state import default_file_system
from puredelta.spark.session.delta_conf import REFUSED_BY_FILE_SYSTEM_OPTIONS
from puredelta.spark.session.session import is_connect, settings_of
from puredelta.spark.session.storage import session_storage
from puredelta.store.registry import has_scheme

T = TypeVar("T")

_FILE_SYSTEM = ("fs.", "dfs.")
_SESSION_KEY = "fs.defaultFS"
_KEY = f"spark.hadoop.{_SESSION_KEY}"
_NOWHERE = "/puredelta-asks-for-the-default-file-system"
_QUALIFIED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:[^\s]*)" + _NOWHERE)

_server_defaults: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def open_log(
    spark: SparkSession,
    location: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, object] | None = None,
) -> TableLog:
    """Open the log at a table location; the table need not exist yet.

    The default file system is asked for at every location without scheme: users set it in a
    session that runs.
    ``storage_options`` are Hadoop's settings or obstore's options, which win over the session's.

    Raises:
        UnsupportedError: the storage cannot be reached (UNSUPPORTED_STORAGE).
        InvalidRequestError: an option is unknown, or the location cannot be one.
    """
    if file_system_options(storage_options or {}):
        REFUSED_BY_FILE_SYSTEM_OPTIONS.require_defaults(settings_of(spark))
    text = as_spark_means(spark, os.fspath(location))
    storage = session_storage(spark).with_options(storage_options)
    return TableLog.open(text, storage=storage)


def file_system_options(options: Mapping[str, T]) -> dict[str, T]:
    """Return the options of a reader or writer that are those of a file system.

    >>> file_system_options({"mergeSchema": "true", "fs.s3a.endpoint": "h"})
    {'fs.s3a.endpoint': 'h'}
    """
    return {key: value for key, value in options.items() if key.startswith(_FILE_SYSTEM)}


def as_spark_means(spark: SparkSession, location: str) -> str:
    """Return a location with its scheme, where the session's default file system is not local.

    Raises:
        UnsupportedError: it is relative to a directory that a client cannot know.
    """
    if not location or has_scheme(location):
        return location
    default = _default_of(spark)
    if default.partition(":")[0].lower() == "file":
        return location
    if not is_connect(spark):
        return qualified(spark, location)
    if location.startswith("/"):
        return default.rstrip("/") + location
    raise UnsupportedError(
        f"{location} names no file system, so the server takes it for a path on {default} "
        "(fs.defaultFS), relative to a directory that a client cannot know. Write the whole "
        f"location, such as {default.rstrip('/')}/{location}.",
        code=ErrorCode.UNSUPPORTED_STORAGE,
        path=location,
    )


def _default_of(spark: SparkSession) -> str:
    """Return the default file system of now; ``file:`` where nothing says otherwise.

    Of a server only what the client's own session sets can change.
    """
    if not is_connect(spark):
        return default_file_system(spark) or "file:"
    if set_here := spark.conf.get(_SESSION_KEY, None):
        return set_here
    if spark not in _server_defaults:
        _server_defaults[spark] = _server_default(spark)
    return _server_defaults[spark]


def _server_default(spark: SparkSession) -> str:
    if (known := spark.conf.get(_KEY, None)) is not None:
        return known
    try:  # a client sees nothing of Hadoop's own configuration but in what Spark says of a path
        _ = spark.read.text(_NOWHERE).columns
    except PySparkException as failure:
        found = _QUALIFIED.search(str(failure))
        return "file:" if found is None else found[1]
    return "file:"
