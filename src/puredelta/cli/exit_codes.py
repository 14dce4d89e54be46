"""What the exit code of the command line says; ``docs/cli.md`` lists them."""

from __future__ import annotations

from enum import IntEnum

from puredelta.errors import (
    ConflictError,
    InvalidRequestError,
    TableNotFoundError,
)


class ExitCode(IntEnum):
    """Each outcome that a script may want to tell apart."""

    DONE = 0
    FAILED = 1
    """Storage, the table or Spark refused; the message says what."""
    USAGE = 2
    """The command line or the request is wrong."""
    NOT_FOUND = 3
    """There is no such table, version or file."""
    CONFLICT = 4
    """Another writer won: run the command again."""
    FINDINGS = 5
    """``doctor`` found an error; warnings alone are 0."""
    MISSING_SOFTWARE = 69
    """PySpark, Java, or a package that the command needs, is not installed."""
    INTERRUPTED = 130
    """Ctrl-C."""


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code of an exception."""
    if is_interrupted(error):
        return ExitCode.INTERRUPTED
    match error:
        case ConflictError():
            return ExitCode.CONFLICT
        case TableNotFoundError() | FileNotFoundError():
            return ExitCode.NOT_FOUND
        case InvalidRequestError():
            return ExitCode.USAGE
        case _:
            return ExitCode.FAILED


def is_interrupted(error: BaseException) -> bool:
    """Whether it was Ctrl-C, or a failure while Ctrl-C was handled: Py4J may lose a connection."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return True
        behind = behind.__context__
    return False
