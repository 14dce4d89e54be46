"""Spark's relations over files: made of an index, and described. Classic sessions only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.classes import (
    cloned_session,
    full_class_name,
    java_class,
    java_type,
    jvm_of,
    scala_map,
    scala_none,
    session_of,
)
from puredelta.spark.jvm.expressions import seq_texts
from puredelta.spark.jvm.file_index import (
    DATASOURCES,
    FilesOnDemand,
    IndexMaker,
    ListedFiles,
    listing,
)
from puredelta.spark.jvm.plans import Plan

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
    """Columns whose values stand in the virtual paths."""
    options: Mapping[str, str]
    settings: Mapping[str, str]
    """Of the session, for this relation alone."""


def relation_rows(spark: SparkSession, relation: FileRelation) -> DataFrame:
    """Return the rows of exactly these files: the data columns, then the partition columns.

    Raises:
        PartitionValueError: a value is not of its column's type.
    """
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
            index = maker.listed(files)
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
