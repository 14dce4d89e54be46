"""Which files of a directory become files of the table.

Nothing is read but names, sizes and times. The result is ordered by path, so that two runs
over the same directory give the same table (W-28a).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sized
from functools import lru_cache

from puredelta.commands.convert.listing.sink_log import read_sink_log
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError, UnsupportedError
from puredelta.store.base import Store, StoredFile

_HIDDEN = ("_", ".")
_SURROGATE = re.compile("[\ud800-\udfff]")
"""A byte of a file name that is no text."""


def list_data_files(store: Store, *, use_metadata_log: bool = True) -> tuple[StoredFile, ...]:
    """Return the data files below the root of ``store``, ordered by path (C-20, C-23, C-24).

    The log of a Spark streaming sink, where there is one, knows which files were committed
    and replaces the listing. Otherwise every visible file counts, whatever its suffix.

    Raises:
        TableNotFoundError, InvalidRequestError: as `require_files`.
        CorruptTableError: the sink's log cannot be read.
    """
    files = read_sink_log(store) if use_metadata_log else None
    if files is None:
        files = [f for f in store.walk("") if is_visible(f.path)]
    require_files(store, files)
    _require_texts(store, files)
    return tuple(sorted(files, key=lambda f: f.path))


def _require_texts(store: Store, files: Iterable[StoredFile]) -> None:
    """Refuse names that are no UTF-8: Spark cannot open such a file, nor the log name its values.

    Raises:
        UnsupportedError: there is one (UNSUPPORTED_DATA_FILE).
    """
    for file in files:
        if not file.path.isascii() and _SURROGATE.search(file.path) is not None:
            raise UnsupportedError(
                f"The name of {file.path!a} in {store.root_uri} is no UTF-8, so Spark cannot open "
                "the file. Rename it, or the directory it is in.",
                code=ErrorCode.UNSUPPORTED_DATA_FILE,
                path=store.root_uri,
            )


def require_files(store: Store, files: Sized) -> None:
    """Refuse to make a table of nothing.

    Raises:
        TableNotFoundError: the directory does not exist.
        InvalidRequestError: it is a file, or holds no data file (DELTA_EMPTY_DIRECTORY).
    """
    if not files:
        raise _without_files(store)


def is_visible(path: str) -> bool:
    """Return whether a file counts: names with ``_`` or ``.`` in front are hidden, and so is
    all that lies in directories named so, unless the directory is a partition (C-23).

    >>> is_visible("_year=2024/part-0"), is_visible("_temporary/part-0"), is_visible("_SUCCESS")
    (True, False, False)
    """
    directory, _, name = path.rpartition("/")
    return not name.startswith(_HIDDEN) and _is_visible_directory(directory)


@lru_cache(maxsize=16)
def _is_visible_directory(directory: str) -> bool:
    return not any(
        segment.startswith(_HIDDEN) and "=" not in segment for segment in directory.split("/")
    )


def _without_files(store: Store) -> InvalidRequestError | TableNotFoundError:
    root = store.root_uri
    if not store.exists(""):
        return TableNotFoundError(
            f"{root} doesn't exist", code=ErrorCode.PATH_DOES_NOT_EXIST, path=root
        )
    return InvalidRequestError(
        f"No file found in the directory: {root}. CONVERT TO DELTA takes a directory with Parquet "
        "files; names that begin with '_' or '.' are hidden.",
        code=ErrorCode.EMPTY_DIRECTORY,
        directory=root,
    )
