"""The history of a table as rows, in the columns of DESCRIBE HISTORY."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from puredelta.log.replay.history import HistoryEntry
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo

_SCHEMA = """
    version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING,
    operationParameters MAP<STRING, STRING>,
    job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING,
               jobOwnerId: STRING, triggerType: STRING>,
    notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT,
    isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING, STRING>,
    userMetadata STRING, engineInfo STRING
"""
_JOB_FIELDS = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")


def history_rows(spark: SparkSession, log: TableLog, *, limit: int | None = None) -> DataFrame:
    """Return one row per commit that is still in the log, newest first; reads the log only.

    Raises:
        TableNotFoundError: there is no table.
    """
    rows = [] if limit is not None and limit <= 0 else [_row(e) for e in log.history(limit=limit)]
    return spark.createDataFrame(rows, _SCHEMA)


def utc_time(time_ms: int) -> dt.datetime:
    """Return a moment for a TIMESTAMP column; it has a zone, so no session changes it."""
    return dt.datetime.fromtimestamp(time_ms // 1000, tz=dt.timezone.utc) + dt.timedelta(
        milliseconds=time_ms % 1000
    )


def _row(entry: HistoryEntry) -> tuple[Any, ...]:
    info = entry.commit_info or CommitInfo()
    job, notebook = info.extra.get("job"), info.extra.get("notebook")
    return (
        entry.version,
        utc_time(entry.timestamp_ms),
        _text(info.extra.get("userId")),
        _text(info.extra.get("userName")),
        info.operation,
        {name: _text(value) for name, value in info.operation_parameters.items()},
        tuple(_text(job.get(f)) for f in _JOB_FIELDS) if isinstance(job, Mapping) else None,
        (_text(notebook.get("notebookId")),) if isinstance(notebook, Mapping) else None,
        _text(info.extra.get("clusterId")),
        info.read_version,
        info.isolation_level,
        info.is_blind_append,
        None if info.operation_metrics is None else dict(info.operation_metrics),
        info.user_metadata,
        info.engine_info,
    )


def _text(value: Any) -> str | None:
    """Return a JSON value as text: strings as they stand, everything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
