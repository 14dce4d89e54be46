"""delta-spark opens what puredelta writes, with the same rows, and goes on working on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.tables import DeltaTable

ALL_TYPES = """
    SELECT id, cast(id % 100 AS byte) b, cast(id AS short) sh, cast(id AS int) i,
           cast(id / 3 AS float) f,
           CASE WHEN id % 7 = 0 THEN double('NaN') WHEN id % 11 = 0 THEN -0.0D ELSE id / 3D END d,
           id % 2 = 0 bo, concat('text ', id) s, cast(cast(id AS string) AS binary) bin,
           date_add(date'1890-01-01', cast(id AS int)) dt,
           timestamp_micros(-2000000000000000 + id * 1000000000001) ts,
           cast(timestamp_micros(id) AS timestamp_ntz) ntz,
           cast(id / 7 AS decimal(9, 2)) d9, cast(id / 7 AS decimal(18, 6)) d18,
           cast(id / 7 AS decimal(38, 10)) d38,
           named_struct('x', id, 'y', array(named_struct('z', id))) st, map('k', id, 'l', NULL) m,
           CASE WHEN id % 3 = 0 THEN NULL ELSE array(id, NULL) END a
    FROM range(0, 200)
"""
PARTITIONED = """
    SELECT id, cast(id AS int) % 3 n,
           element_at(array('plain', 'a/b=c %20 \u00e9', 'x:y#z?&+', '__HIVE_DEFAULT_PARTITION__',
                            NULL, '', '100%25'), cast(id % 7 AS int) + 1) p,
           CASE WHEN id % 5 > 0 THEN date_add(date'2020-02-27', cast(id % 4 AS int)) END d,
           timestamp'2020-01-01 10:11:12.123456' + make_interval(0, 0, 0, cast(id % 2 AS int)) t
    FROM range(0, 70)
