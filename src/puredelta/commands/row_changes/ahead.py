"""Parses statistics of the table's files while the statement is resolved and its source staged.

The plan needs all three, and Spark has a core to spare while it analyses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from puredelta.commands.row_changes.statement import ResolvedStatement
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import read_statistics
from puredelta.protocol.schema.types import DecimalType, PrimitiveType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import Ref, Side, references

FILES_MIN = 256
"""With fewer a thread gains nothing."""
_WORD = re.compile(r"\w+")


class StatisticsPrefetch:
    """Statistics that are being parsed; errors are left to whoever asks for them next."""

    def __init__(
        self, files: FileTable, config: TableConfig, thread: ThreadPoolExecutor | None
    ) -> None:
        self._files, self._config, self._thread = files, config, thread
        self._running: list[Future[None]] = []

    def guess(self, on: object) -> None:
        """Parse those of all columns whose names are words of a condition nobody has resolved.

        What is in vain costs less than to wait until Spark has told the columns. ``on`` may be
        anything that tells it as text, which a Column asks the JVM for.
        """
        if self._thread is None:
            return
        words = {word.lower() for word in _WORD.findall(str(on))}
        self._parse(
            frozenset(
                Ref(Side.TARGET, (field.name,), field.type)
                for field in self._config.schema.fields
                if field.name.lower() in words
                and isinstance(field.type, PrimitiveType | DecimalType)
            )
        )

    def ask(self, statement: ResolvedStatement) -> None:
        """Parse what ON asks for, as far as nobody has."""
        parts = statement.on.parts
        self._parse(
            frozenset(pair.target for pair in parts.pairs).union(
                *map(references, parts.target_only)
            )
        )

    def wait(self) -> None:
        """Wait until all of it is there."""
        for parsing in self._running:
            parsing.exception()

    def _parse(self, refs: frozenset[Ref]) -> None:
        """Parse statistics, unless there are partitions to ask, which leave few files."""
        partitioned = any(ref.path[0] in self._config.partition_columns for ref in refs)
        if self._thread is not None and refs and not partitioned:
            self._running.append(
                self._thread.submit(read_statistics, self._files, self._config, refs)
            )


@contextmanager
def statistics_ahead(
    files: FileTable, config: TableConfig, *, by_statistics: bool = True
) -> Iterator[StatisticsPrefetch]:
    """Parse statistics meanwhile; what is being parsed at the end is waited for.

    Nothing is parsed if it gains nothing: of few files, or if none is skipped by statistics.
    """
    with ThreadPoolExecutor(1, "puredelta-statistics") as thread:
        wanted = by_statistics and len(files) >= FILES_MIN
        yield StatisticsPrefetch(files, config, thread if wanted else None)
