"""Tables of the catalog, converted by delta-spark and by puredelta: same table, same refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.errors import DeltaError
from puredelta.protocol.schema.partition_values import HIVE_NULL
from puredelta.spark.jvm.catalog import read_entry
from puredelta.spark.write.parquet_job import temporary_settings
from tests.commands.convert.directories import first_commit

DATABASE = "convert_both"
CONVERT = "spark.databricks.delta.convert."
Step = Callable[[SparkSession, str, Path], None]


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.catalog.setCurrentDatabase(DATABASE)
    yield spark
    spark.catalog.setCurrentDatabase("default")
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def sql(*statements: str) -> Step:
    """Run statements; ``{t}`` is the table, ``{root}`` its directory."""

    def run(spark: SparkSession, name: str, root: Path) -> None:
        for text in statements:
            spark.sql(text.format(t=f"{DATABASE}.{name}", root=root))

    return run


def without(path: str) -> Step:
    return lambda _spark, _name, root: shutil.rmtree(root / path)


def parquet(path: str, query: str) -> Step:
    def run(spark: SparkSession, _: str, root: Path) -> None:
        spark.sql(query).coalesce(1).write.mode("append").parquet(str(root / path))

    return run


def broken(path: str, content: bytes) -> Step:
    def run(_spark: SparkSession, _name: str, root: Path) -> None:
        (root / path).write_bytes(content)

    return run


def streamed(spark: SparkSession, _: str, root: Path) -> None:
    """Let a stream write the table's directory, and another program a file beside it."""
    source, checkpoint = (str(root.with_name(f"{root.name}-{what}")) for what in ("in", "log"))
    spark.range(3).coalesce(1).write.parquet(source)
    query = spark.readStream.schema("id LONG").parquet(source).writeStream.format("parquet")
    query = query.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query.start(str(root)).awaitTermination()
    spark.range(9, 10).coalesce(1).write.mode("append").parquet(f"{root}/uncommitted")


def case(
    *steps: Step, given: str | None = None, stats: bool = True, **settings: str
) -> tuple[tuple[Step, ...], str | None, bool, Mapping[str, str]]:
    return steps, given, stats, {CONVERT + key: value for key, value in settings.items()}


