"""Error classes and SQLSTATEs are those of delta-spark and Spark, but for a few of our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from puredelta.errors import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OWN = {
    ErrorCode.CATALOG_ENTRY_NOT_UPDATED,
    ErrorCode.CATALOG_IS_BEHIND,
    ErrorCode.CATALOG_REQUEST_FAILED,
    ErrorCode.CONFLICTING_DOMAIN_METADATA,
    ErrorCode.COMMIT_STATE_UNKNOWN,
    ErrorCode.DELETION_VECTOR_INVALID,
    ErrorCode.EXPECTATION_VIOLATED,
    ErrorCode.INVALID_ARGUMENT,
    ErrorCode.LOG_CORRUPTED,
    ErrorCode.MERGE_SOURCE_CHANGED,
    ErrorCode.RESERVED_COLUMN_NAME,
    ErrorCode.SOURCE_IS_EMPTY,
    ErrorCode.SOURCE_KEY_NOT_UNIQUE,
    ErrorCode.SOURCE_OUTSIDE_SCOPE,
    ErrorCode.SOURCE_SEQUENCE_AMBIGUOUS,
    ErrorCode.SOURCE_SEQUENCE_IS_NULL,
    ErrorCode.STORAGE_ACCESS_DENIED,
    ErrorCode.STORAGE_FAILED,
    ErrorCode.UNSUPPORTED_DATA_FILE,
    ErrorCode.UNSUPPORTED_ICEBERG_TABLE,
    ErrorCode.UNSUPPORTED_ON_CONNECT,
    ErrorCode.UNSUPPORTED_SETTING,
    ErrorCode.UNSUPPORTED_STORAGE,
    ErrorCode.VALUE_NOT_PLAIN_COLUMN_REFERENCE,
    ErrorCode.WRITE_FAILED,
    ErrorCode.WRONG_STATISTICS,
}
"""What delta-spark has no class for."""
FILES = (
    "error/delta-error-classes.json",
    "error/error-conditions.json",
)


def test_classes_and_states_are_theirs(spark: SparkSession) -> None:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known: dict[str, str] = {}
    for name in FILES:
        stream = loader.getResourceAsStream(name)
        classes = json.loads(bytes(stream.readAllBytes()))
        known |= {name: entry.get("sqlState") for name, entry in classes.items()}
    named = {code: code.error_class.partition(".")[0] for code in ErrorCode}
    assert {code for code, name in named.items() if name not in known} == OWN
    wrong = {
        code.error_class: (code.sqlstate, known[name])
        for code, name in named.items()
        if name in known and known[name] != code.sqlstate
    }
    assert wrong == {}
