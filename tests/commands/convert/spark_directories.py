"""Directories that Spark writes, and rows as text that compares across readers."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from puredelta.spark.write.parquet_job import temporary_settings

ALL_TYPES = """select * from values
  (1, 'é''"', named_struct('x', 5, 'y', named_struct('z', 'q')), 1.25BD, date'2020-01-02',
   timestamp'2020-01-01 10:11:12.123456', timestamp_ntz'2020-01-01 10:11:12.123456', 1.5D, 2.5F,
   true, X'00ff', array(1, null), map('k', array(named_struct('v', 1L))), 7Y, 300S, 9L,
   cast(12345678901234567890123456789012345678 as decimal(38, 0))),
  (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
   null)
  as t(i, s, n, dec, d, ts, ntz, dbl, f, b, bin, arr, m, y, sh, l, big)"""


def settings(spark: SparkSession, **values: str) -> AbstractContextManager[None]:
    """Session settings for a block; two underlines stand for a full stop."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    return temporary_settings(spark, named)


def rows(table: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in table.to_pylist())


def rows_of(frame: DataFrame, columns: list[str]) -> list[str]:
    return rows(frame.select(*[f"`{c}`" for c in columns]).toArrow())
