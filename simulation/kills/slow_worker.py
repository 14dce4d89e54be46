"""Slowness inside of a Python worker: shipped with the task, and imports nothing of ours."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

_PAUSE_S = 20.0


def slow(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that leaves the first bytes of a file for a while before the file is
    written; ``original`` says where.
    """

    def sink(target: Any) -> Any:
        path = original(target)
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - text in
        with open(path, "wb") as half:  # noqa: PTH123
            half.write(b"PAR1")
        time.sleep(_PAUSE_S)
        return path

    return sink
