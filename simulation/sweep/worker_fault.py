"""Faults inside of a Python worker: shipped with the task, and imports nothing of ours."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any


def failing(
    original: Callable[..., Any], directory: str, nth: int, number: int, left: float | None
) -> Callable[..., Any]:
    """Return a function that finishes a file as ``original`` does, but for the n-th of all workers.

    Workers count with files of a directory. ``left`` is the share of the bytes that stays of the
    n-th file, ``None`` if there is no file; ``number`` that of the error, 0 if there is none.

    Without the directory, every file is finished as ``original`` does. A worker keeps its classes
    from task to task, so a function of an earlier task may call this one after the faults are gone.
    """

    def finish(target: Any, *size_bytes: int) -> Any:
        answer = original(target, *size_bytes)
        if not nth == _count(directory) > 0:
            return answer
        path = target._path  # noqa: SLF001 - of a file system
        if left is None:
            os.remove(path)  # noqa: PTH107 - text in
        else:
            os.truncate(path, int(os.path.getsize(path) * left))  # noqa: PTH202
        if not number:
            return answer
        raise OSError(number, os.strerror(number), path)

    return finish


def _count(directory: str) -> int:
    for number in itertools.count(1):
        try:
            name = os.path.join(directory, str(number))  # noqa: PTH118
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        except FileNotFoundError:
            return 0
        return number
    raise AssertionError
