"""What a session says of storage: Hadoop's settings, and our own that win over them.

``spark.puredelta.storage.<option>`` has the names of obstore's options. Settings are read when a
location needs them, and anew each time: users set keys in a session that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from pyspark.sql import SparkSession

from puredelta.spark.jvm.classes import has_jvm
from puredelta.spark.jvm.hadoop.hadoop_files import hadoop_settings
from puredelta.spark.jvm.hadoop.hadoop_store import HadoopFileSystems
from puredelta.spark.session.session import settings_of
from puredelta.store.registry import Storage

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
