"""Which files cannot hold a key of the source, by the bounds that the log knows of them.

Shipped by value: it knows the standard library, numpy, pyarrow and modules like it only.

The bounds of all keys together let most files of a table through that is sorted by key, if the
source changes some old rows and brings some new ones. Between the keys there are gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from puredelta.spark.key_index_task import whole_numbers
from puredelta.spark.probe_read_task import ProbeOrder

VALUES_MAX = 1 << 22
"""Keys that are sorted for this; among more there are few gaps."""


def likely_orders(
    orders: Sequence[ProbeOrder], columns: Sequence[pa.Array]
) -> Sequence[ProbeOrder]:
    """Return the orders whose files may hold a value of the source in every column of the key."""
    kept = np.ones(len(orders), np.bool_)
    for place, column in enumerate(columns):
        known = [n for n, order in enumerate(orders) if order.bounds and order.bounds[place]]
        if not known or len(column) > VALUES_MAX:
            continue
        values, valid = whole_numbers(column)
        values = np.sort(values if valid is None else values[valid])
        spans = np.array([orders[n].bounds[place] for n in known], np.int64)
        first = np.searchsorted(values, spans[:, 0], "left")
        behind = np.searchsorted(values, spans[:, 1], "right")
        kept[np.array(known)[first >= behind]] = False
    return [orders[n] for n in np.flatnonzero(kept).tolist()]
