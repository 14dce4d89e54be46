"""OPTIMIZE of a clustered table: rows in the order of a Hilbert curve, and only where needed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands import compaction
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.table.clustering import LIQUID, find_z_cube
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.spark.write.zorder_curves import HilbertCurve
from puredelta.tables import DeltaTable
from tests.commands.dml.features import MAPPED, TRACKING, VECTORS

PREFIX = "spark.databricks.delta."
SIDE = 64


def make(spark: SparkSession, path: Path, **properties: str) -> TableLog:
    builder = DeltaTable.create(spark).location(str(path)).clusterBy("s.x", "y")
    for key, value in properties.items():
        builder = builder.property(key, value)
    for column in ("s STRUCT<x: BIGINT>", "y STRING", "v BIGINT"):
        name, _, kind = column.partition(" ")
        builder = builder.addColumn(name, kind)
    builder.execute()
    return TableLog.open(str(path))


def insert(spark: SparkSession, path: Path, first: int, last: int) -> None:
    """Append cells of a square, by number."""
    rows = spark.range(first, last, 1, 2).selectExpr(
        f"named_struct('x', id % {SIDE}) s", f"lpad(id div {SIDE}, 3, '0') y", "id v"
    )
    puredelta.write(rows, str(path), mode="append")


def adds(log: TableLog) -> list[Add]:
    return list(log.snapshot().files.adds())


def metrics(spark: SparkSession, path: Path, more: str = "") -> Any:
    return puredelta.sql(spark, f"OPTIMIZE delta.`{path}` {more}").collect()[0]["metrics"]


def values(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row.v for row in puredelta.read(spark, str(path)).select("v").collect())


def test_sql_finds_the_same_places(spark: SparkSession) -> None:
    for columns, bits in ((1, 3), (2, 3), (3, 2), (4, 2)):
        curve = HilbertCurve(num_columns=columns, ranges_max=1 << bits)
        cells = list(itertools.product(range(1 << bits), repeat=columns))
        names = [f"c{n}" for n in range(columns)]
        frame = spark.createDataFrame(cells, ", ".join(f"{name} INT" for name in names))
        found = frame.selectExpr(*names, f"{curve.combined_sql(names)} place").collect()
        assert found[0].asDict()["place"] is not None
        expected = curve.combined(list(np.array(cells).T)).tolist()
        by_cell = {tuple(row)[:columns]: row.place for row in found}
        assert [by_cell[cell] for cell in cells] == expected


def test_clustering_is_incremental(spark: SparkSession, tmp_path: Path) -> None:
    """What came since is clustered, with the small cubes; a second run has nothing to do."""
    log = make(spark, tmp_path, **VECTORS, **TRACKING, **MAPPED)
    insert(spark, tmp_path, 0, SIDE * SIDE // 2)
    first = metrics(spark, tmp_path)
    assert (first.numFilesAdded, first.numFilesRemoved) == (1, 2)
    (clustered,) = adds(log)
    cube = find_z_cube(clustered)
    assert cube is not None
    assert (cube.columns, clustered.clustering_provider) == (("s.x", "y"), LIQUID)
    assert metrics(spark, tmp_path).clusteringStats.asDict(recursive=True) == {
        "inputZCubeFiles": {"numFiles": 1, "size": clustered.size_bytes},
        "inputOtherFiles": {"numFiles": 0, "size": 0},
        "inputNumZCubes": 1,
        "mergedFiles": {"numFiles": 0, "size": 0},
        "numOutputZCubes": 0,
    }
    insert(spark, tmp_path, SIDE * SIDE // 2, SIDE * SIDE)
    DeltaTable.forPath(spark, str(tmp_path)).delete("v = 7")
    before = values(spark, tmp_path)
    total = log.snapshot().files.total_size_bytes
    with temporary_settings(spark, {f"{PREFIX}optimize.maxFileSize": str(total // 16)}):
        assert metrics(spark, tmp_path).numFilesAdded == 16
    assert values(spark, tmp_path) == before
    assert len({find_z_cube(add) for add in adds(log)}) == 1
    info = log.history()[0].commit_info
    assert info is not None
    parameters = {key: info.operation_parameters[key] for key in ("clusterBy", "isFull")}
    assert parameters == {"clusterBy": '["s.x","y"]', "isFull": False}


@pytest.mark.thorough
def test_boxes_are_small(spark: SparkSession, tmp_path: Path) -> None:
    """A condition on either column reads about a quarter of the files."""
    log = make(spark, tmp_path)
    insert(spark, tmp_path, 0, SIDE * SIDE)
    puredelta.sql(spark, f"INSERT INTO delta.`{tmp_path}` VALUES (NULL, NULL, -1)")
    total = log.snapshot().files.total_size_bytes
    with temporary_settings(spark, {f"{PREFIX}optimize.maxFileSize": str(total // 16)}):
        metrics(spark, tmp_path)
    assert values(spark, tmp_path) == [-1, *range(SIDE * SIDE)]
    table = puredelta.read(spark, str(tmp_path))
    for condition in ("s.x = 17", "y = '017'"):
        assert len(table.where(condition).select("_metadata.file_path").distinct().collect()) <= 8
    assert len(adds(log)) == 16


@pytest.mark.thorough
def test_changed_columns_wait_for_full(spark: SparkSession, tmp_path: Path) -> None:
    log = make(spark, tmp_path)
    insert(spark, tmp_path, 0, 100)
    metrics(spark, tmp_path)
    puredelta.sql(spark, f"ALTER TABLE delta.`{tmp_path}` CLUSTER BY (v)")
    assert metrics(spark, tmp_path).numFilesAdded == 0
    full = metrics(spark, tmp_path, "FULL")
    assert (full.numFilesAdded, full.numFilesRemoved) == (1, 1)
    assert [cube.columns for add in adds(log) if (cube := find_z_cube(add))] == [("v",)]
    assert metrics(spark, tmp_path, "FULL").numFilesAdded == 0
    puredelta.sql(spark, f"ALTER TABLE delta.`{tmp_path}` CLUSTER BY NONE")
    with pytest.raises(DeltaError) as refused:
        metrics(spark, tmp_path, "FULL")
    assert refused.value.code is ErrorCode.OPTIMIZE_FULL_NOT_SUPPORTED
    assert metrics(spark, tmp_path).clusteringStats is None


@pytest.mark.thorough
def test_rows_that_stay_remain_clustered(spark: SparkSession, tmp_path: Path) -> None:
    """A DELETE copies the other rows in their order: there is nothing to cluster again."""
    log = make(spark, tmp_path)
    insert(spark, tmp_path, 0, 100)
    metrics(spark, tmp_path)
    before = [find_z_cube(add) for add in adds(log)]
    DeltaTable.forPath(spark, str(tmp_path)).delete("v % 10 = 3")
    assert [find_z_cube(add) for add in adds(log)] == before
    assert metrics(spark, tmp_path).numFilesAdded == 0
    DeltaTable.forPath(spark, str(tmp_path)).update("v % 10 = 4", {"y": "'z'"})
    assert sorted(map(bool, map(find_z_cube, adds(log)))) == [False, True]
    assert metrics(spark, tmp_path).numFilesAdded == 1


def test_every_cube_is_written_or_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second cube cannot be written: nothing of the first one stays."""
    log = make(spark, tmp_path)
    insert(spark, tmp_path, 0, 100)
    before = {path for path in tmp_path.rglob("*.parquet") if "_delta_log" not in path.parts}
    small = f"{PREFIX}optimize.clustering.mergeStrategy.minCubeSize."
    settings = {f"{small}threshold": "1", f"{small}targetCubeSize": "1"}
    with temporary_settings(spark, settings):
        written = compaction.rewrite_bins
        calls: list[int] = []

        def second_fails(*args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise OSError("no space left")
            return written(*args, **kwargs)

        monkeypatch.setattr(compaction, "rewrite_bins", second_fails)
        with pytest.raises(OSError, match="no space"):
            metrics(spark, tmp_path)
        monkeypatch.undo()
        after = {path for path in tmp_path.rglob("*.parquet") if "_delta_log" not in path.parts}
        assert after == before
        assert metrics(spark, tmp_path).clusteringStats.numOutputZCubes == 2
    assert len({find_z_cube(add) for add in adds(log)}) == 2
