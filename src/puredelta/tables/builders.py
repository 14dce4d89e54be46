"""Builders of MERGE and OPTIMIZE, as in ``delta.tables``."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession

from puredelta.commands.dml.execute import PreparedChange
from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    assignments,
    optional_condition,
)
from puredelta.commands.optimize import OptimizeSpec, prepare_optimize
from puredelta.commands.statement.prepared import Prepared, PreparedFiles
from puredelta.commands.statement.report import Report, last_report
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.pyspark_errors import methods_like_pyspark

__all__ = [
    "ColumnMapping",
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "ExpressionOrColumn",
    "PreparedChange",
    "PreparedMaintenance",
]


ExpressionOrColumn: TypeAlias = str | Column
ColumnMapping: TypeAlias = dict[str, str | Column] | dict[str, str] | dict[str, Column]


@methods_like_pyspark
class DeltaMergeBuilder:
    """Builder of a MERGE: every method returns a new builder, `execute` runs the statement.

    Conditions and values are SQL text or Columns. Clauses of a kind are tried in the order
    they were added; only the last may have no condition.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: TableLog,
        spec: MergeSpec,
        *,
        target_rows: DataFrame,
        source_rows: DataFrame,
        since: int | None = None,
    ) -> None:
        self._spark = spark
        self._log = log
        self._spec = spec
        self._target_rows = target_rows
        self._source_rows = source_rows
        self._since = since

    def whenMatchedUpdate(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Update matched rows; ``set`` maps columns of the target to values.

        An empty ``set`` without a condition adds nothing (M-11).
        """
        values = assignments(set, argument="'set' in whenMatchedUpdate")
        when = optional_condition(condition)
        return self if not values and when is None else self._with(Matched(Update(values), when))

    def whenMatchedUpdateAll(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Update every column of matched rows with the source's column of the same name."""
        return self._with(Matched(Update(Star.STAR), optional_condition(condition)))

    def whenMatchedDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(Matched(Delete(), optional_condition(condition)))

    def whenNotMatchedInsert(
        self, condition: ExpressionOrColumn | None = None, values: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows without a match; columns missing in ``values`` are NULL."""
        row = assignments(values, argument="'values' in whenNotMatchedInsert")
        return self._with(NotMatched(Insert(row), optional_condition(condition)))

    def whenNotMatchedInsertAll(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows without a match, every column by name."""
        return self._with(NotMatched(Insert(Star.STAR), optional_condition(condition)))

    def whenNotMatchedBySourceUpdate(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Update target rows without a match; values may use the target's columns only."""
        values = assignments(set, argument="'set' in whenNotMatchedBySourceUpdate")
        when = optional_condition(condition)
        if not values and when is None:
            return self
        return self._with(NotMatchedBySource(Update(values), when))

    def whenNotMatchedBySourceDelete(
        self, condition: ExpressionOrColumn | None = None
    ) -> DeltaMergeBuilder:
        """Delete target rows without a match."""
        return self._with(NotMatchedBySource(Delete(), optional_condition(condition)))

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add the source's new columns and fields to the table."""
        return self._replaced(replace(self._spec, evolve_schema=True))

    def execute(self) -> DataFrame:
        """Run the MERGE and return its counts.

        Returns:
            One row: ``num_affected_rows``, ``num_updated_rows``, ``num_deleted_rows``,
            ``num_inserted_rows``. The frame has the attribute ``report``.

        Raises:
            InvalidRequestError: the statement is wrong, a row breaks a rule of the table, or
                several source rows match one target row. The table is unchanged.
            UnsupportedError: the table or the statement needs a feature that is not implemented.
            ConflictError: another writer changed data that this MERGE read.
        """
        return self._prepared().execute()

    def explain(self, mode: str = "plan") -> Report:
        """Return the plan of the MERGE, with reasons; nothing is written, no row is read.

        ``"plan"`` runs no Spark job; ``"source"`` evaluates the source, so that its keys skip
        files. See ``docs/explain.md``.

        Raises:
            InvalidRequestError: the statement is wrong, or there is no such mode.
        """
        return self._prepared().explain(mode)

    def dry_run(self, *, check_new_rows: bool = True) -> Report:
        """Return the plan of the MERGE, with the counts that `execute` would have.

        Rows and files are searched as in `execute`, and nothing is changed. New rows are
        computed, too, so that rows that the table refuses are refused now, unless
        ``check_new_rows`` is false. Commits of other writers since the ``DeltaTable`` was made are
        listed, with their possible conflicts.

        Raises the errors of `execute` that occur before it writes.
        """
        return self._prepared().dry_run(check_new_rows=check_new_rows)

    def preview(self, limit: int = 20) -> DataFrame:
        """Return up to ``limit`` changed rows before and after; nothing is changed.

        The columns are the table's, ``_change_type`` (``insert``, ``update_preimage``,
        ``update_postimage``, ``delete``) and ``_clause``, the number of the clause, from 1. An
        updated row has two lines. The driver holds the rows, so keep the limit small.

        Raises the errors of `execute` that occur before it writes.
        """
        return self._prepared().preview(limit)

    def _prepared(self) -> PreparedChange:
        return PreparedChange(
            spark=self._spark,
            log=self._log,
            spec=self._spec,
            target_rows=self._target_rows,
            source_rows=self._source_rows,
            since=self._since,
        )

    def _with(self, clause: Clause) -> DeltaMergeBuilder:
        return self._replaced(replace(self._spec, clauses=(*self._spec.clauses, clause)))

    def _replaced(self, spec: MergeSpec) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(
            self._spark,
            self._log,
            spec,
            target_rows=self._target_rows,
            source_rows=self._source_rows,
            since=self._since,
        )


@methods_like_pyspark
class DeltaOptimizeBuilder:
    """Builder of an OPTIMIZE: `where` returns a new builder, the other methods run it."""

    def __init__(self, spark: SparkSession, log: TableLog, spec: OptimizeSpec) -> None:
        self._spark = spark
        self._log = log
        self._spec = spec

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Restrict the partitions to those for which this SQL condition is true, too.

        Raises:
            TypeError: it is no text.
        """
        if not isinstance(partitionFilter, str):
            raise TypeError(f"partitionFilter must be str. Found {type(partitionFilter)}")
        predicates = (*self._spec.predicates, partitionFilter)
        spec = replace(self._spec, predicates=predicates)
        return DeltaOptimizeBuilder(self._spark, self._log, spec)

    def explain(self, *cols: str) -> Report:
        """Return the files to rewrite, with reasons; only the log is read.

        ``cols`` are those of `executeZOrderBy`; without any it explains `executeCompaction`.
        """
        return self._prepared(cols).explain()

    def dry_run(self, *cols: str) -> Report:
        """Return the same as the report of a dry run: the files are known before a row is read."""
        return self._prepared(cols).dry_run()

    def _prepared(self, cols: tuple[str, ...]) -> PreparedFiles[DataFrame]:
        return prepare_optimize(self._spark, self._log, replace(self._spec, z_order_by=cols))

    def executeCompaction(self) -> DataFrame:
        """Combine small files, and rewrite those with many deleted rows.

        Returns:
            One row: ``path`` and ``metrics``, a struct of counts and sizes.

        Raises:
            InvalidRequestError: a filter is not on partition columns.
            ConflictError: another writer deleted one of the files meanwhile.
            UnsupportedError: the table needs a feature that is not implemented.
        """
        return self._prepared(()).execute()

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Order the rows of each partition along a Z-order curve over these columns.

        Returns:
            One row, as `executeCompaction`.

        Raises:
            TypeError: a column is no text.
            InvalidRequestError: a column partitions the table, does not exist or has no
                statistics.

        Examples:
            >>> today = events.optimize().where("day = '2024-01-01'")  # doctest: +SKIP
            >>> today.executeZOrderBy("user_id")  # doctest: +SKIP
        """
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        columns: list[str] = []
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"Z-order column must be str. Found {name} with type {type(name)}")
            columns.append(name)
        return self._prepared(tuple(columns)).execute()


@methods_like_pyspark
class PreparedMaintenance:
    """A prepared VACUUM or RESTORE: `explain`, `dry_run`, and finally `execute`."""

    def __init__(self, prepared: Prepared[object]) -> None:
        self._prepared = prepared

    def explain(self) -> Report:
        """Return the added and removed files, with reasons; changes nothing, runs no Spark job."""
        return self._prepared.explain()

    def dry_run(self) -> Report:
        """Return the same as the report of a dry run.

        Raises the errors of `execute` that occur before it changes anything.
        """
        return self._prepared.dry_run()

    def execute(self) -> Report | None:
        """Run the statement and return its report."""
        before = last_report()
        self._prepared.execute()
        after = last_report()
        return None if after is before else after
