"""Statistics of the table's files that are parsed while the statement is resolved.

Pruning needs them and the resolved statement, and Spark has a core to spare while it analyses.
The columns are guessed from the text of the condition, and completed once the statement is
resolved. `StatisticsPrefetch.result` hands them over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from puredelta.log.files.file_statistics import NOTHING_PARSED, FileStatistics
from puredelta.log.files.file_table import FileTable
from puredelta.log.skipping.pruning import parse_statistics
from puredelta.protocol.schema.types import DecimalType, PrimitiveType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import Ref, Side

FILES_MIN = 256
"""With fewer files a thread gains nothing."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPrefetch:
    """Statistics of ``files`` that a thread is parsing; every method returns another value."""

    files: FileTable
    config: TableConfig
    by_statistics: bool = True
    """Whether the session lets files be skipped by statistics at all."""
    refs: frozenset[Ref] = frozenset()
    """The columns that are parsed."""
    parsing: Future[FileStatistics] | None = field(default=None, repr=False)

    def guess(self, condition: object) -> StatisticsPrefetch:
        """Parse the columns whose names are words of a condition that is not resolved yet.

        A column that is parsed in vain costs less than waiting for Spark's analysis. The text
        of ``condition`` is asked for only if something is parsed: a Column asks the JVM.
        """
        if not self._is_worthwhile:
            return self
        words = {word.lower() for word in _WORD.findall(str(condition))}
        return self.including(
            frozenset(
                Ref(Side.TARGET, (column.name,), column.type)
                for column in self.config.schema.fields
                if column.name.lower() in words
                and isinstance(column.type, PrimitiveType | DecimalType)
            )
        )

    def including(self, refs: frozenset[Ref]) -> StatisticsPrefetch:
        """Parse these columns, too, unless there are partition values, which leave few files."""
        partitioned = any(ref.path[0] in self.config.partition_columns for ref in refs)
        if not self._is_worthwhile or partitioned or refs <= self.refs:
            return self
        parse = partial(self._parse, refs)
        return replace(self, refs=self.refs | refs, parsing=_in_thread(parse))

    def of(self, files: FileTable) -> StatisticsPrefetch:
        """Parse the same columns of other files of the table."""
        other = replace(self, files=files, refs=frozenset(), parsing=None)
        return other.including(self.refs)

    def result(self) -> FileStatistics:
        """Wait, and return what is parsed; an error is left to the next one who parses."""
        if self.parsing is None or self.parsing.exception() is not None:
            return NOTHING_PARSED
        return self.parsing.result()

    @property
    def _is_worthwhile(self) -> bool:
        return self.by_statistics and len(self.files) >= FILES_MIN

    def _parse(self, refs: frozenset[Ref]) -> FileStatistics:
        return parse_statistics(self.files, self.config, refs, self.result())


def _in_thread(parse: Callable[[], FileStatistics]) -> Future[FileStatistics]:
    """Start a thread for one call; the thread ends with the call."""
    thread = ThreadPoolExecutor(1, "puredelta-statistics")
    try:
        return thread.submit(parse)
    finally:
        thread.shutdown(wait=False)
