"""Operation names and parameters of ``commitInfo``, as delta-spark writes them.

History readers parse these, so the quirks are kept (M-161, C-56): lists and nested objects
are *text that holds JSON*, numbers and booleans are JSON values. Predicates are plain SQL.
delta-spark writes Catalyst's text with expression ids there, which no parser can read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any

from puredelta.protocol.schema.schema_json import encode_type
from puredelta.protocol.schema.types import ArrayType, DataType, MapType, StructField, StructType
from puredelta.quantities import in_milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The name of a command and the JSON values of ``operationParameters``, in order."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def with_parameters(self, more: Mapping[str, Any]) -> Operation:
        """Return the command with further parameters before its own."""
        return Operation(name=self.name, parameters={**more, **self.parameters})


class WriteMode(Enum):
    """How a DataFrame write treats existing rows, in the words of the log."""

    APPEND = "Append"
    OVERWRITE = "Overwrite"
    ERROR_IF_EXISTS = "ErrorIfExists"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseSummary:
    """One WHEN clause: ``update``, ``delete`` or ``insert``, and its condition in SQL."""

    action: str
    condition: str | None = None


def write(
    mode: WriteMode,
    *,
    partition_by: Sequence[str] = (),
    replaced: Mapping[str, str] | None = None,
    merges_schema: bool = False,
    overwrites_schema: bool = False,
    overwrites_partitions: bool = False,
) -> Operation:
    """Describe a DataFrame write; ``partition_by`` is what the caller gave, not the table's.

    ``replaced`` says which rows an overwrite replaces: ``predicate``, ``replaceOnCond`` or
    ``replaceUsingCols``.

    >>> write(WriteMode.APPEND).parameters
    {'mode': 'Append', 'partitionBy': '[]'}
    """
    return Operation(
        name="WRITE",
        parameters={
            "mode": mode.value,
            "partitionBy": json_text(list(partition_by)),
            **(replaced or {}),
            **({"canMergeSchema": True} if merges_schema else {}),
            **({"canOverwriteSchema": True} if overwrites_schema else {}),
            **({"isDynamicPartitionOverwrite": True} if overwrites_partitions else {}),
        },
    )


def merge(
    *,
    predicate: str,
    matched: Iterable[ClauseSummary] = (),
    not_matched: Iterable[ClauseSummary] = (),
    not_matched_by_source: Iterable[ClauseSummary] = (),
) -> Operation:
    """Describe a MERGE: the ON condition and every clause, in statement order."""
    return Operation(
        name="MERGE",
        parameters={
            "predicate": json_text([predicate]),
            "matchedPredicates": _clauses(matched),
            "notMatchedPredicates": _clauses(not_matched),
            "notMatchedBySourcePredicates": _clauses(not_matched_by_source),
        },
    )


def update(predicate: str | None = None) -> Operation:
    """Describe an UPDATE; ``None`` means that it has no condition.

    >>> update("id = 1").parameters
    {'predicate': '["id = 1"]'}
    """
    return Operation(name="UPDATE", parameters={"predicate": _predicates(predicate)})


def delete(predicate: str | None = None) -> Operation:
    """Describe a DELETE; without a condition it deletes every row.

    >>> delete().parameters
    {'predicate': '["true"]'}
    """
    return Operation(name="DELETE", parameters={"predicate": _predicates(predicate or "true")})


def convert(
    *,
    num_files: int,
    partitioned_by: Sequence[str] = (),
    collect_stats: bool = True,
    catalog_table: str | None = None,
    source_format: str = "parquet",
) -> Operation:
    """Describe a CONVERT (C-56); ``partitioned_by`` is the list the user gave (C-57).

    >>> convert(num_files=5, partitioned_by=["p"]).parameters
    {'numFiles': 5, 'partitionedBy': '["p"]', 'collectStats': True, 'sourceFormat': 'parquet'}
    """
    return Operation(
        name="CONVERT",
        parameters={
            "numFiles": num_files,
            "partitionedBy": json_text(list(partitioned_by)),
            "collectStats": collect_stats,
            **({} if catalog_table is None else {"catalogTable": catalog_table}),
            "sourceFormat": source_format,
        },
    )


def _predicates(predicate: str | None) -> str:
    return json_text([] if predicate is None else [predicate])


def _clauses(clauses: Iterable[ClauseSummary]) -> str:
    return json_text(
        [
            {
                **({} if clause.condition is None else {"predicate": clause.condition}),
                "actionType": clause.action,
            }
            for clause in clauses
        ]
    )


def json_text(value: object) -> str:
    """Return a list or an object as the text in which operation parameters hold it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Definition(Enum):
    """The statements that define a table; the value is the name of the operation."""

    CREATE = "CREATE TABLE"
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"


