"""Errors that a handler written for PySpark catches, too.

Where delta-spark raises Spark's ``AnalysisException``, ``IllegalArgumentException`` or
``UnsupportedOperationException``, so do the calls a user knows (``DeltaTable``, readers, writers,
SQL): their errors are of that class as well as of one in `puredelta.errors`. The layers below
know no PySpark, so an error takes on its second class on the way out.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    QueryContext,
    UnsupportedOperationException,
)
from pyspark.errors.exceptions.captured import SparkRuntimeException

from puredelta.errors import (
    BROKEN_RULES,
    CorruptTableError,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    Message,
    StorageAccessError,
    TableNotFoundError,
    UnsupportedError,
)
from puredelta.spark.jvm.gateway import JavaError
from puredelta.spark.session.session import one_call
from puredelta.store.base import StorageError
from puredelta.store.registry import local_path

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner", bound=type)


class _PySparkError:
    """What PySpark's classes would read from attributes that this library's errors do not have."""

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


class FailedStorageError(DeltaError, StorageError):
    """A failure of the storage that a statement met outside of its commit."""


class FailedJobError(SparkRuntimeException, JavaError):  # type: ignore[misc]
    """An error of Spark with an error class, which PySpark leaves without a class of its own."""


_ARGUMENTS = frozenset(
    {
        ErrorCode.ONE_OF_IN_TIME_TRAVEL,
        ErrorCode.TIME_TRAVEL_INVALID_BEGIN_VALUE,
        ErrorCode.VERSION_INVALID,
        ErrorCode.INVALID_WRITE_OPTION,
        ErrorCode.OVERWRITE_BY_FILTER_WITH_REPLACE_BY,
        ErrorCode.DYNAMIC_OVERWRITE_WITH_REPLACE_BY,
        ErrorCode.INCOMPATIBLE_DATAFRAME_OPTIONS,
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
_FAILED_READ = re.compile(
    r"FAILED_READ_FILE(?:\.(?P<kind>[A-Z_]+))?\] Encountered error while reading file "
    r"(?P<path>\S+?)\.?\s"
)
_DECORATION = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: \w{5}\s*$")


def plain_message(error: PySparkException) -> str:
    """Return what an error of Spark says, without its class and its SQLSTATE, as one sentence."""
    text = error.getMessage() or str(error)
    return _DECORATION.sub("", _DECORATION.sub("", text.strip())).strip().rstrip(".") + "."


def unreadable_file(error: Exception, may_be_ours: Callable[[], bool]) -> CorruptTableError | None:
    """Return what a failed job says of a data file that cannot be read, with the file's name.

    None for every other failure, and for files of no Delta table: on a disk the log is looked for
    above the file, elsewhere ``may_be_ours`` says.
    """
    is_java = getattr(error, "java_exception", None) is not None
    if not is_java and not isinstance(error, PySparkException):
        return None
    found = _FAILED_READ.search(str(error))
    if found is None:
        return None
    path = unquote(found["path"])
    on_disk = local_path(path)
    if not (may_be_ours() if on_disk is None else _is_below_log(on_disk)):
        return None
    is_refused = on_disk is not None and _is_refused(on_disk)
    is_gone = found["kind"] == "FILE_NOT_EXIST" and not is_refused
    return CorruptTableError(
        Message.FAILED_READ_FILE_NOT_EXIST if is_gone else Message.FAILED_READ_FILE,
        reason=" (permission denied)" if is_refused else "",
        path=path,
    )


_UNLOADED = re.compile(
    r"catalog '?(?!plugin class)(?P<name>[^\s']+?)'?[: ][^\n]*?io\.unitycatalog\.\S*UCSingleCatalog"
)


def unloaded_catalog(error: Exception) -> UnsupportedError | None:
    """Return what a statement means that Spark executes in a catalog of this library; else None."""
    is_java = getattr(error, "java_exception", None) is not None
    if not is_java and not isinstance(error, PySparkException):
        return None
    found = _UNLOADED.search(str(error))
    if found is None:
        return None
    return UnsupportedError(Message.OPERATION_NOT_ALLOWED_UNLOADED_CATALOG, catalog=found["name"])


def _is_below_log(path: str) -> bool:
    # Path.is_dir raises an error where access is refused.
    return any(os.path.isdir(parent / "_delta_log") for parent in Path(path).parents)  # noqa: PTH112


def _is_refused(path: str) -> bool:
    """Return whether this process may not read a file; Spark says that there is none."""
    try:
        Path(path).open("rb").close()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def storage_error(error: OSError) -> DeltaError:
    """Return the error of this library for a failure of a store, with its path and the next step.

    >>> print(storage_error(PermissionError(13, "Permission denied", "/data/t/_delta_log")).message)
    The storage refuses access: /data/t/_delta_log: Permission denied. Grant it to the user or the \
key of this session, then run the statement again.
    """
    said = str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
    said = said.rstrip(".")
    if isinstance(error, PermissionError):
        return StorageAccessError(Message.STORAGE_ACCESS_DENIED, reason=said)
    return FailedStorageError(Message.STORAGE_FAILED, reason=said)


def like_pyspark(
    call: Callable[P, R], *, may_be_ours: Callable[[], bool] = lambda: True
) -> Callable[P, R]:
    """Return the call with errors that have PySpark's class as well, and settings asked for once.

    A data file that a job cannot read is an error with its name, and so is a file that the storage
    refuses; ``may_be_ours`` says whether a file in a store can be one of a Delta table. An error
    that PySpark raises as ``Py4JJavaError`` although it has an error class, such as
    SCALAR_SUBQUERY_TOO_MANY_ROWS, is a `FailedJobError`.
    """

    @functools.wraps(call)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with one_call():
                return call(*args, **kwargs)
        except DeltaError as error:
            take_pyspark_class(error)
            raise
        except (PermissionError, StorageError) as error:
            raise storage_error(error) from error
        except Exception as error:
            if (unreadable := unreadable_file(error, may_be_ours)) is not None:
                raise unreadable from error
            if (unloaded := unloaded_catalog(error)) is not None:
                take_pyspark_class(unloaded)
                raise unloaded from error
            if may_be_ours():
                take_spark_class(error)
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


def take_spark_class(error: Exception) -> None:
    """Let an error of the JVM that has an error class say so, as `FailedJobError`."""
    if not isinstance(error, JavaError) or isinstance(error, PySparkException):
        return
    java: Any = error.java_exception
    while java is not None:
        found = SparkRuntimeException(origin=java)
        if found.getCondition() is not None:
            made: Any = error
            made.__class__ = FailedJobError
            made.__dict__.update(vars(found))
            return
        java = java.getCause()


def _kind(error: DeltaError) -> type[DeltaError] | None:
    if isinstance(error, PySparkException) or error.code in BROKEN_RULES:
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
