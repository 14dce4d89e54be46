"""OPTIMIZE: the same statements by delta-spark and here, on copies of one table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import puredelta
from puredelta.errors import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Both count files and rows alike, but sizes of files and times are their own.
OWN = {"min", "max", "avg", "totalSize", "size", "startTimeMs"}
OWN_METRICS = {
    "numAddedBytes",
    *(f"{name}FileSize" for name in ("min", "p25", "p50", "p75", "max")),
}

STATEMENTS = [
    "OPTIMIZE {t} WHERE p = 'x'",
    "OPTIMIZE {t}",
    "OPTIMIZE {t}",
    "DELETE FROM {t} WHERE id IN (1, 2)",
    "INSERT INTO {t} VALUES (90, 'new', 'x')",
    "OPTIMIZE {t} WHERE p IN ('x', 'z')",
    "OPTIMIZE {t} WHERE p = 'y' ZORDER BY (id, v)",
]
REFUSED = [
    "OPTIMIZE {t} WHERE id = 1",
    "OPTIMIZE {t} WHERE nope = 1",
    "OPTIMIZE {t} WHERE p IN (SELECT 1)",
    "OPTIMIZE {t} WHERE p",
    "OPTIMIZE {t} ZORDER BY (p)",
    "OPTIMIZE {t} ZORDER BY (nope)",
    "OPTIMIZE {t} FULL",
    "OPTIMIZE {t} ZORDER BY ()",
]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of three files each; deletion vectors and row ids."""
    root = tmp_path_factory.mktemp("tables") / "t"
    spark.sql(
        f"CREATE TABLE delta.`{root}` (id INT, v STRING, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')"
    )
    for at in (0, 10, 20):
        spark.sql(
            f"INSERT INTO delta.`{root}` SELECT /*+ COALESCE(1) */ int(id), concat('v', id), "
            f"IF(id % 2 = 0, 'x', 'y') FROM range({at}, {at + 10})"
        )
    return root


def test_the_same_happens(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    shutil.copytree(table, theirs)
    shutil.copytree(table, ours)
    for statement in STATEMENTS:
        expected = outcome(spark, theirs, statement, ours=False)
        assert outcome(spark, ours, statement, ours=True) == expected, statement


def test_delta_spark_goes_on_where_we_stopped(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    """It reads the files, the row ids, and finds nothing left to do."""
    shutil.copytree(table, tmp_path / "t")
    name = f"delta.`{tmp_path / 't'}`"
    before = ids(spark, name)
    puredelta.sql(spark, f"OPTIMIZE {name}").collect()
    assert ids(spark, name) == before
    metrics = spark.sql(f"OPTIMIZE {name}").collect()[0]["metrics"]
    assert (metrics.numFilesAdded, metrics.totalConsideredFiles) == (0, 2)


@pytest.mark.parametrize("statement", REFUSED)
def test_the_same_is_refused(spark: SparkSession, table: Path, statement: str) -> None:
    text = statement.format(t=f"delta.`{table}`")
    with pytest.raises(PySparkException) as expected:
        spark.sql(text)
    with pytest.raises((PySparkException, DeltaError)) as found:
        puredelta.sql(spark, text)
    assert condition(found.value) == condition(expected.value)


def ids(spark: SparkSession, name: str) -> list[Any]:
    return spark.sql(f"SELECT id, _metadata.row_id FROM {name} ORDER BY id").collect()


def condition(error: BaseException) -> str | None:
    if isinstance(error, DeltaError):
        return error.code.value[0]
    return error.getCondition() if isinstance(error, PySparkException) else None


def outcome(spark: SparkSession, root: Path, statement: str, *, ours: bool) -> dict[str, Any]:
    text = statement.format(t=f"delta.`{root}`")
    result = puredelta.sql(spark, text) if ours else spark.sql(text)
    shown = [row.asDict(recursive=True) for row in result.collect()]
    latest = spark.sql(f"DESCRIBE HISTORY delta.`{root}` LIMIT 1").collect()[0]
    optimized = statement.startswith("OPTIMIZE")
    metrics = {k: v for k, v in latest.operationMetrics.items() if k not in OWN_METRICS}
    parameters = {k: v for k, v in latest.operationParameters.items() if k != "predicate"}
    return {
        "schema": result.schema.json(),
        "metrics": comparable(shown[0]["metrics"]) if optimized else None,
        "version": latest.version,
        "operation": latest.operation,
        "parameters": parameters if latest.operation == "OPTIMIZE" else None,
        "history": sorted(metrics) if latest.operation == "OPTIMIZE" else None,
        "level": latest.isolationLevel,
        "rows": sorted(map(str, spark.read.format("delta").load(str(root)).collect())),
        "files": sorted(files_of_partition(root)),
    }


def files_of_partition(root: Path) -> list[str]:
    """The partition, rows and visible rows of every file that a commit left active."""
    active: dict[str, str] = {}
    for log in sorted((root / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for remove in (a["remove"] for a in actions if "remove" in a):
            active.pop(remove["path"], None)
        for add in (a["add"] for a in actions if "add" in a):
            rows = json.loads(add["stats"])["numRecords"]
            vector = add.get("deletionVector", {}).get("cardinality", 0)
            active[add["path"]] = f"{add['partitionValues']} {rows} {vector} {add['dataChange']}"
    return list(active.values())


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k not in OWN}
    return value
