"""Entries of Delta tables in Glue: what Spark, Athena, Trino and crawlers look for and write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from puredelta.catalogs.catalog import TableUpdate

FORMAT = "delta"
_PROVIDER = "spark.sql.sources.provider"
_TABLE_TYPE = "table_type"
_LAYOUT = {
    "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
}
"""The classes that Spark and Athena write for a table that Hive cannot read."""
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"

_TYPES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "timestamp_ntz": "timestamp",
    "void": "string",
    "variant": "string",
}
"""Types with another name there; those without an equal one are listed as texts."""
_SAME = frozenset({"string", "boolean", "float", "double", "date", "timestamp", "binary"})
_COMMENT_MAX = 255
_TYPE_MAX = 131_072


def glue_columns(schema: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the columns of a schema, as the log has it, for an entry of Glue.

    Partition columns are among them, as Spark and Athena list them.

    >>> glue_columns({"type": "struct", "fields": [{"name": "id", "type": "long"}]})
    [{'Name': 'id', 'Type': 'bigint'}]
    """
    fields = () if schema is None else schema.get("fields") or ()
    return [_column(field) for field in fields]


def _column(field: Mapping[str, Any]) -> dict[str, str]:
    kind = hive_type(field["type"])
    column = {"Name": str(field["name"]), "Type": kind if len(kind) <= _TYPE_MAX else "string"}
    comment = (field.get("metadata") or {}).get("comment")
    if comment:
        column["Comment"] = str(comment)[:_COMMENT_MAX]
    return column


def hive_type(kind: Any) -> str:
    """Return a type of the log under its name in Hive.

    >>> hive_type({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    >>> hive_type("decimal(10,2)"), hive_type("timestamp_ntz")
    ('decimal(10,2)', 'timestamp')
    """
    if isinstance(kind, str):
        plain = kind.replace(" ", "")
        is_known = plain in _SAME or plain.startswith(("decimal(", "char(", "varchar("))
        return plain if is_known else _TYPES.get(plain, "string")
    match kind.get("type"):
        case "array":
            return f"array<{hive_type(kind['elementType'])}>"
        case "map":
            return f"map<{hive_type(kind['keyType'])},{hive_type(kind['valueType'])}>"
        case "struct":
            inner = (f"{one['name']}:{hive_type(one['type'])}" for one in kind["fields"])
            return f"struct<{','.join(inner)}>"
        case _:
            return "string"


def glue_entry(name: str, location: str, definition: TableUpdate) -> dict[str, Any]:
    """Return the entry of a new table; the location is decoded, as these engines write it."""
    entry: dict[str, Any] = {
        "Name": name.lower(),
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": FORMAT,
            _PROVIDER: FORMAT,
            _TABLE_TYPE: FORMAT.upper(),
        },
        "PartitionKeys": [],
        "StorageDescriptor": {
            **_LAYOUT,
            "Columns": glue_columns(definition.columns),
            "Location": location,
            "SerdeInfo": {
                "SerializationLibrary": _SERDE,
                "Parameters": {"serialization.format": "1", "path": location},
            },
        },
    }
    if definition.comment:
        entry["Description"] = definition.comment
    return entry


def storage_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of an entry about its files."""
    found: Mapping[str, Any] = row.get("StorageDescriptor") or {}
    return found


def kind_of(row: Mapping[str, Any]) -> str:
    """Return ``EXTERNAL``, ``MANAGED``, ``VIEW``, or Glue's own word."""
    kind = str(row.get("TableType") or "")
    return {"EXTERNAL_TABLE": "EXTERNAL", "MANAGED_TABLE": "MANAGED", "VIRTUAL_VIEW": "VIEW"}.get(
        kind, kind or "EXTERNAL"
    )


def format_of(row: Mapping[str, Any]) -> str:
    """Return the format of an entry in lower case, whatever engine has written it.

    >>> format_of({"Parameters": {"table_type": "DELTA"}})
    'delta'
    """
    given = {str(key).lower(): str(text) for key, text in (row.get("Parameters") or {}).items()}
    stated = [given.get(key, "").lower() for key in (_PROVIDER, _TABLE_TYPE, "classification")]
    if FORMAT in stated:
        return FORMAT
    layout = str(storage_of(row).get("InputFormat") or "").lower()
    by_class = next((name for name in ("parquet", "orc", "avro") if name in layout), "")
    return next((name for name in (*stated, by_class) if name), "")
