"""Errors that a handler written for PySpark catches, too.

Where delta-spark raises Spark's ``AnalysisException``, ``IllegalArgumentException`` or
``UnsupportedOperationException``, so do the calls a user knows (``DeltaTable``, readers, writers,
SQL): their errors are of that class as well as of one in `puredelta.errors`. The layers below
know no PySpark, so an error takes on its second class on the way out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    QueryContext,
    UnsupportedOperationException,
)

from puredelta.errors import (
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner", bound=type)


class _PySparkError:
    """What PySpark's classes would read from attributes that an error of ours does not have."""

    args: tuple[object, ...]

    def __str__(self) -> str:
        return str(self.args[0])

    def getQueryContext(self) -> list[QueryContext]:  # noqa: N802 - PySpark's name
        """Return nothing: the error is not about a place in a text."""
        return []


class InvalidAnalysisError(_PySparkError, InvalidRequestError, AnalysisException):
    """A request that Spark's analyzer would refuse."""


class InvalidArgumentError(_PySparkError, InvalidRequestError, IllegalArgumentException):
    """A request with an argument that has no valid value."""


class InvalidOperationError(_PySparkError, InvalidRequestError, UnsupportedOperationException):
    """A request for something that no Delta table can have."""


class NoSuchTableError(_PySparkError, TableNotFoundError, AnalysisException):
    """A table, a version or a path that is not there."""


class UnsupportedHereError(_PySparkError, UnsupportedError, UnsupportedOperationException):
    """A request for something that this library does not implement."""


_ARGUMENTS = frozenset(
    {
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        ErrorCode.VERSION_INVALID,
        ErrorCode.INVALID_WRITE_OPTION,
        ErrorCode.ILLEGAL_USAGE,
        ErrorCode.VACUUM_RETENTION_PERIOD_NEGATIVE,
        ErrorCode.VACUUM_RETENTION_PERIOD_TOO_SHORT,
        ErrorCode.UNSUPPORTED_GENERATE_MODE,
    }
)
_OPERATIONS = frozenset(
    {
        ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
        ErrorCode.IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE,
        ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW,
    }
)
_ROWS = frozenset(
    {
        ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
        ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES,
        ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT,
    }
)
"""What a row did while a job ran: no class of PySpark's analyzer."""


def like_pyspark(call: Callable[P, R]) -> Callable[P, R]:
    """Return the call with errors that have PySpark's class as well."""

    @functools.wraps(call)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except DeltaError as error:
            take_pyspark_class(error)
            raise

    return made


def methods_like_pyspark(owner: Owner) -> Owner:
    """Do `like_pyspark` for the public methods that a class defines itself."""
    for name, member in list(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(owner, name, classmethod(like_pyspark(member.__func__)))
        elif callable(member):
            setattr(owner, name, like_pyspark(member))
    return owner


def take_pyspark_class(error: DeltaError) -> None:
    """Let an error be of the class that PySpark's handlers look for; others stay as they are.

    >>> error = TableNotFoundError("`/x` is gone.", code=ErrorCode.MISSING_DELTA_TABLE)
    >>> take_pyspark_class(error)
    >>> isinstance(error, AnalysisException), isinstance(error, LookupError)
    (True, True)
    """
    kind = _kind(error)
    if kind is not None:
        made: Any = error
        made.__class__ = kind


def _kind(error: DeltaError) -> type[DeltaError] | None:
    if isinstance(error, PySparkException) or error.code in _ROWS:
        return None
    if type(error) is TableNotFoundError:
        return NoSuchTableError
    if type(error) is UnsupportedError:
        return UnsupportedHereError
    if type(error) is not InvalidRequestError:
        return None
    if error.code in _ARGUMENTS:
        return InvalidArgumentError
    return InvalidOperationError if error.code in _OPERATIONS else InvalidAnalysisError
