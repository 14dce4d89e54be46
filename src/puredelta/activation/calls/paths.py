"""The one path that a reader or a writer was given, as an argument or as an option."""

from __future__ import annotations

from typing import Any

from puredelta.activation.calls.captured_options import CapturedOptions
from puredelta.errors import ErrorCode, InvalidRequestError


def find_path(captured: CapturedOptions, argument: Any) -> str | None:
    """Return the path, or None if there is none.

    Raises:
        InvalidRequestError: there are several.
    """
    paths = list(argument) if isinstance(argument, list | tuple) else [argument]
    given = [str(path) for path in paths if path is not None]
    option = captured.option("path")
    if len(given) > 1 or (given and option is not None):
        raise InvalidRequestError(
            f"Only one path can be given for format 'delta', not {[*given, option]}. Read each "
            "table by itself and combine the rows with union.",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
            paths=tuple(given),
        )
    return given[0] if given else option


def require_path(captured: CapturedOptions, argument: Any) -> str:
    """Return the path.

    Raises:
        InvalidRequestError: there is none, or several.
    """
    path = find_path(captured, argument)
    if path is None:
        raise InvalidRequestError(
            "'path' is not specified: name the table's directory in load(path) or save(path).",
            code=ErrorCode.OPERATION_NOT_ALLOWED,
        )
    return path