def define_table(
    how: Definition,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    description: str | None = None,
    properties: Mapping[str, str] | None = None,
    is_managed: bool = False,
) -> Operation:
    """Describe the definition of a table: all of its properties, defaults included.

    ``is_managed`` says that the catalog owns the directory.
    """
    return Operation(
        name=how.value,
        parameters={
            "partitionBy": json_text(list(partition_by)),
            "clusterBy": json_text(list(cluster_by)),
            "description": description,
            "isManaged": "true" if is_managed else "false",
            "properties": json_text(dict(properties or {})),
        },
    )


def with_rows(definition: Operation) -> Operation:
    """Describe the definition of a table that is made with its first rows."""
    return replace(definition, name=f"{definition.name} AS SELECT")


def overwrite_as_table(
    *,
    partition_by: Sequence[str],
    description: str | None,
    properties: Mapping[str, str],
    is_managed: bool,
    overwrites_schema: bool = False,
    overwrites_partitions: bool = False,
) -> Operation:
    """Describe ``df.write.mode("overwrite").saveAsTable(name)`` on a table that is there."""
    definition = define_table(
        Definition.CREATE_OR_REPLACE,
        partition_by=partition_by,
        description=description,
        properties=properties,
        is_managed=is_managed,
    )
    options = replacement_options(
        overwrites_schema=overwrites_schema, overwrites_partitions=overwrites_partitions
    )
    return with_rows(definition).with_parameters({**SAVED_OVER, **options})


SAVED_OVER: Mapping[str, object] = MappingProxyType({"isV1SaveAsTableOverwrite": True})
"""What the history adds for a table that ``saveAsTable`` replaces, or would have replaced."""


def replacement_options(
    *, overwrites_schema: bool, overwrites_partitions: bool
) -> Mapping[str, object]:
    """Return the parameters for the options of a replacement."""
    return {
        **({"canOverwriteSchema": True} if overwrites_schema else {}),
        **({"isDynamicPartitionOverwrite": True} if overwrites_partitions else {}),
    }


STREAMING_UPDATE = "STREAMING UPDATE"


def streaming_update(*, mode: str, query_id: str, epoch_id: int) -> Operation:
    """Describe one batch of a streaming query; ``mode`` is its output mode.

    >>> streaming_update(mode="append", query_id="q", epoch_id=3).parameters
    {'outputMode': 'Append', 'queryId': 'q', 'epochId': '3'}
    """
    return Operation(
        name=STREAMING_UPDATE,
        parameters={
            "outputMode": mode.capitalize(),
            "queryId": query_id,
            "epochId": str(epoch_id),
        },
    )


def set_properties(properties: Mapping[str, str]) -> Operation:
    """Describe SET TBLPROPERTIES."""
    return Operation(
        name="SET TBLPROPERTIES", parameters={"properties": json_text(dict(properties))}
    )


def upgrade_uniform_properties(properties: Mapping[str, str]) -> Operation:
    """Describe the commit of REORG ... UPGRADE UNIFORM that sets properties."""
    return replace(set_properties(properties), name="REORG TABLE UPGRADE UNIFORM")


