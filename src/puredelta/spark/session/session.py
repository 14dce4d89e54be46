"""Facts about a Spark session, small frames, and the signal of a fast path that does not apply."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from puredelta.spark.connect.messages import (
    empty_rows,
    local_rows,
    server_defaults,
    with_known_rows,
)
from puredelta.spark.connect.plan_hook import watch_settings
from puredelta.spark.jvm.frames import lazy_frame, row_of_longs
from puredelta.spark.jvm.gateway import hadoop_parquet_settings, has_class, session_settings
from puredelta.spark.session.delta_conf import check_settings

_CONNECT_MODULE = "pyspark.sql.connect."


class StoreAssignment(Enum):
    """``spark.sql.storeAssignmentPolicy``: how a value is cast to the column it is written to."""

    ANSI = "ANSI"
    LEGACY = "LEGACY"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The settings of one session, all read at the same time.

    Take it at the start of a command and pass it on: a setting the user changes while the
    command runs must not split it in two.
    """

    spark_version: str
    is_connect: bool
    """True for a Spark Connect session: no JVM in reach, public API only."""
    time_zone: str
    """``spark.sql.session.timeZone``, in Spark's spelling."""
    case_sensitive: bool
    ansi: bool
    store_assignment: StoreAssignment
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every setting that was made, by its key; of Hadoop's configuration those of Parquet."""

    @classmethod
    def of(cls, spark: SparkSession) -> SessionInfo:
        """Read the settings of ``spark``; runs no job.

        Examples:
            >>> SessionInfo.of(spark).is_connect  # doctest: +SKIP
            False
        """
        made = {**hadoop_parquet_settings(spark), **settings_of(spark)}
        check_settings(made)
        over_connect = is_connect(spark)
        defaults = server_defaults(spark, (_TIME_ZONE, _ANSI), made) if over_connect else {}

        def setting(key: str, default: str | None = None) -> str:
            """Ask Spark for a default that differs from one JVM to the next."""
            if key in made:
                return made[key]
            return default or defaults.get(key) or str(spark.conf.get(key))

        return cls(
            spark_version=version_of_spark(spark),
            is_connect=over_connect,
            time_zone=setting(_TIME_ZONE),
            case_sensitive=setting("spark.sql.caseSensitive", "false").lower() == "true",
            ansi=setting(_ANSI).lower() == "true",
            store_assignment=StoreAssignment(
                setting("spark.sql.storeAssignmentPolicy", "ANSI").upper()
            ),
            settings=made,
        )


_TIME_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"

_known_settings: ContextVar[Mapping[str, str] | None] = ContextVar("known settings", default=None)


@dataclass(slots=True)
class _Asked:
    """The answers of a Connect server, and of catalogs, that hold for one public call."""

    settings: Mapping[str, str] | None = None
    names: dict[tuple[str, ...], Any] = field(default_factory=dict)
    tables: dict[object, Any] = field(default_factory=dict)


_of_call: ContextVar[dict[SparkSession, _Asked] | None] = ContextVar("of a call", default=None)


@contextmanager
def known_settings(settings: Mapping[str, str]) -> Iterator[None]:
    """Let `settings_of` and `setting_of` answer with these settings, without a request."""
    token = _known_settings.set(settings)
    try:
        yield
    finally:
        _known_settings.reset(token)


@contextmanager
def one_call() -> Iterator[None]:
    """Ask a Connect server once inside the context for settings and each name.

    What a catalog says of a table is kept, too, for a moment.
    """
    token = _of_call.set({}) if _of_call.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _of_call.reset(token)


def forget_settings() -> None:
    """Ask for settings and names again in this call: a statement may have changed them."""
    for asked in (_of_call.get() or {}).values():
        asked.settings = None
        asked.names.clear()
        asked.tables.clear()


def asked_names(spark: SparkSession) -> dict[tuple[str, ...], Any]:
    """Return what the server's catalog has said of names in this call; it is added to."""
    asked = _of_call.get()
    return {} if asked is None else asked.setdefault(spark, _Asked()).names


def asked_tables(spark: SparkSession) -> dict[object, Any]:
    """Return what catalogs of this library have said of tables in this call; it is added to."""
    asked = _of_call.get()
    return {} if asked is None else asked.setdefault(spark, _Asked()).tables


def seen_files(spark: SparkSession) -> set[str]:
    """Return the absolute URIs of files that the server has listed or written for this session.

    It is added to as they are seen: a file of a table has a name that no other file gets.
    """
    seen = _seen.setdefault(spark, set())
    if len(seen) > _SEEN_MAX:
        seen.clear()
    return seen


_seen: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
_SEEN_MAX = 20_000


def settings_of(spark: SparkSession) -> Mapping[str, str]:
    """Return every setting that was made, all read at once."""
    if (known := _known_settings.get()) is not None:
        return known
    settings = session_settings(spark)
    if settings is not None:
        return settings
    of_call = _of_call.get()
    if of_call is None:
        return _kept_settings(spark)
    asked = of_call.setdefault(spark, _Asked())
    if asked.settings is None:
        asked.settings = _kept_settings(spark)
    return asked.settings


