"""Stage 1: statements as given, before any schema is known.

The fluent builders and the SQL parser both end in a `MergeSpec`, `UpdateSpec` or `DeleteSpec`; all
later stages are shared. Expressions are the user's: SQL text or a Spark ``Column``.

Only checks without a schema are made here. They are delta-spark's, wrong types included: existing
code and tests match on them.

Statistics for pruning are parsed in the background (`StatisticsPrefetch`), since Spark leaves a
core idle during its analysis. Their columns are guessed from the text of the condition, and
completed after the statement is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from typing_extensions import assert_never

from puredelta.commands.command import Command, start_command
from puredelta.commands.compaction import AUTO_COMPACTION
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.file_options import CommitSettings
from puredelta.commands.statement.stages import StageName
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.commit.commit_request import Phase, ignore_phase
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics
from puredelta.log.replay.table_log import TableLog
from puredelta.log.skipping.pruning import parse_statistics
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import Ref, Side
from puredelta.protocol.schema.types import DecimalType, PrimitiveType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.types import quoted

Expression: TypeAlias = str | Column
"""SQL text, or a Column as the user built it."""


class Star(Enum):
    """``UPDATE SET *`` and ``INSERT *``: every column, resolved later by name."""

    STAR = "*"


class Stage(StageName):
    """Stages of MERGE, UPDATE, DELETE and ``replaceWhere``, and the counts of a dry run."""

    SPEC = "1 spec"
    RESOLVE = "2 resolve"
    SOURCE = "3 source"
    PRUNE = "4 prune"
    SEARCH = "5 search"
    DECIDE = "6 decide"
    COUNT_INSERTS = "6 count inserts"
    NEW_ROWS = "7 new rows"
    CHECK_NEW_ROWS = "7 check new rows"
    WRITE = "8 write"
    VERIFY = "9 verify"
    ACTIONS = "10 actions"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Assignment:
    """``column = value``; ``column`` is SQL text: qualified, nested, back-ticked (M-25)."""

    column: str
    value: Expression


Assignments: TypeAlias = tuple[Assignment, ...] | Star
"""In the user's order. A tuple, not a mapping: a column named twice is an error to report."""


@dataclass(frozen=True, slots=True)
class Update:
    """``THEN UPDATE SET``."""

    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Delete:
    """``THEN DELETE``."""


@dataclass(frozen=True, slots=True)
class Insert:
    """``THEN INSERT``."""

    assignments: Assignments


@dataclass(frozen=True, slots=True)
class Matched:
    """``WHEN MATCHED [AND condition]``."""

    action: Update | Delete
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatched:
    """``WHEN NOT MATCHED [BY TARGET] [AND condition]``."""

    action: Insert
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatchedBySource:
    """``WHEN NOT MATCHED BY SOURCE [AND condition]``; never a star (M-06)."""

    action: Update | Delete
    condition: Expression | None = None


Clause: TypeAlias = Matched | NotMatched | NotMatchedBySource
"""Closed union: ``match`` over it ends in ``assert_never``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSpec:
    """One MERGE statement. Within a kind, the order of clauses decides which fires (M-07)."""

    on: Expression
    clauses: tuple[Clause, ...]
    evolve_schema: bool = False

    @property
    def matched(self) -> tuple[Matched, ...]:
        """The MATCHED clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, Matched))

    @property
    def not_matched(self) -> tuple[NotMatched, ...]:
        """The NOT MATCHED clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, NotMatched))

    @property
    def not_matched_by_source(self) -> tuple[NotMatchedBySource, ...]:
        """The NOT MATCHED BY SOURCE clauses in order."""
        return tuple(c for c in self.clauses if isinstance(c, NotMatchedBySource))


_OMITTED: dict[type[Clause], Message] = {
    Matched: Message.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    NotMatched: Message.NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
    NotMatchedBySource: Message.NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
}


def require_clauses(spec: MergeSpec) -> None:
    """Refuse a MERGE without a clause, or with an unreachable one.

    Raises:
        InvalidRequestError: no clause (M-09), or a clause that is not the last of its
            kind has no condition, so that later ones could never fire (M-08).
    """
    if not spec.clauses:
        raise InvalidRequestError(Message.MERGE_MISSING_WHEN)
    for some in (spec.matched, spec.not_matched, spec.not_matched_by_source):
        if any(clause.condition is None for clause in some[:-1]):
            raise InvalidRequestError(_OMITTED[type(some[0])])


def action_word(clause: Clause) -> str:
    """Return the action's name in messages and history: ``update``, ``delete`` or ``insert``."""
    match clause.action:
        case Update():
            return "update"
        case Delete():
            return "delete"
        case Insert():
            return "insert"
        case _:
            assert_never(clause.action)


