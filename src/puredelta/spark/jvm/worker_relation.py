"""A relation that Python workers read, planned by Spark.

Classic sessions only. Spark's interfaces of a data source (``Table``, ``ScanBuilder``, ``Scan`` and
``Batch``) are Python objects in the driver, which the planner calls: first with the conditions of
a query and the columns that it needs, later for the parts that tasks read. What travels to
executors is Spark's own: the reader and the partitions of data sources in Python. A task gives
the function the bytes of its part as a batch of one column, as ``mapInArrow`` would.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.callbacks import PLANNING, ComparedByName
from puredelta.spark.jvm.expressions import Nodes, nodes_of
from puredelta.spark.jvm.frames import frame_of
from puredelta.spark.jvm.gateway import (
    java_array,
    java_class,
    java_type,
    jvm_of,
    name_proxy,
    python_function,
    scala_none,
    scala_object,
)
from puredelta.spark.jvm.plans import Plan

logger = logging.getLogger(__name__)

_CONNECTOR = "org.apache.spark.sql.connector"
_READ = f"{_CONNECTOR}.read"
_V2 = "org.apache.spark.sql.execution.datasources.v2"
_TABLE = f"{_CONNECTOR}.catalog.SupportsRead"
_BUILDERS = (
    f"{_READ}.SupportsPushDownRequiredColumns",
    "org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters",
)
_STATISTICS = f"{_READ}.Statistics"
_SCANS = (f"{_READ}.SupportsReportStatistics", f"{_READ}.Batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRead:
    """The columns and conditions of one query over a relation."""

    columns: T.StructType
    """In the order of the batches; at least those that the query needs, and one."""
    description: str
    """What the plan of a query shows."""
    parts: Sequence[bytes]
    """One for each task."""
    size_bytes: int
    function: Callable[..., Any]
    """Makes batches of ``columns`` of an iterator over batches with one part each."""
    identity: str
    """Equal reads of a relation have equal ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRelation:
    """What can be read."""

    name: str
    """What plans show."""
    identity: str
    """Equal relations have equal ones."""
    columns: T.StructType
    size_bytes: int
    read: Callable[[frozenset[str], Nodes | None], WorkerRead]
    """Says how the columns of some names are read, and which rows may be left out: those of which
    conditions are not true. Threads of Spark call it at the same time."""
    python: str | None
    """What workers run; None: what the context says."""


def worker_rows(spark: SparkSession, relation: WorkerRelation) -> DataFrame:
    """Return the rows of a relation. Runs no job."""
    jvm = jvm_of(spark)
    reader = _Reader(spark, relation)
    reader.factory(lambda parts: parts, relation.columns)  # it is there
    table = _java(spark, _Table(reader), [_TABLE], relation.identity)
    none = scala_none(jvm)
    made = scala_object(jvm, f"{_V2}.DataSourceV2Relation").create(table, none, none)
    return frame_of(spark, Plan(made))


def _java(spark: SparkSession, target: Any, interfaces: Sequence[str], name: str) -> Any:
    """Return a Java object that calls a Python object on the threads for that."""
    jvm = jvm_of(spark)
    of_name = java_class(jvm, "java.lang.Class").forName
    classes = [of_name(interface) for interface in interfaces]
    made = PLANNING.caller(spark, target, interfaces[0])
    if len(classes) > 1:  # what calls does not mind of which interface a method is
        proxies = java_class(jvm, "java.lang.reflect.Proxy")
        made = proxies.newProxyInstance(
            classes[0].getClassLoader(),
            java_array(spark, "java.lang.Class", classes),
            proxies.getInvocationHandler(made),
        )
    name_proxy(made, name)
    return made


class _Reader:
    """A relation and the objects of the JVM that reading it takes."""

    def __init__(self, spark: SparkSession, relation: WorkerRelation) -> None:
        self.spark, self.relation = spark, relation
        self.jvm = jvm_of(spark)
        sources = java_class(self.jvm, f"{_V2}.python.UserDefinedPythonDataSource")
        # Says which Python is run, and in what environment.
        self._source = sources(python_function(spark, relation.name, python=relation.python))

    def factory(self, function: Callable[..., Any], columns: T.StructType) -> Any:
        """Return what makes readers on executors."""
        serializer: Any = CloudPickleSerializer
        command = serializer().dumps((function, columns))
        factories = java_class(self.jvm, f"{_V2}.python.PythonPartitionReaderFactory")
        none = scala_none(self.jvm)
        fields = self._source, bytearray(command), java_type(self.jvm, columns), none
        try:
            return factories(*fields, none)  # since Spark 4.3 of a session
        except Py4JError:
            return factories(*fields)

    def partitions(self, parts: Sequence[bytes]) -> Any:
        """Return the parts as tasks get them."""
        made = java_class(self.jvm, f"{_V2}.python.PythonInputPartition")
        items = [made(n, bytearray(part)) for n, part in enumerate(parts)]
        return java_array(self.spark, f"{_READ}.InputPartition", items)


class _Named(ComparedByName):
    """An object of a relation."""

    def __init__(self, reader: _Reader, name: str) -> None:
        self._reader, self.java_name = reader, name

    def toString(self) -> str:  # noqa: N802
        return self._reader.relation.name


