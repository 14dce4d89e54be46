"""Whether the rows of a statement can be found by looking keys up, without a join. Pure.

A lookup is possible where ON asks for equality of plain columns, and whatever else decides is
something that Arrow decides as Spark does. It is worth it as long as every task can hold the
source's keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from puredelta.commands.dml.resolve.statement import (
    EquiPair,
    MatchedClause,
    NotMatchedBySourceClause,
    ResolvedStatement,
)
from puredelta.commands.dml.source.staged_source import ColumnNames
from puredelta.protocol.features.properties import ColumnMappingMode
from puredelta.protocol.schema.types import (
    DATE,
    FLOAT,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
)
from puredelta.protocol.table.table_config import TableConfig
from puredelta.protocol.values.predicates import And
from puredelta.spark.offload.arrow_predicate import ALWAYS, Translation
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.spark.offload.worker_settings import WorkerMemory
from puredelta.worker.lookup.conditions import NO_CLAUSE, Call, ResidualConditions
from puredelta.worker.lookup.lookup_request import KeyColumn

_ROW_BYTES = 64
"""Of a source row in a task: its key, its place, and what sorting them needs for a moment."""
_VALUE_BYTES = 16
_TEXT_BYTES = 64
"""Of a value of text, guessed."""


def plan_lookup(
    statement: ResolvedStatement, num_source_rows: int, names: ColumnNames, memory: WorkerMemory
) -> KeyLookup | None:
    """Return how to look the statement's keys up, ``None`` if Spark has to join.

    ``names`` are those of source columns inside the source's files.
    """
    pairs, config = statement.on.parts.pairs, statement.config
    # Files have columns under the names and types of the table as it was.
    renamed = statement.schema_evolves or config.column_mapping is ColumnMappingMode.ID
    if renamed or not pairs or not num_source_rows:
        return None
    if not all(_is_plain(pair, config) for pair in pairs):
        return None
    keys = tuple(
        KeyColumn(
            target=pair.target.path[0],
            source=names.in_file(pair.source.path[0]),
            null_safe=pair.null_safe,
        )
        for pair in pairs
    )
    conditions = None
    if not _has_one_clause(statement):
        conditions = _residual_conditions(statement, names)
        if conditions is None:
            return None
    texts = sum(pair.source.type == STRING for pair in pairs)
    read = () if conditions is None else conditions.source_columns
    values = len(keys) + len(read)
    task_bytes = num_source_rows * (
        _ROW_BYTES + values * _VALUE_BYTES + texts * (_TEXT_BYTES - _VALUE_BYTES)
    )
    parts = -(-task_bytes // max(1, memory.task_max))
    # Which rows are unmatched in all parts is known at the end only.
    if parts > (1 if statement.not_matched_by_source else memory.parts_max):
        return None
    return KeyLookup(
        keys=keys,
        conditions=conditions,
        clause=0 if statement.matched else NO_CLAUSE,
        task_bytes=-(-task_bytes // parts),
        parts=parts,
    )


def _has_one_clause(statement: ResolvedStatement) -> bool:
    """Tell whether all pairs of equal keys are for the same clause, and nothing else is."""
    parts = statement.on.parts
    if parts.target_only or parts.source_only or parts.other or statement.not_matched_by_source:
        return False
    return not statement.matched or statement.matched[0].condition is None


def _residual_conditions(
    statement: ResolvedStatement, names: ColumnNames
) -> ResidualConditions | None:
    """Translate what decides besides keys; ``None`` if Arrow might decide otherwise."""
    parts = statement.on.parts
    translation = Translation(inexact=_inexact_columns(statement.config))
    on = translation.call(And((*parts.target_only, *parts.source_only, *parts.other)))
    matched = _conditions(translation, statement.matched)
    by_source = _conditions(translation, statement.not_matched_by_source)
    if on is None or matched is None or by_source is None:
        return None
    return ResidualConditions(
        on=on,
        matched=matched,
        by_source=by_source,
        target_columns=tuple(translation.target.items()),
        source_columns=tuple(
            (names.in_file(staged), kind) for staged, kind in translation.source.items()
        ),
    )


def _conditions(
    translation: Translation, clauses: Sequence[MatchedClause | NotMatchedBySourceClause]
) -> tuple[Call, ...] | None:
    calls: list[Call] = []
    for clause in clauses:
        condition = clause.condition
        call = ALWAYS if condition is None else translation.call(condition.predicate)
        if call is None:
            return None
        calls.append(call)
    return tuple(calls)


def _inexact_columns(config: TableConfig) -> frozenset[str]:
    """Return columns whose values are not what is stored, or are text that is read otherwise.

    Timestamps of partitions are text in some zone, floats text of which Spark takes the nearest
    float and Python the nearest double.
    """
    as_text = {
        field.name
        for field in config.partition_schema.fields
        if field.type in (TIMESTAMP, TIMESTAMP_NTZ, FLOAT)
    }
    return frozenset(config.padded_columns).union(as_text)


def _is_plain(pair: EquiPair, config: TableConfig) -> bool:
    """Tell whether equal values are equal bytes, stored as they are read."""
    target, source = pair.target, pair.source
    if len(target.path) > 1 or len(source.path) > 1 or target.path[0] in config.padded_columns:
        return False
    if target.type in INTEGRAL and source.type in INTEGRAL:
        return True
    return target.type == source.type and (
        target.type in (STRING, DATE) or isinstance(target.type, DecimalType)
    )
