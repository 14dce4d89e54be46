"""Parquet files for scan tests, written by an engine that is neither Spark nor ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.spark.scan.data_file import DataFile


def write_file(path: Path, table: pa.Table | dict[str, Any], **partition_values: Any) -> DataFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path)
    return data_file(path, **partition_values)


def data_file(path: Path, **partition_values: Any) -> DataFile:
    return DataFile(
        uri=f"file:{path}",
        size_bytes=path.stat().st_size,
        modified_ms=0,
        partition_values=partition_values,
    )


def executed_plan(rows: Any) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())
