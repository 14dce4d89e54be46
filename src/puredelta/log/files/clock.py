"""Time and identity as values a caller passes in, so that a test can replay a commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns the time now, in milliseconds since 1970-01-01 UTC."""

IdSource: TypeAlias = Callable[[], str]
"""Returns a text that no other call on any machine returns."""


def wall_clock() -> int:
    """Return the time now; it may go back when the machine's clock is set."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """Return a random UUID, as delta-spark names transactions and tables."""
    return str(uuid.uuid4())
