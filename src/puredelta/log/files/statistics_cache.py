"""Statistics that were parsed before, kept beside the files they are of.

A statement asks for the same columns of the same files several times: each rule that skips files
does, and so does whoever looks keys up in those that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from puredelta.log.files.stats_columns import read_stats_columns
from puredelta.log.files.stats_json import Path, StatisticsColumn, StatsColumns
from puredelta.protocol.schema.types import DataType

_Leaves: TypeAlias = Mapping[tuple[Path, DataType], StatisticsColumn]


class StatisticsCache:
    """What `read` has parsed of some files; several threads may ask at once.

    Bounded by the columns that predicates refer to, three values a file each.
    """

    def __init__(self) -> None:
        self._known: tuple[pa.Array, _Leaves] | None = None

    def read(self, stats: pa.ChunkedArray, leaves: Mapping[Path, DataType]) -> StatsColumns:
        """Return what `read_stats_columns` does; ``stats`` are always those of the same files."""
        records, known = self._known or (None, {})
        missing = {path: kind for path, kind in leaves.items() if (path, kind) not in known}
        if missing or records is None:
            parsed = read_stats_columns(stats, missing)
            records = parsed.num_records
            new = {(path, kind): parsed.leaves[path] for path, kind in missing.items()}
            known = {**known, **new}
            self._known = (records, known)
        return StatsColumns(records, {path: known[path, kind] for path, kind in leaves.items()})

    def of_some(self, pick: Callable[[pa.Array], pa.Array]) -> StatisticsCache:
        """Return what is known of some of the files, which ``pick`` takes from a column."""
        some = StatisticsCache()
        if self._known is not None:
            records, leaves = self._known
            picked = {
                key: StatisticsColumn(
                    low=None if leaf.low is None else pick(leaf.low),
                    high=None if leaf.high is None else pick(leaf.high),
                    null_count=pick(leaf.null_count),
                )
                for key, leaf in leaves.items()
            }
            some._known = (pick(records), picked)
        return some
