"""Small Delta tables laid by hand: Parquet files of a chosen layout and a log of JSON."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.pipeline import execute
from puredelta.commands.dml.retry import ExecutionOptions
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.spec import (
    Assignment,
    Clause,
    Delete,
    InputRows,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    StatementSpec,
    Update,
    start_statement,
)
from puredelta.log.commit.commit_request import Phase, ignore_phase
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.scan.scan import scan
from tests.deletion_vectors import encode_inline

_DELTA_TYPES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.string(): "string",
    pa.float64(): "double",
    pa.float32(): "float",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}

Rows = Sequence[Mapping[str, Any]]


def delta_type(kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": delta_fields(list(kind))}
    if pa.types.is_list(kind):
        return {
            "type": "array",
            "elementType": delta_type(kind.value_type),
            "containsNull": True,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": delta_type(kind.key_type),
            "valueType": delta_type(kind.item_type),
            "valueContainsNull": True,
        }
    return _DELTA_TYPES[kind]


def delta_fields(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    return [
        {"name": f.name, "type": delta_type(f.type), "nullable": f.nullable, "metadata": {}}
        for f in fields
    ]


def lay_table(
    root: Path,
    schema: pa.Schema,
    files: Sequence[Rows],
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    protocol: Mapping[str, Any] | None = None,
    with_stats: bool = True,
    fields: list[dict[str, Any]] | None = None,
    physical: Mapping[str, str] | None = None,
    deleted: Mapping[int, Sequence[int]] | None = None,
    field_ids: Mapping[str, int] | None = None,
) -> TableLog:
    """One file per element of ``files``; the rows of a file share their partition values.

    ``deleted`` are positions by file number: they go into a deletion vector.
    """
    root.mkdir(parents=True, exist_ok=True)
    names = dict(physical or {})
    actions: list[dict[str, Any]] = [
        {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(
                    {"type": "struct", "fields": fields or delta_fields(schema)}
                ),
                "partitionColumns": list(partition_by),
                "configuration": dict(properties or {}),
                "createdTime": 0,
            }
        },
    ]
    for number, rows in enumerate(files):
        add = lay_file(
            root,
            pa.Table.from_pylist(list(rows), schema),
            number=number,
            partition_by=partition_by,
            names=names,
            with_stats=with_stats,
            field_ids=field_ids or {},
        )
        if number in (deleted or {}):
            add["deletionVector"] = inline_vector((deleted or {})[number])
        actions.append({"add": add})
    log = root / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")
    return TableLog.open(str(root))


def lay_file(
    root: Path,
    table: pa.Table,
    *,
    number: int,
    partition_by: Sequence[str],
    names: Mapping[str, str],
    with_stats: bool,
    field_ids: Mapping[str, int],
) -> dict[str, Any]:
    values = {
        names.get(c, c): None if table[c][0].as_py() is None else str(table[c][0].as_py())
        for c in partition_by
    }
    data = table.drop_columns(list(partition_by))
    data = data.rename_columns([names.get(c, c) for c in data.column_names])
    fields = [
        f.with_metadata({"PARQUET:field_id": str(field_ids[f.name])}) if f.name in field_ids else f
        for f in data.schema
    ]
    data = pa.Table.from_arrays(data.columns, schema=pa.schema(fields))
    directory = "/".join(f"{c}={v}" for c, v in values.items())
    path = f"{directory}/part-{number:05d}.parquet".lstrip("/")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, root / path, row_group_size=max(1, data.num_rows // 2))
    add: dict[str, Any] = {
        "path": path,
        "partitionValues": values,
        "size": (root / path).stat().st_size,
        "modificationTime": int(time.time() * 1000),
        "dataChange": True,
    }
    if with_stats:
        add["stats"] = json.dumps(statistics(data))
    return add


def inline_vector(positions: Sequence[int]) -> dict[str, Any]:
    made = encode_inline(np.array(positions, np.uint64))
    return {
        "storageType": made.storage_type,
        "pathOrInlineDv": made.path_or_inline,
        "sizeInBytes": made.size_bytes,
        "cardinality": made.cardinality,
    }


def statistics(data: pa.Table) -> dict[str, Any]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in data.column_names:
        kind = data.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind):
            bounds = pc.min_max(data[name]).as_py()
            if bounds["min"] is not None:
                low[name], high[name] = bounds["min"], bounds["max"]
    return {
        "numRecords": data.num_rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": {c: data[c].null_count for c in data.column_names},
    }


def table_rows(spark: SparkSession, log: TableLog) -> list[dict[str, Any]]:
    rows = scan(spark, log.snapshot()).collect()
    return sorted((r.asDict(recursive=True) for r in rows), key=repr)


def data_files(root: Path) -> set[str]:
    """Every file under the root but those of the log, checksums of Hadoop left out."""
    return {
        str(p.relative_to(root))
        for p in root.rglob("*")
        if p.is_file() and "_delta_log" not in p.parts and not p.name.endswith(".crc")
    }


def active_files(log: TableLog) -> list[str]:
    return [add.path for add in log.snapshot().files.adds()]


def assigned(values: Mapping[str, Any] | None) -> tuple[Assignment, ...] | Star:
    if values is None:
        return Star.STAR
    return tuple(Assignment(column, value) for column, value in values.items())


def update(condition: Any = None, **values: str) -> Matched:
    return Matched(Update(assigned(values or None)), condition)


def delete(condition: Any = None) -> Matched:
    return Matched(Delete(), condition)


def insert(condition: Any = None, **values: str) -> NotMatched:
    return NotMatched(Insert(assigned(values or None)), condition)


def update_by_source(condition: Any = None, **values: str) -> NotMatchedBySource:
    return NotMatchedBySource(Update(assigned(values)), condition)


def delete_by_source(condition: Any = None) -> NotMatchedBySource:
    return NotMatchedBySource(Delete(), condition)


def merge(
    spark: SparkSession,
    log: TableLog,
    source: DataFrame,
    on: Any,
    *clauses: Clause,
    **options: Any,
) -> Outcome:
    """Execute with the aliases t and s."""
    return execute_spec(spark, log, MergeSpec(on=on, clauses=clauses), source, **options)


def execute_spec(
    spark: SparkSession,
    log: TableLog,
    spec: StatementSpec,
    source: DataFrame | None = None,
    *,
    on_phase: Callable[[Phase], None] = ignore_phase,
    change: Callable[[ExecutionSettings], ExecutionSettings] | None = None,
    **options: Any,
) -> Outcome:
    """Execute any statement with the aliases t and s.

    ``change`` changes the session's settings, ``options`` are those of `ExecutionOptions`.
    """
    rows = InputRows(
        target=scan(spark, log.snapshot()).alias("t"),
        source=None if source is None else source.alias("s"),
    )
    command = start_statement(spark, log, on_phase=on_phase)
    if change is not None:
        options["settings"] = change(ExecutionSettings.parse(command.session.settings))
    outcome = execute(command, spec, rows, ExecutionOptions(**options))
    command.settings.reset_set_transaction(spark)
    return outcome


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.timezone.utc)  # type: ignore[misc, arg-type]
