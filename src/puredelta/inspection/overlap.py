"""Overlap of a table's files: the number of files that a query for one value reads.

A column's *depth* is the number of files that may hold one value, on average over the bounds of all
files. 1 means that every value is in one file; the number of files means that none can be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.skipping.file_bounds import Bounds, FileBounds
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import DecimalType, PrimitiveType
from puredelta.protocol.table.stats import indexed_columns

FILES_MAX = 200_000
"""Limit of examined files in a table with more."""
COLUMNS_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDepth:
    """The overlap of files in one column."""

    column: str
    """Dotted, logical names."""
    is_partition: bool
    num_files: int
    num_without_bounds: int
    """Files without bounds of the column: no query can skip them."""
    average: float
    """Files that may hold one value; 0 for a table without files."""
    deepest: int

    @property
    def skipped_share(self) -> float:
        """The share of files that a query for one value skips, 0 to 1."""
        return 1 - self.average / self.num_files if self.num_files else 0.0


def column_depths(snapshot: Snapshot) -> tuple[ColumnDepth, ...]:
    """Return the depth of partition columns and of columns with statistics, in their order."""
    config, files = snapshot.config, snapshot.files
    if len(files) > FILES_MAX:
        files = files.take(pa.array(np.arange(FILES_MAX)))
    partitions = set(config.partition_columns)
    indexed = set(indexed_columns(config.data_schema, config.properties))
    refs = [
        Ref(Side.TARGET, path, field.type)
        for path, field in struct_fields(config.schema)
        if isinstance(field.type, PrimitiveType | DecimalType)
        and (path[0] in partitions or path in indexed)
    ][:COLUMNS_MAX]
    bounds = FileBounds(files, config, refs)
    found = ((ref, bounds.find(ref)) for ref in refs)
    return tuple(_depths(found, partitions, len(files)))


def _depths(
    found: Iterable[tuple[Ref, Bounds | None]], partitions: set[str], num_files: int
) -> Iterable[ColumnDepth]:
    for ref, bounds in found:
        if bounds is None or bounds.low is None or bounds.high is None:
            continue
        unknown, depths = _overlap(bounds.low, bounds.high, pa.array(bounds.might_have_value))
        yield ColumnDepth(
            column=".".join(ref.path),
            is_partition=ref.path[0] in partitions,
            num_files=num_files,
            num_without_bounds=unknown,
            average=float(depths.mean()) + unknown if len(depths) else float(unknown),
            deepest=int(depths.max(initial=0)) + unknown,
        )


def _overlap(
    low: pa.Array, high: pa.Array, with_value: pa.Array
) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the number of files without bounds, and of overlapping files for each bound."""
    known = pc.and_(pc.is_valid(low), pc.is_valid(high))
    usable = pc.and_(with_value, known)
    unknown = pc.sum(pc.and_(with_value, pc.invert(known))).as_py() or 0
    low, high = low.filter(usable), high.filter(usable)
    ends = pc.rank(pa.chunked_array([low, high]), sort_keys="ascending", tiebreaker="dense")
    ranks = np.asarray(ends).astype(np.int64)
    lows, highs = ranks[: len(low)], ranks[len(low) :]
    begun = np.searchsorted(np.sort(lows), ranks, side="right")
    ended = np.searchsorted(np.sort(highs), ranks, side="left")
    return int(unknown), begun - ended
