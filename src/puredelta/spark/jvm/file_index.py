"""File indexes and relations for Spark's planner. Classic sessions only.

``InMemoryFileIndex`` groups files by parent directory and parses partition values once, when it
is made. Each file status first carries a virtual path; after that parsing the same objects are
given their real paths. One Jackson call makes all statuses and a second one renames them, so
20,000 files cost two round trips. The cache of statuses is private. The session's own evicts
large entries at once (the virtual root would be listed) and keeps small ones for ever.

`AskedIndex` is a Python object to which Spark's planner calls back with the conditions of a query.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from py4j.java_gateway import get_method
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.callbacks import PLANNING, ComparedByName
from puredelta.spark.jvm.expressions import Nodes, nodes_of, seq_texts
from puredelta.spark.jvm.gateway import (
    JVM_ERRORS,
    class_name,
    cloned_session,
    full_class_name,
    java_class,
    java_type,
    jvm_of,
    name_proxy,
    scala_map,
    scala_none,
    scala_seq,
    scala_some,
    session_of,
)
from puredelta.spark.jvm.plans import Plan

logger = logging.getLogger(__name__)

DATASOURCES = "org.apache.spark.sql.execution.datasources"
_UNBOUNDED = (1 << 63) - 1
_live: dict[str, WeakSet[AskedIndex]] = {}
"""By root. Spark holds an index by a Java object that calls back, and hands out that object."""
_live_lock = threading.Lock()
_LIVE_ROOTS_MAX = 100
"""Roots of which no index lives any more are forgotten from so many on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFiles:
    """Files as Spark's index is shown them."""

    count: int
    root: str
    """The virtual directory above all of them. Spark holds two indexes equal if it is the same."""
    virtual: str
    """JSON: per number of a file the fields of its ``FileStatus``, with a path below ``root``."""
    real: str
    """JSON: per number of a file the field that says where it really is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOnDemand:
    """Files of which each query is shown those it needs."""

    root: str
    """Two indexes are equal if it is the same, so it names the whole list."""
    size_bytes: int
    list_all: Callable[[], ListedFiles]
    list_some: Callable[[Nodes], ListedFiles | None]
    """The files that may hold rows of which all conditions are true; None: all of them.

    The first node is an ``And`` over all conditions. Threads of Spark call it at the same time.
    """
    list_places: Callable[[Sequence[int]], ListedFiles]
    """The files at these places of the whole list."""
    known: object
    """What the caller knows of the files, for `AskedIndex.known`."""
    at_once: bool = False
    """Whether the index of all files is made now, and not when it is first needed."""


class PartitionValueError(Exception):
    """Spark could not parse the partition values in the virtual paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMaker:
    """The common state of all indexes over the files of one relation."""

    spark: SparkSession
    reader: Any
    """The JVM's session that reads."""
    data: T.StructType
    partitions: T.StructType
    options: Any
    """Of the reader, as a Scala ``Map``."""

    def listed(self, files: ListedFiles, *, is_location: bool = False) -> Any:
        """Return Spark's own index of exactly these files.

        As the location of a relation it has a second path without files: Spark would write to one
        (INSERT INTO a view of the relation), where there is no log.

        Raises:
            PartitionValueError: a value is not of its column's type.
        """
        jvm = jvm_of(self.spark)
        mapper, map_type = _status_mapper(jvm)
        statuses = mapper.readValue(files.virtual, map_type)
        arrays = java_class(jvm, "java.util.Arrays")
        kind = java_class(jvm, "java.lang.Class").forName("[Lorg.apache.hadoop.fs.FileStatus;")
        values = get_method(statuses, "values")().toArray()
        leaves = arrays.copyOf(values, files.count, kind)
        cache = java_class(jvm, f"{DATASOURCES}.SharedInMemoryCache")(_UNBOUNDED, -1)
        cache = cache.createForNewClient()
        root_path = java_class(jvm, "org.apache.hadoop.fs.Path")(files.root)
        cache.putLeafFiles(root_path, leaves)
        root_paths = [root_path]
        if is_location:
            root_paths.append(java_class(jvm, "org.apache.hadoop.fs.Path")(f"{files.root}-none"))
            cache.putLeafFiles(root_paths[-1], arrays.copyOf(values, 0, kind))
        every_column = T.StructType([*self.data.fields, *self.partitions.fields])
        index = java_class(jvm, f"{DATASOURCES}.InMemoryFileIndex")(
            self.reader,
            scala_seq(jvm, root_paths),
            self.options,
            scala_some(jvm, java_type(jvm, every_column)),
            cache,
            scala_none(jvm),
            scala_none(jvm),
        )
        try:
            index.partitionSpec()  # lazy: must parse the virtual directories before they go
        except JVM_ERRORS as malformed:
            raise PartitionValueError(str(malformed)) from malformed
        mapper.readerForUpdating(statuses).forType(map_type).readValue(files.real)
        return index

    def asked(self, files: FilesOnDemand) -> Any:
        """Return an index that asks Python which files a query needs, see `AskedIndex`."""
        jvm = jvm_of(self.spark)
        root_path = java_class(jvm, "org.apache.hadoop.fs.Path")(files.root)
        index = AskedIndex(
            files,
            make=self.listed,
            root_paths=scala_seq(jvm, [root_path, root_path]),  # as above
            partition_schema=java_type(jvm, self.partitions),
        )
        if files.at_once:
            index.all_files()
        _remember(index, files.root)
        proxy = PLANNING.caller(self.spark, index, f"{DATASOURCES}.FileIndex")
        name_proxy(proxy, files.root)
        return proxy


