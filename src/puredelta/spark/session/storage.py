"""Storage settings of a session, and the log at a location.

``spark.puredelta.storage.<option>`` has the names of obstore's options. Settings are read when a
location needs them, and again each time: users set keys in a session that runs.

Spark takes a location without a scheme for one of its default file system, which on a cluster is
often HDFS or an object store. So does this library: it asks Spark what such a location means.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.catalogs.catalog import name_of_address
from puredelta.errors import Message, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.jvm.gateway import default_file_system, has_jvm
from puredelta.spark.jvm.hadoop import HadoopFileSystems, hadoop_settings, qualified
from puredelta.spark.session.catalogs import open_catalog_log
from puredelta.spark.session.delta_conf import REFUSED_BY_FILE_SYSTEM_OPTIONS
from puredelta.spark.session.session import is_connect, setting_of, settings_of
from puredelta.store.registry import Storage, has_scheme

OPTION_PREFIX = "spark.puredelta.storage."
_HADOOP_PREFIX = "spark.hadoop."
_WANTED = ("fs.", "dfs.", "google.cloud.", "hadoop.security.credential.")


def session_storage(spark: SparkSession) -> Storage:
    """Return the storage of a session; nothing is asked before a location needs it."""
    return Storage(
        settings=_Late(lambda: _settings(spark)),
        options=_Late(lambda: _options(spark)),
        file_systems=HadoopFileSystems(spark) if has_jvm(spark) else None,
        read_again=lambda: session_storage(spark),
    )


def _settings(spark: SparkSession) -> Mapping[str, str]:
    if has_jvm(spark):
        return hadoop_settings(spark)
    # A client sees only what was set for Spark, not Hadoop's own files.
    bare = ((k.removeprefix(_HADOOP_PREFIX), v) for k, v in settings_of(spark).items())
    return {key: value for key, value in bare if key.startswith(_WANTED)}


def _options(spark: SparkSession) -> Mapping[str, str]:
    every = settings_of(spark).items()
    return {k.removeprefix(OPTION_PREFIX): v for k, v in every if k.startswith(OPTION_PREFIX)}


class _Late(Mapping[str, str]):
    """A mapping that is read when it is first used; it shows nothing as text."""

    def __init__(self, read: Callable[[], Mapping[str, str]]) -> None:
        self._read = read

    @cached_property
    def _known(self) -> Mapping[str, str]:
        return self._read()

    def __getitem__(self, key: str) -> str:
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


T = TypeVar("T")

_FILE_SYSTEM = ("fs.", "dfs.")
_SESSION_KEY = "fs.defaultFS"
_KEY = f"spark.hadoop.{_SESSION_KEY}"
_ON_MOST_DISKS = "/etc/hosts"
"""Where this is, the default file system is a disk, and the server has no error to log."""
_QUALIFIED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:[^\s]*)" + _ON_MOST_DISKS)

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
    """
    if file_system_options(storage_options or {}):
        REFUSED_BY_FILE_SYSTEM_OPTIONS.require_defaults(settings_of(spark))
    storage = session_storage(spark).with_options(storage_options)
    if (name := name_of_address(os.fspath(location))) is not None:
        return open_catalog_log(spark, name, storage)
    text = as_spark_means(spark, os.fspath(location))
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
        Message.UNSUPPORTED_STORAGE_DEFAULT_FILE_SYSTEM,
        default=default,
        default_shown=default.rstrip("/"),
        path=location,
    )


def _default_of(spark: SparkSession) -> str:
    """Return the default file system of now; ``file:`` where nothing says otherwise.

    Of a server only what the client's own session sets can change.
    """
    if not is_connect(spark):
        return default_file_system(spark) or "file:"
    if set_here := setting_of(spark, _SESSION_KEY, ""):
        return set_here
    if spark not in _server_defaults:
        _server_defaults[spark] = _server_default(spark)
    return _server_defaults[spark]


def _server_default(spark: SparkSession) -> str:
    if known := setting_of(spark, _KEY, ""):
        return known
    try:  # a client sees nothing of Hadoop's own configuration but in what Spark says of a path
        _ = spark.read.text(_ON_MOST_DISKS).inputFiles()
    except PySparkException as failure:
        found = _QUALIFIED.search(str(failure))
        return "file:" if found is None else found[1]
    return "file:"
