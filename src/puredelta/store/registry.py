"""Which store a location belongs to, decided by its scheme and never guessed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.store.base import Store
from puredelta.store.local import LocalStore

# As Hadoop reads it: a colon before the first slash ends a scheme. One letter is a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_LOCAL = "file:"
_FILE_AUTHORITIES = ("", "localhost")


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store of a table location; nothing is read or created.

    A location is a plain path, relative to the working directory or absolute, or a
    ``file:`` URI in any spelling. As in Spark, nothing in it is expanded or decoded:
    ``~`` and ``%20`` are part of the name.

    Raises:
        UnsupportedError: any other scheme (UNSUPPORTED_STORAGE).
        InvalidRequestError: the location is empty or cannot be a path.

    Examples:
        >>> open_store("file:///data/my table").root_uri
        'file:/data/my table'
    """
    text = os.fspath(location)
    if not text or "\0" in text:
        raise InvalidRequestError(
            f"{text!r} is not the location of a table. Pass a path or a file: URI.",
            code=ErrorCode.PATH_DOES_NOT_EXIST,
            path=text,
        )
    scheme = _SCHEME.match(text)
    if scheme is None:
        return LocalStore(text)
    if scheme[1].lower() == "file":
        return LocalStore(_path_of_file_uri(text))
    is_uri = text.startswith("/", scheme.end())
    hint = "" if is_uri else f" (a local name with a colon is written ./{text})"
    raise UnsupportedError(
        f"Tables on {scheme[1]!r} storage are not supported: {text}. Use a directory on a file "
        f"system that the driver and the executors mount, as a path or a file: URI{hint}.",
        code=ErrorCode.UNSUPPORTED_STORAGE,
        path=text,
        scheme=scheme[1],
    )


def has_scheme(location: str) -> bool:
    """Return whether a location names its file system.

    >>> [has_scheme(location) for location in ("/data/t", "t", "file:/t", "s3a://b/t", "C:/t")]
    [False, False, True, True, False]
    """
    return _SCHEME.match(location) is not None


def is_same_location(one: str, other: str) -> bool:
    """Return whether two roots of tables are one directory, through whatever links or mounts."""
    if one == other:
        return True
    one_path, other_path = (root_uri.removeprefix(_LOCAL) for root_uri in (one, other))
    try:
        return Path(one_path).samefile(other_path)
    except OSError:  # one of them is gone
        return False


def _path_of_file_uri(uri: str) -> str:
    rest = uri[len("file:") :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority not in _FILE_AUTHORITIES:
            raise UnsupportedError(
                f"{uri} names the host {authority!r}. Mount its directory and pass the path, or "
                "write three slashes: file:///path.",
                code=ErrorCode.UNSUPPORTED_STORAGE,
                path=uri,
            )
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidRequestError(
            f"{uri} is not absolute. Write file:///path, or a plain path for a relative one.",
            code=ErrorCode.PATH_DOES_NOT_EXIST,
            path=uri,
        )
    return rest
