"""Options that change no row: how files are cut and compressed, ``dataChange`` (M-141, M-143)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from puredelta.api import read, read_changes, write
from puredelta.commands.file_options import file_options
from puredelta.commands.write.options import WriteOptions
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.protocol.features.properties import TableProperties
from puredelta.tables import DeltaTable

SESSION = "spark.databricks.delta.optimizeWrite.enabled"
TABLE = "delta.autoOptimize.optimizeWrite"


def rows(spark: SparkSession, count: int = 40) -> DataFrame:
    """4 tasks, each with rows of 4 partitions."""
    return spark.sql(f"SELECT id, id % 4 AS p, concat('text ', id) s FROM range(0, {count}, 1, 4)")


def files(path: str) -> list[str]:
    return [add.path for add in TableLog.open(path).snapshot().files.adds()]


def file_rows(path: str) -> list[int]:
    """Of the active files, by their footers."""
    return sorted(pq.read_metadata(f"{path}/{name}").num_rows for name in files(path))


def codecs(path: str) -> set[str]:
    footers = (pq.read_metadata(f"{path}/{name}") for name in files(path))
    return {footer.row_group(0).column(0).compression for footer in footers}


@pytest.fixture(params=["spark", "arrow"])
def writer(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    """Both ways to write data files."""
    spark.conf.set("spark.puredelta.io", request.param)
    yield request.param
    spark.conf.unset("spark.puredelta.io")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def test_files_have_so_many_rows_and_the_codec_of_the_option(
    spark: SparkSession, path: str, writer: str
) -> None:
    options = {"maxRecordsPerFile": 4, "COMPRESSION": "zstd"}
    write(rows(spark), path, options=options)
    assert file_rows(path) == [2] * 4 + [4] * 8
    assert codecs(path) == {"ZSTD"}
    write(rows(spark), path, mode="append")
    assert max(file_rows(path)) == 10  # the option was one write's
    assert codecs(path) == {"ZSTD", "SNAPPY"}


@pytest.mark.sampled(2)
def test_an_optimized_write_brings_partitions_together(
    spark: SparkSession, path: str, writer: str
) -> None:
    write(rows(spark), path, partition_by="p")
    assert len(files(path)) == 16
    write(rows(spark), path, mode="overwrite", options={"optimizeWrite": True})
    assert file_rows(path) == [10] * 4
    plain = f"{path}-plain"
    write(rows(spark), plain, options={"optimizeWrite": "true", "maxRecordsPerFile": "30"})
    assert file_rows(plain) == [10, 30]
    assert spark.conf.get("spark.sql.adaptive.coalescePartitions.parallelismFirst") == "true"


def test_a_bin_has_a_size(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.databricks.delta.optimizeWrite.binSize", "64KB")
    spark.conf.set("spark.sql.shuffle.partitions", "16")
    try:
        many = spark.sql("SELECT id, sha2(string(id), 256) s FROM range(0, 8000, 1, 16)")
        write(many, path, options={"optimizeWrite": True})
    finally:
        spark.conf.unset("spark.databricks.delta.optimizeWrite.binSize")
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert 3 <= len(files(path)) <= 15  # neither a file per task nor one of all


def test_the_option_wins_over_the_session_and_that_over_the_table() -> None:
    table = TableProperties.of({TABLE: "true"})
    off, on = {SESSION: "false"}, {SESSION: "true"}
    assert file_options({}, table).bin_bytes == 512 * 1024 * 1024
    assert file_options(off, table).bin_bytes is None
    assert file_options(on, TableProperties.of({})).bin_bytes is not None
    option = WriteOptions.parse(off, {"optimizeWrite": "true"}).file_settings
    assert file_options({**off, **option}, table).bin_bytes is not None


def test_the_codec_of_the_option_wins_over_the_table_and_that_over_the_session() -> None:
    table = TableProperties.of({"delta.parquet.compression.codec": "gzip"})
    session = {"spark.sql.parquet.compression.codec": "zstd"}
    assert file_options(session, table).codec == "gzip"
    assert file_options(session, TableProperties.of({})).codec is None
    option = WriteOptions.parse(session, {"compression": "none"}).file_settings
    assert file_options({**session, **option}, table).codec == "none"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"optimizeWrite": "maybe"}, "maybe"),
        ({"dataChange": "maybe"}, "maybe"),
        ({"maxRecordsPerFile": "x"}, "'x'"),
        ({"compresion": "zstd"}, "compresion"),
    ],
)
def test_what_is_no_value_is_refused(options: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named) as error:
        WriteOptions.parse({}, options)
    assert error.value.code is ErrorCode.INVALID_WRITE_OPTION


def test_properties_are_checked_and_keep_the_case_of_their_names() -> None:
    found = WriteOptions.parse({}, {"Delta.AppendOnly": True})
    assert found.properties == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("delta.apendOnly", "true", ErrorCode.UNKNOWN_CONFIGURATION),
        ("DELTA.appendOnly", "perhaps", ErrorCode.INVALID_TABLE_PROPERTY),
    ],
)
def test_a_wrong_property_is_refused(name: str, value: str, code: ErrorCode) -> None:
    """As by SQL, and as delta-spark does whether the table is new or not."""
    with pytest.raises(InvalidRequestError, match=name.partition(".")[2]) as error:
        WriteOptions.parse({}, {name: value})
    assert error.value.code is code
    setting = "spark.databricks.delta.allowArbitraryProperties.enabled"
    assert WriteOptions.parse({setting: "true"}, {"delta.mine": "1"}).properties == {
        "delta.mine": "1"
    }


@pytest.mark.thorough
def test_statements_write_as_session_and_table_say(spark: SparkSession, path: str) -> None:
    write(rows(spark), path, partition_by="p", properties={TABLE: "true"})
    assert len(files(path)) == 4
    table, source = DeltaTable.forPath(spark, path), rows(spark, 80).repartition(4)
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "5")
    try:
        table.alias("t").merge(source.alias("s"), "t.id = s.id AND t.p = s.p").whenMatchedUpdate(
            set={"s": "'changed'"}
        ).whenNotMatchedInsertAll().execute()
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    assert file_rows(path) == [5] * 16
    table.update("id < 8", {"s": "'again'"})
    assert read(spark, path).where("s = 'again'").count() == 8


def test_copies_of_files_take_the_codec_of_the_table(spark: SparkSession, path: str) -> None:
    write(rows(spark).coalesce(1), path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 3")
    assert codecs(path) == {"SNAPPY"}
    other = f"{path}-zstd"
    write(
        rows(spark).coalesce(1),
        other,
        options={"compression": "gzip"},
        properties={"delta.parquet.compression.codec": "zstd"},
    )
    assert codecs(other) == {"GZIP"}
    DeltaTable.forPath(spark, other).delete("id = 3")
    assert codecs(other) == {"ZSTD"}


def actions(path: str) -> list[Add | Remove]:
    (commit,) = TableLog.open(path).read_commits(TableLog.open(path).latest_version() - 1)
    return [action for action in commit.actions if isinstance(action, Add | Remove)]


@pytest.mark.thorough
def test_rows_that_are_only_moved_are_no_change(spark: SparkSession, path: str) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write(rows(spark), path, partition_by="p", properties=feed)
    before = sorted(map(tuple, read(spark, path).collect()))
    moved = read(spark, path).where("p = 1").repartition(1)
    write(moved, path, mode="overwrite", options={"replaceWhere": "p = 1", "dataChange": False})
    assert [type(action).__name__ for action in actions(path)].count("Remove") == 4
    assert not any(action.data_change for action in actions(path))
    moved = read(spark, path).where("p = 2").repartition(1)
    dynamic = {"partitionOverwriteMode": "dynamic", "dataChange": "false"}
    write(moved, path, mode="overwrite", options=dynamic)
    write(read(spark, path).repartition(1), path, mode="overwrite", options={"dataChange": False})
    assert not any(action.data_change for action in actions(path))
    assert sorted(map(tuple, read(spark, path).collect())) == before
    assert read_changes(spark, path, starting_version=1).count() == 0
    info = TableLog.open(path).history(limit=1)[0].commit_info
    assert (info.isolation_level, info.operation) == ("SnapshotIsolation", "WRITE")


def test_what_defines_a_table_or_deletes_rows_is_a_change(spark: SparkSession, path: str) -> None:
    unchanged = {"dataChange": "false"}
    attempts = [(rows(spark), "error", {}, ErrorCode.DATA_CHANGE_FALSE)]
    wider = rows(spark).selectExpr("*", "1 AS more")
    attempts += [
        (wider, "append", {"mergeSchema": "true"}, ErrorCode.DATA_CHANGE_FALSE),
        (wider, "overwrite", {"overwriteSchema": "true"}, ErrorCode.DATA_CHANGE_FALSE),
        (
            rows(spark),
            "overwrite",
            {"replaceWhere": "id >= 0"},
            ErrorCode.REPLACE_WHERE_WITHOUT_DATA_CHANGE,
        ),
    ]
    for number, (some, mode, options, code) in enumerate(attempts):
        with pytest.raises(DeltaError) as error:
            write(some, path, mode=mode, options={**options, **unchanged})
        assert error.value.code is code
        if number == 0:
            assert not (Path(path) / "_delta_log").exists()
            write(rows(spark), path)
    assert TableLog.open(path).latest_version() == 0
