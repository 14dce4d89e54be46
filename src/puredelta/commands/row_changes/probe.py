"""Whether the rows of a statement can be found by looking keys up, without a join. Pure.

Possible where ON is nothing but equality of plain columns, and no condition decides which
clause a pair is for. Worth it where the source is small: every task reads all its keys.
"""

from __future__ import annotations

from puredelta.commands.row_changes.statement import EquiPair, ResolvedStatement
from puredelta.protocol.properties import ColumnMappingMode
from puredelta.protocol.table_config import TableConfig
from puredelta.protocol.types import BYTE, DATE, INTEGER, LONG, SHORT, STRING, DecimalType
from puredelta.spark.key_probe import KeyColumn

PROBED_ROWS_MAX = 200_000
"""Source rows up to which looking up is faster than Spark's join."""

_INTEGERS = frozenset({BYTE, SHORT, INTEGER, LONG})


def probed_keys(statement: ResolvedStatement, num_source_rows: int) -> tuple[KeyColumn, ...]:
    """Return the columns that decide every match, empty if Spark has to join."""
    parts, config = statement.on.parts, statement.config
    if parts.target_only or parts.source_only or parts.other or statement.not_matched_by_source:
        return ()
    if statement.matched and statement.matched[0].condition is not None:
        return ()
    # Files have the columns under the names and types of the table as it was.
    renamed = statement.schema_evolves or config.column_mapping is ColumnMappingMode.ID
    if renamed or not 0 < num_source_rows <= PROBED_ROWS_MAX:
        return ()
    if not all(_is_plain(pair, config) for pair in parts.pairs):
        return ()
    return tuple(
        KeyColumn(target=pair.target.path[0], source=pair.source.path[0], null_safe=pair.null_safe)
        for pair in parts.pairs
    )


def _is_plain(pair: EquiPair, config: TableConfig) -> bool:
    """Tell whether equal values are equal bytes, stored as they are read."""
    target, source = pair.target, pair.source
    if len(target.path) > 1 or len(source.path) > 1 or target.path[0] in config.padded_columns:
        return False
    if target.type in _INTEGERS and source.type in _INTEGERS:
        return True
    return target.type == source.type and (
        target.type in (STRING, DATE) or isinstance(target.type, DecimalType)
    )
