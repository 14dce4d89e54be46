"""Spark's own parser as the judge of statement text."""

from __future__ import annotations

from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from puredelta.spark.session.session import is_connect


def require_parsable(spark: SparkSession, text: str) -> None:
    """Refuse what Spark's parser refuses, with its error; nothing is analyzed or run.

    Raises:
        pyspark.errors.ParseException: line, position and class are Spark's.
    """
    if not is_connect(spark):
        session: Any = spark._jsparkSession  # noqa: SLF001 - no public way to parse only
        session.sessionState().sqlParser().parsePlan(text)
        return
    try:
        # Explaining parses the statement and reports all later errors as its result.
        spark.sql(f"EXPLAIN {text}")
    except ParseException:
        spark.sql(text)  # fails in the same way, at places that fit the user's text
        raise
