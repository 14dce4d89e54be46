"""Spares a Python worker the search for garbage among the modules that it has loaded.

After every task a worker looks through all its objects for garbage (``gc.collect``). With pyarrow
and Spark's own modules loaded that takes 30 to 45 ms of a core, while the driver goes on and needs
that core. ``gc.freeze`` tells the collector that what is loaded by now stays.

What other tasks of the same worker hold at that moment and drop later in cycles is never
collected either: once per worker, no more than it held.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import ModuleType

FROZEN = "puredelta_worker_is_frozen"
"""An empty module of this name says that a worker has been frozen before."""


class Freeze:
    """Unpacked in a worker, it takes everything that is loaded for no garbage."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Travel as a call, which leaves nothing but None in the worker."""
        return freeze_once, ()


def freeze_once() -> None:
    """Take what is loaded for no garbage: once the worker has pyarrow, and only once.

    What comes later may be garbage. To ask the collector how much is frozen would take as long as
    the search that is spared.
    """
    if "pyarrow" in sys.modules and FROZEN not in sys.modules:
        sys.modules[FROZEN] = ModuleType(FROZEN)
        gc.freeze()
