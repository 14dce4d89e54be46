"""Errors of ours that PySpark's handlers catch; no session is needed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    UnsupportedOperationException,
)

from puredelta.errors import (
    ConcurrentAppendException,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.spark.session.pyspark_errors import like_pyspark, methods_like_pyspark

CASES: list[tuple[DeltaError, type[Exception] | None]] = [
    (TableNotFoundError("m", code=ErrorCode.MISSING_DELTA_TABLE), AnalysisException),
    (InvalidRequestError("m", code=ErrorCode.SCHEMA_MISMATCH), AnalysisException),
    (InvalidRequestError("m", code=ErrorCode.VERSION_INVALID), IllegalArgumentException),
    (
        InvalidRequestError("m", code=ErrorCode.CANNOT_MODIFY_APPEND_ONLY),
        UnsupportedOperationException,
    ),
    (UnsupportedError("m", code=ErrorCode.OPERATION_NOT_ALLOWED), UnsupportedOperationException),
    (InvalidRequestError("m", code=ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED), None),
    (ConcurrentAppendException("m", code=ErrorCode.CONCURRENT_APPEND), None),
]


@pytest.mark.parametrize(("error", "expected"), CASES, ids=lambda e: getattr(e, "code", e))
def test_an_error_keeps_its_class_and_takes_one_of_pyspark(
    error: DeltaError, expected: type[Exception] | None
) -> None:
    before, text = type(error), str(error)

    @like_pyspark
    def fail() -> None:
        """Fail."""
        raise error

    with pytest.raises(before) as caught:
        fail()
    again = pickle.loads(pickle.dumps(caught.value))
    for raised in (caught.value, again):
        assert isinstance(raised, before)
        assert (expected is None) is not isinstance(raised, PySparkException)
        assert expected is None or isinstance(raised, expected)
        assert (str(raised), raised.getCondition()) == (text, error.code.error_class)
        assert raised.code is error.code
        assert raised.getSqlState() == error.code.sqlstate
    assert fail.__doc__ == "Fail."


def test_methods_of_a_class() -> None:
    @methods_like_pyspark
    class Table:
        @classmethod
        def find(cls, path: str) -> Any:
            raise TableNotFoundError(path, code=ErrorCode.MISSING_DELTA_TABLE)

        def write(self) -> Any:
            raise UnsupportedError("no", code=ErrorCode.OPERATION_NOT_ALLOWED)

    with pytest.raises(AnalysisException, match="/x"):
        Table.find("/x")
    with pytest.raises(UnsupportedOperationException):
        Table().write()