"""


def rows_of(rows: DataFrame) -> Counter[str]:
    """The rows as text, so that NaN, maps and binary compare."""
    ordered = rows.select(*sorted(rows.columns))
    return Counter(str(row) for row in ordered.collect())


def read_by_reference(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def reference_table(spark: SparkSession, path: Path) -> Any:
    import delta.tables  # noqa: PLC0415 - only where the reference is installed

    return delta.tables.DeltaTable.forPath(spark, str(path))


@pytest.mark.parametrize(
    ("text", "partition_by"),
    [(ALL_TYPES, ()), (ALL_TYPES, ("b",)), (PARTITIONED, ("p", "d")), (PARTITIONED, ("t", "n"))],
    ids=["all-types", "by-byte", "special-strings-and-dates", "timestamps"],
)
def test_both_readers_agree_on_a_written_table(
    spark: SparkSession, tmp_path: Path, text: str, partition_by: tuple[str, ...]
) -> None:
    path = tmp_path / "table"
    puredelta.write(spark.sql(text), str(path), partition_by=partition_by)
    puredelta.write(spark.sql(text), str(path), mode="append")
    theirs = read_by_reference(spark, path)
    ours = puredelta.read(spark, str(path))
    assert rows_of(theirs) == rows_of(ours)
    assert sum(rows_of(ours).values()) == 2 * spark.sql(text).count()


def test_filters_of_the_reference_find_every_row_by_our_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    rows = spark.sql(ALL_TYPES)
    puredelta.write(rows.repartitionByRange(8, "id"), str(path))
    table = read_by_reference(spark, path)
    for condition in (
        "id = 77", "d > 40", "d = double('NaN')", "f < 3", "s = 'text 150'",
        "s > 'text 9'",
        "dt >= date'1890-05-01'", "ts > timestamp'2000-01-01 00:00:00'", "d38 = 10", "st.x = 5",
        "a IS NULL", "ntz < timestamp_ntz'1970-01-01 00:00:00.0001'", "bin = X'3135'", "NOT bo",
    ):  # fmt: skip
        assert table.filter(condition).count() == rows.filter(condition).count(), condition


def test_statistics_equal_those_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(ALL_TYPES).drop("d", "f", "bin").coalesce(1)
    puredelta.write(rows, str(tmp_path / "ours"))
    rows.write.format("delta").save(str(tmp_path / "theirs"))

    def stats(path: Path) -> dict[str, Any]:
        lines = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
        (add,) = [json.loads(line)["add"] for line in lines if '"add"' in line]
        return json.loads(add["stats"])

    ours, theirs = stats(tmp_path / "ours"), stats(tmp_path / "theirs")
    assert ours["numRecords"] == theirs["numRecords"]
    assert ours["minValues"].keys() == theirs["minValues"].keys()
    for name, value in theirs["minValues"].items():
        if name not in {"ts", "ntz"}:  # the reference cuts off below a millisecond
            assert ours["minValues"][name] == value, name
            assert ours["maxValues"][name] == theirs["maxValues"][name], name
    for name, count in ours["nullCount"].items():
        assert theirs["nullCount"][name] == count, name


def test_a_converted_directory(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "directory"
    rows = spark.sql(PARTITIONED).drop("t")  # Spark cannot write Hive's NULL as text beside NULL
    rows = rows.where("p IS NULL OR p <> '__HIVE_DEFAULT_PARTITION__'")
    rows.write.partitionBy("p", "d").parquet(str(path))
    expected = rows_of(spark.read.schema("id LONG, n INT, p STRING, d DATE").parquet(str(path)))
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p STRING, d DATE")
    assert rows_of(read_by_reference(spark, path)) == expected
    assert rows_of(puredelta.read(spark, str(path))) == expected
    operation = reference_table(spark, path).history().collect()[0]
    assert operation["operation"] == "CONVERT"


def merge_once(table: Any, source: DataFrame) -> None:
    (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.gone")
        .whenMatchedUpdate(set={"v": "concat(t.v, s.v)"})
        .whenNotMatchedInsert(values={"id": "s.id", "v": "s.v", "p": "s.id % 4"})
        .whenNotMatchedBySourceUpdate("t.id % 10 = 9", set={"v": "'left'"})
        .execute()
    )


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.columnMapping.mode": "name"},
        {"delta.columnMapping.mode": "id"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.checkpointInterval": "2"},
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    ],
    ids=lambda p: ",".join(f"{k}={v}" for k, v in p.items()) or "plain",
)
@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["flat", "partitioned"])
def test_both_take_turns_merging(
    spark: SparkSession,
    tmp_path: Path,
    properties: dict[str, str],
    partition_by: tuple[str, ...],
) -> None:
    """One table is merged by both in turn, its twin by the reference alone: the same rows."""
    shared, twin = tmp_path / "shared", tmp_path / "twin"
    start = spark.range(200).selectExpr("id", "concat('v', id) v", "id % 4 p")
    for path in (shared, twin):
        writer = spark.range(0).selectExpr("id", "'' v", "id p").write.format("delta")
        for key, value in properties.items():
            writer = writer.option(key, value)
        writer.partitionBy(*partition_by).save(str(path))
        start.repartition(3).write.format("delta").mode("append").save(str(path))
    for turn in range(6):
        source = spark.range(turn * 20, turn * 20 + 120, 3).selectExpr(
            "id", f"concat('_{turn}_', id) v", "id % 5 = 0 gone"
        )
        ours = DeltaTable.forPath(spark, str(shared))
        merge_once(ours if turn % 2 else reference_table(spark, shared), source)
        merge_once(reference_table(spark, twin), source)
        if turn == 2 and "delta.enableDeletionVectors" in properties:
            for path in (shared, twin):
                reference_table(spark, path).delete("id % 17 = 3")
    assert rows_of(read_by_reference(spark, shared)) == rows_of(read_by_reference(spark, twin))
    assert rows_of(puredelta.read(spark, str(shared))) == rows_of(read_by_reference(spark, twin))
    names = (
        "numSourceRows",
        "numTargetRowsInserted",
        "numTargetRowsUpdated",
        "numTargetRowsDeleted",
    )
    assert merge_metrics(DeltaTable.forPath(spark, str(shared)), names) == merge_metrics(
        reference_table(spark, twin), names
    )


def merge_metrics(table: Any, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """These metrics of every MERGE in the history, oldest first."""
    merges = table.history().where("operation = 'MERGE'").orderBy("version")
    return [tuple(row["operationMetrics"][n] for n in names) for row in merges.collect()]
