"""``df.mergeInto(table, condition)`` of PySpark, as a MERGE of this package.

The frame is the source. The table's columns can be qualified by its name, as in SQL text
(``table.column``). As in PySpark, methods change the writer and return it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.merge import MergeIntoWriter

from puredelta.commands.dml.execute import PreparedChange
from puredelta.commands.dml.spec import (
    Assignment,
    Clause,
    Delete,
    Expression,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    assignments,
    optional_condition,
    require_merge_condition,
)
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.resolve.table_attributes import qualified, table_identity
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.statements.execute.session_texts import texts_of
from puredelta.statements.execute.views import (
    require_no_view,
    require_whole_columns,
    require_whole_table,
)
from puredelta.statements.names.names import find_location, qualifier_of, require_table
from puredelta.statements.parse.table_name import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTarget:
    """The Delta table of a call."""

    log: TableLog
    rows: DataFrame
    """An empty frame; its columns are qualified by the name."""
    view: str | None = None
    """Its name, if it is a temporary view of a table."""


def find_target(spark: SparkSession, name: TableName) -> MergeTarget | None:
    """Return the Delta table of a name, or of a temporary view; None for anything else.

    Raises:
        TableNotFoundError: it is a path, and there is no table.
        DeltaError: it is a view that shows less than a table (M-31).
    """
    view = texts_of(spark).find_view(name)
    location = find_location(spark, name) if view is None else view.root_uri
    if location is None:
        require_no_view(spark, name, "MERGE")
        return None
    log = require_table(spark, location, name)
    if view is not None:
        require_whole_table(view, name, "MERGE", log=log)
    columns = table_identity(spark, log.snapshot().config.schema)
    return MergeTarget(
        log=log,
        rows=qualified(columns, qualifier_of(spark, name)),
        view=None if view is None else name.parts[-1],
    )


@methods_like_pyspark
class DeltaMergeInto(MergeIntoWriter):
    """The result of ``df.mergeInto`` for a Delta table."""

    def __init__(self, source_rows: DataFrame, target: MergeTarget, condition: Column) -> None:
        self._source_rows = source_rows
        self._target = target
        self._spec = MergeSpec(on=require_merge_condition(condition), clauses=())

    def whenMatched(self, condition: Column | None = None) -> WhenMatched:
        """Start a clause for rows of the table that match."""
        return WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNotMatched:
        """Start a clause for rows of the frame that match no row of the table."""
        return WhenNotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenNotMatchedBySource:
        """Start a clause for rows of the table that match no row of the frame."""
        return WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> DeltaMergeInto:
        """Add the frame's new columns and fields to the table."""
        self._spec = replace(self._spec, evolve_schema=True)
        return self

    def merge(self) -> None:
        """Run the MERGE.

        Raises:
            InvalidRequestError: the statement is wrong, or a row breaks a rule of the table,
                which is unchanged.
            UnsupportedError: the table or the statement needs a feature that is not implemented.
            ConflictError: another writer changed data that this MERGE read.
        """
        if self._target.view is not None:
            require_whole_columns(self._spec.clauses, self._target.view)
        prepared = PreparedChange(
            spark=self._source_rows.sparkSession,
            log=self._target.log,
            spec=self._spec,
            target_rows=self._target.rows,
            source_rows=self._source_rows,
        )
        prepared.execute()

    def add(self, clause: Clause) -> DeltaMergeInto:
        """Add a clause; the methods of clauses call it."""
        self._spec = replace(self._spec, clauses=(*self._spec.clauses, clause))
        return self


class _When:
    """A clause without its action yet."""

    def __init__(self, merge: DeltaMergeInto, condition: Column | None) -> None:
        self._merge = merge
        self._condition: Expression | None = optional_condition(condition)


@methods_like_pyspark
class WhenMatched(_When, MergeIntoWriter.WhenMatched):
    """``WHEN MATCHED``."""

    def updateAll(self) -> DeltaMergeInto:
        """Update every column with the frame's column of the same name."""
        return self._merge.add(Matched(Update(Star.STAR), self._condition))

    def update(self, assignments: dict[str, Column]) -> DeltaMergeInto:
        """Update columns of the table."""
        values = _values(assignments, "whenMatched().update")
        return self._merge.add(Matched(Update(values), self._condition))

    def delete(self) -> DeltaMergeInto:
        """Delete the rows."""
        return self._merge.add(Matched(Delete(), self._condition))


@methods_like_pyspark
class WhenNotMatched(_When, MergeIntoWriter.WhenNotMatched):
    """``WHEN NOT MATCHED``."""

    def insertAll(self) -> DeltaMergeInto:
        """Insert every column by name."""
        return self._merge.add(NotMatched(Insert(Star.STAR), self._condition))

    def insert(self, assignments: dict[str, Column]) -> DeltaMergeInto:
        """Insert some columns; the others are NULL, or their default."""
        values = _values(assignments, "whenNotMatched().insert")
        return self._merge.add(NotMatched(Insert(values), self._condition))


@methods_like_pyspark
class WhenNotMatchedBySource(_When, MergeIntoWriter.WhenNotMatchedBySource):
    """``WHEN NOT MATCHED BY SOURCE``."""

    def updateAll(self) -> DeltaMergeInto:
        """Refuse: there is no row of the frame to take the values from (M-06)."""
        raise InvalidRequestError(Message.ILLEGAL_USAGE_UPDATE_ALL)

    def update(self, assignments: dict[str, Column]) -> DeltaMergeInto:
        """Update columns of the table; values may use its columns only."""
        values = _values(assignments, "whenNotMatchedBySource().update")
        return self._merge.add(NotMatchedBySource(Update(values), self._condition))

    def delete(self) -> DeltaMergeInto:
        """Delete the rows."""
        return self._merge.add(NotMatchedBySource(Delete(), self._condition))


def _values(given: dict[str, Column], method: str) -> tuple[Assignment, ...]:
    return assignments(given, argument=f"'assignments' in {method}")