class _Table(_Named):
    """Spark's ``SupportsRead``."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__(reader, reader.relation.identity)

    def name(self) -> str:
        return self._reader.relation.name

    def schema(self) -> Any:
        return java_type(self._reader.jvm, self._reader.relation.columns)

    def columns(self) -> Any:
        convert = java_class(self._reader.jvm, f"{_CONNECTOR}.catalog.CatalogV2Util")
        try:
            return convert.structTypeToV2Columns(self.schema())
        except Py4JError:  # Spark 4.3 may be asked to keep ids
            return convert.structTypeToV2Columns(self.schema(), False)  # noqa: FBT003

    def capabilities(self) -> Any:
        jvm = self._reader.jvm
        reads = java_class(jvm, f"{_CONNECTOR}.catalog.TableCapability").BATCH_READ
        return java_class(jvm, "java.util.Collections").singleton(reads)

    def partitioning(self) -> Any:
        return java_array(self._reader.spark, f"{_CONNECTOR}.expressions.Transform", [])

    def properties(self) -> Any:
        return java_class(self._reader.jvm, "java.util.Collections").emptyMap()

    def constraints(self) -> Any:
        kind = f"{_CONNECTOR}.catalog.constraints.Constraint"
        return java_array(self._reader.spark, kind, [])

    def version(self) -> None:
        return None

    def id(self) -> None:
        return None

    def newScanBuilder(self, _options: Any) -> Any:  # noqa: N802
        name = f"{self.java_name} {uuid.uuid4().hex}"
        return _java(self._reader.spark, _Builder(self._reader, name), _BUILDERS, name)

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = [_TABLE]


class _Builder(_Named):
    """Spark's ``ScanBuilder``: what a query needs, until it is planned."""

    def __init__(self, reader: _Reader, name: str) -> None:
        super().__init__(reader, name)
        self._columns = frozenset(reader.relation.columns.names)
        self._conditions: Nodes | None = None

    def pruneColumns(self, required: Any) -> None:  # noqa: N802
        self._columns = frozenset(field["name"] for field in json.loads(required.json())["fields"])

    def pushFilters(self, filters: Any) -> Any:  # noqa: N802
        """Remember conditions; Spark tests all of them once more."""
        try:
            self._conditions = nodes_of(filters)
        except Exception:  # doubt leaves out no row
            logger.warning("All files are read: a condition is not understood", exc_info=True)
        return filters

    def pushedFilters(self) -> Any:  # noqa: N802
        kind = f"{_CONNECTOR}.expressions.filter.Predicate"
        return java_array(self._reader.spark, kind, [])

    def build(self) -> Any:
        read = self._reader.relation.read(self._columns, self._conditions)
        scan = _Scan(self._reader, read)
        scan.java = _java(self._reader.spark, scan, _SCANS, scan.identity)
        return scan.java

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = list(_BUILDERS)


class _Statistics(_Named):
    """Spark's ``Statistics``: what joins are planned by."""

    def __init__(self, reader: _Reader, name: str, size_bytes: int) -> None:
        super().__init__(reader, name)
        self._size_bytes = size_bytes

    def sizeInBytes(self) -> Any:  # noqa: N802
        return java_class(self._reader.jvm, "java.util.OptionalLong").of(self._size_bytes)

    def numRows(self) -> Any:  # noqa: N802
        return java_class(self._reader.jvm, "java.util.OptionalLong").empty()

    def columnStats(self) -> Any:  # noqa: N802
        return java_class(self._reader.jvm, "java.util.Collections").emptyMap()

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = [_STATISTICS]


class _Scan(_Named):
    """Spark's ``Scan`` and ``Batch``."""

    java: Any = None
    """Itself, as Java sees it."""

    def __init__(self, reader: _Reader, read: WorkerRead) -> None:
        self.identity = f"{reader.relation.identity} {read.identity}"
        super().__init__(reader, self.identity)
        self._read = read

    def readSchema(self) -> Any:  # noqa: N802
        return java_type(self._reader.jvm, self._read.columns)

    def description(self) -> str:
        return f"{self._reader.relation.name}: {self._read.description}"

    def toBatch(self) -> Any:  # noqa: N802
        return self.java

    def planInputPartitions(self) -> Any:  # noqa: N802
        return self._reader.partitions(self._read.parts)

    def createReaderFactory(self) -> Any:  # noqa: N802
        return self._reader.factory(self._read.function, self._read.columns)

    def columnarSupportMode(self) -> Any:  # noqa: N802
        modes = java_class(self._reader.jvm, f"{_READ}.Scan$ColumnarSupportMode")
        return modes.valueOf("UNSUPPORTED")

    def supportedCustomMetrics(self) -> Any:  # noqa: N802
        return java_array(self._reader.spark, f"{_CONNECTOR}.metric.CustomMetric", [])

    def reportDriverMetrics(self) -> Any:  # noqa: N802
        return java_array(self._reader.spark, f"{_CONNECTOR}.metric.CustomTaskMetric", [])

    def estimateStatistics(self) -> Any:  # noqa: N802
        name = f"{self.identity} statistics"
        described = _Statistics(self._reader, name, self._read.size_bytes)
        return _java(self._reader.spark, described, [_STATISTICS], name)

    def estimateSizeInBytes(self) -> Any:  # noqa: N802
        return java_class(self._reader.jvm, "java.util.OptionalLong").of(self._read.size_bytes)

    def reflectsFullyPushedDownFilters(self) -> bool:  # noqa: N802
        return False

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = list(_SCANS)
