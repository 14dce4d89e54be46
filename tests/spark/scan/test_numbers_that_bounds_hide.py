"""No row with NaN, -0.0, an infinity or a long decimal is missing: writers, conditions, places."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable
from tests.spark.files import executed_plan

NAN, INF = float("nan"), float("inf")
VALUES = [
    *(1.0, 2.0, NAN, 3.0),
    *(-0.0, -0.0, -0.0, -0.0),
    *(0.0, 0.0, -1.0, None),
    *(5.5, 7.0, NAN, -0.0),
    *(-INF, -5.0, -0.0, -1.0),
    *(INF, 6.0, 8.0, 9.0),
    *(NAN, NAN, NAN, NAN),
    *(None, None, None, -0.0),
]
"""Four in each row group. The row n has the id n."""
IDS = range(len(VALUES))


def _rows(start: int, stop: int) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "x": pa.array(VALUES[start:stop], pa.float64())})


def _arrow(spark: SparkSession, root: Path) -> None:
    root.mkdir()
    for number in range(2):
        rows = _rows(number * 16, number * 16 + 16)
        pq.write_table(rows, root / f"{number}.parquet", row_group_size=4)
    DeltaTable.convertToDelta(spark, f"parquet.`{root}`")


def _delta_rs(_: SparkSession, root: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="an independent writer")
    for number in range(2):
        rows = _rows(number * 16, number * 16 + 16)
        properties = deltalake.WriterProperties(max_row_group_size=4)
        deltalake.write_deltalake(str(root), rows, mode="append", writer_properties=properties)


def _spark(spark: SparkSession, root: Path) -> None:
    for start in range(0, len(VALUES), 4):
        values = [(n, VALUES[n]) for n in range(start, start + 4)]
        rows = spark.createDataFrame(values, "id bigint, x double")
        puredelta.write(rows.coalesce(1), str(root), mode="append")


WRITERS: dict[str, Callable[[SparkSession, Path], None]] = {
    "pyarrow": _arrow,
    "delta-rs": _delta_rs,
    "Spark": _spark,
}
TRUE: dict[str, Callable[[float], bool]] = {
    "x > 5": lambda x: x > 5,
    "x >= 9": lambda x: x >= 9,
    "x <= -0.0D": lambda x: x <= 0,
    "x = 0": lambda x: x == 0,
    "x = double('NaN')": lambda x: x > INF,
    "NOT (x <= 5)": lambda x: x > 5,
    "x < 0": lambda x: x < 0,
    "x != 0": lambda x: x != 0,
    "x IN (0.0D, 7.0D)": lambda x: x in {0.0, 7.0},
    "x BETWEEN 0 AND 6": lambda x: 0 <= x <= 6,
    "x > double('Infinity')": lambda x: x > INF,
}
"""Conditions, with what is true of a number that is no NaN: NaN is above all and equals itself."""
_ABOVE = {
    "x > 5",
    "x >= 9",
    "x = double('NaN')",
    "NOT (x <= 5)",
    "x != 0",
    "x > double('Infinity')",
}


def wanted(condition: str) -> set[int]:
    """Return the ids of the rows of which a condition is true, as Spark defines it."""
    return {
        n
        for n, x in enumerate(VALUES)
        if x is not None and (condition in _ABOVE if x != x else TRUE[condition](x))  # noqa: PLR0124
    }


Place = Callable[[SparkSession, str, str], set[int]]


def _left(spark: SparkSession, path: str) -> set[int]:
    return {row.id for row in puredelta.read(spark, path).collect()}


def _query(spark: SparkSession, path: str, condition: str) -> set[int]:
    return {row.id for row in puredelta.read(spark, path).where(condition).collect()}


def _count(spark: SparkSession, path: str, condition: str) -> set[int]:
    rows = puredelta.read(spark, path).where(condition)
    assert rows.count() == len(rows.collect())
    return {row.id for row in rows.where("id >= 0").collect()}


def _deleted(spark: SparkSession, path: str, condition: str) -> set[int]:
    DeltaTable.forPath(spark, path).delete(condition)
    return {*IDS} - _left(spark, path)


def _updated(spark: SparkSession, path: str, condition: str) -> set[int]:
    DeltaTable.forPath(spark, path).update(condition, {"id": "id + 100"})
    left = _left(spark, path)
    assert len(left) == len(VALUES)
    return {n - 100 for n in left if n >= 100}


def _merged(on: str, matched: str) -> Place:
    """Return a MERGE that deletes its pairs and inserts what it has not found."""

    def run(spark: SparkSession, path: str, condition: str) -> set[int]:
        source = spark.range(len(VALUES)).toDF("i").alias("s")
        merge = (
            DeltaTable.forPath(spark, path).alias("t").merge(source, on.format(_of_t(condition)))
        )
        merge = merge.whenMatchedDelete(matched.format(_of_t(condition)) or None)
        merge.whenNotMatchedInsert(values={"id": "s.i + 100"}).execute()
        left = _left(spark, path)
        found = {*IDS} - left
        if not matched:
            assert {n - 100 for n in left if n >= 100} == {*IDS} - found
        return found

    return run


def _of_t(condition: str) -> str:
    return condition.replace("x ", "t.x ")


def _by_source(spark: SparkSession, path: str, condition: str) -> set[int]:
    table = DeltaTable.forPath(spark, path).alias("t")
    merge = table.merge(spark.range(0).toDF("i").alias("s"), "t.id = s.i")
    merge.whenNotMatchedBySourceDelete(_of_t(condition)).execute()
    return {*IDS} - _left(spark, path)


def _source(spark: SparkSession, path: str, condition: str) -> set[int]:
    """Insert the rows of the table, as the source of a MERGE, into another one."""
    rows = puredelta.read(spark, path).where(condition)
    puredelta.write(rows.limit(0), f"{path}-new")
    table = DeltaTable.forPath(spark, f"{path}-new").alias("t")
    table.merge(rows.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    return _left(spark, f"{path}-new")


def _replaced(spark: SparkSession, path: str, condition: str) -> set[int]:
    nothing = f"SELECT * FROM delta.`{path}` LIMIT 0"
    puredelta.sql(spark, f"INSERT INTO delta.`{path}` REPLACE WHERE {condition} {nothing}")
    return {*IDS} - _left(spark, path)


def _changes(spark: SparkSession, path: str, condition: str) -> set[int]:
    key = {"delta.enableChangeDataFeed": "true"}
    puredelta.write(puredelta.read(spark, path), f"{path}-feed", properties=key)
    changes = puredelta.read_changes(spark, f"{path}-feed", starting_version=0)
    return {row.id for row in changes.where(condition).collect()}


def _stream(spark: SparkSession, path: str, condition: str) -> set[int]:
    seen: set[int] = set()
    puredelta.activate(spark)
    try:
        rows: DataFrame = spark.readStream.format("delta").load(path).where(condition)
        query = rows.writeStream.foreachBatch(
            lambda batch, _: seen.update(row.id for row in batch.collect())
        )
        query.trigger(availableNow=True).start().awaitTermination()
    finally:
        puredelta.deactivate()
    return seen


PLACES: dict[str, Place] = {
    "query": _query,
    "count": _count,
    "DELETE": _deleted,
    "UPDATE": _updated,
    "MERGE by join": _merged("{} AND t.id + 0 = s.i", ""),
    "MERGE by keys": _merged("{} AND t.id = s.i", ""),
    "MATCHED": _merged("t.id = s.i", "{}"),
    "BY SOURCE": _by_source,
    "source": _source,
    "replaceWhere": _replaced,
    "changes": _changes,
    "stream": _stream,
}


Tables = Callable[[str], Path]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The table of a writer, made once."""
    root = tmp_path_factory.mktemp("numbers")

    def made(writer: str) -> Path:
        if not (root / writer).exists():
            WRITERS[writer](spark, root / writer)
        return root / writer

    return made