def unset_properties(keys: Sequence[str], *, if_exists: bool) -> Operation:
    """Describe UNSET TBLPROPERTIES."""
    return Operation(
        name="UNSET TBLPROPERTIES",
        parameters={"properties": json_text(list(keys)), "ifExists": if_exists},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """One column as ADD COLUMNS and CHANGE COLUMN record it."""

    path: tuple[str, ...]
    field: StructField
    """The field under its own name; the history has ``path``."""
    place: str | None = None
    """``FIRST`` or ``AFTER x``; None if the statement gives no place."""

    def described(self) -> dict[str, Any]:
        """Return the column as the history shows it; of nested types only the kind is shown."""
        column = {
            "name": _dotted(self.path),
            "type": _type_name(self.field.type),
            "nullable": self.field.nullable,
            "metadata": dict(self.field.metadata),
        }
        position = {} if self.place is None else {"position": self.place}
        return {"column": column, **position}


def add_columns(columns: Sequence[ColumnChange]) -> Operation:
    """Describe ADD COLUMNS."""
    described = [column.described() for column in columns]
    return Operation(name="ADD COLUMNS", parameters={"columns": json_text(described)})


def replace_columns(fields: Sequence[StructField]) -> Operation:
    """Describe REPLACE COLUMNS; ``fields`` are those of the statement."""
    changes = (ColumnChange(path=(field.name,), field=field) for field in fields)
    described = [change.described()["column"] for change in changes]
    return Operation(name="REPLACE COLUMNS", parameters={"columns": json_text(described)})


def change_column(change: ColumnChange) -> Operation:
    """Describe a change of one column: comment, nullability, type, default or place."""
    described = change.described()
    column = json_text(described.pop("column"))
    return Operation(name="CHANGE COLUMN", parameters={"column": column, **described})


def change_columns(changes: Sequence[ColumnChange]) -> Operation:
    """Describe a change of several columns at once."""
    described = [change.described() for change in changes]
    columns = [{**change.pop("column"), **change} for change in described]
    return Operation(name="CHANGE COLUMNS", parameters={"columns": json_text(columns)})


def rename_column(old: Sequence[str], new: Sequence[str]) -> Operation:
    """Describe RENAME COLUMN."""
    return Operation(
        name="RENAME COLUMN",
        parameters={"oldColumnPath": _dotted(old), "newColumnPath": _dotted(new)},
    )


def _dotted(path: Sequence[str]) -> str:
    """Return a path as Spark names it: a part that has a dot is in back-ticks."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def drop_columns(columns: Sequence[Sequence[str]]) -> Operation:
    """Describe DROP COLUMNS."""
    names = [_dotted(path) for path in columns]
    return Operation(name="DROP COLUMNS", parameters={"columns": json_text(names)})


def add_constraint(name: str, expression: str) -> Operation:
    """Describe ADD CONSTRAINT ... CHECK."""
    return Operation(name="ADD CONSTRAINT", parameters={"name": name, "expr": expression})


def drop_constraint(name: str, expression: str | None) -> Operation:
    """Describe DROP CONSTRAINT; ``expression`` is None if there was no such constraint."""
    found = {} if expression is None else {"expr": expression}
    existed = "false" if expression is None else "true"
    return Operation(name="DROP CONSTRAINT", parameters={"name": name, **found, "existed": existed})


def cluster_by(old: Sequence[str], new: Sequence[str]) -> Operation:
    """Describe CLUSTER BY."""
    return Operation(
        name="CLUSTER BY",
        parameters={"oldClusteringColumns": ",".join(old), "newClusteringColumns": ",".join(new)},
    )


def upgrade_protocol(new_protocol: Mapping[str, Any]) -> Operation:
    """Describe a commit that only raises the protocol."""
    return Operation(
        name="UPGRADE PROTOCOL", parameters={"newProtocol": json_text(dict(new_protocol))}
    )


def drop_feature(name: str, *, truncate_history: bool) -> Operation:
    """Describe DROP FEATURE."""
    return Operation(
        name="DROP FEATURE",
        parameters={"featureName": name, "truncateHistory": truncate_history},
    )


EMPTY_COMMIT = Operation(name="Empty Commit")
"""A commit that only makes a version: a barrier before a feature is dropped."""


TRUNCATE = Operation(name="TRUNCATE", parameters={})
"""Every row is removed."""


VACUUM_START, VACUUM_END = "VACUUM START", "VACUUM END"


def vacuum_start(
    *, retention_check: bool, default_retention: timedelta, retention: timedelta | None
) -> Operation:
    """Describe the start of a VACUUM; ``retention`` is the one that the caller gave."""
    asked = {} if retention is None else {"specifiedRetentionMillis": in_milliseconds(retention)}
    return Operation(
        name=VACUUM_START,
        parameters={
            "retentionCheckEnabled": retention_check,
            **asked,
            "defaultRetentionMillis": in_milliseconds(default_retention),
        },
    )


def vacuum_end(*, completed: bool) -> Operation:
    """Describe the end of a VACUUM."""
    return Operation(name=VACUUM_END, parameters={"status": "COMPLETED" if completed else "FAILED"})


RESTORE = "RESTORE"


def restore(*, version: int | None, timestamp: str | None) -> Operation:
    """Describe RESTORE; the caller gives either a version or a timestamp."""
    return Operation(name=RESTORE, parameters={"version": version, "timestamp": timestamp})


def revert(*, version: int) -> Operation:
    """Describe REVERT of one commit."""
    return Operation(name="REVERT", parameters={"version": version})


def clone(*, source: str, source_version: int) -> Operation:
    """Describe a shallow CLONE."""
    return Operation(name="CLONE", parameters={"source": source, "sourceVersion": source_version})


def optimize(
    *,
    predicates: Sequence[str] = (),
    z_order_by: Sequence[str] = (),
    auto: bool = False,
) -> Operation:
    """Describe an OPTIMIZE; ``auto`` means that it ran after another command by itself.

    >>> optimize(predicates=["p = 1"]).parameters
    {'predicate': '["p = 1"]', 'zOrderBy': '[]', 'clusterBy': '[]', 'auto': False}
    """
    return Operation(
        name="OPTIMIZE",
        parameters={
            "predicate": json_text(list(predicates)),
            "zOrderBy": json_text(list(z_order_by)),
            "clusterBy": "[]",
            "auto": auto,
        },
    )


def optimize_clustered(columns: Sequence[str], *, full: bool) -> Operation:
    """Describe an OPTIMIZE that clusters by these columns.

    >>> optimize_clustered(["a"], full=False).parameters["clusterBy"]
    '["a"]'
    """
    plain = optimize()
    parameters = {"clusterBy": json_text(list(columns)), "isFull": full}
    return replace(plain, parameters={**plain.parameters, **parameters})


def reorg(*, predicates: Sequence[str] = ()) -> Operation:
    """Describe a REORG that purges.

    >>> reorg().parameters
    {'predicate': '[]', 'applyPurge': True}
    """
    parameters = {"predicate": json_text(list(predicates)), "applyPurge": True}
    return Operation(name="REORG", parameters=parameters)


REMOVE_COLUMN_MAPPING = Operation(name="REMOVE COLUMN MAPPING")


def drop_type_changes(fields: Sequence[tuple[str, StructField]]) -> Operation:
    """Describe the commit of DROP FEATURE that forgets how types were changed.

    ``fields`` are those that had such a record, by their dotted paths, with it.
    """
    described = [
        {
            "name": path,
            "type": encode_type(field.type),
            "nullable": field.nullable,
            "metadata": dict(field.metadata),
        }
        for path, field in fields
    ]
    return Operation(name="DROP FEATURE", parameters={"columns": json_text(described)})


def _type_name(data_type: DataType) -> str:
    match data_type:
        case StructType():
            return "struct"
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case _:
            return str(encode_type(data_type))
