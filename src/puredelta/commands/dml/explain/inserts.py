"""How many rows each INSERT clause would add, counted without writing one."""

from __future__ import annotations

from pyspark.sql import functions as F

from puredelta.commands.dml.decide.decide import Decision
from puredelta.commands.dml.new_rows.frame import FIRST_INSERT, marked_source
from puredelta.commands.dml.source.context import StatementContext
from puredelta.spark.session.helper_columns import CLAUSE


def count_inserts(context: StatementContext, decision: Decision) -> tuple[int, ...]:
    """Return the rows of each NOT MATCHED clause, in their order.

    Runs one Spark job where conditions decide or several clauses share the rows, else none.
    """
    clauses, rows = context.statement.not_matched, decision.rows
    if not rows.inserts:
        return tuple(0 for _ in clauses)
    if len(clauses) == 1 and rows.num_inserts is not None:
        return (rows.num_inserts,)
    read = frozenset[str]().union(
        *(c.condition.source_columns for c in clauses if c.condition is not None)
    )
    frame, clause = marked_source(context, decision.positions, (), clauses, read)
    chosen = frame.select(clause.cast("int").alias(CLAUSE)).where(F.col(CLAUSE).isNotNull())
    counted = context.statement.timestamp.bind(chosen.groupBy(CLAUSE).count()).collect()
    counts = {row[CLAUSE] - FIRST_INSERT: int(row["count"]) for row in counted}
    return tuple(counts.get(n, 0) for n in range(len(clauses)))


def known_inserts(decision: Decision, num_clauses: int, inserted: int) -> tuple[int | None, ...]:
    """Return the rows of each clause as far as their total tells."""
    if num_clauses == 1 or not decision.rows.inserts:
        return tuple(inserted for _ in range(num_clauses))
    return tuple(None for _ in range(num_clauses))