def check(spark: SparkSession, table: Path, copy: Path, condition: str, place: str) -> None:
    shutil.copytree(table, copy)
    assert PLACES[place](spark, str(copy), condition) == wanted(condition), (place, condition)


_SAMPLE = [
    ("pyarrow", "x > 5", "query"),
    ("delta-rs", "x > 5", "DELETE"),
    ("Spark", "x = 0", "MERGE by join"),
    ("delta-rs", "NOT (x <= 5)", "MATCHED"),
    ("pyarrow", "x = double('NaN')", "replaceWhere"),
    ("delta-rs", "x <= -0.0D", "stream"),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", _SAMPLE, ids=" ".join)
def test_no_row_is_missing(
    spark: SparkSession, tables: Tables, tmp_path: Path, case: tuple[str, str, str]
) -> None:
    writer, condition, place = case
    check(spark, tables(writer), tmp_path / "t", condition, place)


@pytest.mark.thorough
@pytest.mark.parametrize("case", list(product(WRITERS, PLACES, ("true", "false"))), ids=" ".join)
def test_no_row_is_missing_of_any_condition(
    spark: SparkSession, tables: Tables, tmp_path: Path, case: tuple[str, str, str]
) -> None:
    writer, place, workers = case
    with temporary_settings(spark, {"spark.puredelta.workers.enabled": workers}):
        for number, condition in enumerate(TRUE):
            check(spark, tables(writer), tmp_path / str(number), condition, place)


def test_files_do_hide_such_rows(spark: SparkSession, tables: Tables) -> None:
    """The conditions above are lost where Spark pushes them: the test can fail."""
    plain = spark.read.parquet(str(tables("pyarrow")))
    assert "GreaterThan(x,5.0)" in executed_plan(plain.where("x > 5"))
    assert {row.id for row in plain.where("x > 5").collect()} < wanted("x > 5")


@pytest.mark.parametrize("text", ["999999999999999999.99", "123456789012345678.91"])
def test_long_decimals_of_delta_rs(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """delta-rs writes doubles as their bounds: 9.999999999999999e17 as the greatest of these."""
    deltalake = pytest.importorskip("deltalake", reason="an independent writer")
    path = str(tmp_path / "t")
    for number, value in enumerate((text, "-" + text)):
        key = pa.array([Decimal(value)], pa.decimal128(20, 2))
        rows = pa.table({"k": key, "v": pa.array([number], pa.int64())})
        deltalake.write_deltalake(path, rows, mode="append")
    source = spark.sql(f"SELECT CAST('{text}' AS DECIMAL(20,2)) k, 7L v")
    assert puredelta.read(spark, path).where(f"k = {text}BD").select("v").collect() == [(0,)]
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.k = s.k")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    rows = puredelta.read(spark, path).select("v").orderBy("v").collect()
    assert rows == [(1,), (7,)]
