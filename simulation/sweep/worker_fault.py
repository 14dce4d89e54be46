"""What fails inside of a Python worker: shipped with the task, and imports nothing of ours."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any


def failing(
    original: Callable[..., Any], directory: str, nth: int, how: tuple[int, bool, bool]
) -> Callable[..., Any]:
    """Return a function that writes a file as ``original`` does, but for the n-th of all workers.

    Workers count with files of a directory. ``how`` is the number of the error, whether
    the file is written all the same, and whether half of it is.
    """

    def written(ordinal: int, tables: Any, schema: Any, options: Any, target: Any) -> Any:
        if _count(directory) != nth:
            return original(ordinal, tables, schema, options, target)
        number, happens, short = how
        path = target.sink()
        if happens or short:
            original(ordinal, tables, schema, options, target)
        if short and os.path.exists(path):  # noqa: PTH110 - text in
            os.truncate(path, os.path.getsize(path) // 2)  # noqa: PTH202
        raise OSError(number, os.strerror(number), path)

    return written


def _count(directory: str) -> int:
    for number in itertools.count(1):
        try:
            name = os.path.join(directory, str(number))  # noqa: PTH118
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
    raise AssertionError
