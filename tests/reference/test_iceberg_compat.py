"""IcebergCompat: both implementations allow and refuse the same, and read each other's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import puredelta
from puredelta.iceberg import export
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, AddChangeFile
from puredelta.protocol.features.column_mapping import NESTED_IDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

V1, V2 = ("'delta.enableIcebergCompatV1' = 'true'", "'delta.enableIcebergCompatV2' = 'true'")
MAPPED = "'delta.columnMapping.mode' = 'name'"
PLAIN = "CREATE TABLE {t} (id BIGINT, s STRING) USING delta"
PARTITIONED = "CREATE TABLE {t} (id BIGINT, p INT) USING delta PARTITIONED BY (p)"
OTHER = "CREATE OR REPLACE TABLE {t} (id BIGINT, q INT) USING delta PARTITIONED BY (q)"
WHOLE = "CREATE TABLE {t} (id INT) USING delta"
ARRAYS = "a ARRAY<STRUCT<x: INT>>, m MAP<STRING, ARRAY<INT>>"
NESTED = f"CREATE TABLE {{t}} (id BIGINT, {ARRAYS}) USING delta"
SCRIPTS = {
    "v1": [f"{PLAIN} TBLPROPERTIES ({V1})"],
    "v2": [f"{NESTED} TBLPROPERTIES ({V2})", "ALTER TABLE {t} ADD COLUMN b ARRAY<INT>"],
    "v2 by id": [f"{PLAIN} TBLPROPERTIES ({V2}, 'delta.columnMapping.mode' = 'id')"],
    "v1 with arrays": [f"{NESTED} TBLPROPERTIES ({V1})"],
    "both": [f"{PLAIN} TBLPROPERTIES ({V1}, {V2})"],
    "mode none": [f"{PLAIN} TBLPROPERTIES ({V1}, 'delta.columnMapping.mode' = 'none')"],
    "vectors": [f"{PLAIN} TBLPROPERTIES ({V2}, 'delta.enableDeletionVectors' = 'true')"],
    "vectors later": [
        f"{PLAIN} TBLPROPERTIES ({V2})",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    ],
    "unmapped table": [PLAIN, f"ALTER TABLE {{t}} SET TBLPROPERTIES ({V1})"],
    "mapped table": [
        f"{PLAIN} TBLPROPERTIES ({MAPPED})",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({V2})",
    ],
    "version changed": [
        f"{PLAIN} TBLPROPERTIES ({V1})",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({V2}, 'delta.enableIcebergCompatV1' = 'false')",
    ],
    "other partitions": [
        f"{PARTITIONED} TBLPROPERTIES ({V2})",
        f"{OTHER} TBLPROPERTIES ({V2})",
    ],
    "unknown version": [
        PLAIN,
        "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION=9))",
    ],
    "format without rules": [
        PLAIN,
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'iceberg')",
    ],
    "widened": [
        f"{WHOLE} TBLPROPERTIES ({V2}, 'delta.enableTypeWidening' = 'true')",
        "ALTER TABLE {t} ALTER COLUMN id TYPE DOUBLE",
    ],
    "materialized": [
        f"{PARTITIONED} TBLPROPERTIES ('delta.enableMaterializePartitionColumnsFeature' = 'true')",
        "ALTER TABLE {t} DROP FEATURE materializePartitionColumns",
    ],
}


@pytest.mark.parametrize("script", list(SCRIPTS))
def test_the_same_is_allowed(spark: SparkSession, tmp_path: Path, script: str) -> None:
    answers = []
    for name, run in (("theirs", spark.sql), ("ours", lambda text: puredelta.sql(spark, text))):
        path = tmp_path / name
        table = f"delta.`{path}`"
        refusals = [_refusal(run, text.format(t=table)) for text in SCRIPTS[script]]
        answers.append((refusals, *_definition(path)))
    theirs, ours = answers
    assert ours == theirs


def _refusal(run: Callable[[str], Any], statement: str) -> str | None:
    try:
        run(statement)
    except Exception as failure:  # noqa: BLE001 - of either implementation
        return str(failure.getCondition())  # type: ignore[attr-defined]
    return None


def _definition(path: Path) -> tuple[Any, ...]:
    if not (path / "_delta_log").exists():
        return (None,)
    snapshot = TableLog.open(str(path)).snapshot()
    protocol, properties = snapshot.protocol, dict(snapshot.metadata.configuration)
    return (
        protocol.min_reader_version,
        sorted(protocol.writer_features or ()),
        properties,
        _numbers(json.loads(snapshot.metadata.schema_string)),
    )


def _numbers(value: Any, names: dict[str, str] | None = None) -> Any:
    """Replace the random names of columns in files by numbers, and leave empty sets of ids out."""
    names = {} if names is None else names
    match value:
        case dict():
            value = {key: one for key, one in value.items() if key != NESTED_IDS or one}
            return {_numbers(key, names): _numbers(one, names) for key, one in value.items()}
        case list():
            return [_numbers(one, names) for one in value]
        case str() if value.startswith("col-"):
            name, dot, rest = value.partition(".")
            return names.setdefault(name, f"col {len(names)}") + dot + rest
        case _:
            return value


def test_both_write_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark reads what was written here, changes it, and Iceberg reads the result."""
    table = f"delta.`{tmp_path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, {ARRAYS}, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({V2})"
    )
    values = "array(named_struct('x', int(id))), map('k', array(1)), concat('p', id % 2)"
    for start, run in ((0, spark.sql), (10, lambda text: puredelta.sql(spark, text))):
        run(f"INSERT INTO {table} SELECT id, {values} FROM range({start}, {start + 10}, 1, 1)")
        run(f"UPDATE {table} SET a = array(named_struct('x', 100)) WHERE id % 10 = 1")
        run(f"DELETE FROM {table} WHERE id % 10 = 2")
    query = f"SELECT id, a, m, p FROM {table}"
    rows = sorted(map(tuple, spark.sql(query).collect()))
    assert rows == sorted(map(tuple, puredelta.sql(spark, query).collect()))
    static = pytest.importorskip("pyiceberg.table").StaticTable
    found = static.from_metadata(export(str(tmp_path)).metadata_location).scan().to_arrow()
    read = sorted((row["id"], row["a"][0]["x"], row["p"]) for row in found.to_pylist())
    assert read == [(row[0], row[1][0].x, row[3]) for row in rows]


