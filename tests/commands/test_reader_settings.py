"""Rows that no statement touches are the same rows, however the session reads its files."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.recipes.compare import blame, diff
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.tables import DeltaTable

Writer: TypeAlias = Callable[[SparkSession, Path], None]
Statement: TypeAlias = Callable[[SparkSession, str], object]
TOUCHED = 3
_PARQUET = "spark.sql.parquet."
_RECENT = [dt.datetime(2024, 1, n + 1, 12, tzinfo=dt.timezone.utc) for n in range(6)]
_OLD = [dt.datetime(1, 1, n + 5, 12, tzinfo=dt.timezone.utc) for n in range(6)]

# --- settings, with the time zone of New York ---------------------------------------------------

SETTINGS: dict[str, dict[str, str]] = {
    "usual": {},
    "conversion": {f"{_PARQUET}int96TimestampConversion": "true"},
    "int96 legacy": {f"{_PARQUET}int96RebaseModeInRead": "LEGACY"},
    "times legacy": {f"{_PARQUET}datetimeRebaseModeInRead": "LEGACY"},
    "both legacy": {
        f"{_PARQUET}int96RebaseModeInRead": "LEGACY",
        f"{_PARQUET}datetimeRebaseModeInRead": "LEGACY",
    },
    "by id": {f"{_PARQUET}fieldId.read.enabled": "true"},
    "lost files": {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
    },
    "types": {
        f"{_PARQUET}binaryAsString": "true",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        f"{_PARQUET}inferTimestampNTZ.enabled": "false",
    },
    "case": {"spark.sql.caseSensitive": "true"},
    "checksums": {"parquet.page.verify-checksum.enabled": "true"},
    "rows": {f"{_PARQUET}enableVectorizedReader": "false"},
}

# --- writers -----------------------------------------------------------------------------------


def _arrow(values: list[Any], kind: pa.DataType, **how: Any) -> Writer:
    def write(_: SparkSession, root: Path) -> None:
        column = (
            pa.array(values).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)
        )
        ids = pa.array(range(6), pa.int64())
        fields = [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("c", kind, metadata={"PARQUET:field_id": "2"}),
        ]
        table = pa.Table.from_arrays([ids, column], schema=pa.schema(fields))
        pq.write_table(table, root / "0.parquet", **how)

    return write


def _naive(values: list[dt.datetime]) -> list[dt.datetime]:
    return [value.replace(tzinfo=None) for value in values]


def _legacy_spark(spark: SparkSession, root: Path) -> None:
    legacy = {
        f"{_PARQUET}datetimeRebaseModeInWrite": "LEGACY",
        f"{_PARQUET}int96RebaseModeInWrite": "LEGACY",
        f"{_PARQUET}outputTimestampType": "INT96",
    }
    with temporary_settings(spark, legacy):
        rows = spark.range(6).selectExpr("id", "timestamp'0001-01-05 12:00:00' AS c")
        rows.coalesce(1).write.mode("overwrite").parquet(str(root))


_INT96 = {"use_deprecated_int96_timestamps": True}
WRITERS: dict[str, Writer] = {
    "int96": _arrow(_naive(_RECENT), pa.timestamp("us"), **_INT96),
    "old int96": _arrow(_naive(_OLD), pa.timestamp("us"), **_INT96),
    "millis": _arrow(_RECENT, pa.timestamp("ms", "UTC")),
    "old micros": _arrow(_OLD, pa.timestamp("us", "UTC")),
    "local micros": _arrow(_naive(_RECENT), pa.timestamp("us")),
    "nanos": _arrow(_RECENT, pa.timestamp("ns", "UTC")),
    "old dates": _arrow([value.date() for value in _OLD], pa.date32()),
    "binary": _arrow([b"a%d" % n for n in range(6)], pa.binary()),
    "doubles": _arrow([0.0, -0.0, float("nan"), 1.0, float("inf"), None], pa.float64()),
    "legacy Spark": _legacy_spark,
}

# --- statements, each about the row of one id ----------------------------------------------------


def _sql(text: str) -> Statement:
    def run(spark: SparkSession, path: str) -> object:
        return spark.sql(text.format(t=f"delta.`{path}`", touched=TOUCHED)).collect()

    return run


def _merge(condition: str) -> Statement:
    def run(spark: SparkSession, path: str) -> object:
        source = spark.createDataFrame([(TOUCHED,), (99,)], "i bigint").alias("s")
        table = DeltaTable.forPath(spark, path).alias("t")
        merge = table.merge(source, "t.id = s.i")
        return merge.whenMatchedDelete(condition).execute()

    return run


STATEMENTS: dict[str, Statement] = {
    "delete": lambda spark, path: DeltaTable.forPath(spark, path).delete(f"id = {TOUCHED}"),
    "update": lambda spark, path: DeltaTable.forPath(spark, path).update(
        f"id = {TOUCHED}", {"id": f"{TOUCHED}"}
    ),
    "merge": _merge("t.id > 0"),
    "merge by value": _merge("t.c IS NOT NULL"),
    "optimize": lambda spark, path: DeltaTable.forPath(spark, path).optimize().executeCompaction(),
    "zorder": lambda spark, path: DeltaTable.forPath(spark, path).optimize().executeZOrderBy("id"),
}
REFUSED = ("nanos", False)
"""The writer whose columns CONVERT refuses, as Spark does, where they are not read as numbers."""
_EVERY = list(product(SETTINGS, WRITERS))
_SAMPLE = [("conversion", "int96"), ("times legacy", "old int96"), ("types", "nanos")]
_OF_THE_SAMPLE = ("update", "merge by value")


def _rows(spark: SparkSession, path: str) -> list[tuple[object, str]]:
    """Return the rows as this session reads them, as text that tells -0.0 and NaN."""
    rows = puredelta.read(spark, path).where(f"id <> {TOUCHED}").selectExpr("id", "string(c)")
    return sorted((row[0], row[1]) for row in rows.collect())


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    with temporary_settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        yield spark


def _check(
    spark: SparkSession, root: Path, case: tuple[str, str], statements: Iterable[str]
) -> None:
    settings, writer = case
    with temporary_settings(spark, SETTINGS[settings]):
        table = root / "table"
        table.mkdir()
        WRITERS[writer](spark, table)
        if (writer, settings == "types") == REFUSED:
            with pytest.raises(DeltaError):
                DeltaTable.convertToDelta(spark, f"parquet.`{table}`")
            return
        DeltaTable.convertToDelta(spark, f"parquet.`{table}`")
        plain = spark.read.parquet(str(table))
        rows = plain.where(f"id <> {TOUCHED}").selectExpr("id", "string(c)").collect()
        before = sorted((row[0], row[1]) for row in rows)
        assert _rows(spark, str(table)) == before
        for name in statements:
            path = str(shutil.copytree(table, root / name))
            STATEMENTS[name](spark, path)
            assert _rows(spark, path) == before, name
        _check_source(spark, plain, root / "target", before)


def _check_source(spark: SparkSession, rows: DataFrame, target: Path, wanted: list[Any]) -> None:
    """The rows of the files are those that a MERGE inserts."""
    puredelta.write(rows.limit(0), str(target))
    table = DeltaTable.forPath(spark, str(target)).alias("t")
    table.merge(rows.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert _rows(spark, str(target)) == wanted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", _SAMPLE, ids="-".join)
def test_rows_that_no_statement_touches_are_the_same(
    new_york: SparkSession, tmp_path: Path, case: tuple[str, str]
) -> None:
    _check(new_york, tmp_path, case, _OF_THE_SAMPLE)


@pytest.mark.thorough
@pytest.mark.parametrize("case", _EVERY, ids="-".join)
def test_the_same_of_every_setting_and_writer(
    new_york: SparkSession, tmp_path: Path, case: tuple[str, str]
) -> None:
    _check(new_york, tmp_path, case, STATEMENTS)


def test_commands_see_lost_files_and_queries_agree(spark: SparkSession, tmp_path: Path) -> None:
    """S5: a mark too low and a constraint that old rows break were the result."""
    path = str(tmp_path / "t")
    for first in (0, 100):
        rows = spark.range(first, first + 3)
        puredelta.write(rows.coalesce(1), path, mode="append")
    lost = max(tmp_path.rglob("*.parquet"), key=lambda file: file.stat().st_mtime)
    with temporary_settings(spark, SETTINGS["lost files"]):
        lost.unlink()
        read = puredelta.read(spark, path)
        assert read.count() == len(read.collect()) == 3
        assert read.agg({"id": "max"}).first()[0] == max(row.id for row in read.collect())
        with pytest.raises(DeltaError, match=lost.name):
            puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (id < 50)")


@pytest.mark.parametrize("setting", ["ignoreMissingFiles", "ignoreCorruptFiles"])
def test_a_mark_is_not_set_without_a_file(
    spark: SparkSession, tmp_path: Path, setting: str
) -> None:
    path = str(tmp_path / "t")
    puredelta.sql(
        spark,
        f"CREATE TABLE delta.`{path}` (n BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT) "
        "USING delta",
    )
    for number in (5, 100):
        puredelta.sql(spark, f"INSERT INTO delta.`{path}` VALUES ({number}, 0)")
    newest = max(tmp_path.rglob("*.parquet"), key=lambda file: file.stat().st_mtime)
    with temporary_settings(spark, {f"spark.sql.files.{setting}": "true"}):
        if setting == "ignoreMissingFiles":
            newest.unlink()
        else:
            newest.write_bytes(b"PAR1")
        with pytest.raises(DeltaError, match=newest.name):
            puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN n SYNC IDENTITY")
    assert TableLog.open(path).latest_version() == 2


def _flipped(spark: SparkSession, root: Path) -> Path:
    """Return a file of six rows of which one bit of a page is wrong; Arrow reads all of them."""
    root.mkdir()
    rows = spark.range(6).selectExpr("id", "id AS c")
    rows.coalesce(1).write.mode("append").option("parquet.enable.dictionary", "false").option(
        "compression", "none"
    ).parquet(str(root))
    [file] = root.glob("*.parquet")
    data = bytearray(file.read_bytes())
    at = bytes(data).index((5).to_bytes(8, "little"))
    data[at + 2] ^= 1
    file.write_bytes(data)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return file


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["delete", "update", "merge", "merge by value", "optimize"])
def test_a_page_with_a_wrong_checksum_is_not_copied(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    file = _flipped(spark, tmp_path / "t")
    path = str(file.parent)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    puredelta.write(spark.range(6, 9).selectExpr("id", "id AS c").coalesce(1), path, mode="append")
    with temporary_settings(spark, SETTINGS["checksums"]):
        with pytest.raises(Exception, match=r"CRC checksum|cannot be read"):
            spark.read.parquet(path).collect()
        with pytest.raises(DeltaError, match="cannot be read"):
            STATEMENTS[name](spark, path)
    assert TableLog.open(path).latest_version() == 1
    STATEMENTS[name](spark, path)  # Spark reads it, too, unless it is asked to look


def test_rows_that_a_filter_of_the_session_hides_are_not_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop's key holds a filter for every read without one of its own."""
    path = str(tmp_path / "t")
    for first in (0, 2**40):
        puredelta.write(spark.range(first, first + 3).coalesce(1), path, mode="append")
    filter_api = spark._jvm.org.apache.parquet.filter2.predicate.FilterApi
    predicate = filter_api.gt(filter_api.longColumn("id"), 2**35)
    packed = spark._jvm.org.apache.hadoop.conf.Configuration(False)
    spark._jvm.org.apache.parquet.hadoop.ParquetInputFormat.setFilterPredicate(packed, predicate)
    key = "parquet.private.read.filter.predicate"
    with temporary_settings(spark, {key: packed.get(key)}):
        rows = puredelta.read(spark, path)
        assert (
            len(rows.collect())
            == len(spark.read.option("recursiveFileLookup", "true").parquet(path).collect())
            == 3
        )
        for run in STATEMENTS.values():
            with pytest.raises(DeltaError, match=key):
                run(spark, path)
    assert puredelta.read(spark, path).count() == 6


@pytest.mark.thorough
def test_comparisons_of_versions_see_lost_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for first in (0, 100):
        puredelta.write(spark.range(first, first + 3).coalesce(1), path, mode="append")
    lost = max(tmp_path.rglob("*.parquet"), key=lambda file: file.stat().st_mtime)
    held = lost.read_bytes()
    for harm in (lost.unlink, lambda: lost.write_bytes(held[:-20])):
        harm()
        with temporary_settings(spark, SETTINGS["lost files"]):
            for rows in (diff(spark, path, 0, 1), blame(spark, path), blame(spark, path, "id > 0")):
                with pytest.raises(Exception, match=lost.name):
                    rows.collect()
