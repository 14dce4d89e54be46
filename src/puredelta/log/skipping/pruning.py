"""Which files might hold a row that satisfies a predicate, from the log alone.

A file is skipped only where its partition values or statistics prove that no row of it
matches. A superset is always right, a missing file never is (X-69, X-72).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.evaluate import might_match
from puredelta.log.skipping.file_bounds import FileBounds
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import Predicate, Ref, conjuncts, references


def prune_files(
    files: FileTable, config: TableConfig, predicate: Predicate, *, by_statistics: bool = True
) -> pa.Array:
    """Return one bool per file, without nulls: false only if no row of the file matches.

    References to the source side, unknown columns and `Opaque` parts never rule a file out.
    Without ``by_statistics`` only partition values do. Conjuncts over partition columns are
    tried first, because they are exact and cheap.
    """
    kept = np.ones(len(files), bool)
    partition_columns = frozenset(config.partition_columns)
    parts = conjuncts(predicate)
    exact = [part for part in parts if _uses_only(part, partition_columns)]
    others = [part for part in parts if not _uses_only(part, partition_columns)]
    for some in (exact, others if by_statistics else []):
        if not some or not kept.any():
            continue
        # Statistics are parsed only for the files that partition values have left.
        left = files if kept.all() else files.select(pa.array(kept))
        refs = frozenset().union(*map(references, some))
        bounds = FileBounds(left, config, _comparable(refs, config))
        kept[kept] = np.logical_and.reduce([might_match(part, bounds).true for part in some])
    return pa.array(kept, pa.bool_())


def read_statistics(files: FileTable, config: TableConfig, refs: Iterable[Ref]) -> None:
    """Parse the statistics that pruning by these columns needs; ``files`` keep them."""
    FileBounds(files, config, _comparable(frozenset(refs), config)).read()


def _comparable(refs: frozenset[Ref], config: TableConfig) -> frozenset[Ref]:
    """Leave out ``char(n)``: its values are padded when they are read, so bounds do not hold."""
    return frozenset(ref for ref in refs if ref.path[0] not in config.padded_columns)


def _uses_only(predicate: Predicate, columns: frozenset[str]) -> bool:
    refs = references(predicate)
    return bool(refs) and all(ref.path[0] in columns for ref in refs)