def test_tags_clones_and_change_files(spark: SparkSession, tmp_path: Path) -> None:
    """New files have one tag, a shallow clone keeps the rules, and `_change_type` has no id."""
    answers = []
    for name, run in (("theirs", spark.sql), ("ours", lambda text: puredelta.sql(spark, text))):
        source, clone = tmp_path / name / "source", tmp_path / name / "clone"
        run(
            f"CREATE TABLE delta.`{source}` (id BIGINT, a ARRAY<INT>) USING delta "
            f"TBLPROPERTIES ({V2}, 'delta.enableChangeDataFeed' = 'true')"
        )
        run(f"INSERT INTO delta.`{source}` SELECT id, array(1) FROM range(0, 4, 1, 1)")
        run(f"UPDATE delta.`{source}` SET id = 10 WHERE id = 2")
        run(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
        log = TableLog.open(str(clone))
        actions = [a for c in TableLog.open(str(source)).commits_after(0) for a in c.actions]
        adds = [action for action in actions if isinstance(action, Add)]
        changes = [action for action in actions if isinstance(action, AddChangeFile)]
        assert adds
        assert changes
        fields = [
            field
            for action in changes
            for field in pq.read_schema(source / action.path)
            if field.name == "_change_type"
        ]
        config = log.snapshot().config
        answers.append(
            (
                {str(add.tags) for add in [*adds, *log.snapshot().files.adds()]},
                (config.iceberg_compat, config.supports("icebergCompatV2")),
                {b"PARQUET:field_id" in (field.metadata or {}) for field in fields},
            )
        )
    assert answers[0] == answers[1]
