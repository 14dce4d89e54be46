"""Bloom filters of new data files: those that a table property names, and those of copied files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.paths import decode_path
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.store.local import LocalStore
from puredelta.worker.data_files.write_file import known_options
from puredelta.worker.lookup.bloom_filters import KeyHashes, filter_words

COLUMNS = "id BIGINT, u STRING, d DATE, v BIGINT"
ROW = "id, concat('u', id) u, date_add(DATE'2024-01-01', cast(id AS INT)) d, id v"
PROPERTIES = "'puredelta.bloomFilter.columns' = 'ID, `u`, d, nope, s.x'"


@pytest.fixture(autouse=True)
def _arrow_writes_filters() -> None:
    if not known_options(bloom_filter_options={}):
        pytest.skip("this Arrow writes no Bloom filter")


def filtered(path: Path, column: str) -> bool:
    """Tell whether each row group of a file has a filter of a column, which is right."""
    metadata = pq.read_metadata(path)
    number = metadata.schema.names.index(column)
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(number)
        if not chunk.bloom_filter_length:
            return False
        at = chunk.bloom_filter_offset
        words = filter_words(path.read_bytes()[at : at + chunk.bloom_filter_length])
        assert words is not None
        values = pq.ParquetFile(path).read_row_group(group, [column])[column].combine_chunks()
        for value in values:
            one = pa.array([value.as_py()], values.type)
            assert KeyHashes(one).might_be_in(words, chunk.physical_type)
        others = pa.array([f"other {n}" for n in range(100)])
        if column == "u":
            misses = sum(
                KeyHashes(others.slice(n, 1)).might_be_in(words, chunk.physical_type)
                for n in range(100)
            )
            assert misses < 5
    return True


def files_of(root: Path) -> list[tuple[Path, dict[str, str]]]:
    """Return the active files and the stored names of columns by their names."""
    snapshot = TableLog(LocalStore(str(root))).snapshot()
    names = {
        field.name: snapshot.config.physical_name(field.name)
        for field in snapshot.config.schema.fields
    }
    return [(root / decode_path(add.path), names) for add in snapshot.files.adds()]


def check(root: Path) -> None:
    files = files_of(root)
    assert files
    for path, names in files:
        assert all(filtered(path, names[name]) for name in ("id", "u", "d")), path
        assert not filtered(path, names["v"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("io", ["auto", "arrow"])
def test_every_statement_writes_them(
    spark: SparkSession, tmp_path: Path, mode: str, io: str
) -> None:
    root = tmp_path / "t"
    table = f"delta.`{root}`"
    merged = f"SELECT {ROW} FROM range(15, 25)"
    statements = [
        f"INSERT INTO {table} SELECT {ROW} FROM range(20)",
        f"DELETE FROM {table} WHERE id = 3",
        f"UPDATE {table} SET v = -1 WHERE id = 4",
        f"UPDATE {table} SET u = 'new' WHERE id = 5",
        f"""MERGE INTO {table} t USING ({merged}) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET v = s.v + 1 WHEN NOT MATCHED THEN INSERT *""",
        f"MERGE INTO {table} t USING ({merged}) s ON t.u = s.u WHEN MATCHED THEN DELETE",
        f"INSERT INTO {table} SELECT {ROW} FROM range(30, 32)",
        f"OPTIMIZE {table}",
    ]
    with temporary_settings(spark, {"spark.puredelta.io": io}):
        puredelta.sql(
            spark,
            f"CREATE TABLE {table} ({COLUMNS}) USING delta TBLPROPERTIES "
            f"({PROPERTIES}, 'delta.columnMapping.mode' = '{mode}')",
        )
        for statement in statements:
            puredelta.sql(spark, statement)
            check(root)
        assert puredelta.read(spark, str(root)).count() == 16


def test_a_renamed_column_keeps_its_filters(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = f"delta.`{root}`"
    properties = f"{PROPERTIES}, 'delta.columnMapping.mode' = 'name'"
    for statement in (
        f"CREATE TABLE {table} ({COLUMNS}, w BIGINT) USING delta TBLPROPERTIES ({properties})",
        f"ALTER TABLE {table} RENAME COLUMN id TO `a.b`",
        f"ALTER TABLE {table} DROP COLUMN w",
        f"ALTER TABLE {table} DROP COLUMN d",
        f"INSERT INTO {table} VALUES (1, 'u', 2)",
    ):
        puredelta.sql(spark, statement)
    snapshot = TableLog(LocalStore(str(root))).snapshot()
    assert snapshot.metadata.configuration["puredelta.bloomFilter.columns"] == "`a.b`,u,nope,s.x"
    ((path, _),) = [(root / decode_path(add.path), add) for add in snapshot.files.adds()]
    assert filtered(path, snapshot.config.physical_name("a.b"))


def test_copies_keep_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    rows = spark.sql(f"SELECT {ROW} FROM range(50)").coalesce(1)
    options = {f"parquet.bloom.filter.enabled#{name}": "true" for name in ("id", "u", "d")}
    options["parquet.bloom.filter.max.bytes"] = "1024"
    puredelta.write(rows, str(root), options=options)
    check(root)
    for statement in ("DELETE FROM {} WHERE id = 3", "UPDATE {} SET u = 'x' WHERE id = 7"):
        puredelta.sql(spark, statement.format(f"delta.`{root}`"))
        check(root)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("columns", "a,,b"),
        ("fpp", "0"),
        ("fpp", "1"),
        ("fpp", "x"),
        ("fpp", "nan"),
        ("fpp", "1e-300"),
    ],
)
def test_refused_texts(spark: SparkSession, tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match="needs to be a"):
        puredelta.sql(
            spark,
            f"CREATE TABLE delta.`{tmp_path}/t` (id INT) USING delta "
            f"TBLPROPERTIES ('puredelta.bloomFilter.{name}' = '{text}')",
        )
