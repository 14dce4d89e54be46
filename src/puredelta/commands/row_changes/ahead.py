"""Parses statistics of the table's files while the source is staged: the plan needs both."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from puredelta.commands.row_changes.statement import ResolvedStatement
from puredelta.log.file_table import FileTable
from puredelta.log.pruning import read_statistics
from puredelta.protocol.predicates import Ref, references
from puredelta.protocol.table_config import TableConfig

FILES_MIN = 256
"""With fewer a thread gains nothing."""


@contextmanager
def statistics_ahead(
    files: FileTable,
    config: TableConfig,
    statement: ResolvedStatement,
    *,
    by_statistics: bool = True,
) -> Iterator[None]:
    """Meanwhile parse the statistics that ON asks for; they are there at the end.

    ``by_statistics``: whether files will be skipped by them at all.

    Where ON speaks of partitions, their values leave few files to ask about, and nothing is
    parsed ahead. Errors are left to whoever asks next.
    """
    refs = _asked(statement)
    partitioned = any(ref.path[0] in config.partition_columns for ref in refs)
    if not by_statistics or len(files) < FILES_MIN or not refs or partitioned:
        yield
        return
    with ThreadPoolExecutor(1, "puredelta-statistics") as thread:
        thread.submit(read_statistics, files, config, refs)
        yield


def _asked(statement: ResolvedStatement) -> frozenset[Ref]:
    parts = statement.on.parts
    return frozenset(pair.target for pair in parts.pairs).union(*map(references, parts.target_only))
