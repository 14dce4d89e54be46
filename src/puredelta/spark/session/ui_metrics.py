"""A command as one entry of the Spark UI's SQL tab, with its metrics and its jobs below it.

Nothing is run and nothing is read back. A failure of the entry is logged and forgotten: the
command is what counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from puredelta.spark.jvm.jobs import UiEntry, UiMetric
from puredelta.spark.session.session import is_connect

logger = logging.getLogger(__name__)

_LABELS: Mapping[str, str] = {
    "numSourceRows": "number of source rows",
    "numTargetRowsInserted": "number of inserted rows",
    "numTargetRowsUpdated": "number of updated rows",
    "numTargetRowsMatchedUpdated": "number of rows updated by a matched clause",
    "numTargetRowsNotMatchedBySourceUpdated": (
        "number of rows updated by a not matched by source clause"
    ),
    "numTargetRowsDeleted": "number of deleted rows",
    "numTargetRowsMatchedDeleted": "number of rows deleted by a matched clause",
    "numTargetRowsNotMatchedBySourceDeleted": (
        "number of rows deleted by a not matched by source clause"
    ),
    "numTargetRowsCopied": "number of target rows rewritten unmodified",
    "numOutputRows": "number of output rows",
    "numTargetFilesBeforeSkipping": "number of target files before skipping",
    "numTargetFilesAfterSkipping": "number of target files after skipping",
    "numTargetBytesBeforeSkipping": "number of target bytes before skipping",
    "numTargetBytesAfterSkipping": "number of target bytes after skipping",
    "numTargetPartitionsAfterSkipping": "number of target partitions after skipping",
    "numTargetPartitionsRemovedFrom": ("number of target partitions from which files were removed"),
    "numTargetPartitionsAddedTo": "number of target partitions to which files were added",
    "numTargetChangeFileBytes": "total size of change data capture files generated",
    "numTargetBytesAdded": "number of target bytes added",
    "numTargetBytesRemoved": "number of target bytes removed",
    "numTargetFilesAdded": "number of files added to target",
    "numTargetFilesRemoved": "number of files removed to target",
    "numTargetChangeFilesAdded": "number of change data capture files generated",
    "numTargetDeletionVectorsAdded": "number of deletion vectors added",
    "numTargetDeletionVectorsRemoved": "number of deletion vectors removed",
    "numTargetDeletionVectorsUpdated": "number of deletion vectors updated",
    "numUpdatedRows": "number of rows updated",
    "numDeletedRows": "number of rows deleted",
    "numCopiedRows": "number of rows copied",
    "numAddedFiles": "number of files added",
    "numRemovedFiles": "number of files removed",
    "numAddedBytes": "number of bytes added",
    "numRemovedBytes": "number of bytes removed",
    "numAddedChangeFiles": "number of change data capture files generated",
    "numDeletionVectorsAdded": "number of deletion vectors added",
    "numDeletionVectorsRemoved": "number of deletion vectors removed",
    "numDeletionVectorsUpdated": "number of deletion vectors updated",
    "executionTimeMs": "time taken to execute the entire operation",
    "materializeSourceTimeMs": "time taken to materialize source",
    "scanTimeMs": "time taken to scan the files for matches",
    "rewriteTimeMs": "time taken to rewrite the matched files",
}
"""delta-spark's names for its ``operationMetrics`` in the UI, and for what only the UI shows."""
_METRICS = {
    key: UiMetric(label=label, is_time=key.endswith("TimeMs")) for key, label in _LABELS.items()
}


class UiReport:
    """What the entry of a running command will show."""

    def __init__(self) -> None:
        self.metrics: Mapping[str, int] = {}
        self.note = ""

    def report(self, metrics: Mapping[str, int], *, note: str = "") -> None:
        """Show these counts, by the names of ``operationMetrics``, and a line below the title."""
        self.note = note
        self.metrics = {key: count for key, count in metrics.items() if key in _METRICS}


@contextmanager
def shown_in_ui(spark: SparkSession, text: str) -> Iterator[UiReport]:
    """Show what happens inside as one entry called ``text``; a few milliseconds, no job.

    Queries that run meanwhile in this thread, and in those that inherit from it, stand
    below the entry. Over Connect nothing is shown.
    """
    report = UiReport()
    entry = None if is_connect(spark) else _open_entry(spark, text)
    try:
        yield report
    except BaseException as failure:
        _close(entry, UiReport(), error=f"{type(failure).__name__}: {failure}")
        raise
    _close(entry, report, error="")


def _open_entry(spark: SparkSession, text: str) -> UiEntry | None:
    try:
        return UiEntry(spark, text, _METRICS)
    except Exception:  # whatever Spark's internals answer
        logger.debug("No entry in the Spark UI", exc_info=True)
        return None


def _close(entry: UiEntry | None, report: UiReport, *, error: str) -> None:
    if entry is None:
        return
    try:
        entry.close(report.metrics, error, note=report.note)
    except Exception:
        logger.debug("The entry in the Spark UI stays open", exc_info=True)
