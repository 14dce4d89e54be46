"""Identity columns of a statement: values of inserted rows, and the new high water mark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import Column

from puredelta.commands.definition.columns import config_with_marks
from puredelta.commands.dml.resolve.statement import ResolvedStatement
from puredelta.commands.dml.source.staged_source import StagedSource
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.features.filled_columns import Identity
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.helper_columns import SOURCE_FILE, SOURCE_ROW
from puredelta.spark.values.filled_columns import identity_value


def identity_values(config: TableConfig, source: StagedSource) -> Mapping[str, Column]:
    """Return the values of identity columns for rows inserted from staged rows (M-102).

    All INSERT clauses share them: a staged row has one value, whichever clause inserts it.

    Raises:
        DeltaError: the values leave the range of BIGINT.
    """
    return {
        name: identity_value(identity, source.row_counts, file=SOURCE_FILE, row=SOURCE_ROW)
        for name, identity in config.identity_columns.items()
    }


def with_generated_identities(
    statement: ResolvedStatement, source: StagedSource, written: Iterable[Add], *, num_inserted: int
) -> TableConfig:
    """Return the table after rows were inserted: high water marks moved (M-103).

    A mark is the furthest value in the new files, as far as they tell, but never beyond
    what was given out: values of the user's own do not move it.
    """
    generated = [
        identity
        for name, identity in statement.config.identity_columns.items()
        if any(name not in clause.action.values for clause in statement.not_matched)
    ]
    if not generated or not num_inserted:
        return statement.config
    files = list(written)
    marks = {}
    for identity in generated:
        given = identity.last_of(source.num_rows)
        seen = _furthest(identity, statement.config.physical_name(identity.column), files)
        reached = given if seen is None else identity.nearer(given, seen)
        if identity.is_beyond(reached):
            marks[identity.column] = reached
    return config_with_marks(statement.config, marks)


def _furthest(identity: Identity, column: str, files: Iterable[Add]) -> int | None:
    """Return the furthest value in the files; ``None`` if one of them does not tell."""
    key = "maxValues" if identity.step > 0 else "minValues"
    furthest: int | None = None
    for file in files:
        value = json.loads(file.stats or "{}").get(key, {}).get(column)
        if value is None:
            return None
        furthest = value if furthest is None else identity.further(furthest, value)
    return furthest
