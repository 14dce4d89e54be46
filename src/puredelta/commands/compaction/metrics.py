"""What an OPTIMIZE says it did: its result row, and its metrics in the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.maintenance.clustering_plan import ClusteringPlan
from puredelta.log.maintenance.file_bins import Bin
from puredelta.protocol.actions.actions import Add, Remove
from puredelta.spark.session.session import is_connect

_SIZES = """STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE NOT NULL,
    totalFiles: BIGINT NOT NULL, totalSize: BIGINT NOT NULL>"""
_CUBE = "STRUCT<num: BIGINT NOT NULL, size: BIGINT NOT NULL>"
_Z_CUBE = "STRUCT<numFiles: BIGINT NOT NULL, size: BIGINT NOT NULL>"
_SCHEMA = f"""path STRING, metrics STRUCT<
    numFilesAdded: BIGINT NOT NULL, numFilesRemoved: BIGINT NOT NULL,
    filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: BIGINT NOT NULL,
    zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_CUBE}, inputOtherFiles: {_CUBE},
        inputNumCubes: BIGINT NOT NULL, mergedFiles: {_CUBE}, numOutputCubes: BIGINT NOT NULL,
        mergedNumCubes: BIGINT>,
    clusteringStats: STRUCT<inputZCubeFiles: {_Z_CUBE}, inputOtherFiles: {_Z_CUBE},
        inputNumZCubes: BIGINT NOT NULL, mergedFiles: {_Z_CUBE},
        numOutputZCubes: BIGINT NOT NULL>,
    numBins: BIGINT NOT NULL, numBatches: BIGINT NOT NULL,
    totalConsideredFiles: BIGINT NOT NULL, totalFilesSkipped: BIGINT NOT NULL,
    preserveInsertionOrder: BOOLEAN NOT NULL,
    numFilesSkippedToReduceWriteAmplification: BIGINT NOT NULL,
    numBytesSkippedToReduceWriteAmplification: BIGINT NOT NULL,
    startTimeMs: BIGINT NOT NULL, endTimeMs: BIGINT NOT NULL,
    totalClusterParallelism: BIGINT NOT NULL, totalScheduledTasks: BIGINT NOT NULL,
    autoCompactParallelismStats: STRUCT<maxClusterActiveParallelism: BIGINT,
        minClusterActiveParallelism: BIGINT, maxSessionActiveParallelism: BIGINT,
        minSessionActiveParallelism: BIGINT>,
    deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT NOT NULL,
        numDeletionVectorRowsRemoved: BIGINT NOT NULL>,
    numTableColumns: BIGINT NOT NULL, numTableColumnsWithStats: BIGINT NOT NULL>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOutcome:
    """What an OPTIMIZE did."""

    root_uri: str
    version: int | None
    """The version it committed; ``None`` if there was nothing to do."""
    bins: tuple[Bin, ...]
    added: tuple[Add, ...]
    removed: tuple[Remove, ...]
    num_partitions: int
    """Of the files in ``bins``."""
    num_considered: int
    """Files that it could have rewritten."""
    is_z_order: bool
    clustering: ClusteringPlan | None
    num_columns: int
    num_columns_with_statistics: int
    started_ms: int

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{len(self.removed)} files became {len(self.added)}"

    def row(self, spark: SparkSession) -> DataFrame:
        """Return delta-spark's one row ``path, metrics``.

        What it leaves at 0 there (``endTimeMs``, ``totalScheduledTasks``) is 0 here, too.
        """
        vectors = [r.deletion_vector for r in self.removed if r.deletion_vector is not None]
        metrics: dict[str, Any] = {
            "numFilesAdded": len(self.added),
            "numFilesRemoved": len(self.removed),
            "filesAdded": _sizes([add.size_bytes for add in self.added]),
            "filesRemoved": _sizes([remove.size_bytes or 0 for remove in self.removed]),
            "partitionsOptimized": self.num_partitions,
            "zOrderStats": self._z_order() if self.is_z_order else None,
            "clusteringStats": self._clustered(self.clustering) if self.clustering else None,
            "numBins": len(self.bins),
            "numBatches": 1,
            "totalConsideredFiles": self.num_considered,
            "totalFilesSkipped": self.num_considered - len(self.removed),
            "preserveInsertionOrder": False,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": self.started_ms,
            "endTimeMs": 0,
            "totalClusterParallelism": _parallelism(spark),
            "totalScheduledTasks": 0,
            "autoCompactParallelismStats": None,
            "deletionVectorStats": {
                "numDeletionVectorsRemoved": len(vectors),
                "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
            }
            if vectors
            else None,
            "numTableColumns": self.num_columns,
            "numTableColumnsWithStats": self.num_columns_with_statistics,
        }
        return spark.createDataFrame([(self.root_uri, metrics)], _SCHEMA)

    def _z_order(self) -> dict[str, Any]:
        files = {"num": len(self.removed), "size": sum(r.size_bytes or 0 for r in self.removed)}
        return {
            "strategyName": "all",
            "inputCubeFiles": {"num": 0, "size": 0},
            "inputOtherFiles": files,
            "inputNumCubes": 0,
            "mergedFiles": files,
            "numOutputCubes": len(self.bins),
            "mergedNumCubes": None,
        }

    def _clustered(self, plan: ClusteringPlan) -> dict[str, Any]:
        return {
            "inputZCubeFiles": _files(plan.clustered),
            "inputOtherFiles": _files(plan.others),
            "inputNumZCubes": plan.num_cubes,
            "mergedFiles": _files(plan.files),
            "numOutputZCubes": len(self.bins),
        }


def _files(adds: Sequence[Add]) -> dict[str, int]:
    return {"numFiles": len(adds), "size": sum(add.size_bytes for add in adds)}


def operation_metrics(added: Sequence[Add], removed: Sequence[Remove]) -> dict[str, int]:
    """Return what the history says of an OPTIMIZE; quartiles as delta-spark picks them."""
    sizes = sorted(add.size_bytes for add in added) or [0]
    return {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(remove.size_bytes or 0 for remove in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(add.size_bytes for add in added),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": sum(r.deletion_vector is not None for r in removed),
    }


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


def _parallelism(spark: SparkSession) -> int:
    """Return the tasks that can run at once; 0 over Connect, which does not say."""
    return 0 if is_connect(spark) else spark.sparkContext.defaultParallelism
