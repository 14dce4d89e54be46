"""Types that Spark alone knows: variants, and texts with a collation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.api import read, write
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def variants(spark: SparkSession, first: int, end: int) -> DataFrame:
    text = "concat('{\"a\":', id, '}')"
    return spark.range(first, end, 1, 1).selectExpr(
        "id", f"parse_json({text}) v", f"named_struct('w', array(parse_json({text}))) st"
    )


def texts(spark: SparkSession, path: str) -> list[tuple[int, str, str]]:
    rows = read(spark, path).selectExpr("id", "to_json(v)", "to_json(st.w[0])").orderBy("id")
    return [tuple(row) for row in rows.collect()]


def test_variants_are_written_read_and_merged(spark: SparkSession, path: str) -> None:
    write(variants(spark, 0, 6), path)
    protocol = TableLog.open(path).snapshot().protocol
    assert "variantType" in (protocol.reader_features or ())
    assert "variantType" in (protocol.writer_features or ())
    assert read(spark, path).where("variant_get(v, '$.a', 'int') = 3").count() == 1
    table = DeltaTable.forPath(spark, path)
    source = variants(spark, 4, 7).withColumn("v", F.expr("parse_json('[1]')"))
    (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    table.delete("id = 0")
    table.update("id = 1", {"v": "parse_json('null')"})
    table.optimize().executeCompaction()
    assert texts(spark, path) == [
        (1, "null", '{"a":1}'),
        *((n, f'{{"a":{n}}}', f'{{"a":{n}}}') for n in (2, 3)),
        *((n, "[1]", f'{{"a":{n}}}') for n in (4, 5, 6)),
    ]


def test_a_variant_partitions_nothing(spark: SparkSession, path: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        write(variants(spark, 0, 1), path, partition_by="v")
    assert error.value.code is ErrorCode.INVALID_PARTITION_COLUMN_TYPE
    assert not Path(path).exists()


def test_shredded_variants_are_read(spark: SparkSession, path: str) -> None:
    if spark.version.startswith("4.0."):
        pytest.skip("Spark 4.0 refuses shredded files")
    settings = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.forceShreddingSchemaForTest": "a int",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        variants(spark, 0, 4).select("id", "v").write.parquet(path)
    finally:
        for key in settings:
            spark.conf.unset(key)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    DeltaTable.forPath(spark, path).delete("id = 2")
    rows = read(spark, path).selectExpr("id", "to_json(v)").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(n, f'{{"a":{n}}}') for n in (0, 1, 3)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["none", "name"])
def test_texts_are_compared_by_their_collation(spark: SparkSession, path: str, mode: str) -> None:
    rows = spark.sql(
        "SELECT id, s COLLATE utf8_lcase s, named_struct('x', s COLLATE unicode_ci) st, "
        "array(s COLLATE utf8_lcase) a "
        "FROM VALUES (1L, 'AbC'), (2L, 'abc'), (3L, 'ZZZ'), (4L, 'zz') AS t(id, s)"
    )
    properties = {"delta.columnMapping.mode": mode}
    if mode == "none":  # other writers name the feature, delta-spark does not
        properties["delta.feature.collations-preview"] = "supported"
    write(rows.coalesce(1), path, properties=properties)
    assert TableLog.open(path).snapshot().config.supports("collations-preview") is (mode == "none")
    table = read(spark, path)
    kinds = table.schema.simpleString()
    assert kinds.count("UTF8_LCASE") == 2
    assert "UNICODE_CI" in kinds
    for condition, count in (
        ("s = 'ABC'", 2),
        ("st.x = 'aBc'", 2),
        ("s > 'B'", 2),  # byte by byte 'abc' is above, too
        ("s >= 'zzz'", 1),
        ("array_contains(a, 'ABC')", 2),
    ):
        assert table.where(condition).count() == count, condition
    assert table.groupBy("s").count().count() == 3
    source = spark.sql("SELECT 9L id, 'ABC' COLLATE utf8_lcase s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.s = s.s")
    merge.whenMatchedUpdate(set={"id": "s.id"}).execute()
    DeltaTable.forPath(spark, path).delete("s = 'zzZ'")
    left = read(spark, path).select("id", F.col("s").cast("string")).collect()
    assert sorted(tuple(row) for row in left) == [(4, "zz"), (9, "AbC"), (9, "abc")]


def test_metadata_that_sparks_cannot_hold_stays_in_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's lists are of one kind: a ClassCastException ended each statement."""
    path = str(tmp_path / "t")
    puredelta.write(spark.range(3), path)
    odd = {"a": [1, "x"], "b": None, "c": {"d": [{"e": [1, None]}]}, "g": [], "h": [[1]], "k": [2]}
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = odd
            action["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, actions)) + "\n")
    log.with_suffix(".crc").unlink(missing_ok=True)

    puredelta.write(spark.range(3, 5), path, mode="append")
    puredelta.sql(spark, f"DELETE FROM delta.`{path}` WHERE id = 1")
    puredelta.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMN z INT")
    found = puredelta.read(spark, path)
    assert sorted(row.id for row in found.collect()) == [0, 2, 3, 4]
    assert found.schema["id"].metadata == {"b": None, "c": {"d": [{}]}, "g": [], "k": [2]}
    field = TableLog.open(path).snapshot().config.schema.fields[0]
    assert dict(field.metadata) == odd


@pytest.mark.parametrize(
    ("value", "words"), [("x" * 300, "302 bytes long"), ("a\0b", "has the character NUL")]
)
def test_a_partition_value_that_makes_no_directory_is_named(
    spark: SparkSession, tmp_path: Path, value: str, words: str
) -> None:
    rows = spark.createDataFrame([(1, "ok"), (2, value)], "id INT, p STRING")
    with pytest.raises(DeltaError, match=f"of the column 'p' .*{words}"):
        write(rows, str(tmp_path / "t"), partition_by="p")
    assert not [*tmp_path.rglob("*.parquet")]
