"""The exceptions of this library.

The class tells a caller what to *do*; ``code`` identifies the error by delta-spark's error
class and SQLSTATE (E-01 to E-04)::

    DeltaError
    +-- ConflictError         another writer won: rebuild on the new version and retry
    |   +-- ConcurrentWriteException, MetadataChangedException, ProtocolChangedException,
    |       ConcurrentAppendException, ConcurrentDeleteReadException,
    |       ConcurrentDeleteDeleteException, ConcurrentTransactionException
    +-- UnsupportedError      the table needs a feature that this library does not implement
    +-- InvalidRequestError   the caller must change the request        (also ValueError)
    +-- TableNotFoundError    there is no table here                    (also LookupError)
    +-- CorruptTableError     the log or a file breaks the protocol
    +-- StorageAccessError    the storage refuses a file: grant access  (also PermissionError)
    +-- CommitUnknownError    the outcome of the commit could not be established

Texts are rows of `puredelta.error_table`: an exception takes a row and the values of its
parameters, or a text and a code.

The conflict classes have the names of ``delta.exceptions``, so that an existing
``except`` clause keeps working once its import names ``puredelta.exceptions``.
"""

from __future__ import annotations

from typing import ClassVar

from puredelta.error_table import ErrorCode, Message

__all__ = [
    "BROKEN_RULES",
    "CatalogError",
    "CommitUnknownError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConflictError",
    "CorruptTableError",
    "DeltaError",
    "ErrorCode",
    "InvalidRequestError",
    "Message",
    "MetadataChangedException",
    "ProtocolChangedException",
    "StorageAccessError",
    "TableNotFoundError",
    "UnsupportedError",
]

BROKEN_RULES = frozenset(
    {
        ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
        ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES,
        ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT,
    }
)
"""What a row does while a job runs: no class of PySpark's analyzer."""


class DeltaError(Exception):
    """Base of the tree.

    ``str(error)`` reads ``[ERROR_CLASS] message SQLSTATE: 12345`` as Spark prints it;
    ``message`` is the text alone and ``details`` its named values. The ``get...``
    methods are those of PySpark's own exceptions, so the same handlers work for both.
    """

    _message_max: ClassVar[int | None] = None
    """Characters of a message; the middle of a longer one is left out."""

    def __init__(
        self, message: str | Message, /, *, code: ErrorCode | None = None, **details: object
    ) -> None:
        """``message`` is a row of the table, or a text with its ``code``."""
        if isinstance(message, Message):
            code = message.code
            message = message.text(details)
            details = {name: _plain(value) for name, value in details.items()}
        if code is None:
            raise TypeError("a text needs a code")
        if self._message_max is not None and len(message) > self._message_max:
            half = self._message_max // 2
            message = f"{message[:half]} ... {message[-half:]}"
        # Not super(): a class of another library may come next in a subclass.
        Exception.__init__(self, f"[{code.error_class}] {message} SQLSTATE: {code.sqlstate}")
        self.message = message
        self.code = code
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        """Keep code and details when an executor pickles the exception."""
        return (_rebuild, (type(self), self.message, self.code, self.details))

    def getCondition(self) -> str:  # noqa: N802 - PySpark's name
        """Return the error class, as ``PySparkException.getCondition`` does."""
        return self.code.error_class

    def getErrorClass(self) -> str:  # noqa: N802 - PySpark's older name
        """Return the error class, as ``PySparkException.getErrorClass`` does."""
        return self.code.error_class

    def getSqlState(self) -> str:  # noqa: N802 - PySpark's name
        """Return the SQLSTATE, as ``PySparkException.getSqlState`` does."""
        return self.code.sqlstate

    def getMessage(self) -> str:  # noqa: N802 - PySpark's name
        """Return the full text, as ``PySparkException.getMessage`` does."""
        return str(self)

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        """Return the named values of the message as text."""
        return {name: str(value) for name, value in self.details.items()}


def _plain(value: object) -> object:
    """Return a value that can be kept: an exception holds the frames in which it was raised."""
    return str(value) if isinstance(value, BaseException) else value


def _rebuild(
    kind: type[DeltaError], message: str, code: ErrorCode, details: dict[str, object]
) -> DeltaError:
    return kind(message, code=code, **details)


class ConflictError(DeltaError):
    """Another writer committed first, and its commit excludes this one."""


class ConcurrentWriteException(ConflictError):
    """Another writer created a table at the version of this commit (C-59)."""


class MetadataChangedException(ConflictError):
    """The winning commit changed the table's metadata."""


class ProtocolChangedException(ConflictError):
    """The winning commit changed the table's protocol."""


class ConcurrentAppendException(ConflictError):
    """The winning commit added files this operation should have read."""


class ConcurrentDeleteReadException(ConflictError):
    """The winning commit removed a file this operation read."""


class ConcurrentDeleteDeleteException(ConflictError):
    """The winning commit removed a file this operation removes."""


class ConcurrentTransactionException(ConflictError):
    """The winning commit advanced an application id this operation read."""


class UnsupportedError(DeltaError):
    """The table or the request needs a feature that this library does not implement."""


class InvalidRequestError(DeltaError, ValueError):
    """The caller must change the request."""


class TableNotFoundError(DeltaError, LookupError):
    """There is no Delta table, version or path here."""


class CorruptTableError(DeltaError):
    """The log or a file of the table breaks the protocol.

    A quotation may be as long as the file: the middle of a long message is left out.
    """

    _message_max = 4_000


class StorageAccessError(DeltaError, PermissionError):
    """The storage does not let this session read or write a file."""


class CommitUnknownError(DeltaError):
    """The store neither confirmed nor denied the commit."""


class CatalogError(DeltaError):
    """The table's log is written and valid, but its entry in the catalog was not updated."""
