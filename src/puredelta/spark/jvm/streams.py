"""Spark's streaming source as a Python object, and the queries that run.

Spark's engine asks for the end of the next batch and for its rows, which are frames: they never
pass through Python workers. Limits, state, recovery and progress reports are Spark's own.

``Source`` and ``SupportsTriggerAvailableNow`` are two interfaces, so the object is a Java proxy of
both, whose calls all arrive here by name. As with `puredelta.spark.jvm.file_index`, Spark's
threads do not call Python themselves: Py4J would keep a connection and a Python thread for every
query that ever ran.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.errors import InvalidRequestError, Message
from puredelta.log.changes.schema_log import location_conflict
from puredelta.log.changes.stream_offsets import EVERYTHING, ReadLimits
from puredelta.spark.jvm.callbacks import STREAMING
from puredelta.spark.jvm.frames import frame_of, streaming_batch
from puredelta.spark.jvm.gateway import (
    CATALYST,
    JVM_ERRORS,
    has_class,
    java_array,
    java_class,
    java_type,
    jvm_of,
    name_proxy,
    proxy_name,
    scala_none,
    scala_object,
    session_of,
)
from puredelta.spark.jvm.hadoop import qualified
from puredelta.spark.jvm.plans import Plan

_EXECUTION = "StreamingExecutionRelation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """A query, and its sources in the order in which Spark numbers them."""

    checkpoint: str
    sources: tuple[str | None, ...]
    """The names of those that are Python objects; None for others."""

    def source_path(self, name: str) -> str:
        """Return where Spark keeps what it knows of a source."""
        return f"{self.checkpoint}/sources/{self.sources.index(name)}"


def running_queries(spark: SparkSession) -> Iterator[RunningQuery]:
    """Yield the queries of a session that run."""
    for wrapper in session_of(spark).streams().active():
        query = wrapper.streamingQuery()
        yield RunningQuery(
            checkpoint=str(query.resolvedCheckpointRoot()),
            sources=tuple(_sources(Plan(query.analyzedPlan()))),
        )


def _sources(plan: Plan) -> Iterator[str | None]:
    names: set[str] = set()
    others: list[Any] = []
    for leaf in plan.leaves:
        if not leaf.java.isStreaming():
            continue
        name = proxy_name(leaf.java.source()) if leaf.kind == _EXECUTION else None
        # This library's sources are not compared: that would be a call to Python inside of another.
        if name is None and not any(leaf.java.equals(other) for other in others):
            others.append(leaf.java)
            yield None
        elif name is not None and name not in names:
            names.add(name)
            yield name


_STREAMING = "org.apache.spark.sql.execution.streaming"
_CONNECTOR = "org.apache.spark.sql.connector.read.streaming"
_INTERFACES = (f"{_STREAMING}.Source", f"{_CONNECTOR}.SupportsTriggerAvailableNow")
_numbers = itertools.count(1)
_sources_by_name: WeakValueDictionary[str, StreamSource] = WeakValueDictionary()


class StreamSource(Protocol):
    """What a stream says to Spark's engine. Offsets are texts, equal if they are the same place.

    One query at a time asks, from any thread. What is raised ends the query.
    """

    @property
    def description(self) -> str:
        """The description in the progress of a query."""
        ...

    @property
    def default_limits(self) -> ReadLimits:
        """How much a batch takes, unless the trigger takes everything."""
        ...

    @property
    def tracking_location(self) -> str | None:
        """The place in storage that no other stream may have; None if it has none."""
        ...

    def begin(self, query: RunningQuery, source_path: str) -> None:
        """A query asks, which may be the same as before. Only with a tracking location."""
        ...

    def complete(self, end: str) -> None:
        """A query is done with everything up to an offset."""
        ...

    def latest_offset(self, start: str | None, limits: ReadLimits) -> str | None:
        """Return the end of the next batch; ``start`` where there is nothing new."""
        ...

    def batch(self, start: str | None, end: str) -> DataFrame:
        """Return the rows between two offsets: the same at every call."""
        ...

    def prepare_for_available_now(self) -> None:
        """A query begins that ends with what is there at its first question."""
        ...

    def stop(self) -> None:
        """A query has ended."""
        ...


def stream_frame(spark: SparkSession, source: StreamSource, schema: T.StructType) -> DataFrame:
    """Return a streaming frame whose queries ask ``source``; batches have the columns ``schema``.

    The plan lives as long as the Python process: when that ends, so does a query.
    """
    jvm = jvm_of(spark)
    name = _first_class(spark, "runtime.StreamingExecutionRelation", "StreamingExecutionRelation")
    attributes = java_class(jvm, f"{CATALYST}.types.DataTypeUtils").toAttributes(
        java_type(jvm, schema)
    )
    arguments = [_proxy(spark, source, schema), attributes, scala_none(jvm)]
    of_name = java_class(jvm, "java.lang.Class").forName
    if of_name(name).getConstructors()[0].getParameterCount() > len(arguments) + 1:
        # Since Spark 4.2 a source may have a name.
        arguments.append(getattr(scala_object(jvm, name), "apply$default$4")())
    return frame_of(spark, Plan(java_class(jvm, name)(*arguments, session_of(spark))))


def _proxy(spark: SparkSession, source: StreamSource, schema: T.StructType) -> Any:
    jvm = jvm_of(spark)
    of_name = java_class(jvm, "java.lang.Class").forName
    handler = _Handler(spark, source, schema)
    calls = STREAMING.caller(spark, handler, "java.lang.reflect.InvocationHandler")
    classes = java_array(spark, "java.lang.Class", [of_name(name) for name in _INTERFACES])
    loader = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    proxy = java_class(jvm, "java.lang.reflect.Proxy").newProxyInstance(loader, classes, calls)
    name_proxy(proxy, handler.name)
    return proxy


def _first_class(spark: SparkSession, *names: str) -> str:
    """Return the first of the classes that this Spark has: packages moved in 4.1."""
    known = [f"{_STREAMING}.{name}" for name in names]
    return next((name for name in known if has_class(spark, name)), known[-1])


class _Handler:
    """Answers every call of the JVM to one source."""

    def __init__(self, spark: SparkSession, source: StreamSource, schema: T.StructType) -> None:
        self._number = next(_numbers)
        self.name = f"puredelta-stream-{self._number}"
        self._spark = spark
        self._source = source
        self._schema = schema
        _sources_by_name[self.name] = source
        self._offset_class = _first_class(spark, "runtime.SerializedOffset", "SerializedOffset")
        self._answers: dict[str, Callable[[Any], Any]] = {
            "schema": self._schema_of,
            "getBatch": self._batch,
            "commit": self._complete,
            "latestOffset": self._latest,
            "getDefaultReadLimit": self._default_limit,
            "prepareForTriggerAvailableNow": self._prepare,
            "deserializeOffset": lambda given: self._offset(str(given[0])),
            "stop": self._stop,
            "hashCode": lambda _: self._number,
            "equals": self._equals,
            "toString": lambda _: self._source.description,
        }

    def invoke(self, _proxy: Any, method: Any, arguments: Any) -> Any:
        """Answer a call; what is not known here has nothing to say."""
        name = str(method.getName())
        try:
            answer = self._answers.get(name)
            return None if answer is None else answer(arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is ends the query
            # The message is what a user sees; our stack frames do not help them.
            raise error.with_traceback(None) from None

    def _schema_of(self, _: Any) -> Any:
        return java_type(jvm_of(self._spark), self._schema)

    def _begin(self) -> None:
        """Tell a source that has a place of its own which query asks."""
        location = self._source.tracking_location
        if location is None:
            return
        mine = [query for query in running_queries(self._spark) if _has(query, location)]
        names = [name for query in mine for name in query.sources if _location(name) == location]
        if len(mine) != 1 or names != [self.name]:
            raise location_conflict(location)
        self._source.begin(mine[0], mine[0].source_path(self.name))

    def _complete(self, given: Any) -> None:
        self._begin()
        self._source.complete(str(given[0].json()))

    def _batch(self, given: Any) -> Any:
        self._begin()
        start = given[0]
        first = str(start.get().json()) if start.isDefined() else None
        return streaming_batch(self._source.batch(first, str(given[1].json())))

    def _latest(self, given: Any) -> Any:
        self._begin()
        start, limit = given[0], given[1]
        first = None if start is None else str(start.json())
        found = self._source.latest_offset(first, _limits(limit))
        return start if found == first else self._offset(found)

    def _default_limit(self, _: Any) -> Any:
        return _read_limit(self._spark, self._source.default_limits)

    def _prepare(self, _: Any) -> None:
        self._source.prepare_for_available_now()

    def _stop(self, _: Any) -> None:
        self._source.stop()

    def _offset(self, text: str | None) -> Any:
        return None if text is None else java_class(jvm_of(self._spark), self._offset_class)(text)

    def _equals(self, given: Any) -> bool:
        return proxy_name(given[0]) == self.name

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = ["java.lang.reflect.InvocationHandler"]


def _location(name: str | None) -> str | None:
    source = None if name is None else _sources_by_name.get(name)
    return None if source is None else source.tracking_location


def _has(query: RunningQuery, location: str) -> bool:
    return any(_location(name) == location for name in query.sources)


def _read_limit(spark: SparkSession, limits: ReadLimits) -> Any:
    jvm = jvm_of(spark)
    make = java_class(jvm, f"{_CONNECTOR}.ReadLimit")
    parts = []
    if limits.max_bytes is not None:
        parts.append(make.maxBytes(limits.max_bytes))
    if limits.max_files is not None:
        parts.append(make.maxFiles(limits.max_files))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return make.allAvailable()
    return make.compositeLimit(java_array(spark, f"{_CONNECTOR}.ReadLimit", parts))


def _limits(limit: Any) -> ReadLimits:
    """Return what a limit of Spark's means; one that is not known is none."""
    kind = str(limit.getClass().getSimpleName())
    if kind == "ReadMaxFiles":
        return ReadLimits(max_files=int(limit.maxFiles()))
    if kind == "ReadMaxBytes":
        return ReadLimits(max_bytes=int(limit.maxBytes()))
    if kind != "CompositeReadLimit":
        return EVERYTHING
    parts = [_limits(part) for part in limit.getReadLimits()]
    files = [p.max_files for p in parts if p.max_files is not None]
    sizes = [p.max_bytes for p in parts if p.max_bytes is not None]
    return ReadLimits(max_files=min(files, default=None), max_bytes=min(sizes, default=None))


def require_under(spark: SparkSession, location: str, checkpoint: str) -> None:
    """Require that a location is below the checkpoint of a query.

    Raises:
        InvalidRequestError: it is not (DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT).
    """
    top = qualified(spark, checkpoint).rstrip("/") + "/"
    try:
        is_under = qualified(spark, location).startswith(top)
    except JVM_ERRORS:  # it lies on a file system that Spark does not have
        is_under = False
    if not is_under:
        raise InvalidRequestError(
            Message.STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT,
            checkpoint=checkpoint,
            location=location,
        )