def listing(location: Any) -> Any:
    """Return Spark's own index behind the location of a relation: all its files."""
    known = asked_index(location)
    return location if known is None else known.all_files()


def asked_index(location: Any) -> AskedIndex | None:
    """Return an index equal to that which the location of a relation asks.

    None if the location is Spark's own.
    """
    if "$Proxy" not in class_name(location):
        return None
    return next(iter(_live.get(str(location.toString()), ())), None)


def any_asked() -> bool:
    """Return whether an index may live that Spark asks."""
    return bool(_live)


def _remember(index: AskedIndex, root: str) -> None:
    with _live_lock:
        if len(_live) >= _LIVE_ROOTS_MAX:
            for known in [known for known, some in _live.items() if not some]:
                del _live[known]
        _live.setdefault(root, WeakSet()).add(index)


def _status_mapper(jvm: Any) -> tuple[Any, Any]:
    """Return a JSON mapper that sets the fields of Java objects, and the type of our map."""
    mapper = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    accessor = java_class(jvm, "com.fasterxml.jackson.annotation.PropertyAccessor")
    visibility = java_class(jvm, "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility")
    mapper.setVisibility(accessor.ALL, visibility.NONE)
    mapper.setVisibility(accessor.FIELD, visibility.ANY)
    mapper.setVisibility(accessor.CREATOR, visibility.ANY)
    of_name = java_class(jvm, "java.lang.Class").forName
    map_type = mapper.getTypeFactory().constructMapType(
        of_name("java.util.LinkedHashMap"),
        of_name("java.lang.String"),
        of_name("org.apache.hadoop.fs.FileStatus"),
    )
    return mapper, map_type


