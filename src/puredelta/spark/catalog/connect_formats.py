"""Entries of other formats on a Spark Connect server, and their change to entries of Delta tables.

The functions have the names of those in `puredelta.spark.jvm.catalog`, and the same answers.
DESCRIBE AS JSON says what the catalog keeps of a table that Spark can read. An entry gets another
format only by DROP TABLE and CREATE TABLE. So only an external table does: Spark would remove the
files of a managed one, and makes a managed entry only over an empty directory.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.errors import CatalogError, Message, UnsupportedError
from puredelta.protocol.actions.paths import encode_uri
from puredelta.spark.catalog.connect_entries import find_entry, run_command
from puredelta.spark.jvm.catalog import SESSION_CATALOG, StoredEntry, StoredPartition, ViewEntry
from puredelta.spark.jvm.gateway import JVM_ERRORS
from puredelta.spark.session.names import FORMAT, quote, quote_name
from puredelta.spark.session.server import run_on_server
from puredelta.spark.session.types import quoted_text, with_length

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PURGE = "external.table.purge"


def read_entry(spark: SparkSession, database: str, name: str) -> StoredEntry:
    """Return what the catalog says of a table or a view that is there, temporary ones aside.

    A view and a Delta table are told from others, without columns and properties.
    """
    parts = (SESSION_CATALOG, database, name)
    found = find_entry(spark, parts, provider=FORMAT)
    if found is not None:
        is_view = isinstance(found, ViewEntry)
        return StoredEntry(
            database=found.database,
            name=found.name,
            is_view=is_view,
            provider=None if is_view else FORMAT,
            serde=None,
            location="" if isinstance(found, ViewEntry) else found.location,
            columns=T.StructType(),
            partition_columns=(),
            properties={},
            comment=None,
            created_ms=0,
        )
    said = _described(spark, quote_name(parts))
    return StoredEntry(
        database=said["schema_name"],
        name=said["table_name"],
        is_view=False,
        provider=said.get("provider"),
        serde=said.get("serde_library"),
        location=said["location"],
        columns=_columns(spark, quote_name(parts)),
        partition_columns=tuple(said.get("partition_columns", ())),
        properties=said.get("table_properties", {}),
        comment=said.get("comment"),
        created_ms=_created_ms(said),
    )


def list_partitions(spark: SparkSession, database: str, name: str) -> tuple[StoredPartition, ...]:
    """Return the partitions that the catalog has of a table; one request for each."""
    table = quote_name((SESSION_CATALOG, database, name))
    rows = run_on_server(spark, f"SHOW PARTITIONS {table}")
    return tuple(_partition(spark, table, row["partition"]) for row in rows)


def _partition(spark: SparkSession, table: str, path: str) -> StoredPartition:
    levels = (level.partition("=") for level in path.split("/"))
    values = {unquote(column): unquote(text) for column, _, text in levels}
    texts = {c: "NULL" if v == _HIVE_NULL else quoted_text(v) for c, v in values.items()}
    spec = ", ".join(f"{quote(column)} = {text}" for column, text in texts.items())
    said = _described(spark, table, f" PARTITION ({spec})")
    return StoredPartition(values=values, location=encode_uri(said["location"]))


def format_text(spark: SparkSession, database: str, name: str) -> str:
    """Return as text all that `make_delta` takes away, as a classic session writes it."""
    table = quote_name((SESSION_CATALOG, database, name))
    said = _described(spark, table)
    buckets = {
        "numBuckets": said.get("num_buckets"),
        "bucketColumnNames": said.get("bucket_columns"),
        "sortColumnNames": said.get("sort_columns", []),
    }
    storage = {
        "locationUri": encode_uri(said["location"]),
        "inputFormat": said.get("input_format"),
        "outputFormat": said.get("output_format"),
        "serde": said.get("serde_library"),
        "compressed": False,
        "properties": said.get("storage_properties", {}),
    }
    return json.dumps(
        {
            "provider": said.get("provider"),
            "schema": _columns(spark, table).jsonValue(),
            "partitionColumnNames": said.get("partition_columns", []),
            "properties": said.get("table_properties", {}),
            "storage": storage,
            "bucketSpec": buckets if said.get("num_buckets") else None,
        }
    )


def require_convertible(spark: SparkSession, database: str, name: str) -> None:
    """Refuse a table whose files Spark would remove with its entry.

    Raises:
        UnsupportedError: the table is managed, or has the property ``external.table.purge``.
    """
    table = quote_name((SESSION_CATALOG, database, name))
    _require_kept_files(table, _described(spark, table))


def _require_kept_files(table: str, said: Mapping[str, Any]) -> None:
    purges = {key.lower(): text for key, text in said.get("table_properties", {}).items()}
    if said["type"] != "EXTERNAL" or purges.get(_PURGE, "").lower() == "true":
        raise UnsupportedError(Message.UNSUPPORTED_ON_CONNECT_CONVERT_TABLE, table=table)


def make_delta(spark: SparkSession, database: str, name: str, columns: T.StructType) -> None:
    """Make an external table of the catalog a Delta table where it is: its log says the rest.

    Raises:
        UnsupportedError: as `require_convertible`.
        CatalogError: the new entry is refused; the old one is gone.
    """
    table = quote_name((SESSION_CATALOG, database, name))
    said = _described(spark, table)
    _require_kept_files(table, said)
    location = said["location"]
    comment = f" COMMENT {quoted_text(said['comment'])}" if said.get("comment") else ""
    run_command(spark, f"DROP TABLE {table}")
    where = f"LOCATION {quoted_text(location)}"
    try:
        run_command(spark, f"CREATE TABLE {table} ({columns.toDDL()}) USING delta{comment} {where}")
    except JVM_ERRORS as refused:
        raise CatalogError(
            Message.CATALOG_ENTRY_NOT_UPDATED, refused=refused, name=table, path=location
        ) from refused


def restore_format(
    spark: SparkSession,  # noqa: ARG001 - as in `puredelta.spark.jvm.catalog`
    database: str,
    name: str,
    text: str,  # noqa: ARG001
) -> None:
    """Refuse to make an entry what it was: its partitions are gone.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(
        Message.UNSUPPORTED_ON_CONNECT_UNDO, table=quote_name((SESSION_CATALOG, database, name))
    )


def _described(spark: SparkSession, table: str, which: str = "") -> Mapping[str, Any]:
    [row] = run_on_server(spark, f"DESCRIBE TABLE EXTENDED {table}{which} AS JSON")
    found: Mapping[str, Any] = json.loads(row["json_metadata"])
    return found


def _created_ms(said: Mapping[str, Any]) -> int:
    text = str(said["created_time"]).removesuffix("Z")
    moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    return int(moment.timestamp() * 1000)


def _columns(spark: SparkSession, table: str) -> T.StructType:
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")
    plans: Any = importlib.import_module("pyspark.sql.connect.plan")
    schema: T.StructType = frames.DataFrame(plans.Read(table), spark).schema
    return T.StructType([with_length(field) for field in schema.fields])
