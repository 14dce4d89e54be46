"""UPDATE and DELETE: the same statements by delta-spark and here, on copies of one table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import puredelta
from puredelta.errors import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id INT, v STRING, n INT, s STRUCT<a: INT, b: STRING>, arr ARRAY<INT>, p STRING"
TABLES = {
    "plain": ("", "", ()),
    "parts": ("", "PARTITIONED BY (p)", ()),
    "vectors": ("'delta.enableDeletionVectors'='true'", "PARTITIONED BY (p)", ()),
    "feed": ("'delta.enableChangeDataFeed'='true'", "PARTITIONED BY (p)", ()),
    "both": (
        "'delta.enableChangeDataFeed'='true', 'delta.enableDeletionVectors'='true'",
        "",
        (),
    ),
    "mapped": ("'delta.columnMapping.mode'='name'", "PARTITIONED BY (p)", ()),
    "rules": (
        "'delta.feature.allowColumnDefaults'='supported'",
        "",
        (
            "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (n > 0 OR n IS NULL)",
            "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'dflt'",
        ),
    ),
}
ROWS = """SELECT /*+ COALESCE(1) */ id, concat('v', id), CASE WHEN id != 3 THEN id * 10 END,
    named_struct('a', id, 'b', concat('b', id)), array(id),
    CASE WHEN id < 4 THEN 'x' WHEN id < 7 THEN 'y' END FROM (SELECT int(id) id FROM range({}))"""
MARKER = {
    "spark.databricks.delta.write.txnAppId": "nightly",
    "spark.databricks.delta.write.txnVersion": "7",
}
STRICT = {"spark.sql.storeAssignmentPolicy": "STRICT"}
LEGACY = {"spark.sql.storeAssignmentPolicy": "LEGACY"}
CASED = {"spark.sql.caseSensitive": "true"}
ROW_METRICS = ("numUpdatedRows", "numDeletedRows")

Case = tuple[str, tuple[str, ...], Mapping[str, str]]


def case(table: str, *statements: str, **conf: str) -> Case:
    return table, statements, conf


CASES: list[Case] = [
    case("plain", "UPDATE {t} SET v = 'new', s.a = id + 100 WHERE id = 2", "DELETE FROM {t}"),
    case("plain", "UPDATE {t} AS t SET t.v = t.s.b, id = n, n = id WHERE t.n > 20 OR t.id = 1"),
    case("plain", "UPDATE {t} SET s = named_struct('b', 'x', 'a', '7'), v = NULL WHERE id <= 4"),
    case("plain", "UPDATE {t} SET n = (SELECT max(u.id) FROM VALUES (5), (9) AS u(id))"),
    case("plain", "DELETE FROM {t} WHERE n > 20", "DELETE FROM {t} WHERE id < 0"),
    case("plain", "UPDATE {t} SET v = 'new' WHERE id = -1", "DELETE FROM {t} WHERE false"),
    ("plain", ("DELETE FROM {t} WHERE id = 2", "DELETE FROM {t} WHERE id = 3"), MARKER),
    ("plain", ("DELETE FROM {t} WHERE id = 99",), MARKER),
    ("plain", ("UPDATE {t} SET v = '' WHERE id = 99", "UPDATE {t} SET v = 'x'"), MARKER),
    ("plain", ("UPDATE {t} SET n = 'abc' WHERE id = 2",), LEGACY),
    ("plain", ("UPDATE {t} SET n = 99999999999L WHERE id = 2",), LEGACY),
    ("plain", ("UPDATE {t} SET v = 5 WHERE id = 2", "UPDATE {t} SET n = 5L WHERE id = 2"), STRICT),
    ("plain", ("UPDATE {t} SET V = 'q' WHERE id = 2",), CASED),
    ("plain", ("DELETE FROM {t} WHERE ID = 2",), CASED),
    case("parts", "UPDATE {t} SET v = 'new' WHERE p = 'x'", "DELETE FROM {t} WHERE p IS NULL"),
    case("parts", "UPDATE {t} SET p = '' WHERE p = 'x'", "UPDATE {t} SET p = 'z' WHERE id > 4"),
    case(
        "parts", "DELETE FROM {t} WHERE upper(p) = 'Y'", "DELETE FROM {t} WHERE p = 'x' AND id = 2"
    ),
    case(
        "vectors",
        "DELETE FROM {t} WHERE id = 2",
        "UPDATE {t} SET v = 'new' WHERE id IN (1, 3)",
        "DELETE FROM {t} WHERE id = 5",
        "UPDATE {t} SET n = n + 1",
        "DELETE FROM {t} WHERE p = 'x'",
    ),
    case(
        "feed",
        "UPDATE {t} SET v = 'new', p = 'w' WHERE id = 2",
        "DELETE FROM {t} WHERE id = 5",
        "DELETE FROM {t} WHERE p = 'x'",
        "UPDATE {t} SET v = v",
        "DELETE FROM {t}",
    ),
    case(
        "both",
        "DELETE FROM {t} WHERE id = 2",
        "UPDATE {t} SET v = 'new' WHERE id IN (1, 3)",
        "UPDATE {t} SET v = 'old' WHERE id IN (1, 4)",
        "DELETE FROM {t} WHERE id < 4",
    ),
    case("mapped", "UPDATE {t} SET p = 'z', s.b = p WHERE id = 2", "DELETE FROM {t} WHERE p = 'z'"),
    case("rules", "UPDATE {t} SET v = DEFAULT, n = DEFAULT WHERE id = 2"),
    case("rules", "UPDATE {t} SET n = -1 WHERE id = 2"),
    case("plain", "UPDATE {t} SET n = 'abc' WHERE id = 2"),
    case("plain", "UPDATE {t} SET n = 99999999999L WHERE id = 2"),
]
REFUSED = [
    *(f"nope = 1 {where}" for where in ("", "WHERE id = 1")),
    "s.nope = 1",
    "arr.x = 1",
    "v.x = 1",
    "x.y.z = 1",
    "s = named_struct('a', 1, 'b', 'x'), s.a = 2",
    "v = 'a', V = 'b'",
    "s.a = 1, s.a = 2",
    "s = named_struct('a', 1)",
    "s = named_struct('a', 1, 'b', 'x', 'c', 2)",
    "arr = 5",
    "s.a = DEFAULT",
    "v = concat(DEFAULT, 'a')",
    "n = rand()",
    "n = sum(n)",
    "n = row_number() OVER (ORDER BY id)",
    "n = explode(arr)",
    "v = nope",
    *(
        f"v = 'x' WHERE {condition}"
        for condition in (
            "nope = 1",
            "rand() > 2",
            "sum(id) > 1",
            "id IN (SELECT 1)",
            "id = (SELECT 1)",
            "EXISTS (SELECT 1)",
            "id",
            "NULL",
        )
    ),
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table of each kind, as delta-spark writes it: two files or more."""
    root = tmp_path_factory.mktemp("tables")
    for name, (properties, partitions, more) in TABLES.items():
        target = f"delta.`{root / name}`"
        described = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE {target} ({COLUMNS}) USING delta {partitions} {described}")
        for statement in more:
            spark.sql(statement.format(t=target))
        for bounds in ("1, 4", "4, 9"):
            spark.sql(f"INSERT INTO {target} {ROWS.format(bounds)}")
    return root