TARGET, SOURCE = "__puredelta_old", "__puredelta_new"
"""The aliases of the table and of the new rows in the MERGE of a `ReplaceSpec`."""


_IS_KEY = "_puredelta_is_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceBy:
    """The comparison by which an overwrite finds the old rows that its new rows replace.

    NULL in a compared column is equal to nothing: such rows stay.
    """

    columns: tuple[str, ...] = ()
    """Columns of equal values (``replaceUsing``)."""
    condition: str | None = None
    """A condition on rows of both sides instead (``replaceOn``)."""
    given: str = ""
    """The text of the option."""
    target_alias: str = TARGET
    source_alias: str | None = SOURCE
    """None: the columns of the new rows keep the names of their relations."""

    @property
    def option(self) -> str:
        """The option of the write that asks for it."""
        return "replaceUsing" if self.condition is None else "replaceOn"

    @property
    def text(self) -> str:
        """The comparison in SQL."""
        if self.condition is not None:
            return self.condition
        target, source = quoted(self.target_alias), quoted(SOURCE)
        return " AND ".join(
            f"{target}.{quoted(name)} = {source}.{quoted(name)}" for name in self.columns
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceSpec:
    """New rows, used as the source, that replace old rows: those of a condition, or those that
    are compared with a new row.
    """

    where: str | None = None
    target_alias: str | None = None
    """The name of the table in ``where``, if it has one there."""
    by: ReplaceBy | None = None
    """Instead of ``where``."""
    columns: tuple[str, ...]
    """The names of the new rows' columns."""
    evolves: bool
    """Whether columns that only the new rows have are added to the table."""
    operation: Operation
    """The name of the write in the history."""

    @property
    def aliases(self) -> tuple[str, str | None]:
        """The names of the table and of the new rows; None: those have several names."""
        if self.by is None:
            return TARGET if self.target_alias is None else self.target_alias, SOURCE
        return self.by.target_alias, self.by.source_alias

    def source(self, rows: DataFrame) -> DataFrame:
        """Return the source of the MERGE for some new rows.

        Where rows are compared it has every row twice: as a row to insert, and as a key.
        """
        if self.by is None:
            return rows
        both = F.explode(F.array(F.lit(False), F.lit(True)))  # noqa: FBT003 - those are the values
        return rows.withColumn(_IS_KEY, both)

    def as_merge(self) -> MergeSpec:
        """Return the MERGE in which new rows match nothing and are inserted.

        Old rows are deleted by the condition, or because a key matches them.
        """
        _, alias = self.aliases
        source = "" if alias is None else f"{quoted(alias)}."
        values = tuple(Assignment(quoted(name), f"{source}{quoted(name)}") for name in self.columns)
        if self.by is not None:
            is_key = f"{source}{_IS_KEY}"
            return MergeSpec(
                # Each text is parsed alone: a bracket in one cannot change the other.
                on=F.expr(is_key) & F.expr(self.by.text),
                clauses=(
                    Matched(Delete(), None),
                    NotMatched(Insert(values), f"NOT {is_key}"),
                ),
                evolve_schema=self.evolves,
            )
        return MergeSpec(
            on=F.lit(False),  # noqa: FBT003 - that is the value
            clauses=(
                NotMatched(Insert(Star.STAR if self.evolves else values), None),
                NotMatchedBySource(Delete(), self.where),
            ),
            evolve_schema=self.evolves,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSpec:
    """``UPDATE ... SET column = value, ... [WHERE condition]``; without one, every row."""

    assignments: tuple[Assignment, ...]
    """In the user's order. A tuple: a column named twice is an error to report."""
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSpec:
    """``DELETE FROM ... [WHERE condition]``; without one, every row."""

    condition: Expression | None = None


RowSpec: TypeAlias = UpdateSpec | DeleteSpec
"""Closed union: ``match`` over it ends in ``assert_never``."""


def operation_name(spec: RowSpec) -> str:
    """Return the statement's name in the history and in messages."""
    return "UPDATE" if isinstance(spec, UpdateSpec) else "DELETE"


def require_source(source: object) -> DataFrame:
    """Return the source.

    Raises:
        ValueError: it is missing.
        TypeError: it is no DataFrame.
    """
    if source is None:
        raise ValueError("'source' in merge cannot be None")
    if not isinstance(source, DataFrame):
        raise TypeError("Type of 'source' in merge must be DataFrame.")
    return source


def require_merge_condition(condition: object) -> Expression:
    """Return the ON condition.

    Raises:
        ValueError: it is missing.
        TypeError: it is neither text nor a Column.
    """
    if condition is None:
        raise ValueError("'condition' in merge cannot be None")
    return _expression(condition)


def optional_condition(condition: object) -> Expression | None:
    """Return the condition of a clause, which may be missing."""
    return None if condition is None else _expression(condition)


def assignments(mapping: object, *, argument: str) -> tuple[Assignment, ...]:
    """Return the assignments of a clause; ``argument`` is its name in messages.

    Raises:
        ValueError: the mapping is missing.
        TypeError: it is no dict, or holds other values than names and expressions.
    """
    if mapping is None:
        raise ValueError(f"{argument} cannot be None")
    if type(mapping) is not dict:
        raise TypeError(f"{argument} must be a dict, found to be {type(mapping)}")
    made: list[Assignment] = []
    for column, value in mapping.items():
        if type(column) is not str:
            raise TypeError(
                f"Keys of dict in {argument} must contain only strings with column names, found "
                f"'{column}' of type '{type(column)}"
            )
        if not isinstance(value, str | Column):
            raise TypeError(
                f"Values of dict in {argument} must contain only Spark SQL Columns or strings "
                f"(expressions in SQL syntax) as values, found '{value}' of type '{type(value)}'"
            )
        made.append(Assignment(column, value))
    return tuple(made)


def _expression(condition: object) -> Expression:
    if not isinstance(condition, str | Column):
        raise TypeError(
            "'condition' must be a Spark SQL Column or a string (expression in SQL syntax), found "
            f"to be of type {type(condition)}"
        )
    return condition


FILES_MIN = 256
"""For fewer files a thread is no faster."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPrefetch:
    """Statistics of ``files`` that a thread parses; every method returns a new value."""

    files: FileTable
    config: TableConfig
    by_statistics: bool = True
    """Whether the session lets files be skipped by statistics at all."""
    refs: frozenset[Ref] = frozenset()
    """The parsed columns."""
    parsing: Future[FileStatistics] | None = field(default=None, repr=False)

    def guess(self, condition: object) -> StatisticsPrefetch:
        """Parse the columns whose names are words of a condition that is not resolved yet.

        A column that is parsed in vain costs less than waiting for Spark's analysis. The text
        of ``condition`` is requested only if something is parsed: a Column asks the JVM.
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
        """Parse these columns, too, unless partition values leave few files anyway."""
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
        """Wait for the result; nothing if parsing failed, then pruning parses again and raises."""
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


StatementSpec: TypeAlias = MergeSpec | UpdateSpec | DeleteSpec | ReplaceSpec
"""Closed union: ``match`` over it ends in ``assert_never``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRows:
    """The rows to which the names of a statement refer."""

    target: DataFrame
    """The user's frame of the table. The table is read from the log, never through it."""
    source: DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A statement as given; nothing is resolved yet."""

    command: Command
    settings: ExecutionSettings
    spec: StatementSpec
    rows: InputRows
    statistics: StatisticsPrefetch
    """Statistics of the columns that the condition seems to name."""


def ask(
    command: Command,
    spec: StatementSpec,
    rows: InputRows,
    settings: ExecutionSettings | None = None,
) -> Asked:
    """Check the clauses, and start to parse statistics; runs no Spark job.

    ``settings`` are those of the session unless they are given.
    """
    if settings is None:
        settings = ExecutionSettings.parse(command.session.settings)
    statistics = StatisticsPrefetch(
        files=command.snapshot.files,
        config=command.snapshot.config,
        by_statistics=settings.skips_by_statistics,
    )
    if isinstance(spec, MergeSpec):
        require_clauses(spec)
        statistics = statistics.guess(spec.on)
    return Asked(command=command, settings=settings, spec=spec, rows=rows, statistics=statistics)


def start_statement(
    spark: SparkSession, log: TableLog, *, on_phase: Callable[[Phase], None] = ignore_phase
) -> Command:
    """Start a call on the newest version of a table; small files are compacted afterwards."""
    command = start_command(spark, log, Capability.MERGE, on_phase=on_phase)
    settings = CommitSettings.parse_idempotent(command.session.settings)
    return replace(command, settings=settings, hooks=(AUTO_COMPACTION,))
