"""Every way to write judges rows as the table stores them: an empty partition text is NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable

Way = Callable[[SparkSession, str, DataFrame], object]


def inserted(spark: SparkSession, path: str, new: DataFrame) -> None:
    new.createOrReplaceTempView("fresh")
    spark.sql(f"INSERT INTO delta.`{path}` BY NAME SELECT * FROM fresh")


def merged(spark: SparkSession, path: str, new: DataFrame) -> None:
    values = {name: f"s.{name}" for name in new.columns}
    target = DeltaTable.forPath(spark, path).alias("t")
    target.merge(new.alias("s"), "t.id = s.id").whenNotMatchedInsert(values=values).execute()


def updated(spark: SparkSession, path: str, new: DataFrame) -> None:
    """Change the row that is there."""
    (row,) = new.collect()
    changes = ", ".join(
        f"{name} = {'NULL' if value is None else repr(value)}"
        for name, value in row.asDict().items()
        if name != "id"
    )
    spark.sql(f"UPDATE delta.`{path}` SET {changes} WHERE id = 0")


def merged_into_the_first(spark: SparkSession, path: str, new: DataFrame) -> None:
    changes = {name: f"s.{name}" for name in new.columns if name != "id"}
    target = DeltaTable.forPath(spark, path).alias("t")
    target.merge(new.alias("s"), "t.id = 0").whenMatchedUpdate(set=changes).execute()


def upserted(_: SparkSession, path: str, new: DataFrame) -> None:
    puredelta.upsert(path, new, keys=["id"])


def streamed(spark: SparkSession, path: str, new: DataFrame) -> None:
    new.write.mode("overwrite").parquet(f"{path}-source")
    rows = spark.readStream.schema(new.schema).parquet(f"{path}-source")
    to = rows.writeStream.format("delta").option("checkpointLocation", f"{path}-{uuid4()}")
    to.trigger(availableNow=True).start(path).awaitTermination()


def overwritten(text: str) -> Way:
    def write(spark: SparkSession, path: str, new: DataFrame) -> None:
        new.createOrReplaceTempView("fresh")
        spark.sql(text.format(table=f"delta.`{path}`"))

    return write


def dynamic(_: SparkSession, path: str, new: DataFrame) -> None:
    writer = new.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)


def replaced(where: str) -> Way:
    def write(_: SparkSession, path: str, new: DataFrame) -> None:
        writer = new.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.save(path)

    return write


WAYS: Mapping[str, Way] = {
    "append": lambda _, path, new: new.write.format("delta").mode("append").save(path),
    "INSERT": inserted,
    "writeTo": lambda _, path, new: new.writeTo(f"delta.`{path}`").append(),
    "MERGE": merged,
    "UPDATE": updated,
    "MERGE of matched rows": merged_into_the_first,
    "upsert": upserted,
    "stream": streamed,
    "dynamic overwrite": dynamic,
    "overwritePartitions": lambda _, path, new: new.writeTo(
        f"delta.`{path}`"
    ).overwritePartitions(),
    "overwrite of a condition": lambda _, path, new: new.writeTo(f"delta.`{path}`").overwrite(
        F.col("id") > 5
    ),
    "replaceWhere of files": replaced("x IS NULL OR x IS NOT NULL"),
    "replaceWhere of rows": replaced("id >= 0"),
    "INSERT REPLACE WHERE": overwritten(
        "INSERT INTO {table} REPLACE WHERE id >= 0 SELECT * FROM fresh"
    ),
    "INSERT OVERWRITE": overwritten("INSERT OVERWRITE {table} BY NAME SELECT * FROM fresh"),
    "overwrite": lambda _, path, new: new.write.format("delta").mode("overwrite").save(path),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of a table, and whether it is true of a value as the table holds it."""

    columns: str
    holds: Callable[[str | None], bool]
    check: str | None = None
    given: int | None = None
    """A value for a generated column."""


