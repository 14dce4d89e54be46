"""Statistics compared with the rows: of Spark's own files, and of files that lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, sql
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.errors import CorruptTableError, InvalidRequestError
from puredelta.tables import DeltaTable
from tests.commands.convert.directories import write
from tests.commands.convert.spark_directories import settings

TELLING = 0x1122334455667788
"""A number whose eight bytes occur nowhere else in a file."""


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
@pytest.mark.parametrize("rebase", ["LEGACY", "CORRECTED"])
def test_bounds_of_spark_are_true(
    spark: SparkSession, tmp_path: Path, kind: str, rebase: str
) -> None:
    """Times of the Julian calendar, as Spark 2 wrote them, are read as other days."""
    root = tmp_path / "t"
    chosen = {"spark__sql__parquet__outputTimestampType": kind}
    for key in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        chosen[f"spark__sql__parquet__{key}"] = rebase
    rows = """
        select id, array('1001-01-01', '1582-10-04', '1582-10-15', '1900-01-01', '2020-05-06',
            '9999-12-31')[id] as text from range(6)"""
    frame = spark.sql(
        f"""select id, cast(text as date) d, timestamp(text || ' 23:59:59.999999') t,
            named_struct('d', cast(text as date), 'n', cast(id as decimal(38, 18))) s,
            cast(text as timestamp_ntz) ntz, array(id) a
        from ({rows})"""
    )
    with settings(spark, **chosen):
        frame.repartition(6, "id").write.parquet(str(root))
        frame.coalesce(1).write.mode("append").parquet(str(root))
    convert_to_delta(spark, f"parquet.`{root}`", verify=True)
    assert read(spark, root).count() == 12


def lying(root: Path, change: Callable[[bytes], bytes]) -> Path:
    """Write a file whose footer says something else than its pages."""
    table = pa.table({"x": pa.array([1, TELLING, None], pa.int64()), "y": [1, 2, 3]})
    file = write(root, "a.parquet", table, use_dictionary=False, compression="none")
    told, content = TELLING.to_bytes(8, "little"), file.read_bytes()
    end = content.rindex(told) - 64
    file.write_bytes(content[:end] + content[end:].replace(told, change(told)))
    return file


def test_a_wrong_bound_stops_the_conversion(spark: SparkSession, tmp_path: Path) -> None:
    lying(tmp_path, lambda told: (TELLING - 1).to_bytes(len(told), "little"))
    with pytest.raises(CorruptTableError, match="DELTA_WRONG_STATISTICS") as wrong:
        DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}`", verify=True)
    assert (
        f"a.parquet: x has the value {TELLING}, and the statistics say that its maximum is "
        f"{TELLING - 1}"
    ) in str(wrong.value)
    assert not (tmp_path / "_delta_log").exists()


def test_a_wider_bound_is_a_bound(spark: SparkSession, tmp_path: Path) -> None:
    lying(tmp_path, lambda told: (TELLING + 1).to_bytes(len(told), "little"))
    assert convert_to_delta(spark, f"parquet.`{tmp_path}`", verify=True).num_files == 1


@pytest.mark.thorough
def test_partitions_empty_files_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"a.b": [1, 2], "s": [{"x`y": "é" * 50}, None]})
    write(tmp_path, "p=1/100%.parquet", rows)
    write(tmp_path, "p=__HIVE_DEFAULT_PARTITION__/b.parquet", rows.slice(0, 0))
    write(tmp_path, "p=2/c.parquet", rows.select(["a.b"]))
    result = convert_to_delta(spark, f"parquet.`{tmp_path}`", "p int", verify=True)
    assert result.num_files == 3


def test_there_must_be_statistics(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", {"x": [1]})
    with pytest.raises(InvalidRequestError, match="no statistics to verify"):
        convert_to_delta(spark, f"parquet.`{tmp_path}`", collect_stats=False, verify=True)
    assert not (tmp_path / "_delta_log").exists()


def test_as_a_statement(spark: SparkSession, tmp_path: Path) -> None:
    lying(tmp_path, lambda told: (TELLING - 1).to_bytes(len(told), "little"))
    with pytest.raises(CorruptTableError, match="DELTA_WRONG_STATISTICS"):
        sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path}` VERIFY")