PARTS = sql(
    "CREATE TABLE {t} (id INT, p INT, q STRING) USING parquet PARTITIONED BY (p, q) "
    "LOCATION '{root}'",
    "INSERT INTO {t} VALUES (1, 1, 'a/b'), (2, 2, 'b'), (3, NULL, 'c d')",
)
PLAIN = sql(
    "CREATE TABLE {t} (id INT, s STRING) USING parquet LOCATION '{root}' TBLPROPERTIES ('x' = '1')",
    "INSERT INTO {t} VALUES (1, 'a'), (2, NULL)",
)
LATE = sql("ALTER TABLE {t} ADD PARTITION (p = 9, q = 'z') LOCATION '{root}/odd'")
CASES = {
    "comments, lengths, properties": case(
        sql(
            "CREATE TABLE {t} (id BIGINT COMMENT 'key', c CHAR(4), v VARCHAR(7)) USING parquet "
            "LOCATION '{root}' TBLPROPERTIES ('a' = 'b', 'delta.appendOnly' = 'true')",
            "INSERT INTO {t} VALUES (1, 'x', 'y')",
        )
    ),
    "partitions": case(PARTS),
    "partitions, stated": case(PARTS, given="p INT, q STRING"),
    "partitions, stated with a comment": case(PARTS, given="p INT COMMENT 'x', q STRING"),
    "partitions, without statistics": case(PARTS, stats=False),
    "partitions, other types": case(PARTS, given="p STRING, q STRING"),
    "partitions, other order": case(PARTS, given="q STRING, p INT"),
    "partitions, too few": case(PARTS, given="p INT"),
    "partitions, not null": case(PARTS, given="p INT NOT NULL, q STRING"),
    "a partition is gone": case(PARTS, without("p=1")),
    "a partition lies elsewhere": case(PARTS, parquet("odd", "SELECT 5 id"), LATE),
    "a directory the catalog does not know": case(PARTS, parquet("p=8/q=n", "SELECT 5 id")),
    "all directories, listed": case(
        PARTS, parquet("p=8/q=n", "SELECT 5 id"), useCatalogPartitions="false"
    ),
    "no partition is known": case(
        sql("CREATE TABLE {t} (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{root}'"),
        parquet("p=1", "SELECT 5 id"),
    ),
    "another schema in the files": case(
        sql("CREATE TABLE {t} (id BIGINT, extra INT) USING parquet LOCATION '{root}'"),
        parquet("", "SELECT 1 id, 'z' other"),
    ),
    "the schema of the files": case(
        sql("CREATE TABLE {t} (id BIGINT, extra INT) USING parquet LOCATION '{root}'"),
        parquet("", "SELECT 1 id, 'z' other"),
        useCatalogSchema="false",
    ),
    "a directory below": case(PLAIN, parquet("below", "SELECT 9 id, 'n' s")),
    "types of partitions": case(
        sql(
            "CREATE TABLE {t} (id INT, t TIMESTAMP, d DATE, b BOOLEAN, n DECIMAL(5,2)) USING "
            "parquet PARTITIONED BY (t, d, b, n) LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, TIMESTAMP'2024-01-01 10:00:00.5', DATE'2024-01-02', "
            "true, 1.50)",
        )
    ),
    "a varchar partition": case(
        sql(
            "CREATE TABLE {t} (id INT, k VARCHAR(3)) USING parquet PARTITIONED BY (k) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 'ab')",
        )
    ),
    "buckets": case(
        sql(
            "CREATE TABLE {t} (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1), (2)",
        )
    ),
    "a log is there": case(PLAIN, sql("CONVERT TO DELTA parquet.`{root}`")),
    "a log with other properties is there": case(
        PLAIN,
        sql(
            "CONVERT TO DELTA parquet.`{root}`",
            "ALTER TABLE delta.`{root}` SET TBLPROPERTIES ('y' = '2')",
        ),
    ),
    "another log, unchecked": case(
        PLAIN,
        sql(
            "CONVERT TO DELTA parquet.`{root}`",
            "ALTER TABLE delta.`{root}` SET TBLPROPERTIES ('x' = '2')",
        ),
        **{"metadataCheck.enabled": "false"},
    ),
    "already Delta": case(sql("CREATE TABLE {t} (id INT) USING delta LOCATION '{root}'")),
    "a view": case(sql("CREATE VIEW {t} AS SELECT 1 AS id")),
    "CSV": case(sql("CREATE TABLE {t} (id INT) USING csv LOCATION '{root}'")),
    "nothing": case(),
    "a nested table": case(
        sql(
            "CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: STRUCT<c: STRING COMMENT 'deep'>>, "
            "l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} SELECT 1, named_struct('a', 1, 'b', named_struct('c', 'x')), "
            "array(named_struct('x', 1)), map('k', 2)",
        )
    ),
    "every plain type": case(
        sql(
            "CREATE TABLE {t} (a BYTE, b SHORT, c LONG, d FLOAT, e DOUBLE, f DECIMAL(20, 4), "
            "g BINARY, h BOOLEAN, i DATE) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 2, 3, 1.5, 2.5, 12.3456, X'00', true, DATE'2024-02-29')",
        )
    ),
    "times without a zone": case(
        sql(
            "CREATE TABLE {t} (n TIMESTAMP_NTZ) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (TIMESTAMP_NTZ'2024-01-01 10:00:00')",
        )
    ),
    "nothing but NULL": case(
        sql(
            "CREATE TABLE {t} (id INT, s STRING) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (NULL, NULL)",
        )
    ),
    "long texts": case(
        sql(
            "CREATE TABLE {t} (s STRING) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (repeat('a', 50)), (repeat('z', 50))",
        )
    ),
    "no file at all": case(sql("CREATE TABLE {t} (id INT) USING parquet LOCATION '{root}'")),
    "a column with blanks": case(
        sql(
            "CREATE TABLE {t} (`a b` INT) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1)",
        )
    ),
    "a column with a dot": case(
        sql(
            "CREATE TABLE {t} (`a.b` INT) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1)",
        )
    ),
    "columns of other letters": case(
        sql(
            "CREATE TABLE {t} (`größe` INT, `列` STRING) USING parquet LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 'ü')",
        )
    ),
    "a partition of other letters": case(
        sql(
            "CREATE TABLE {t} (id INT, `größe` STRING) USING parquet PARTITIONED BY (`größe`) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 'übel=1%')",
        )
    ),
    "a hidden partition": case(
        sql(
            "CREATE TABLE {t} (id INT, _p INT) USING parquet PARTITIONED BY (_p) LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 1)",
        )
    ),
    "an empty text as a partition": case(
        sql(
            "CREATE TABLE {t} (id INT, p STRING) USING parquet PARTITIONED BY (p) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, ''), (2, 'a')",
        )
    ),
    "a char partition": case(
        sql(
            "CREATE TABLE {t} (id INT, k CHAR(3)) USING parquet PARTITIONED BY (k) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 'abc')",
        )
    ),
    "columns that came later": case(
        PLAIN, sql("ALTER TABLE {t} ADD COLUMNS (more INT)", "INSERT INTO {t} VALUES (3, 'c', 4)")
    ),
    "no Parquet": case(PLAIN, broken("odd.parquet", b"no such file")),
    "an empty file": case(PLAIN, broken("odd.parquet", b"")),
    "hidden files": case(PLAIN, broken("_SUCCESS", b""), broken(".part.crc", b"x")),
    "a comment": case(
        sql(
            "CREATE TABLE {t} (id INT) USING parquet LOCATION '{root}' "
            "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
            "INSERT INTO {t} VALUES (1)",
        )
    ),
    "a property of no table": case(
        sql(
            "CREATE TABLE {t} (id INT) USING parquet LOCATION '{root}' "
            "TBLPROPERTIES ('delta.noSuchProperty' = 'true')",
            "INSERT INTO {t} VALUES (1)",
        )
    ),
    "options": case(
        sql(
            "CREATE TABLE {t} (id INT) USING parquet OPTIONS ('compression' = 'gzip') "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1)",
        )
    ),
    "two inserts": case(PLAIN, sql("INSERT INTO {t} VALUES (7, 'x')")),
    "no statistics": case(PLAIN, stats=False),
    "stated partitions of a plain table": case(PLAIN, given="id INT"),
    "stated partitions in capitals": case(PARTS, given="P INT, Q STRING"),
    "a table of many partitions": case(
        sql(
            "CREATE TABLE {t} (id LONG, p LONG) USING parquet PARTITIONED BY (p) LOCATION '{root}'",
            "INSERT INTO {t} SELECT id, id % 40 FROM range(80)",
        )
    ),
    "days": case(
        sql(
            "CREATE TABLE {t} (id INT, d DATE) USING parquet PARTITIONED BY (d) LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, DATE'1582-10-04'), (2, DATE'9999-12-31'), (3, NULL)",
        )
    ),
    "numbers as partitions": case(
        sql(
            "CREATE TABLE {t} (id INT, a LONG, b SMALLINT) USING parquet PARTITIONED BY (a, b) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, -9223372036854775808, -1), (2, 0, 32767)",
        )
    ),
    "ORC": case(sql("CREATE TABLE {t} (id INT) USING orc LOCATION '{root}'")),
    "JSON": case(sql("CREATE TABLE {t} (id INT) USING json LOCATION '{root}'")),
    "text": case(sql("CREATE TABLE {t} (s STRING) USING text LOCATION '{root}'")),
    "a log of a table that was written since": case(
        PLAIN, sql("CONVERT TO DELTA parquet.`{root}`", "DELETE FROM delta.`{root}` WHERE id = 1")
    ),
    "a sink of a stream": case(
        sql("CREATE TABLE {t} (id LONG) USING parquet LOCATION '{root}'"), streamed
    ),
    "capitals": case(
        sql(
            "CREATE TABLE {t} (Id INT, Part INT) USING parquet PARTITIONED BY (Part) "
            "LOCATION '{root}'",
            "INSERT INTO {t} VALUES (1, 1)",
        ),
    ),
}


