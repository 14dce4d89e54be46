"""Exported versions of tables of all features, as every reader of Iceberg sees them.

`make iceberg` runs it, in an environment with DuckDB's extensions and a PySpark that Iceberg's JAR
supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

pytest.importorskip("pyiceberg")
import puredelta
from puredelta import iceberg
from tests.iceberg.tables import comparable, duckdb_rows, exported_versions, iceberg_rows

pytestmark = pytest.mark.iceberg

Step: TypeAlias = "str | Callable[[SparkSession, Path], object]"

_TYPES = """id BIGINT, b BOOLEAN, y TINYINT, h SMALLINT, i INT, f FLOAT, d DOUBLE, n DECIMAL(10,2),
    w DECIMAL(38,18), s STRING, x BINARY, t DATE, z TIMESTAMP, l TIMESTAMP_NTZ"""
_VALUES = """true, 1Y, 2S, 3, 1.5F, -2.25D, 12.34, 1e-18BD, 'ä', X'00FF', DATE'0001-01-01',
    TIMESTAMP'2024-02-29 12:00:00.123456Z', TIMESTAMP_NTZ'1900-01-01 00:00:00.000001'"""
_VECTORS = "'delta.enableDeletionVectors' = 'true'"
_MAPPED = "'delta.columnMapping.mode' = 'name'"
_COMPAT = "'delta.enableIcebergCompatV2' = 'true'"


def _create(columns: str, *properties: str, then: str = "") -> str:
    listed = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta {then} {listed}"


def _range(start: int, end: int, expressions: str = "id") -> str:
    return f"INSERT INTO {{t}} SELECT {expressions} FROM range({start}, {end}, 1, 2)"


def _merge(source: str, *clauses: str) -> str:
    return f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id {' '.join(clauses)}"


_UPSERT = _merge(
    "SELECT id, id % 3 p FROM range(5, 15)",
    "WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET p = s.p + 100",
    "WHEN NOT MATCHED THEN INSERT *",
)


def _from_parquet(spark: SparkSession, path: Path) -> None:
    spark.range(20).selectExpr("id", "id % 3 p", "cast(id AS STRING) s").write.partitionBy(
        "p"
    ).parquet(str(path))


def _stream(spark: SparkSession, path: Path) -> None:
    source = str(path.with_name("source"))
    spark.range(9).selectExpr("id", "id % 3 p").write.parquet(source)
    rows = spark.readStream.schema("id BIGINT, p BIGINT").parquet(source)
    batches = rows.writeStream.foreachBatch(
        lambda batch, _: puredelta.write(batch, str(path), mode="append")
    )
    checkpoint = str(path.with_name("checkpoint"))
    query = batches.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


def _replace(spark: SparkSession, path: Path, column: str, *partition_by: str) -> None:
    rows = spark.range(10).selectExpr("id", column)
    options = {"overwriteSchema": True}
    puredelta.write(rows, str(path), mode="overwrite", partition_by=partition_by, options=options)


TABLES: dict[str, list[Step]] = {
    "types": [_create(_TYPES), f"INSERT INTO {{t}} VALUES (1, {_VALUES}), (2{', NULL' * 13})"],
    "partitions": [
        _create("id BIGINT, p STRING, q DATE", then="PARTITIONED BY (p, q)"),
        "INSERT INTO {t} VALUES (1, 'a b/ä%=', DATE'2024-01-01'), (2, NULL, NULL)",
        "INSERT INTO {t} VALUES (3, 'a', NULL), (4, '', DATE'0001-01-01')",
        "DELETE FROM {t} WHERE q = DATE'2024-01-01'",
    ],
    "partitions of numbers": [
        _create("id BIGINT, p INT, q DECIMAL(10,2), r BOOLEAN", then="PARTITIONED BY (p, q, r)"),
        _range(0, 9, "id, id % 2, id % 3 / 2, id % 2 = 0"),
        "UPDATE {t} SET q = 7.25 WHERE id = 4",
    ],
    "merge": [_create("id BIGINT, p BIGINT"), _range(0, 10, "id, id"), _UPSERT],
    "update and delete": [
        _create("id BIGINT, s STRING"),
        _range(0, 30, "id, repeat('x', id)"),
        "UPDATE {t} SET s = NULL WHERE id % 7 = 0",
        "DELETE FROM {t} WHERE id > 20",
    ],
    "vectors": [
        _create("id BIGINT, p BIGINT", _VECTORS),
        _range(0, 20, "id, id"),
        "DELETE FROM {t} WHERE id IN (1, 3, 12)",
        _UPSERT,
        "UPDATE {t} SET p = -1 WHERE id = 0",
        "DELETE FROM {t} WHERE id < 4",
        "REORG TABLE {t} APPLY (PURGE)",
    ],
    "vectors, partitions and mapped columns": [
        _create("id BIGINT, `p x` STRING", _VECTORS, _MAPPED, then="PARTITIONED BY (`p x`)"),
        _range(0, 20, "id, concat('p ', id % 3)"),
        "DELETE FROM {t} WHERE id % 5 = 1",
        "ALTER TABLE {t} RENAME COLUMN `p x` TO `q y`",
        "DELETE FROM {t} WHERE id = 2",
        "OPTIMIZE {t}",
    ],
    "columns renamed, dropped, added": [
        _create("id BIGINT, a STRING, s STRUCT<x: INT, y: INT>", _MAPPED),
        "INSERT INTO {t} VALUES (1, 'one', struct(1, 2))",
        "ALTER TABLE {t} RENAME COLUMN a TO `b c`",
        "ALTER TABLE {t} DROP COLUMN s.x",
        "ALTER TABLE {t} ADD COLUMNS (a INT FIRST, s.z DATE)",
        "INSERT INTO {t} (a, id, `b c`, s) VALUES (5, 2, 'two', struct(3, DATE'2020-01-01'))",
    ],
    "mapping enabled later": [
        _create("id BIGINT, a STRING"),
        "INSERT INTO {t} VALUES (1, 'one')",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({_MAPPED})",
        "ALTER TABLE {t} RENAME COLUMN a TO b",
        "INSERT INTO {t} VALUES (2, 'two')",
    ],
    "mapping by id": [
        _create("id BIGINT, a STRING", "'delta.columnMapping.mode' = 'id'"),
        "INSERT INTO {t} VALUES (1, 'one')",
        "ALTER TABLE {t} RENAME COLUMN a TO b",
        "INSERT INTO {t} VALUES (2, 'two')",
    ],
    "widened types": [
        _create("id INT, n DECIMAL(5,2), f FLOAT", "'delta.enableTypeWidening' = 'true'"),
        "INSERT INTO {t} VALUES (1, 1.25, 0.5)",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "INSERT INTO {t} VALUES (5000000000, 2.5, 0.25)",
        "ALTER TABLE {t} ALTER COLUMN n TYPE DECIMAL(12,2)",
        "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
        "INSERT INTO {t} VALUES (3, 1234567.25, 0.1)",
    ],
    "nested": [
        _create("id BIGINT, s STRUCT<x: INT, d: DATE>, m MAP<STRING, INT>, l ARRAY<INT>"),
        "INSERT INTO {t} VALUES (1, struct(1, NULL), map('k', 1), array(1, NULL))",
        "INSERT INTO {t} VALUES (2, NULL, map(), array()), (3, struct(NULL, NULL), NULL, NULL)",
        "ALTER TABLE {t} ADD COLUMNS (s.new STRING)",
        "INSERT INTO {t} VALUES (4, struct(1, NULL, 'n'), map('k', NULL), NULL)",
    ],
    "nested, compatible": [
        _create("id BIGINT, a ARRAY<STRUCT<x: INT>>, m MAP<STRING, ARRAY<INT>>", _COMPAT),
        "INSERT INTO {t} VALUES (1, array(struct(1), struct(2)), map('k', array(1)))",
        _merge("SELECT 1L id", "WHEN MATCHED THEN UPDATE SET m = map('l', array(2, NULL))"),
        "INSERT INTO {t} VALUES (2, array(), map())",
    ],
    "change feed": [
        _create("id BIGINT, p BIGINT", "'delta.enableChangeDataFeed' = 'true'"),
        _range(0, 10, "id, id"),
        _UPSERT,
        "UPDATE {t} SET p = 0 WHERE id = 2",
    ],
    "row tracking": [
        _create("id BIGINT, p BIGINT", "'delta.enableRowTracking' = 'true'"),
        _range(0, 10, "id, id"),
        _UPSERT,
        "OPTIMIZE {t}",
    ],
    "identity, generated, defaults": [
        _create(
            """k BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT,
            g BIGINT GENERATED ALWAYS AS (id * 2), s STRING DEFAULT 'd'""",
            "'delta.feature.allowColumnDefaults' = 'supported'",
        ),
        "INSERT INTO {t} (id) VALUES (1), (2)",
        "INSERT INTO {t} (id, s) VALUES (3, 'three')",
    ],
    "clustering": [
        _create("id BIGINT, p BIGINT", then="CLUSTER BY (p)"),
        _range(0, 30, "id, id % 7"),
        _range(30, 60, "id, id % 7"),
        "OPTIMIZE {t}",
    ],
    "z-order": [
        _create("id BIGINT, p BIGINT"),
        _range(0, 30, "id, id % 7"),
        _range(30, 60, "id, id % 7"),
        "OPTIMIZE {t} ZORDER BY (p, id)",
    ],
    "constraints and text of a length": [
        _create("id BIGINT NOT NULL, c CHAR(3), v VARCHAR(5)"),
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "INSERT INTO {t} VALUES (1, 'aaa', 'b'), (2, NULL, 'ccccc')",
    ],
    "restore": [
        _create("id BIGINT, p BIGINT"),
        _range(0, 10, "id, id"),
        _UPSERT,
        "RESTORE TABLE {t} TO VERSION AS OF 1",
        _range(20, 22, "id, id"),
    ],
    "shallow clone": [
        lambda spark, path: puredelta.write(spark.range(9), str(path.with_name("source"))),
        "CREATE TABLE {t} SHALLOW CLONE delta.`{source}`",
        "DELETE FROM {t} WHERE id = 3",
        _range(20, 22),
    ],
    "converted": [
        _from_parquet,
        "CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p BIGINT)",
        "UPDATE {t} SET s = 'new' WHERE id < 5",
    ],
    "times in commits, checkpoints of format 2": [
        _create(
            "id BIGINT, p BIGINT",
            "'delta.enableInCommitTimestamps' = 'true'",
            "'delta.checkpointPolicy' = 'v2'",
            "'delta.checkpointInterval' = '2'",
        ),
        _range(0, 10, "id, id"),
        _UPSERT,
        _range(20, 22, "id, id"),
    ],
    "partition columns in files": [
        _create("id BIGINT, p BIGINT", _COMPAT, then="PARTITIONED BY (p)"),
        _range(0, 10, "id, id % 3"),
        "UPDATE {t} SET id = -id WHERE p = 1",
    ],
    "parts replaced": [
        _create("id BIGINT, p BIGINT", then="PARTITIONED BY (p)"),
        _range(0, 10, "id, id % 3"),
        "INSERT INTO {t} REPLACE WHERE p = 1 SELECT id, 1 FROM range(100, 103)",
        "INSERT OVERWRITE {t} PARTITION (p = 2) SELECT id FROM range(5)",
        "TRUNCATE TABLE {t}",
        _range(0, 3, "id, 9"),
    ],
    "partition column whose old name is given again": [
        _create("id BIGINT, p STRING", _MAPPED, _VECTORS, then="PARTITIONED BY (p)"),
        _range(0, 10, "id, concat('p', id % 3)"),
        "ALTER TABLE {t} RENAME COLUMN p TO q",
        "ALTER TABLE {t} ADD COLUMNS (p INT)",
        _range(20, 30, "id, concat('p', id % 3), 5"),
        "DELETE FROM {t} WHERE id IN (2, 22)",
    ],
    "replaced with other partitions": [
        _create("id BIGINT, p STRING, q INT", then="PARTITIONED BY (p)"),
        _range(0, 10, "id, concat('p', id % 3), id % 2"),
        lambda spark, path: _replace(spark, path, "id % 2 q", "q"),
        "DELETE FROM {t} WHERE id = 3",
        lambda spark, path: _replace(spark, path, "cast(id % 2 AS INT) p"),
    ],
    "stream": [_create("id BIGINT, p BIGINT"), _stream, _UPSERT],
    "without rows": [_create("id BIGINT"), "INSERT INTO {t} SELECT id FROM range(0)"],
}


@pytest.fixture(scope="module", autouse=True)
def _times_for_pyiceberg(spark: SparkSession) -> Iterator[None]:
    """pyiceberg reads no times of the kind INT96, which is Spark's default."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    yield
    spark.conf.unset("spark.sql.parquet.outputTimestampType")


def spark_rows(spark: SparkSession, root: Path, snapshot_id: int) -> list[str]:
    """Return the rows of a snapshot as Spark with Iceberg's JAR reads them."""
    reader = spark.read.format("iceberg").option("versionAsOf", snapshot_id)
    return comparable(reader.load(f"{root}/_iceberg").toArrow())


@pytest.mark.parametrize("name", TABLES)
def test_equal_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / "a table"
    names = {"t": f"delta.`{path}`", "path": path, "source": path.with_name("source")}
    exported = None
    for step in TABLES[name]:
        if callable(step):
            step(spark, path)
        else:
            puredelta.sql(spark, step.format_map(names))
        if (path / "_delta_log").is_dir():
            exported = iceberg.export(path)
    assert exported is not None
    versions = exported_versions(exported.metadata_location)
    assert len(versions) >= min(2, len(TABLES[name]) - 1)
    for version, snapshot_id in versions.items():
        wanted = comparable(puredelta.read(spark, str(path), version=version).toArrow())
        assert iceberg_rows(exported.metadata_location, snapshot_id) == wanted, version
        assert spark_rows(spark, path, snapshot_id) == wanted, version
        assert duckdb_rows(path, snapshot_id) == wanted, version
