"""Files that might hold a row that satisfies a predicate, from the log alone.

A file is skipped only where its partition values or statistics prove that no row of it
matches. A superset is always right, a missing file never is (X-69, X-72).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics
from puredelta.log.skipping.derived import derived_conditions
from puredelta.log.skipping.evaluate import columns_of_numbers, might_be_true
from puredelta.log.skipping.file_bounds import FileBounds
from puredelta.protocol.schema.predicates import Predicate, Ref, conjuncts, references
from puredelta.protocol.table.table_config import TableConfig


class SkippedBy(Enum):
    """The proof that files hold no matching row."""

    PARTITION_VALUES = "partition values"
    STATISTICS = "statistics"


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """How many files one conjunct ruled out that no earlier one had."""

    conjunct: Predicate
    by: SkippedBy
    num_files: int
    size_bytes: int = 0
    """Of these files."""


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """The files to read, and the reasons that ruled out the others."""

    mask: pa.Array
    """bool, one per file, without nulls: rows might match."""
    skipped: tuple[SkippedFiles, ...]
    """Only conjuncts that ruled out a file, in the order they were tried."""
    statistics: FileStatistics
    """Statistics of all files: the given ones, and those that were parsed for all files."""


def prune_files(
    files: FileTable, config: TableConfig, predicate: Predicate, *, by_statistics: bool = True
) -> pa.Array:
    """Return one bool per file, without nulls: false only if no row of the file matches.

    References to the source side, unknown columns and `Opaque` parts never rule a file out.
    Without ``by_statistics`` only partition values do.
    """
    return prune(files, config, predicate, by_statistics=by_statistics).mask


def prune(
    files: FileTable,
    config: TableConfig,
    predicate: Predicate,
    *,
    by_statistics: bool = True,
    statistics: FileStatistics = NOTHING_PARSED,
    bounds_tell_nan: bool = False,
) -> Pruning:
    """Prune and report what ruled out how many files.

    Conjuncts over partition columns are tried first, because they are exact and cheap; so are
    those that follow from conjuncts over the sources of generated partition columns.
    ``statistics`` are those of ``files`` that are parsed already. ``bounds_tell_nan`` as in
    `FileBounds`.
    """
    kept = np.ones(len(files), bool)
    skipped: list[SkippedFiles] = []
    parts = (*conjuncts(predicate), *derived_conditions(predicate, config))
    partition_columns = frozenset(config.partition_columns)
    by_partition = [p for p in parts if _uses_only(p, partition_columns)]
    rest = [p for p in parts if by_statistics and not _uses_only(p, partition_columns)]
    for by, some in (
        (SkippedBy.PARTITION_VALUES, by_partition),
        (SkippedBy.STATISTICS, rest),
    ):
        if not some or not kept.any():
            continue
        # Statistics are parsed only for the files that partition values have left.
        mask = pa.array(kept)
        left, known = (
            (files, statistics) if kept.all() else (files.select(mask), statistics.select(mask))
        )
        positions = np.flatnonzero(kept)
        sizes = left.rows["size_bytes"]
        refs = frozenset().union(*map(references, some))
        bounds = FileBounds(
            left, config, _comparable(refs, config), known, bounds_tell_nan=bounds_tell_nan
        )
        numbers = columns_of_numbers(parts)
        for conjunct in some:
            gone = kept[positions] & ~might_be_true(conjunct, bounds, numbers)
            if num_files := int(np.count_nonzero(gone)):
                size_bytes = pc.sum(sizes.filter(pa.array(gone))).as_py()
                skipped.append(SkippedFiles(conjunct, by, num_files, size_bytes or 0))
                kept[positions[gone]] = False
        if left is files:
            statistics = bounds.statistics
    return Pruning(pa.array(kept, pa.bool_()), tuple(skipped), statistics)


def parse_statistics(
    files: FileTable,
    config: TableConfig,
    refs: Iterable[Ref],
    statistics: FileStatistics = NOTHING_PARSED,
) -> FileStatistics:
    """Return ``statistics`` together with those that pruning by ``refs`` needs."""
    comparable = _comparable(frozenset(refs), config)
    return FileBounds(files, config, comparable, statistics).parse()


def _comparable(refs: frozenset[Ref], config: TableConfig) -> frozenset[Ref]:
    """Leave out ``char(n)``: its values are padded when they are read, so bounds do not hold."""
    return frozenset(ref for ref in refs if ref.path[0] not in config.padded_columns)


def _uses_only(predicate: Predicate, columns: frozenset[str]) -> bool:
    refs = references(predicate)
    return bool(refs) and all(ref.path[0] in columns for ref in refs)
