"""Two spellings of one partition value in the log are one partition, in every command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import StringType

from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """A value of a type, and its text in the log for the rows 1 and 2; row 3 has another value."""

    type: str
    value: str
    first: str | None
    second: str | None
    other: str


SAMPLE = [
    Spelled(type="CHAR(4)", value="'ab'", first="ab", second="ab  ", other="'a'"),
]
REST = [
    Spelled(type="INT", value="1", first="01", second="1", other="2"),
    Spelled(type="DOUBLE", value="0.0", first="-0.0", second="0.0", other="1.0"),
    Spelled(
        type="TIMESTAMP",
        value="TIMESTAMP '2024-01-01 00:00:00'",
        first="2024-01-01 00:00:00",
        second="2023-12-31T23:00:00.000000Z",
        other="TIMESTAMP '2024-01-01 01:00:00'",
    ),
    Spelled(
        type="BIGINT", value=f"{2**63 - 1}", first=f"+{2**63 - 1}", second=f"{2**63 - 1}", other="0"
    ),
    Spelled(type="DECIMAL(10,2)", value="1.5", first="1.5", second="1.50", other="2"),
    Spelled(type="FLOAT", value="float(0.1)", first="0.100000001", second="0.1", other="1.0"),
    Spelled(type="BOOLEAN", value="true", first="TRUE", second="true", other="false"),
    Spelled(
        type="DATE",
        value="DATE '2024-01-01'",
        first="2024-1-1",
        second="2024-01-01",
        other="DATE '2024-01-02'",
    ),
    Spelled(
        type="TIMESTAMP_NTZ",
        value="TIMESTAMP_NTZ '2024-01-01 00:00:00'",
        first="2024-01-01T00:00:00.000",
        second="2024-01-01 00:00:00",
        other="TIMESTAMP_NTZ '2024-01-02 00:00:00'",
    ),
    Spelled(type="STRING", value="NULL", first="", second=None, other="'a'"),
]

Command = Callable[[SparkSession, str, DataFrame], object]


def dynamic(spark: SparkSession, write: Callable[[], object]) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        write()
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def merged(spark: SparkSession, path: str, new: DataFrame) -> None:
    target = DeltaTable.forPath(spark, path).alias("t")
    # A char(n) is filled up when it is read, and text of a frame is not.
    on = "rtrim(t.k) <=> s.k" if new.schema["k"].dataType == StringType() else "t.k <=> s.k"
    target.merge(new.alias("s"), on).whenMatchedUpdate(set={"id": "t.id + 10"}).execute()


def drained(query: DataStreamWriter) -> None:
    query.trigger(availableNow=True).start().awaitTermination()


def streamed(spark: SparkSession, path: str, new: DataFrame) -> DataStreamWriter:
    """Return a stream of the new rows, on its way to a table."""
    new.write.format("delta").save(f"{path}-source")
    rows = spark.readStream.format("delta").load(f"{path}-source")
    return rows.writeStream.option("checkpointLocation", f"{path}-state")


def batch_overwrite(spark: SparkSession, path: str, new: DataFrame) -> None:
    def write(batch: DataFrame, _: int) -> None:
        writer = batch.write.format("delta").mode("overwrite")
        writer.option("partitionOverwriteMode", "dynamic").save(path)

    drained(streamed(spark, path, new).foreachBatch(write))


def vacuumed(spark: SparkSession, path: str, _: DataFrame) -> None:
    """Remove the files of an UPDATE's partition, which the log spells in two ways."""
    spark.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE k <=> {{value}}")
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(key, "false")
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset(key)
    assert {file.resolve() for file in Path(path).rglob("*.parquet")} == active_files(path)


def active_files(path: str) -> set[Path]:
    paths = TableLog.open(path).snapshot().files.rows["path"].to_pylist()
    return {Path(path, unquote(file)).resolve() for file in paths}


def listed_files(path: str) -> list[Path]:
    """Return the files that the manifests of a table name."""
    manifests = Path(path, "_symlink_format_manifest").rglob("manifest")
    lines = [line for manifest in manifests for line in manifest.read_text().splitlines()]
    return sorted(Path(line.removeprefix("file:")).resolve() for line in lines)


