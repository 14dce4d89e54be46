"""The format of a table in the session catalog: read, changed to Delta, and changed back.

Classic sessions only: the catalog has no public way to most of this. What is read is text that
Jackson, which Spark brings along, makes of Scala's objects: one call, however many partitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.spark.jvm.classes import (
    CATALYST,
    java_class,
    java_type,
    jvm_of,
    scala_map,
    scala_none,
    scala_object,
    scala_seq,
    scala_some,
    text_option,
)
from puredelta.spark.jvm.session_catalog import (
    catalog_of,
    decoded_location,
    external_catalog_of,
    stored_entry,
    with_fields,
)

_STORAGE = f"{CATALYST}.catalog.CatalogStorageFormat"
_HIVE = "hive"
_PROVIDER = "spark.sql.sources.provider"
_BUCKETS = f"{CATALYST}.catalog.BucketSpec"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """What the session catalog keeps of a table of any format."""

    database: str
    """Names are as the catalog spells them."""
    name: str
    is_view: bool
    provider: str | None
    """``hive`` where a serde of Hive says how the files are read."""
    serde: str | None
    location: str
    """An absolute, decoded URI; empty for a view."""
    columns: T.StructType
    """All of them; ``char(n)`` and ``varchar(n)`` are types of their own."""
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPartition:
    """A partition that the catalog knows."""

    values: Mapping[str, str | None]
    """By column, as Hive writes them."""
    location: str | None
    """An encoded URI."""


def read_entry(spark: SparkSession, database: str, name: str) -> StoredEntry:
    """Return what the catalog says of a table or a view that is there, temporary ones aside."""
    stored = _raw_entry(spark, database, name)
    identifier = stored.identifier()
    is_view = str(stored.tableType().name()) == "VIEW"
    return StoredEntry(
        database=str(identifier.database().get()),
        name=str(identifier.table()),
        is_view=is_view,
        provider=text_option(stored.provider()),
        serde=text_option(stored.storage().serde()),
        location="" if is_view else decoded_location(spark, stored.location()),
        columns=T.StructType.fromJson(json.loads(stored.schema().json())),
        partition_columns=tuple(_plain(spark, stored.partitionColumnNames())),
        properties=_plain(spark, stored.properties()),
        comment=text_option(stored.comment()),
    )


def list_partitions(spark: SparkSession, database: str, name: str) -> tuple[StoredPartition, ...]:
    """Return the partitions that the catalog has of a table."""
    none = scala_none(jvm_of(spark))
    found = _plain(spark, external_catalog_of(spark).listPartitions(database, name, none))
    return tuple(
        StoredPartition(values=one["spec"], location=one["storage"]["locationUri"]) for one in found
    )


def format_text(spark: SparkSession, database: str, name: str) -> str:
    """Return as text all that `make_delta` takes away, for `restore_format`."""
    stored = _raw_entry(spark, database, name)
    return json.dumps(
        {
            "provider": text_option(stored.provider()),
            "schema": json.loads(stored.schema().json()),
            "partitionColumnNames": _plain(spark, stored.partitionColumnNames()),
            "properties": _plain(spark, stored.properties()),
            "storage": _plain(spark, stored.storage()),
            "bucketSpec": _plain(spark, stored.bucketSpec()),
        }
    )


def make_delta(spark: SparkSession, database: str, name: str, columns: T.StructType) -> None:
    """Make a table of the catalog a Delta table where it is: its log says the rest.

    Hive's metastore keeps schema and partition columns that an entry had.
    """
    jvm = jvm_of(spark)
    stored = _raw_entry(spark, database, name)
    none = scala_none(jvm)
    storage = with_fields(stored.storage(), inputFormat=none, outputFormat=none, serde=none)
    _alter(
        spark,
        with_fields(
            stored,
            provider=scala_some(jvm, "delta"),
            schema=java_type(jvm, columns),
            partitionColumnNames=scala_seq(jvm, ()),
            properties=scala_map(jvm, {}),
            bucketSpec=none,
            storage=storage,
        ),
    )


def restore_format(spark: SparkSession, database: str, name: str, text: str) -> None:
    """Make a table of the catalog again what `format_text` has said it was."""
    jvm = jvm_of(spark)
    was = json.loads(text)
    storage = _read(spark, was["storage"], _STORAGE)
    if was["provider"] == _HIVE:
        _restore_hive_table(spark, stored_entry(spark, database, name), storage, was["properties"])
        return
    buckets = None if was["bucketSpec"] is None else _read(spark, was["bucketSpec"], _BUCKETS)
    schema = java_class(jvm, "org.apache.spark.sql.types.DataType").fromJson(
        json.dumps(was["schema"])
    )
    _alter(
        spark,
        with_fields(
            _raw_entry(spark, database, name),
            provider=scala_some(jvm, was["provider"]),
            schema=schema,
            partitionColumnNames=scala_seq(jvm, was["partitionColumnNames"]),
            properties=scala_map(jvm, was["properties"]),
            bucketSpec=scala_some(jvm, buckets),
            storage=storage,
        ),
    )


def _restore_hive_table(
    spark: SparkSession, shown: Any, storage: Any, properties: Mapping[str, str]
) -> None:
    """Make a table one of Hive's own: those have no provider, and Spark's catalog adds one.

    Its columns are Hive's and have not changed.
    """
    identifier = shown.identifier()
    database, name = identifier.database().get(), identifier.table()
    metastore = external_catalog_of(spark).unwrapped()
    kept = metastore.getRawTable(database, name)
    whole = {**_plain(spark, kept.properties()), **properties}
    whole.pop(_PROVIDER, None)
    changed = with_fields(kept, properties=scala_map(jvm_of(spark), whole), storage=storage)
    metastore.client().alterTable(database, name, changed)
    catalog_of(spark).refreshTable(identifier)


def _raw_entry(spark: SparkSession, database: str, name: str) -> Any:
    """Return an entry as it is kept: Spark's own catalog shows ``char(n)`` as a string."""
    shown = stored_entry(spark, database, name).identifier()
    return external_catalog_of(spark).getTable(shown.database().get(), shown.table())


def _alter(spark: SparkSession, changed: Any) -> None:
    """Change the entry, in one call of the catalog, and forget what sessions know of it."""
    external_catalog_of(spark).alterTable(changed)
    catalog_of(spark).refreshTable(changed.identifier())


def _plain(spark: SparkSession, scala: Any) -> Any:
    """Return Scala's collections and case classes as Python's."""
    return json.loads(str(_mapper(spark).writeValueAsString(scala)))


def _read(spark: SparkSession, plain: Any, name: str) -> Any:
    """Return a case class whose fields are given as Python's values."""
    jvm = jvm_of(spark)
    thread = java_class(jvm, "java.lang.Thread").currentThread()
    kind = thread.getContextClassLoader().loadClass(name)
    return _mapper(spark).readValue(json.dumps(plain), kind)


def _mapper(spark: SparkSession) -> Any:
    jvm = jvm_of(spark)
    mapper = java_class(jvm, "com.fasterxml.jackson.databind.ObjectMapper")()
    module = "com.fasterxml.jackson.module.scala.DefaultScalaModule"
    return mapper.registerModule(scala_object(jvm, module))