@pytest.fixture
def settings(spark: SparkSession, request: Any) -> Iterator[None]:
    conf: Mapping[str, str] = request.param
    for key, value in conf.items():
        spark.conf.set(key, value)
    yield
    for key in conf:
        spark.conf.unset(key)


@dataclass(frozen=True)
class Outcome:
    """What a statement did, comparable between implementations."""

    affected: tuple[int, ...] | None
    error: str | None
    operation: str | None
    row_metrics: dict[str, str | None]
    rows: list[str]
    changes: list[str] | None


@pytest.mark.parametrize(
    ("table", "statements", "settings"), CASES, indirect=["settings"], ids=lambda c: str(c)[:60]
)
@pytest.mark.usefixtures("settings")
def test_the_same_happens(
    spark: SparkSession, tables: Path, tmp_path: Path, table: str, statements: tuple[str, ...]
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    shutil.copytree(tables / table, theirs)
    shutil.copytree(tables / table, ours)
    for statement in statements:
        expected = outcome(spark, theirs, statement, ours=False)
        assert outcome(spark, ours, statement, ours=True) == expected, statement


@pytest.mark.parametrize("rest", REFUSED)
def test_the_same_is_refused(spark: SparkSession, tables: Path, rest: str) -> None:
    statement = f"UPDATE {{t}} SET {rest}"
    expected = outcome(spark, tables / "plain", statement, ours=False)
    assert expected.error is not None
    found = outcome(spark, tables / "plain", statement, ours=True)
    assert found.error == expected.error


def outcome(spark: SparkSession, root: Path, statement: str, *, ours: bool) -> Outcome:
    text, before = statement.format(t=f"delta.`{root}`"), latest(root)
    run = puredelta.sql if ours else type(spark).sql
    affected, error = None, None
    try:
        affected = tuple(row[0] for row in run(spark, text).collect())
    except (DeltaError, PySparkException, Py4JJavaError) as refused:
        error = innermost(refused)
    info = None if latest(root) == before else commit_info(root, before + 1)
    metrics = {} if info is None else info["operationMetrics"]
    has_feed = "enableChangeDataFeed" in (root / "_delta_log" / f"{0:020d}.json").read_text()
    return Outcome(
        affected=affected,
        error=error,
        operation=None if info is None else info["operation"],
        row_metrics={name: metrics.get(name) for name in ROW_METRICS},
        # both are read by delta-spark
        rows=sorted(map(str, spark.read.format("delta").load(str(root)).collect())),
        changes=changes(spark, root, before + 1) if has_feed and info is not None else None,
    )


def innermost(refused: Any) -> str:
    """Return class and SQLSTATE; delta-spark wraps the errors of rows (E-04)."""
    if isinstance(refused, DeltaError):
        return f"{refused.getCondition()} {refused.getSqlState()}"
    is_bare = isinstance(refused, Py4JJavaError)  # PySpark passes some as they are
    wrapped: Any = refused.java_exception if is_bare else getattr(refused, "_origin", None)
    found = "" if is_bare else f"{refused.getCondition()} {refused.getSqlState()}"
    while wrapped is not None:
        if hasattr(wrapped, "getErrorClass") and wrapped.getErrorClass() is not None:
            found = f"{wrapped.getErrorClass()} {wrapped.getSqlState()}"
        wrapped = wrapped.getCause()
    return found


def changes(spark: SparkSession, root: Path, version: int) -> list[str]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    rows = reader.option("startingVersion", version).load(str(root))
    return sorted(map(str, rows.drop("_commit_timestamp").collect()))


def latest(root: Path) -> int:
    return max(int(path.stem) for path in (root / "_delta_log").glob("*.json"))


def commit_info(root: Path, version: int) -> dict[str, Any]:
    lines = (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    info: dict[str, Any]
    [info] = [a["commitInfo"] for a in map(json.loads, lines) if "commitInfo" in a]
    return info
