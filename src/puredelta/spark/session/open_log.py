"""The log at a location that a user names.

Spark takes a location without a scheme for one of its default file system, which on a cluster is
often HDFS or an object store. This library would take the same text for a directory of the
driver, so it asks first.
"""

from __future__ import annotations

import os
import re
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.session_state import default_file_system
from puredelta.spark.session.session import is_connect
from puredelta.store.registry import has_scheme

_KEY = "spark.hadoop.fs.defaultFS"
_NOWHERE = "/puredelta-asks-for-the-default-file-system"
_QUALIFIED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:[^\s]*)" + _NOWHERE)

_defaults: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def open_log(spark: SparkSession, location: str | os.PathLike[str]) -> TableLog:
    """Open the log at a table location; the table need not exist yet.

    The default file system is asked for once per session, and only for a location without scheme.

    Raises:
        UnsupportedError: the storage is not supported (UNSUPPORTED_STORAGE), the session's
            default file system included where the location names none.
    """
    text = os.fspath(location)
    if text and not has_scheme(text):
        _require_local(spark, text)
    return TableLog.open(text)


def _require_local(spark: SparkSession, location: str) -> None:
    if spark not in _defaults:
        _defaults[spark] = _default_of(spark)
    default = _defaults[spark]
    scheme = default.partition(":")[0]
    if scheme.lower() == "file":
        return
    raise UnsupportedError(
        f"{location} names no file system, so Spark takes it for a path on {default} "
        f"(fs.defaultFS), and tables on {scheme!r} storage are not supported. For a directory on a "
        "file system that the driver and the executors mount write "
        f"file:{os.path.abspath(location)}.",  # noqa: PTH100 - text in, text out
        code=ErrorCode.UNSUPPORTED_STORAGE,
        path=location,
        scheme=scheme,
    )


def _default_of(spark: SparkSession) -> str:
    """Return the default file system; ``file:`` where nothing says otherwise."""
    if not is_connect(spark):
        return default_file_system(spark) or "file:"
    if (known := spark.conf.get(_KEY, None)) is not None:
        return known
    try:  # a client sees nothing of Hadoop's own configuration but in what Spark says of a path
        _ = spark.read.text(_NOWHERE).columns
    except PySparkException as failure:
        found = _QUALIFIED.search(str(failure))
        return "file:" if found is None else found[1]
    return "file:"
