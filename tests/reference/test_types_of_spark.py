"""Variants, collations, options of writers, generated partitions: both on the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable
from tests.spark.scan.skipping_cases import files_read

TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"


def read_by_reference(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def variants(spark: SparkSession) -> DataFrame:
    return spark.range(0, 9, 1, 2).selectExpr(
        "id", "parse_json(concat('{\"a\":', id, '}')) v", "array(parse_json(string(id))) a"
    )


def shown(rows: DataFrame) -> list[Any]:
    return sorted(map(tuple, rows.selectExpr("id", "to_json(v)", "to_json(a)").collect()))


def test_variants_are_the_same_on_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    variants(spark).write.format("delta").save(str(theirs))
    puredelta.write(variants(spark), str(ours))
    assert shown(puredelta.read(spark, str(theirs))) == shown(read_by_reference(spark, ours))
    for path in (theirs, ours):
        table = DeltaTable.forPath(spark, str(path))
        table.update("id = 1", {"v": "parse_json('[1]')"})
        table.delete("id = 2")
        assert shown(read_by_reference(spark, path)) == shown(puredelta.read(spark, str(path)))
    known = [TableLog.open(str(path)).snapshot().protocol for path in (theirs, ours)]
    assert known[0] == known[1]


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_collations_compare_the_same_on_both_sides(
    spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    rows = spark.sql(
        "SELECT id, s COLLATE utf8_lcase s, named_struct('x', s COLLATE unicode_ci) st "
        "FROM VALUES (1L, 'AbC'), (2L, 'abc'), (3L, 'ZZZ'), (4L, 'zz') AS t(id, s)"
    )
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    mode = {"delta.columnMapping.mode": mapping}
    spark.conf.set(TYPE_CHECK, "false")
    try:
        rows.write.format("delta").options(**mode).save(str(theirs))
        puredelta.write(rows, str(ours), properties=mode)
        for path in (theirs, ours):
            for condition in ("s = 'ABC'", "s > 'B'", "st.x = 'aBc'", "s IN ('ZZ')"):
                counts = [
                    found.where(condition).count()
                    for found in (
                        puredelta.read(spark, str(path)),
                        read_by_reference(spark, path),
                    )
                ]
                assert counts[0] == counts[1], (path, condition, counts)
    finally:
        spark.conf.unset(TYPE_CHECK)


OPTIONS = [
    {"maxRecordsPerFile": "10"},
    {"compression": "zstd"},
    {"optimizeWrite": "true"},
    {"optimizeWrite": "true", "MAXRECORDSPERFILE": "30"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_files_are_cut_and_compressed_alike(
    spark: SparkSession, tmp_path: Path, options: dict[str, str]
) -> None:
    rows = spark.range(0, 100, 1, 4)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    rows.write.format("delta").options(**options).save(str(theirs))
    puredelta.write(rows, str(ours), options=options)
    found = []
    for path in (theirs, ours):
        names = [add.path for add in TableLog.open(str(path)).snapshot().files.adds()]
        found.append((len(names), {name.split(".", 1)[1] for name in names}))
    assert found[0] == found[1]


GENERATED = (
    ("d DATE GENERATED ALWAYS AS (CAST(ts AS DATE))", "d"),
    ("y INT GENERATED ALWAYS AS (YEAR(ts)), m INT GENERATED ALWAYS AS (MONTH(ts))", "y, m"),
    ("f STRING GENERATED ALWAYS AS (DATE_FORMAT(ts, 'yyyy-MM'))", "f"),
)


@pytest.mark.parametrize(("columns", "partitions"), GENERATED)
def test_sources_of_partitions_leave_out_as_many_files(
    spark: SparkSession, tmp_path: Path, columns: str, partitions: str
) -> None:
    path = tmp_path / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (ts TIMESTAMP, {columns}) USING delta "
        f"PARTITIONED BY ({partitions})"
    )
    rows = spark.range(0, 24).selectExpr("timestamp'2023-11-05 12:00:00' + id * interval 9 days ts")
    rows.write.format("delta").mode("append").save(str(path))
    for condition in (
        "ts = '2024-02-03 12:00:00'",
        "ts > '2024-03-01'",
        "ts <= '2023-12-01' OR ts >= '2024-05-01'",
        "ts IN ('2024-02-03 12:00:00', '2023-11-05 12:00:00')",
    ):
        ours = puredelta.read(spark, str(path)).where(condition)
        theirs = read_by_reference(spark, path).where(condition)
        assert ours.count() == theirs.count()
        assert files_read(ours) <= len(theirs.inputFiles()), condition
