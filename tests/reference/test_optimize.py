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
from puredelta.spark.write.parquet_job import temporary_settings

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


CLUSTERED = [
    "INSERT INTO {t} SELECT /*+ REPARTITION(3) */ id, concat('v', id % 7), id FROM range(100)",
    "OPTIMIZE {t}",
    "OPTIMIZE {t}",
    "OPTIMIZE {t} FULL",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'new', id FROM range(100, 150)",
    "OPTIMIZE {t}",
    "INSERT INTO {t} VALUES (900, 'one', 1)",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} CLUSTER BY (n)",
    "OPTIMIZE {t}",
    "INSERT INTO {t} VALUES (901, 'two', 1)",
    "OPTIMIZE {t}",
    "OPTIMIZE {t} FULL",
    "OPTIMIZE {t} FULL",
    "ALTER TABLE {t} CLUSTER BY NONE",
    "INSERT INTO {t} VALUES (902, 'three', 1)",
    "INSERT INTO {t} VALUES (903, 'four', 1)",
    "OPTIMIZE {t}",
]


@pytest.mark.parametrize("threshold", ["107374182400", "1"])
def test_the_same_is_clustered(spark: SparkSession, tmp_path: Path, threshold: str) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    spark.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT, v STRING, n BIGINT) USING delta "
        "CLUSTER BY (id, v)"
    )
    shutil.copytree(theirs, ours)
    key = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
    with temporary_settings(spark, {key: threshold}):
        for statement in CLUSTERED:
            expected = outcome(spark, theirs, statement, ours=False)
            assert outcome(spark, ours, statement, ours=True) == expected, statement
            assert cubes(ours) == cubes(theirs), statement


RANGES = [
    *(f"id BETWEEN {at} AND {at + 900}" for at in (0, 2000, 7100)),
    *(f"v BETWEEN '{at}' AND '{at + 300}'" for at in (1000, 4100, 8000)),
    *(f"id < {at} AND v < '{at}'" for at in (1500, 3000)),
    *(f"id = {at} OR v = '{at}'" for at in (1500, 9001)),
]


def test_ranges_read_no_more_files(spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    spark.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT, v STRING, n BIGINT) USING delta "
        "CLUSTER BY (id, v)"
    )
    spark.sql(
        f"INSERT INTO delta.`{theirs}` SELECT /*+ REPARTITION(4) */ pmod(hash(id), 10000), "
        "lpad(pmod(hash(id, 1), 10000), 4, '0'), id FROM range(40000)"
    )
    shutil.copytree(theirs, ours)
    size = sum(file.stat().st_size for file in theirs.rglob("*.parquet"))
    key = "spark.databricks.delta.optimize.maxFileSize"
    with temporary_settings(spark, {key: str(size // 32)}):
        spark.sql(f"OPTIMIZE delta.`{theirs}`").collect()
        puredelta.sql(spark, f"OPTIMIZE delta.`{ours}`").collect()
    read = {
        name: sum(num_files_read(spark, root, condition) for condition in RANGES)
        for name, root in (("delta-spark", theirs), ("puredelta", ours))
    }
    print(read)  # noqa: T201 - the figures
    assert read["puredelta"] <= read["delta-spark"]


def num_files_read(spark: SparkSession, root: Path, condition: str) -> int:
    """Count the files that delta-spark's own skipping leaves."""
    rows = spark.read.format("delta").load(str(root)).where(condition)
    return len(rows.inputFiles())


def cubes(root: Path) -> list[str]:
    """The provider and the columns of every active file that was clustered."""
    active: dict[str, str] = {}
    for log in sorted((root / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for remove in (a["remove"] for a in actions if "remove" in a):
            active.pop(remove["path"], None)
        for add in (a["add"] for a in actions if "add" in a):
            columns = (add.get("tags") or {}).get("ZCUBE_ZORDER_BY")
            active[add["path"]] = f"{add.get('clusteringProvider')} {columns}"
    return sorted(active.values())


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
        return error.code.error_class
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
