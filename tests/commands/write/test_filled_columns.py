"""M-100 to M-103 and M-106 in MERGE and in writes; delta-spark 4.4.0 gives the same values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
)
from puredelta.tables import DeltaTable
from tests.commands.filled import defaulted, generated, identity, lay_empty

Row = dict[str, Any]


def rows(spark: SparkSession, log: TableLog, *order: str) -> list[Row]:
    return [
        r.asDict(recursive=True) for r in puredelta.read(spark, log.root_uri).sort(*order).collect()
    ]


def target(spark: SparkSession, log: TableLog) -> DeltaTable:
    return DeltaTable.forPath(spark, log.root_uri).alias("t")


def source(spark: SparkSession, sql: str) -> DataFrame:
    return spark.sql(sql).alias("s")


def high_water_mark(log: TableLog, name: str = "id") -> int | None:
    return log.snapshot().config.identity_columns[name].high_water_mark


def tags(log: TableLog) -> Any:
    return log.history(limit=1)[0].commit_info.tags


# --- defaults -------------------------------------------------------------------------------


@pytest.fixture
def with_defaults(tmp_path: Path) -> TableLog:
    char = {"CURRENT_DEFAULT": "'ab'", "__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    return lay_empty(
        tmp_path / "t",
        StructField("a", INTEGER),
        defaulted("b", STRING, "concat('x', 'y')"),
        defaulted("c", LONG, "1 + 1"),
        StructField("e", STRING, metadata=char),
        StructField("n", STRING),
    )


@pytest.mark.smoke
def test_m100_omitted_columns_get_their_defaults(
    spark: SparkSession, with_defaults: TableLog
) -> None:
    log, filled = with_defaults, {"b": "xy", "c": 2, "e": "ab  ", "n": None}
    target(spark, log).merge(source(spark, "select 1 a"), "t.a = s.a").whenNotMatchedInsert(
        values={"a": "s.a"}
    ).execute()
    puredelta.write(spark.sql("select 2 a"), log.root_uri, mode="append")
    assert rows(spark, log, "a") == [{"a": n, **filled} for n in (1, 2)]
    puredelta.write(spark.sql("select 3 a, string(null) b"), log.root_uri, mode="overwrite")
    assert rows(spark, log, "a") == [{"a": 3, **filled, "b": None}]
    new = source(spark, "select 4 a, 'v' n, 5 added")
    target(spark, log).merge(
        new, "t.a = s.a"
    ).whenNotMatchedInsertAll().withSchemaEvolution().execute()
    assert rows(spark, log, "a")[1] == {"a": 4, **filled, "n": "v", "added": 5}
    assert log.snapshot().config.column_defaults["c"] == "1 + 1"


@pytest.mark.thorough
def test_m100_the_default_keyword(spark: SparkSession, with_defaults: TableLog) -> None:
    """delta-spark knows it in UPDATE only; a column of that name wins, as in Spark."""
    log = with_defaults
    puredelta.sql(
        spark,
        f"MERGE INTO delta.`{log.root_uri}` t USING (SELECT 1 a) s ON t.a = s.a "
        "WHEN NOT MATCHED THEN INSERT (a, b, n) VALUES (s.a, DEFAULT, default)",
    )
    matched = target(spark, log).merge(source(spark, "select 1 a, 'own' default"), "t.a = s.a")
    matched.whenMatchedUpdate(set={"b": "default", "c": "7", "n": "'m'"}).execute()
    assert rows(spark, log, "a") == [{"a": 1, "b": "own", "c": 7, "e": "ab  ", "n": "m"}]
    matched = target(spark, log).merge(source(spark, "select 1 a"), "t.a = s.a")
    matched.whenMatchedUpdate(set={"b": "DEFAULT", "c": " default", "n": "DEFAULT"}).execute()
    assert rows(spark, log, "a") == [{"a": 1, "b": "xy", "c": 2, "e": "ab  ", "n": None}]
    for update in ({"b": "DEFAULT || 'x'"}, {"n": "upper(default)"}):
        with pytest.raises(InvalidRequestError) as caught:
            matched.whenMatchedUpdate(set=update).execute()
        assert caught.value.code is ErrorCode.MERGE_UNRESOLVED_EXPRESSION


# --- generated columns ----------------------------------------------------------------------


@pytest.fixture
def with_generated(tmp_path: Path) -> TableLog:
    return lay_empty(
        tmp_path / "t",
        StructField("a", INTEGER),
        StructField("s", StructType((StructField("Y", STRING),))),
        generated("g", INTEGER, "A * 10"),
        generated("h", STRING, "concat(a, S.y)"),
        StructField("ts", TIMESTAMP),
        generated("day", DATE, "CAST(ts AS DATE)"),
        partition_by=["day"],
        properties={"delta.enableChangeDataFeed": "true"},
    )


def given(a: int, y: str, day: int) -> str:
    return f"select {a} a, named_struct('y', '{y}') s, timestamp'2024-01-0{day} 10:00:00' ts"


@pytest.mark.smoke
def test_m101_computed_recomputed_and_checked(
    spark: SparkSession, with_generated: TableLog
) -> None:
    log = with_generated
    puredelta.write(spark.sql(given(1, "p", 1)), log.root_uri, mode="append")
    puredelta.write(spark.sql(given(5, "q", 1)), log.root_uri, mode="append")
    new = spark.sql(f"{given(1, 'u', 2)} union all {given(2, 'i', 3)} union all {given(3, 'j', 3)}")
    (
        target(spark, log)
        .merge(new.alias("s"), "t.a = s.a")
        .whenMatchedUpdate(set={"a": "t.a + 10", "ts": "s.ts", "s.y": "string(t.a)"})
        .whenNotMatchedInsert("s.a = 2", values={"a": "s.a", "s": "s.s", "g": "20"})
        .whenNotMatchedInsert(values={"a": "s.a", "s": "s.s", "ts": "s.ts"})
        .whenNotMatchedBySourceUpdate(set={"a": "6"})
        .execute()
    )
    kept = [(r["a"], r["g"], r["h"], str(r["day"])) for r in rows(spark, log, "a")]
    assert kept == [
        (2, 20, "2i", "None"),
        (3, 30, "3j", "2024-01-03"),
        (6, 60, "6q", "2024-01-01"),
        (11, 110, "111", "2024-01-02"),
    ]
    images = puredelta.read_changes(spark, log.root_uri, starting_version=3)
    after = images.where("_change_type = 'update_postimage'").select("a", "g").collect()
    assert sorted(map(tuple, after)) == [(6, 60), (11, 110)]
    partitions = {a.partition_values["day"] for a in log.snapshot().files.adds()}
    assert partitions == {None, "2024-01-01", "2024-01-02", "2024-01-03"}


def test_m101_wrong_values_are_refused(spark: SparkSession, with_generated: TableLog) -> None:
    log = with_generated
    wrong = spark.sql("select 1 a, 11 g")
    refused = (
        lambda: puredelta.write(wrong, log.root_uri, mode="append"),
        lambda: (
            target(spark, log)
            .merge(wrong.alias("s"), "t.a = s.a")
            .whenNotMatchedInsert(values={"a": "s.a", "g": "s.g"})
            .execute()
        ),
    )
    for attempt in refused:
        with pytest.raises(
            InvalidRequestError, match=r"Generated Column \(g <=> \(A \* 10\)\)"
        ) as c:
            attempt()
        assert c.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
    with pytest.raises(InvalidRequestError, match="Duplicate column names"):  # M-29
        target(spark, log).merge(source(spark, "select 1 a"), "t.a = s.a").whenNotMatchedInsert(
            values={"a": "s.a", "A": "2"}
        ).execute()
    assert log.snapshot().version == 0


def test_m31_views_of_tables_with_generated_columns(
    spark: SparkSession, with_generated: TableLog
) -> None:
    shown = puredelta.read(spark, with_generated.root_uri)
    shown.createOrReplaceTempView("as_it_is")
    shown.select(*reversed(shown.columns)).createOrReplaceTempView("turned_round")
    text = (
        "MERGE INTO {} t USING (SELECT 1 a) s ON t.a = s.a "
        "WHEN NOT MATCHED THEN INSERT (a) VALUES (1)"
    )
    puredelta.sql(spark, text.format("as_it_is"))
    assert rows(spark, with_generated, "a")[0]["g"] == 10
    with pytest.raises(InvalidRequestError, match="Please run the MERGE command") as caught:
        puredelta.sql(spark, text.format("turned_round"))
    assert caught.value.code is ErrorCode.OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS


def test_m55_types_that_an_expression_reads_do_not_change(
    spark: SparkSession, with_generated: TableLog
) -> None:
    for kind in ("smallint", "bigint"):
        with pytest.raises(InvalidRequestError, match=r"g -> A \* 10") as caught:
            puredelta.write(
                spark.sql(f"select cast(1 as {kind}) a"), with_generated.root_uri, mode="append"
            )
        assert caught.value.code is ErrorCode.GENERATED_COLUMNS_DATA_TYPE_MISMATCH


@pytest.mark.thorough
def test_m101_a_generated_column_sees_defaults_and_cast_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = lay_empty(
        tmp_path / "t",
        StructField("a", INTEGER),
        defaulted("b", INTEGER, "5"),
        generated("g", INTEGER, "b * 2"),
    )
    merging = target(spark, log).merge(source(spark, "select 1 a, 1.6D b"), "t.a = s.a")
    merging.whenNotMatchedInsert(values={"a": "s.a"}).execute()
    assert rows(spark, log, "a") == [{"a": 1, "b": 5, "g": 10}]
    merging.whenMatchedUpdate(set={"b": "s.b", "g": "DEFAULT"}).execute()
    assert rows(spark, log, "a") == [{"a": 1, "b": 1, "g": 2}]


def test_m108_an_empty_generated_partition_value_is_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = lay_empty(
        tmp_path / "t",
        StructField("b", STRING),
        generated("p", STRING, "substring(b, 1, 1)"),
        partition_by=["p"],
    )
    puredelta.write(spark.sql("select '' b union all select 'xy'"), log.root_uri, mode="append")
    assert rows(spark, log, "b") == [{"b": "", "p": None}, {"b": "xy", "p": "x"}]


# --- identity columns -----------------------------------------------------------------------


@pytest.mark.smoke
def test_m102_values_follow_the_high_water_mark(spark: SparkSession, tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id", start=10, step=5), StructField("k", LONG))
    puredelta.write(
        spark.range(0, 4, 1, 2).withColumnRenamed("id", "k"), log.root_uri, mode="append"
    )
    assert [(r["id"], r["k"]) for r in rows(spark, log, "k")] == [
        (10, 0),
        (15, 1),
        (20, 2),
        (25, 3),
    ]
    assert (high_water_mark(log), tags(log)) == (25, {"delta.identity.schemaUpdate": "true"})
    new = spark.range(2, 7, 1, 3).withColumnRenamed("id", "k").alias("s")
    target(spark, log).merge(new, "t.k = s.k").whenNotMatchedInsert(
        "s.k > 4", values={"k": "s.k"}
    ).whenNotMatchedInsert(values={"k": "s.k + 100"}).execute()
    fresh = [r["id"] for r in rows(spark, log, "id") if r["id"] > 25]
    assert len(fresh) == len(set(fresh)) == 3
    assert all(value % 5 == 0 for value in fresh)
    assert (high_water_mark(log), tags(log)) == (
        max(fresh),
        {"delta.identity.schemaUpdate": "true"},
    )
    before = log.snapshot().version
    target(spark, log).merge(new, "t.k = s.k").whenMatchedUpdate(set={"k": "t.k"}).execute()
    target(spark, log).merge(new, "false").whenNotMatchedInsert(
        "false", values={"k": "s.k"}
    ).execute()
    assert high_water_mark(log) == max(fresh)
    puredelta.write(spark.sql("select 9L k"), log.root_uri, mode="overwrite")
    assert [r["id"] for r in rows(spark, log, "id")] == [max(fresh) + 5]
    assert log.snapshot().version <= before + 2


@pytest.mark.thorough
def test_m102_by_default_takes_values_and_keeps_its_mark(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = lay_empty(
        tmp_path / "t", identity("id", start=-1, step=-2, explicit=True), StructField("k", LONG)
    )
    puredelta.write(spark.sql("select -100L id, 0L k"), log.root_uri, mode="append")
    assert high_water_mark(log) is None
    new = spark.sql("select explode(array(1L, 2L)) k").alias("s")
    target(spark, log).merge(new, "t.k = s.k").whenNotMatchedInsert(
        "s.k = 1", values={"id": "-50", "k": "s.k"}
    ).whenNotMatchedInsert(values={"k": "s.k", "id": "DEFAULT"}).execute()
    by_key = {r["k"]: r["id"] for r in rows(spark, log, "k")}
    assert by_key[1] == -50
    assert by_key[2] in (-1, -3)
    assert high_water_mark(log) == by_key[2] or high_water_mark(log) == -3
    target(spark, log).merge(
        source(spark, "select 7L id, 3L k"), "t.k = s.k"
    ).whenNotMatchedInsertAll().execute()
    assert {r["id"] for r in rows(spark, log, "k")} >= {7, -100, -50}


def test_m102_what_always_refuses(spark: SparkSession, tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id"), StructField("k", LONG))
    rows_given = source(spark, "select 5L id, 1L k")
    merging = target(spark, log).merge(rows_given, "t.k = s.k")
    explicit = ErrorCode.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED
    updated = ErrorCode.IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED
    for code, attempt in (
        (explicit, lambda: puredelta.write(rows_given, log.root_uri, mode="append")),
        (explicit, merging.whenNotMatchedInsert(values={"ID": "s.id"}).execute),
        (explicit, merging.whenNotMatchedInsertAll().execute),
        (updated, merging.whenMatchedUpdate(set={"ID": "s.id"}).execute),
        (updated, merging.whenMatchedUpdateAll().execute),
        (updated, merging.whenNotMatchedBySourceUpdate(set={"id": "1"}).execute),
        (ErrorCode.MERGE_UNRESOLVED_EXPRESSION, _star_without(spark, log)),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            attempt()
        assert caught.value.code is code
    assert log.snapshot().version == 0


def _star_without(spark: SparkSession, log: TableLog) -> Any:
    lacking = source(spark, "select 1L k")
    return target(spark, log).merge(lacking, "t.k = s.k").whenNotMatchedInsertAll().execute


def test_m102_no_value_beyond_a_long(spark: SparkSession, tmp_path: Path) -> None:
    log = lay_empty(tmp_path / "t", identity("id", start=2**63 - 2), StructField("k", LONG))
    puredelta.write(spark.sql("select 1L k"), log.root_uri, mode="append")
    with pytest.raises(DeltaError, match="would leave the range of BIGINT") as caught:
        puredelta.write(spark.range(3).withColumnRenamed("id", "k"), log.root_uri, mode="append")
    assert caught.value.code is ErrorCode.ARITHMETIC_OVERFLOW
    assert [path.name for path in (tmp_path / "t").glob("_puredelta*")] == []


# --- char and varchar -----------------------------------------------------------------------


@pytest.mark.thorough
def test_m106_text_is_stored_as_given_and_read_with_blanks(
    spark: SparkSession, tmp_path: Path
) -> None:
    kind = "__CHAR_VARCHAR_TYPE_STRING"
    log = lay_empty(
        tmp_path / "t",
        StructField("c", STRING, metadata={kind: "char(3)"}),
        StructField(
            "s",
            StructType((StructField("x", STRING), StructField("y", STRING))),
            metadata={kind: "struct<x:char(2),y:varchar(2)>"},
        ),
    )
    puredelta.write(
        spark.sql("select 'a' c, named_struct('x', 'b', 'y', 'c') s"), log.root_uri, mode="append"
    )
    assert rows(spark, log, "c") == [{"c": "a  ", "s": {"x": "b ", "y": "c"}}]
    (add,) = log.snapshot().files.adds()
    assert json.loads(add.stats or "")["maxValues"] == {"c": "a", "s": {"x": "b", "y": "c"}}
    # Bounds of files speak of shorter text than reading gives: they must not rule a file out.
    target(spark, log).merge(
        source(spark, "select 'a  ' c, 'new' v"), "t.c = s.c"
    ).whenMatchedUpdate(set={"s.y": "'k'"}).execute()
    assert rows(spark, log, "c") == [{"c": "a  ", "s": {"x": "b ", "y": "k"}}]
    with pytest.raises(InvalidRequestError) as caught:
        target(spark, log).merge(source(spark, "select 1 one"), "true").whenMatchedUpdate(
            set={"s.y": "'abc'"}
        ).execute()
    assert caught.value.code is ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT


# --- required fields ------------------------------------------------------------------------


def test_m105_required_fields_by_name(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((StructField("x", INTEGER, nullable=False), StructField("y", INTEGER)))
    log = lay_empty(tmp_path / "t", StructField("k", INTEGER), StructField("s", inner))
    target(spark, log).merge(
        source(spark, "select 1 k, named_struct('y', 1, 'x', 2) s"), "t.k = s.k"
    ).whenNotMatchedInsertAll().execute()
    assert rows(spark, log, "k") == [{"k": 1, "s": {"x": 2, "y": 1}}]
    with pytest.raises(InvalidRequestError, match=r"s\.x") as caught:
        target(spark, log).merge(
            source(spark, "select 2 k, named_struct('y', 1) s"), "t.k = s.k"
        ).whenNotMatchedInsertAll().withSchemaEvolution().execute()
    assert caught.value.code is ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED
    with pytest.raises(InvalidRequestError, match=r"Column s\.x") as caught:
        puredelta.write(spark.sql("select 2 k"), log.root_uri, mode="append")
    assert caught.value.code is ErrorCode.MISSING_NOT_NULL_COLUMN_VALUE


@pytest.mark.thorough
def test_m106_a_partition_column_of_char(spark: SparkSession, tmp_path: Path) -> None:
    """What the log spells shorter is compared with blanks, by scans and without them."""
    char = StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    log = lay_empty(tmp_path / "t", char, StructField("v", LONG), partition_by=["c"])
    puredelta.write(spark.sql("select 'a' c, id v from range(2)"), log.root_uri, mode="append")
    puredelta.write(spark.sql("select 'b' c, id v from range(2)"), log.root_uri, mode="append")
    table = target(spark, log)
    table.update("c = 'b' and v = 1", {"v": "7"})
    assert {(r["c"], r["v"]) for r in rows(spark, log, "v")} == {
        ("a  ", 0),
        ("a  ", 1),
        ("b  ", 0),
        ("b  ", 7),
    }
    table.delete("c = 'a'")
    assert [(r["c"], r["v"]) for r in rows(spark, log, "v")] == [("b  ", 0), ("b  ", 7)]