DIFFERS: Mapping[str, tuple[str, str | None]] = {
    "no file at all": ("doesn't exist", "DELTA_PATH_DOES_NOT_EXIST"),
    "no Parquet": ("FAILED_READ_FILE", "DELTA_FAILED_READ_FILE_FOOTER"),
    "an empty file": ("CONVERT", "DELTA_FAILED_READ_FILE_FOOTER"),
    "stated partitions in capitals": ("DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER", None),
}
"""What delta-spark says, and what is said here, None for a conversion; see docs/differences.md."""


@pytest.mark.parametrize("name", CASES)
def test_c_02_as_delta_spark(database: SparkSession, tmp_path: Path, name: str) -> None:
    steps, given, stats, settings = CASES[name]
    found = {}
    for who in ("theirs", "ours"):
        root = tmp_path / who
        for step in steps:
            step(database, f"t_{who}", root)
        with temporary_settings(database, settings):
            act = _theirs if who == "theirs" else _ours
            problem = act(database, f"{DATABASE}.t_{who}", given, stats)
        found[who] = _state(database, f"t_{who}", root) if problem is None else problem
    if name in DIFFERS:
        theirs, ours = DIFFERS[name]
        assert theirs in str(found["theirs"])
        assert found["ours"] == ours or (ours is None and "entry" in found["ours"])
        return
    assert found["ours"] == found["theirs"]


