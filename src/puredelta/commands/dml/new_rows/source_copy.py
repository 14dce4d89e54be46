"""Whether new rows are rows of the source as they are, so that nothing has to be computed.

That is so where every clause that fires takes each column of the table from a column of the
source of the same type, as ``UPDATE SET *`` and ``INSERT *`` do, and the table asks nothing of
new rows: no constraint, no generated value, no row id, no change data feed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column

from puredelta.commands.dml.decide.decide import Decision
from puredelta.commands.dml.decide.row_plan import RowPlan
from puredelta.commands.dml.resolve.statement import ResolvedStatement
from puredelta.commands.dml.search.positions import RowPositions, united
from puredelta.commands.dml.source.context import StatementContext
from puredelta.log.files.stored_types import stored_type
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import BOOLEAN, DATE, INTEGRAL, STRING
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.source_copy import SourceCopy
from puredelta.spark.scan.bitmaps import RowsByFile
from puredelta.spark.session.session import is_connect

_PARTITION_TYPES = INTEGRAL | {BOOLEAN, DATE, STRING}
"""Types whose values are spelled in one way only."""


def copied_rows(context: StatementContext, decision: Decision) -> SourceCopy | None:
    """Return the rows of the source that are written as they are; ``None`` if Spark has to
    make new rows.
    """
    source, statement, row_plan = context.source, context.statement, decision.rows
    staged = source.staged
    if context.settings.codec is None or is_connect(context.spark):
        return None
    if staged is None or row_plan.from_target or row_plan.recorded or context.tracked is not None:
        return None
    columns = _columns(statement, row_plan)
    stored = stored_types(statement.config)
    if columns is None or stored is None:
        return None
    rows, include = _rows(decision.positions, row_plan)
    return SourceCopy(
        files=staged.files,
        group_rows=staged.group_rows,
        size_bytes=source.profile.size_bytes,
        rows=rows,
        include=include,
        columns=tuple(
            (source.names.in_file(columns[name]), name, kind) for name, kind in stored.items()
        ),
        num_partition_columns=len(statement.config.partition_columns),
    )


def _rows(positions: RowPositions, row_plan: RowPlan) -> tuple[RowsByFile, bool]:
    """Return the source rows to write; where there are inserts, those that are not."""
    updated = united(*(fired.source or {} for fired in row_plan.from_source))
    if not row_plan.inserts:
        return updated, True
    left_out = {
        file: rows - updated[file] if file in updated else rows
        for file, rows in positions.matched_source.items()
    }
    return {file: rows for file, rows in left_out.items() if len(rows)}, False


def _columns(statement: ResolvedStatement, row_plan: RowPlan) -> dict[str, str] | None:
    """Return the source column of each of the table's, if all clauses that fire agree on it."""
    every: list[Mapping[str, Column]] = [fired.action.values for fired in row_plan.from_source]
    if row_plan.inserts:
        first = statement.not_matched[0]
        if first.condition is not None:
            return None
        every.append(first.action.values)
    frames = statement.frames
    staged = {id(frames.source_column(c.staged)): c.staged for c in statement.source_columns}
    found = [plain_columns(values, staged) for values in every]
    if not found or None in found or any(columns != found[0] for columns in found):
        return None
    return found[0]


def plain_columns(values: Mapping[str, Column], staged: Mapping[int, str]) -> dict[str, str] | None:
    """Return the source column that each value is, ``None`` if one is anything else.

    ``staged`` names source columns by the identity of their Columns: a cast makes another one.
    """
    found = {name: staged.get(id(value)) for name, value in values.items()}
    plain = {name: column for name, column in found.items() if column is not None}
    return plain if len(plain) == len(values) else None


def stored_types(config: TableConfig) -> dict[str, pa.DataType] | None:
    """Return how each column of the table is stored, ``None`` if rows need more than storing.

    Columns of partitions come last, as if they were stored, in their own order.
    """
    asks = (
        config.check_constraints
        or config.invariants
        or config.generated_columns
        or config.identity_columns
        or config.char_varchar_columns
        or config.column_mapping is not ColumnMappingMode.NONE
    )
    if asks:
        return None
    stored: dict[str, pa.DataType] = {}
    for field in config.schema.fields:
        kind = stored_type(field.type)
        if kind is None or not field.nullable:
            return None
        stored[field.name] = kind
    if any(field.type not in _PARTITION_TYPES for field in config.partition_schema.fields):
        return None
    for name in config.partition_columns:
        stored[name] = stored.pop(name)
    return stored