def _kept_settings(spark: SparkSession) -> Mapping[str, str]:
    """Return the settings of a Connect session; a request if this client may have changed some.

    Another client of the same session may, too, so an answer holds for a few seconds.
    """
    kept = _kept.get(spark)
    if kept is None:
        kept = _kept.setdefault(spark, [])
        watch_settings(spark, kept.clear)
    now = time.monotonic()
    if not kept or now - kept[0][0] > SETTINGS_KEPT_SECONDS:
        kept[:] = [(now, spark.conf.getAll)]
    return kept[0][1]


_kept: WeakKeyDictionary[SparkSession, list[tuple[float, Mapping[str, str]]]] = WeakKeyDictionary()
SETTINGS_KEPT_SECONDS = 10.0
"""For so long the settings are taken to be those that they were."""


def setting_of(spark: SparkSession, key: str, default: str) -> str:
    """Return one setting, or its default."""
    if (known := _known_settings.get()) is not None:
        return known.get(key, default)
    if is_connect(spark):
        return settings_of(spark).get(key, default)
    return str(spark.conf.get(key, default))


def parallelism(spark: SparkSession) -> int:
    """Return the tasks that can run at once; 0 for a client whose server does not say."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    found = _LOCAL_THREADS.match(setting_of(spark, "spark.master", ""))
    return 0 if found is None else int(found[1])


_LOCAL_THREADS = re.compile(r"local\[(\d+)")


def pyspark_package(spark: SparkSession) -> str:
    """Return the package of the classes of a session, as PySpark names it."""
    return CONNECT if is_connect(spark) else CLASSIC


CLASSIC, CONNECT = "pyspark.sql", "pyspark.sql.connect"
"""The packages of the two kinds of sessions."""


def has_extension(spark: SparkSession, name: str) -> bool:
    """Return whether a class of extensions is in the session: on its class path.

    A client does not see the classes of a server, but the extensions that are configured there.
    """
    if is_connect(spark):
        return name in (spark.conf.get("spark.sql.extensions", None) or "")
    return has_class(spark, name)


def is_connect(spark: SparkSession) -> bool:
    """Return whether the session talks to a server over Spark Connect.

    The class is looked at, not imported: its module needs packages that only Connect
    clients have.
    """
    return any(kind.__module__.startswith(_CONNECT_MODULE) for kind in type(spark).__mro__)


def runs_here(master: str | None) -> bool:
    """Return whether executors are threads of the driver: they see whatever the driver sees.

    >>> [runs_here(master) for master in ("local[2]", "local-cluster[2,1,1024]", None)]
    [True, False, False]
    """
    return master is not None and (master == "local" or master.startswith("local["))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The fast path is not possible here; nothing was written."""

    reason: str


def no_rows(spark: SparkSession, schema: T.StructType | None = None) -> DataFrame:
    """Return a frame of no rows, by default without columns as Spark does for a command.

    Runs no job.
    """
    schema = T.StructType([]) if schema is None else schema
    return empty_rows(spark, schema) if is_connect(spark) else lazy_frame(spark, schema)


def arrow_rows(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the rows of an Arrow table as a frame, without a request if they are few."""
    if not is_connect(spark) or table.nbytes > _INLINE_BYTES_MAX:
        made: DataFrame = spark.createDataFrame(table)
        return made
    return local_rows(spark, table, from_arrow_schema(table.schema))


def text_rows(spark: SparkSession, rows: Sequence[tuple[str, ...]], *names: str) -> DataFrame:
    """Return rows of texts as a frame."""
    if not is_connect(spark):
        return spark.createDataFrame(list(rows), ", ".join(f"{name} STRING" for name in names))
    columns = [pa.array([row[n] for row in rows], pa.string()) for n in range(len(names))]
    return arrow_rows(spark, pa.table(columns, list(names)))


_INLINE_BYTES_MAX = 4 << 20
"""PySpark sends more data than this apart from the plan."""


def version_of_spark(spark: SparkSession) -> str:
    """Return the version of Spark, for which a client asks the server once."""
    if spark not in _versions:
        _versions[spark] = spark.version
    return _versions[spark]


_versions: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def count_row(spark: SparkSession, counts: Mapping[str, int], *, exists: bool = True) -> DataFrame:
    """Return the counts that a command answers with as the long columns of one row, or of none.

    Examples:
        >>> count_row(spark, {"num_affected_rows": 3}).first()  # doctest: +SKIP
        Row(num_affected_rows=3)
    """
    schema = T.StructType([T.StructField(name, T.LongType()) for name in counts])
    if is_connect(spark):
        values = {name: pa.array([n] if exists else [], pa.int64()) for name, n in counts.items()}
        rows = local_rows(spark, pa.table(values), schema)
        return with_known_rows(rows, [Row(**counts)] if exists else [])
    numbers = list(counts.values())
    return lazy_frame(spark, schema, lambda: [row_of_longs(spark, numbers)] if exists else [])
