"""Orders to look keys up, as they reach a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from puredelta.worker.lookup_batch import FileLookup, LookupBatch


def orders_of(orders: Sequence[FileLookup]) -> LookupBatch:
    """Return orders in columns."""
    return LookupBatch(
        ordinals=np.array([order.ordinal for order in orders], np.int32),
        paths=[order.path for order in orders],
        constants=[order.constants for order in orders],
        deleted={order.ordinal: (order.words, order.bits) for order in orders if order.words},
    )
