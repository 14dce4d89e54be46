"""Which files might hold a row that satisfies a predicate, from the log alone.

A file is skipped only where its partition values or statistics prove that no row of it
matches. A superset is always right, a missing file never is (X-69, X-72).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.evaluate import possible
from puredelta.log.skipping.file_bounds import FileBounds
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import Predicate, Ref, conjuncts, references


class SkippedBy(Enum):
    """What proved that files hold no matching row."""

    PARTITION_VALUES = "partition values"
    STATISTICS = "statistics"


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """How many files one conjunct ruled out that no earlier one had."""

    conjunct: Predicate
    by: SkippedBy
    num_files: int


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """The outcome for a list of files: which to read, and what ruled out the others."""

    mask: pa.Array
    """bool, one per file, without nulls: rows might match."""
    skipped: tuple[SkippedFiles, ...]
    """Only conjuncts that ruled out a file, in the order they were tried."""


def prune_files(
    files: FileTable, config: TableConfig, predicate: Predicate, *, by_statistics: bool = True
) -> pa.Array:
    """Return one bool per file, without nulls: false only if no row of it matches.

    References to the source side, unknown columns and whatever is `Opaque` never rule a
    file out, and without ``by_statistics`` partition values alone do.
    """
    return prune(files, config, predicate, by_statistics=by_statistics).mask


def prune(
    files: FileTable, config: TableConfig, predicate: Predicate, *, by_statistics: bool = True
) -> Pruning:
    """Prune and report; conjuncts over partition columns go first, being exact and cheap."""
    kept = np.ones(len(files), bool)
    skipped: list[SkippedFiles] = []
    parts = conjuncts(predicate)
    partition_columns = frozenset(config.partition_columns)
    by_partition = [p for p in parts if _is_about(p, partition_columns)]
    rest = [p for p in parts if by_statistics and not _is_about(p, partition_columns)]
    for by, some in (
        (SkippedBy.PARTITION_VALUES, by_partition),
        (SkippedBy.STATISTICS, rest),
    ):
        if not some or not kept.any():
            continue
        # Statistics are parsed only for the files that partition values have left.
        left = files if kept.all() else files.select(pa.array(kept))
        positions = np.flatnonzero(kept)
        known = frozenset().union(*map(references, some))
        bounds = FileBounds(left, config, _comparable(known, config))
        for conjunct in some:
            ruled_out = positions[~possible(conjunct, bounds).true]
            if num_files := int(kept[ruled_out].sum()):
                skipped.append(SkippedFiles(conjunct, by, num_files))
            kept[ruled_out] = False
    return Pruning(pa.array(kept, pa.bool_()), tuple(skipped))


def read_statistics(files: FileTable, config: TableConfig, refs: Iterable[Ref]) -> None:
    """Parse what pruning by these columns will ask for: the files keep it."""
    FileBounds(files, config, _comparable(frozenset(refs), config)).read()


def _comparable(refs: frozenset[Ref], config: TableConfig) -> frozenset[Ref]:
    """Leave out columns whose values are read otherwise than files hold them: ``char(n)``."""
    return frozenset(ref for ref in refs if ref.path[0] not in config.padded_columns)


def _is_about(predicate: Predicate, columns: frozenset[str]) -> bool:
    refs = references(predicate)
    return bool(refs) and all(ref.path[0] in columns for ref in refs)
