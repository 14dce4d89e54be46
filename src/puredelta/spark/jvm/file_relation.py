"""Spark's relations over files: made of an explicit list, and described. Classic sessions only.

A new relation: ``InMemoryFileIndex`` groups files by parent directory and parses partition values
once, when it is made. Each file status first carries a virtual path; after that parsing the same
objects are given their real paths. One Jackson call makes all statuses and a second one renames
them, so 20,000 files cost two round trips.

The cache of statuses is private. The session's own evicts large entries at once (the virtual
root would be listed) and keeps small ones for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import get_method
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.classes import (
    JVM_ERRORS,
    cloned_session,
    java_class,
    java_type,
    jvm_of,
    scala_map,
    scala_none,
    scala_seq,
    scala_some,
    session_of,
    text_option,
)
from puredelta.spark.jvm.expressions import seq_texts
from puredelta.spark.jvm.plans import Plan

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_PARQUET = "parquet.ParquetFileFormat"
SCAN_CLASS = f"{_DATASOURCES}.LogicalRelation"
"""Of a plan that is the scan of a relation and nothing more."""
_UNBOUNDED = (1 << 63) - 1


# --- a new relation -------------------------------------------------------------------------


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
class FileRelation:
    """What is read, and how."""

    files: ListedFiles
    data: T.StructType
    """Columns that are in the files."""
    partitions: T.StructType
    """Columns whose values stand in the virtual paths."""
    options: Mapping[str, str]
    settings: Mapping[str, str]
    """Of the session, for this relation alone."""


class PartitionValueError(Exception):
    """Spark could not parse the partition values in the virtual paths."""


def relation_rows(spark: SparkSession, relation: FileRelation) -> DataFrame:
    """Return the rows of exactly these files: the data columns, then the partition columns.

    Raises:
        PartitionValueError: a value is not of its column's type.
    """
    jvm, session = jvm_of(spark), session_of(spark)
    reader = cloned_session(session, relation.settings) if relation.settings else session
    options = scala_map(jvm, dict(relation.options))
    made = java_class(jvm, f"{_DATASOURCES}.HadoopFsRelation")(
        _file_index(jvm, reader, relation, options),
        java_type(jvm, relation.partitions),
        java_type(jvm, relation.data),
        scala_none(jvm),
        java_class(jvm, f"{_DATASOURCES}.{_PARQUET}")(),
        options,
        reader,
    )
    return DataFrame(session.baseRelationToDataFrame(made), spark)


def _file_index(jvm: Any, session: Any, relation: FileRelation, options: Any) -> Any:
    files = relation.files
    mapper, map_type = _status_mapper(jvm)
    statuses = mapper.readValue(files.virtual, map_type)
    leaves = java_class(jvm, "java.util.Arrays").copyOf(
        get_method(statuses, "values")().toArray(),
        files.count,
        java_class(jvm, "java.lang.Class").forName("[Lorg.apache.hadoop.fs.FileStatus;"),
    )
    cache = java_class(jvm, f"{_DATASOURCES}.SharedInMemoryCache")(_UNBOUNDED, -1)
    cache = cache.createForNewClient()
    root_path = java_class(jvm, "org.apache.hadoop.fs.Path")(files.root)
    cache.putLeafFiles(root_path, leaves)
    every_column = T.StructType([*relation.data.fields, *relation.partitions.fields])
    index = java_class(jvm, f"{_DATASOURCES}.InMemoryFileIndex")(
        session,
        scala_seq(jvm, [root_path]),
        options,
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


# --- the relation of a scan -----------------------------------------------------------------


class ScannedRelation:
    """The relation that a scan in an analyzed plan reads.

    Names and files are taken from text that Spark makes of whole lists: a call per element would
    cost as much as a small job.
    """

    def __init__(self, scan: Plan) -> None:
        """``scan`` is a plan of the class `SCAN_CLASS`."""
        self._relation = scan.java.relation()

    def unlike_parquet_files(self) -> str | None:
        """Say what makes it more than a list of Parquet files, if anything does."""
        relation = self._relation
        if (kind := _class_of(relation)) != f"{_DATASOURCES}.HadoopFsRelation":
            return f"it reads a {_simple(kind)}"
        if (kind := _class_of(relation.fileFormat())) != f"{_DATASOURCES}.{_PARQUET}":
            return f"its files are of the kind {_simple(kind)}"
        if (kind := _class_of(relation.location())) != f"{_DATASOURCES}.InMemoryFileIndex":
            return f"its files are listed by {_simple(kind)}"
        if relation.partitionSchema().length():
            return "it has partition columns"
        return "it has buckets" if relation.bucketSpec().isDefined() else None

    def option_names(self) -> list[str]:
        """Return the names of the reader's options."""
        return seq_texts(self._relation.options().keySet().toSeq())

    def find_option(self, name: str) -> str | None:
        """Return an option of the reader; None without it, and for what reads no files."""
        if _class_of(self._relation) != f"{_DATASOURCES}.HadoopFsRelation":
            return None
        return text_option(self._relation.options().get(name))

    def data_columns(self) -> list[dict[str, Any]]:
        """Return the columns of the files, as the JSON of a schema declares them."""
        schema = json.loads(self._relation.dataSchema().json())
        columns: list[dict[str, Any]] = schema["fields"]
        return columns

    def file_statuses(self, *, most: int) -> list[str] | int:
        """Return what the ``FileStatus`` of every file prints; their number if it is larger."""
        listed = self._relation.location().allFiles()
        count = int(listed.size())
        return count if count > most else seq_texts(listed)


def _class_of(java: Any) -> str:
    return str(java.getClass().getName())


def _simple(name: str) -> str:
    return name.rsplit(".", 1)[-1]
