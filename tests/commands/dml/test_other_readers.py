"""What merges leave of tables with each feature, as delta-rs reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.tables import DeltaTable

deltalake = pytest.importorskip("deltalake")

COLUMNS = {"id": "INT", "v": "STRING", "p": "STRING", "at": "TIMESTAMP_NTZ"}
# delta-rs 1.6 refuses type widening; it reads everything else that is written here.
FEATURES: Mapping[str, Mapping[str, str]] = {
    "change feed": {"delta.enableChangeDataFeed": "true"},
    "deletion vectors": {"delta.enableDeletionVectors": "true"},
    "mapped by name": {"delta.columnMapping.mode": "name"},
    "mapped by id": {"delta.columnMapping.mode": "id"},
    "row ids": {"delta.enableRowTracking": "true"},
    "in-commit timestamps": {"delta.enableInCommitTimestamps": "true"},
    "v2 checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"},
    "check constraint": {"delta.constraints.short": "length(v) < 10"},
    "vectors, mapped, with checkpoints": {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.checkpointInterval": "1",
    },
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("feature", FEATURES)
def test_delta_rs_reads_what_merges_leave(
    spark: SparkSession, tmp_path: Path, feature: str
) -> None:
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).partitionedBy("p")
    for name, data_type in COLUMNS.items():
        builder = builder.addColumn(name, data_type)
    for key, value in FEATURES[feature].items():
        builder = builder.property(key, value)
    table = builder.execute()
    merge_range(spark, table, 0, 8)
    merge_range(spark, table, 4, 12)
    expected = [row.asDict() for row in table.toDF().sort("id").collect()]
    assert [row["id"] for row in expected] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert [row["v"] for row in expected[3:6]] == ["v3", "V4", "V6"]
    others = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    found = pa.table(others.execute("select * from t order by id").read_all())
    assert found.to_pylist() == expected


def test_delta_rs_reads_a_table_that_has_dropped_its_features(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    features = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    rows = spark.sql("SELECT smallint(id) id, concat('v', id) v, id % 2 p FROM range(9)")
    puredelta.write(rows, path, mode="append", properties=features, partition_by=["p"])
    for change in (
        "RENAME COLUMN v TO w",
        "ALTER COLUMN id TYPE BIGINT",
        "DROP FEATURE typeWidening",
        "DROP FEATURE columnMapping",
    ):
        puredelta.sql(spark, f"ALTER TABLE delta.`{path}` {change}")
    others = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    found = pa.table(others.execute("select id, w, p from t where id > 4 order by id").read_all())
    assert found.to_pylist() == [{"id": n, "w": f"v{n}", "p": n % 2} for n in range(5, 9)]


def merge_range(spark: SparkSession, table: DeltaTable, low: int, high: int) -> None:
    """Insert the ids that are missing, delete 5, write the others in capitals."""
    source = spark.range(low, high).selectExpr(
        "int(id)",
        "concat('v', id) v",
        "IF(id % 2 = 0, 'a b/c', NULL) p",
        "timestamp_ntz'2024-05-06 07:08:09' at",
    )
    (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("t.id = 5")
        .whenMatchedUpdate(set={"v": "upper(s.v)"})
        .whenNotMatchedInsertAll()
        .execute()
    )


@pytest.mark.thorough
def test_tables_that_delta_rs_has_merged(spark: SparkSession, tmp_path: Path) -> None:
    """Its files say that Arrow should read text as views, for which Arrow has few functions."""
    path = str(tmp_path / "t")
    rows = pa.table(
        {
            "k": range(6),
            "s": [f"s{n}" for n in range(6)],
            "st": [{"v": f"v{n}", "l": ["a", None]} for n in range(6)],
            "b": [b"x"] * 6,
        }
    )
    deltalake.write_deltalake(path, rows)
    theirs = deltalake.DeltaTable(path).merge(rows, "t.k = s.k", source_alias="s", target_alias="t")
    theirs.when_matched_update_all().execute()
    table = DeltaTable.forPath(spark, path)
    source = spark.sql("SELECT 1 k, 'n' s UNION ALL SELECT 9, 'new'")
    merge = table.alias("t").merge(source.alias("s"), "t.k = s.k AND t.s <> 'none'")
    merge.whenMatchedUpdate(set={"s": "s.s"}).whenNotMatchedInsert(
        values={"k": "s.k", "s": "s.s"}
    ).execute()
    table.delete("st.v = 'v2'")
    table.update("s = 's3'", {"s": "'three'"})
    found = table.toDF().sort("k").collect()
    assert [(row["k"], row["s"]) for row in found] == [
        (0, "s0"),
        (1, "n"),
        (3, "three"),
        (4, "s4"),
        (5, "s5"),
        (9, "new"),
    ]
    assert [row["st"] and row["st"]["l"] for row in found[:2]] == [["a", None]] * 2
