"""Values that Python has not: texts that are no UTF-8, as those of a Latin-1 file, and years."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, sql, write
from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError

_LATIN, _TORN = "CAST(unhex('FF41') AS STRING)", "CAST(unhex('C328') AS STRING)"
_ROWS = f"SELECT {_LATIN} AS k, 1 AS v UNION ALL SELECT {_TORN}, 2 UNION ALL SELECT 'zz', 3"
_NEW = f"SELECT {_LATIN} AS k, 10 AS v UNION ALL SELECT {_TORN}, 20 UNION ALL SELECT 'new', 30"


def contents(spark: SparkSession, path: Path) -> list[tuple[str, int]]:
    rows = sql(spark, f"SELECT hex(k) AS k, v FROM delta.`{path}`").collect()
    return sorted((row.k, row.v) for row in rows)


def test_keys_are_compared_as_bytes_and_files_are_ordered_by_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    write(spark.sql(_ROWS).coalesce(1), path)
    merged = f"MERGE INTO delta.`{path}` t USING ({_NEW}) s ON t.k = s.k "
    sql(spark, merged + "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *")
    expected = [("6E6577", 30), ("7A7A", 3), ("C328", 20), ("FF41", 10)]
    assert contents(spark, path) == expected
    sql(spark, f"OPTIMIZE delta.`{path}` ZORDER BY (k)")
    assert contents(spark, path) == expected
    sql(spark, f"UPDATE delta.`{path}` SET v = 5 WHERE k >= {_TORN}")
    assert contents(spark, path)[2:] == [("C328", 5), ("FF41", 5)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("workers", ["true", "false"])
def test_a_literal_of_other_bytes_is_no_other_text(
    spark: SparkSession, tmp_path: Path, workers: str
) -> None:
    """Spark shows the replacement character in the place of its bytes."""
    path = tmp_path / "t"
    write(spark.sql("SELECT 'é' AS k, 1 AS v, 2 AS a, 3 AS b, 4 AS c, 5 AS d"), path)
    spark.conf.set("spark.puredelta.workers.enabled", workers)
    try:
        sql(spark, f"UPDATE delta.`{path}` SET v = 5 WHERE k >= {_TORN}")
        assert contents(spark, path) == [("C3A9", 5)]
        sql(spark, f"UPDATE delta.`{path}` SET k = {_TORN} WHERE v = 5")
        assert contents(spark, path) == [("C328", 5)]
        found = sql(spark, f"SELECT count(*) FROM delta.`{path}` WHERE k <= {_LATIN}").first()
        assert found is not None
        assert found[0] == 1
    finally:
        spark.conf.unset("spark.puredelta.workers.enabled")


@pytest.mark.thorough
def test_a_partition_has_the_replacement_character_as_in_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    write(spark.sql(_ROWS), path, partition_by="k")
    merged = f"MERGE INTO delta.`{path}` t USING ({_NEW}) s ON t.k = s.k AND t.v = s.v "
    sql(spark, merged + "WHEN NOT MATCHED THEN INSERT *")
    found = contents(spark, path)
    assert [k for k, _ in found] == ["6E6577", "7A7A", *["EFBFBD28"] * 2, *["EFBFBD41"] * 2]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("partition_by", ["d", ()])
def test_years_that_python_lacks(
    spark: SparkSession, tmp_path: Path, partition_by: str | tuple[str, ...], kind: str
) -> None:
    path = tmp_path / "t"
    years = {"0000-01-01": 1, "+12345-01-01": 2, "2024-01-01": 3}
    rows = " UNION ALL ".join(f"SELECT '{day}' AS d, {v} AS v" for day, v in years.items())
    rows = f"SELECT CAST(d AS {kind}) AS d, v FROM ({rows})"
    write(spark.sql(rows), path, partition_by=partition_by)
    sql(
        spark,
        f"MERGE INTO delta.`{path}` t USING ({rows}) s ON t.d = s.d "
        "WHEN MATCHED AND s.v = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v * 10",
    )
    found = sql(spark, f"SELECT CAST(d AS STRING) AS d, v FROM delta.`{path}`").collect()
    assert sorted((row.v, row.d[:7]) for row in found) == [(20, "+12345-"), (30, "2024-01")]


@pytest.mark.parametrize("name", [b"a\xff.parquet", b"k=\xff/a.parquet"])
def test_a_file_whose_name_is_no_utf8_is_not_converted(
    spark: SparkSession, tmp_path: Path, name: bytes
) -> None:
    file = Path(str(tmp_path), name.decode(errors="surrogateescape"))
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"v": [1]}), str(tmp_path / "x"))
    (tmp_path / "x").rename(file)
    with pytest.raises(UnsupportedError, match=r"udcff.* is no UTF-8") as caught:
        sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path}` PARTITIONED BY (k STRING)")
    assert caught.value.code is ErrorCode.UNSUPPORTED_DATA_FILE


@pytest.mark.thorough
def test_a_column_whose_name_is_no_utf8_has_the_name_that_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"kk": [1, 3], "v": [2, 4]}), file, store_schema=False)
    file.write_bytes(file.read_bytes().replace(b"kk", b"k\xff"))
    by_spark = spark.read.parquet(str(tmp_path)).collect()
    sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path}`")
    assert read(spark, tmp_path).collect() == by_spark
    sql(spark, f"DELETE FROM delta.`{tmp_path}` WHERE v = 2")
    assert [tuple(row) for row in read(spark, tmp_path).collect()] == [(3, 4)]


@pytest.mark.parametrize("option", ["userMetadata", "replaceWhere", "txnAppId"])
def test_half_of_a_surrogate_pair_is_refused_with_a_code(
    spark: SparkSession, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "t"
    write(spark.range(1), path)
    options = {option: "id <> 'a\ud800'" if option == "replaceWhere" else "a\ud800"}
    options |= {"txnVersion": "1"} if option == "txnAppId" else {}
    with pytest.raises(InvalidRequestError, match="surrogate pair") as caught:
        write(spark.range(1), path, mode="overwrite", options=options)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    with pytest.raises(InvalidRequestError, match="surrogate pair"):
        sql(spark, f"DELETE FROM delta.`{path}` WHERE id = '\ud800'")
    with pytest.raises(InvalidRequestError, match="is not the location of a table"):
        write(spark.range(1), tmp_path / "\ud800")