def generated(spark: SparkSession, path: str, _: DataFrame) -> None:
    spark.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{path}`")
    assert listed_files(path) == sorted(active_files(path))


def followed(spark: SparkSession, path: str, _: DataFrame) -> None:
    """Keep manifests after commits that write one spelling in place of two."""
    key = "delta.compatibility.symlinkFormatManifest.enabled"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{key}' = 'true')")
    generated(spark, path, _)
    for text in (
        f"UPDATE delta.`{path}` SET id = id + 10 WHERE k <=> {{value}}",
        f"OPTIMIZE delta.`{path}`",
    ):
        spark.sql(text)
        assert listed_files(path) == sorted(active_files(path)), text


def restored(spark: SparkSession, path: str, _: DataFrame) -> None:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k <=> {{value}}")
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1")


COMMANDS: Mapping[str, tuple[Command, set[int]]] = {
    "save": (
        lambda _, path, new: (
            new.write.format("delta")
            .mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .save(path)
        ),
        {3, 9},
    ),
    "INSERT OVERWRITE": (
        lambda spark, path, _: dynamic(
            spark, lambda: spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT * FROM fresh")
        ),
        {3, 9},
    ),
    "overwritePartitions": (
        lambda _, path, new: new.writeTo(f"delta.`{path}`").overwritePartitions(),
        {3, 9},
    ),
    "replaceWhere": (
        lambda spark, path, _: spark.sql(
            f"INSERT INTO delta.`{path}` REPLACE WHERE k <=> {{value}} SELECT * FROM fresh"
        ),
        {3, 9},
    ),
    "DELETE": (
        lambda spark, path, _: spark.sql(f"DELETE FROM delta.`{path}` WHERE k <=> {{value}}"),
        {3},
    ),
    "UPDATE": (
        lambda spark, path, _: spark.sql(
            f"UPDATE delta.`{path}` SET id = id + 10 WHERE k <=> {{value}}"
        ),
        {3, 11, 12},
    ),
    "insertInto": (
        lambda spark, path, new: dynamic(
            spark, lambda: new.write.mode("overwrite").insertInto(f"delta.`{path}`")
        ),
        {3, 9},
    ),
    "foreachBatch": (batch_overwrite, {3, 9}),
    "append of a stream": (
        lambda spark, path, new: drained(
            streamed(spark, path, new).format("delta").option("path", path)
        ),
        {1, 2, 3, 9},
    ),
    "MERGE": (merged, {3, 11, 12}),
    "OPTIMIZE": (lambda spark, path, _: spark.sql(f"OPTIMIZE delta.`{path}`"), {1, 2, 3}),
    "OPTIMIZE WHERE": (
        lambda spark, path, _: spark.sql(f"OPTIMIZE delta.`{path}` WHERE k <=> {{value}}"),
        {1, 2, 3},
    ),
    "ZORDER": (
        lambda spark, path, _: spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY (id)"),
        {1, 2, 3},
    ),
    "VACUUM": (vacuumed, {3, 11, 12}),
    "GENERATE": (generated, {1, 2, 3}),
    "manifests that follow": (followed, {3, 11, 12}),
    "RESTORE": (restored, {1, 2, 3}),
}

SOME = ("save", "replaceWhere", "DELETE", "UPDATE", "MERGE", "OPTIMIZE", "VACUUM")
"""Commands of ``make test``."""


def stream_source(spark: SparkSession, path: str, condition: str) -> DataFrame:
    rows = spark.readStream.format("delta").load(path).where(condition)
    drained(rows.writeStream.format("memory").queryName("seen"))
    return spark.table("seen")


READS: Mapping[str, Callable[[SparkSession, str, str], DataFrame]] = {
    "query": lambda spark, path, condition: spark.read.format("delta").load(path).where(condition),
    "source of a stream": stream_source,
    "change feed": lambda spark, path, condition: (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .load(path)
        .where(condition)
    ),
    "SQL": lambda spark, path, condition: spark.sql(
        f"SELECT id FROM delta.`{path}` VERSION AS OF 1 WHERE {condition}"
    ),
    "group": lambda spark, path, condition: spark.sql(
        f"SELECT explode(ids) AS id FROM (SELECT k, collect_list(id) AS ids FROM delta.`{path}`"
        f" GROUP BY k) WHERE {condition}"
    ),
    "join": lambda spark, path, condition: spark.sql(
        f"SELECT t.id FROM delta.`{path}` t, fresh WHERE {condition.replace('k', 't.k', 1)}"
        " AND rtrim(t.k) <=> rtrim(fresh.k)"
    ),
}


@pytest.fixture
def paris(active: SparkSession) -> Iterator[SparkSession]:
    """A session whose zone is not that of the log."""
    active.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    yield active
    active.conf.set("spark.sql.session.timeZone", "UTC")


def make(spark: SparkSession, path: Path, case: Spelled) -> None:
    """Write the rows 1, 2 and 3 as a file each, and spell the first two in the log."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, k {case.type}) USING delta PARTITIONED BY (k)"
        " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    kind = "STRING" if case.type.startswith("CHAR") else case.type
    value = f"CAST(IF(id = 3, {case.other}, {case.value}) AS {kind}) AS k"
    rows = spark.range(1, 4, 1, 3).selectExpr("CAST(id AS INT) AS id", value)
    rows.write.format("delta").mode("append").save(str(path))
    commit = path / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    texts = {1: case.first, 2: case.second}
    for action in lines:
        if "add" in action:
            number = json.loads(action["add"]["stats"])["minValues"]["id"]
            if number in texts:
                action["add"]["partitionValues"]["k"] = texts[number]
    commit.write_text("\n".join(map(json.dumps, lines)))
    for checksum in path.glob("_delta_log/*.crc"):
        checksum.unlink()


def ids(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(str(path)).collect())


def check(
    spark: SparkSession, tmp_path: Path, case: Spelled, commands: Iterable[str] = COMMANDS
) -> None:
    origin = tmp_path / "origin"
    make(spark, origin, case)
    kind = "STRING" if case.type.startswith("CHAR") else case.type
    value = f"CAST({case.value} AS {kind})" if case.value == "NULL" else case.value
    new = spark.sql(f"SELECT 9 AS id, CAST({case.value} AS {kind}) AS k")
    new.createOrReplaceTempView("fresh")
    for name, read in READS.items():
        rows = read(spark, str(origin), f"k <=> {value}").collect()
        assert sorted(row.id for row in rows) == [1, 2], name
    for name in commands:
        command, expected = COMMANDS[name]
        path = tmp_path / "copy"
        shutil.copytree(origin, path)
        with_value = Session(spark, value)
        command(with_value, str(path), new)  # type: ignore[arg-type] - it has what they use
        assert ids(spark, path) == sorted(expected), name
        if name in {"OPTIMIZE", "OPTIMIZE WHERE", "ZORDER"}:
            assert len(TableLog.open(str(path)).snapshot().files) == 2
        found = spark.read.format("delta").load(str(path)).where(f"k <=> {value}").collect()
        assert sorted(row.id for row in found) == sorted(expected - {3}), name
        for left in tmp_path.glob("copy*"):
            shutil.rmtree(left)
    spark.catalog.dropTempView("fresh")


class Session:
    """A session that puts a literal into the text of statements."""

    def __init__(self, spark: SparkSession, value: str) -> None:
        self._spark, self._value = spark, value
        self.conf = spark.conf

    def sql(self, text: str) -> DataFrame:
        return self._spark.sql(text.replace("{value}", self._value))

    def __getattr__(self, name: str) -> object:
        return getattr(self._spark, name)


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.type)
def test_two_texts_are_one_partition(paris: SparkSession, tmp_path: Path, case: Spelled) -> None:
    check(paris, tmp_path, case, SOME)


@pytest.mark.thorough
@pytest.mark.parametrize("case", [*SAMPLE, *REST], ids=lambda case: f"{case.type}-{case.first}")
def test_two_texts_are_one_partition_in_every_command(
    paris: SparkSession, tmp_path: Path, case: Spelled
) -> None:
    check(paris, tmp_path, case)


def test_texts_of_char_are_in_the_log_as_they_were_given(
    active: SparkSession, tmp_path: Path
) -> None:
    """As delta-spark 4.4.0 writes them, in every way: they are not filled up with blanks."""
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    active.sql(f"CREATE TABLE {name} (id INT, k CHAR(5)) USING delta PARTITIONED BY (k)")
    active.sql(f"INSERT INTO {name} VALUES (1, 'ab')")
    active.sql(f"INSERT INTO {name} SELECT 2, 'ab '")
    rows = active.sql("SELECT 3 AS id, 'ab ' AS k")
    rows.write.format("delta").mode("append").save(str(path))
    rows.writeTo(name).append()
    rows.write.insertInto(name)
    active.sql(
        f"MERGE INTO {name} t USING (SELECT 4 AS id, 'ab ' AS k) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    active.sql(f"UPDATE {name} SET k = 'ab  ' WHERE id = 1")
    log = TableLog.open(str(path))
    texts = [
        {add.partition_values["k"] for add in log.snapshot(version=version).files.adds()}
        - {add.partition_values["k"] for add in log.snapshot(version=version - 1).files.adds()}
        for version in range(1, 8)
    ]
    assert texts == [{"ab"}, {"ab "}, *[set()] * 4, {"ab  "}]
    with pytest.raises(DeltaError, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        active.sql(f"INSERT INTO {name} VALUES (9, 'ab        ')")