class AskedIndex(ComparedByName):
    """Spark's ``FileIndex`` as a Python object: it lists the files that a query needs.

    Threads of Spark call it, several at a time, while the thread that asked for the query waits.
    It holds no lock. Whatever fails in choosing files is logged, and
    the query reads all of them. Spark's own index of all files is made when it is first needed.
    """

    def __init__(
        self,
        files: FilesOnDemand,
        *,
        make: Callable[[ListedFiles], Any],
        root_paths: Any,
        partition_schema: Any,
    ) -> None:
        self.java_name = files.root
        self._files = files
        self._make = make
        self._root_paths = root_paths
        self._partition_schema = partition_schema
        self._all: Any = None

    def all_files(self) -> Any:
        """Return Spark's own index of all files."""
        # Two threads may make it at the same time; either will do.
        index = self._all
        if index is None:
            index = self._all = self._make(self._files.list_all())
        return index

    @property
    def known(self) -> object:
        """What its maker knows of the files."""
        return self._files.known

    def some_files(self, places: Sequence[int]) -> Any:
        """Return Spark's own index of the files at these places of the whole list."""
        return self._make(self._files.list_places(places))

    def _needed(self, partition_filters: Any, data_filters: Any) -> Any:
        try:
            conditions = nodes_of(data_filters, partition_filters)
            some = None if conditions is None else self._files.list_some(conditions)
            if some is not None:
                return self._make(some)
        except Exception:  # doubt skips no file
            logger.warning("All files are read: choosing some failed", exc_info=True)
        return self.all_files()

    # --- FileIndex, under the names it has in the JVM

    def listFiles(self, partitionFilters: Any, dataFilters: Any) -> Any:  # noqa: N802, N803, D102
        index = self._needed(partitionFilters, dataFilters)
        return index.listFiles(partitionFilters, dataFilters)

    def rootPaths(self) -> Any:  # noqa: N802, D102
        return self._root_paths

    def inputFiles(self) -> Any:  # noqa: N802, D102
        return self.all_files().inputFiles()

    def refresh(self) -> None:  # noqa: D102 - a version never changes
        return

    def sizeInBytes(self) -> int:  # noqa: N802, D102
        return self._files.size_bytes

    def partitionSchema(self) -> Any:  # noqa: N802, D102
        return self._partition_schema

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802, D102
        return scala_none(self._root_paths)

    def isTimeTravel(self) -> bool:  # noqa: N802, D102 - asked by PySpark 4.3
        return False

    def __getattr__(self, name: str) -> Any:
        """Return a method that other releases of Spark may have: what Spark's own index says."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.all_files(), name)

    class Java:
        """The JVM object that Py4J makes of it."""

        implements: ClassVar = [f"{DATASOURCES}.FileIndex"]


_PARQUET = "parquet.ParquetFileFormat"
_FILES = f"{DATASOURCES}.HadoopFsRelation"
SCAN_CLASS = f"{DATASOURCES}.LogicalRelation"
"""Of a plan that is the scan of a relation and nothing more."""
_BETWEEN_OPTIONS = "\0"


# --- a new relation -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRelation:
    """What is read, and how."""

    files: ListedFiles | FilesOnDemand
    data: T.StructType
    """Columns that are in the files."""
    partitions: T.StructType
    """Columns whose values are in the virtual paths."""
    options: Mapping[str, str]
    settings: Mapping[str, str]
    """Of the session, for this relation alone."""


def relation_rows(spark: SparkSession, relation: FileRelation) -> DataFrame:
    """Return the rows of exactly these files: the data columns, then the partition columns."""
    jvm, session = jvm_of(spark), session_of(spark)
    reader = cloned_session(session, relation.settings) if relation.settings else session
    options = scala_map(jvm, dict(relation.options))
    maker = IndexMaker(
        spark=spark,
        reader=reader,
        data=relation.data,
        partitions=relation.partitions,
        options=options,
    )
    index: Any
    match relation.files:
        case ListedFiles() as files:
            index = maker.listed(files, is_location=True)
        case FilesOnDemand() as files:
            index = maker.asked(files)
    made = java_class(jvm, f"{DATASOURCES}.HadoopFsRelation")(
        index,
        java_type(jvm, relation.partitions),
        java_type(jvm, relation.data),
        scala_none(jvm),
        java_class(jvm, f"{DATASOURCES}.{_PARQUET}")(),
        options,
        reader,
    )
    return DataFrame(session.baseRelationToDataFrame(made), spark)


# --- the relation of a scan -----------------------------------------------------------------


_KNOWN: WeakKeyDictionary[Plan, ScannedRelation] = WeakKeyDictionary()


def relation_of(scan: Plan) -> ScannedRelation:
    """Return what a plan of the class `SCAN_CLASS` reads; the same object every time."""
    if scan not in _KNOWN:
        _KNOWN[scan] = ScannedRelation(scan)
    return _KNOWN[scan]


class ScannedRelation:
    """The relation that a scan in an analyzed plan reads.

    Names and files are taken from text that Spark makes of whole lists: a call per element would
    cost as much as a small job.
    """

    def __init__(self, scan: Plan) -> None:
        """``scan`` is a plan of the class `SCAN_CLASS`."""
        self._relation = scan.java.relation()

    @cached_property
    def _kind(self) -> str:
        return full_class_name(self._relation)

    @cached_property
    def _listing(self) -> Any:
        return listing(self._relation.location())

    def unlike_parquet_files(self) -> str | None:
        """Say what makes it more than a list of Parquet files, if anything does."""
        relation = self._relation
        if self._kind != _FILES:
            return f"it reads a {_simple(self._kind)}"
        if (kind := full_class_name(relation.fileFormat())) != f"{DATASOURCES}.{_PARQUET}":
            return f"its files are of the kind {_simple(kind)}"
        if (kind := full_class_name(self._listing)) != f"{DATASOURCES}.InMemoryFileIndex":
            return f"its files are listed by {_simple(kind)}"
        return "it has buckets" if relation.bucketSpec().isDefined() else None

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The reader's options, by their names in lower case; none for what reads no files."""
        if self._kind != _FILES:
            return {}
        text = str(self._relation.options().mkString(_BETWEEN_OPTIONS))
        pairs = (option.partition(" -> ") for option in text.split(_BETWEEN_OPTIONS))
        return {name.lower(): value for name, _, value in pairs if name}

    def data_columns(self) -> list[dict[str, Any]]:
        """Return the columns of the files, as the JSON of a schema declares them."""
        schema = json.loads(self._relation.dataSchema().json())
        columns: list[dict[str, Any]] = schema["fields"]
        return columns

    def num_partition_columns(self) -> int:
        """Return how many columns follow those of the files."""
        return int(self._relation.partitionSchema().length())

    def file_statuses(self, *, most: int) -> list[str] | int:
        """Return what the ``FileStatus`` of every file prints; their number if it is larger."""
        listed = self._listing.allFiles()
        count = int(listed.size())
        return count if count > most else seq_texts(listed)


def _simple(name: str) -> str:
    return name.rsplit(".", 1)[-1]