RULES: Mapping[str, Rule] = {
    "CHECK": Rule(
        columns="x STRING",
        check="x IS NULL OR length(x) > 0",
        holds=lambda _: True,
    ),
    "NOT NULL": Rule(columns="x STRING NOT NULL", holds=lambda x: x is not None),
    "generated": Rule(
        columns="x STRING, g INT GENERATED ALWAYS AS (length(x))", holds=lambda _: True
    ),
    "generated and given": Rule(
        columns="x STRING, g INT GENERATED ALWAYS AS (length(x))",
        given=0,
        holds=lambda _: False,
    ),
    "CHECK of a value": Rule(columns="x STRING", check="x = 'a'", holds=lambda x: x == "a"),
    "length": Rule(columns="x VARCHAR(2)", holds=lambda x: x is None or len(x) <= 2),
}
_OF_THE_FIRST = frozenset({"UPDATE", "MERGE of matched rows"})
_BY_POSITION = frozenset({"INSERT REPLACE WHERE"})
"""A generated column may not be left out there."""
VALUES = ("", "a", None, "abc")
SAMPLE = {("NOT NULL", ""), ("generated", "")}
CASES = [
    pytest.param(rule, value, marks=[] if (rule, value) in SAMPLE else [pytest.mark.thorough])
    for rule in RULES
    for value in VALUES
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "value"), CASES)
def test_rows_are_judged_as_they_are_stored(
    active: SparkSession, tmp_path: Path, name: str, value: str | None
) -> None:
    rule, path = RULES[name], str(tmp_path / "t")
    active.sql(
        f"CREATE TABLE delta.`{path}` (id INT, {rule.columns}) USING delta PARTITIONED BY (x)"
    )
    if rule.check is not None:
        active.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK ({rule.check})")
    stored = value or None
    active.sql(f"INSERT INTO delta.`{path}` (id, x) VALUES (0, 'a')")
    for number, (way, write) in enumerate(WAYS.items(), 1):
        if way in _BY_POSITION and "GENERATED" in rule.columns:
            continue
        given = "" if rule.given is None else f", {rule.given} AS g"
        text = "CAST(NULL AS STRING)" if value is None else f"'{value}'"
        new = active.sql(f"SELECT {number} AS id, {text} AS x{given}")
        before = TableLog.open(path).latest_version()
        if not rule.holds(stored):
            refused = StreamingQueryException if way == "stream" else DeltaError
            with pytest.raises(refused):
                write(active, path, new)
            assert TableLog.open(path).latest_version() == before, way
            continue
        write(active, path, new)
        rows = active.read.format("delta").load(path).where(f"id IN ({number}, 0)")
        found = {row.id: row.x for row in rows.collect()}
        assert found[0 if way in _OF_THE_FIRST else number] == stored, way


def test_replace_where_sees_what_is_stored(active: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    active.sql(f"CREATE TABLE delta.`{path}` (id INT, x STRING) USING delta PARTITIONED BY (x)")
    new = active.sql("SELECT 1 AS id, '' AS x")
    for where in ("x = ''", "id = 1 AND x = ''"):
        with pytest.raises(DeltaError, match="DELTA_REPLACE_WHERE_MISMATCH"):
            replaced(where)(active, path, new)
    for where in ("x IS NULL", "id = 1 AND x IS NULL"):
        replaced(where)(active, path, new)
        assert [tuple(row) for row in active.read.format("delta").load(path).collect()] == [
            (1, None)
        ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (g, d)"], ids=["rows", "files"])
def test_rows_are_completed_before_they_are_judged(
    active: SparkSession, tmp_path: Path, partitioned: str
) -> None:
    """Columns that the frame leaves out are generated, or have their default."""
    path = str(tmp_path / "t")
    active.sql(
        f"CREATE TABLE delta.`{path}` (id INT, g INT GENERATED ALWAYS AS (id % 3), d INT DEFAULT 7)"
        f" USING delta {partitioned} TBLPROPERTIES('delta.feature.allowColumnDefaults'='supported')"
    )
    active.sql(f"INSERT INTO delta.`{path}` (id) VALUES (0), (1), (2)")
    replaced("g = 1 AND d = 7")(active, path, active.sql("SELECT 10 AS id"))
    for where in ("g = 1 AND d = 7", "d = 8"):
        with pytest.raises(DeltaError, match="DELTA_REPLACE_WHERE_MISMATCH"):
            replaced(where)(active, path, active.sql("SELECT 11 AS id"))
    rows = active.read.format("delta").load(path).collect()
    assert sorted(map(tuple, rows)) == [(0, 0, 7), (2, 2, 7), (10, 1, 7)]
