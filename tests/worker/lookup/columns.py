"""Columns of a target that say what was asked of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from puredelta.worker.lookup.conditions import TargetColumns
from puredelta.worker.lookup.key_index import Numbers


class HeldColumns(TargetColumns):
    """Columns in memory; ``asked`` keeps the place and the rows of each `take`."""

    def __init__(self, columns: Sequence[pa.Array], costs: Sequence[int] | None = None) -> None:
        self._columns = columns
        self._costs = costs or [0] * len(columns)
        self.asked: list[tuple[int, list[int]]] = []

    def take(self, place: int, rows: Numbers) -> pa.Array:
        self.asked.append((place, rows.tolist()))
        return self._columns[place].take(pa.array(rows))

    def cost(self, place: int, rows: Numbers) -> int:  # noqa: ARG002
        return self._costs[place]
