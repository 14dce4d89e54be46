"""Which of many changed rows a preview shows: some of every clause. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.row_bitmap import RowBitmap


def fair_shares(counts: Sequence[int], limit: int) -> tuple[int, ...]:
    """Return how many of each to take: as many of all as possible, ``limit`` together.

    >>> fair_shares([1, 100, 100], 21), fair_shares([2, 3], 20), fair_shares([5, 5], 1)
    ((1, 10, 10), (2, 3), (1, 0))
    """
    shares = [0] * len(counts)
    left = limit
    while left > 0 and (open_ := [n for n, count in enumerate(counts) if shares[n] < count]):
        each, rest = divmod(left, len(open_))
        for place, n in enumerate(open_):
            share = min(counts[n] - shares[n], each + (1 if place < rest else 0))
            shares[n] += share
            left -= share
    return tuple(shares)


def first_rows(rows: RowsByFile, num_rows: int) -> RowsByFile:
    """Return the first rows, file by file."""
    taken: dict[int, RowBitmap] = {}
    for file in sorted(rows):
        if num_rows <= 0:
            break
        some = rows[file].rows()[:num_rows]
        taken[file] = RowBitmap.of_rows(some)
        num_rows -= len(some)
    return taken