def _theirs(spark: SparkSession, name: str, given: str | None, stats: bool) -> str | None:
    partitioned = "" if given is None else f"PARTITIONED BY ({given})"
    try:
        spark.sql(f"CONVERT TO DELTA {name} {'' if stats else 'NO STATISTICS'} {partitioned}")
    except PySparkException as error:
        return error.getCondition()
    except Py4JJavaError as error:
        return str(error.java_exception.getMessage()).partition("]")[0].strip("[")
    return None


def _ours(spark: SparkSession, name: str, given: str | None, stats: bool) -> str | None:
    try:
        convert_to_delta(spark, name, given, collect_stats=stats)
    except DeltaError as error:
        return error.getCondition()
    return None


def _state(spark: SparkSession, name: str, root: Path) -> dict[str, Any]:
    """Return all of a converted table that must be the same."""
    entry = read_entry(spark, DATABASE, name)
    commits = sorted((root / "_delta_log").glob("*.json"))
    infos = [_actions(path, "commitInfo")[0] for path in commits]
    metadata = [_actions(path, "metaData") for path in commits]
    adds = first_commit(root).get("add", [])
    return {
        "entry": (
            entry.provider,
            entry.properties,
            entry.comment,
            entry.location == f"file:{root}",
        ),
        "history": [
            (
                info["operation"],
                {
                    key: value if key != "catalogTable" else value.replace(name, "t")
                    for key, value in info["operationParameters"].items()
                },
                info["readVersion"],
                info["isBlindAppend"],
                info.get("operationMetrics"),
            )
            for info in infos
            if info["operation"] == "CONVERT"
        ],
        "metadata": [
            (found["schemaString"], found["partitionColumns"], found["configuration"])
            for one in metadata
            for found in one
        ],
        "files": sorted(
            (
                (
                    unquote(add["path"]).rpartition("/")[0],  # letters may be escaped or not
                    # delta-spark keeps Hive's spelling of NULL, and reads it as text.
                    sorted((k, _value(v)) for k, v in add["partitionValues"].items()),
                    json.loads(add.get("stats") or "null"),
                )
                for add in adds
            ),
            key=str,
        ),
        "rows": sorted(
            str([_value(value) for value in row]) for row in spark.table(name).collect()
        ),
    }


def _value(text: Any) -> Any:
    return None if text == HIVE_NULL else text


def _actions(path: Path, kind: str) -> list[dict[str, Any]]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line[kind] for line in lines if kind in line]
