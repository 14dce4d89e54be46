"""Stage 2: the statement with names resolved and values cast to the types of their columns."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from typing_extensions import assert_never

from puredelta.commands.dml.resolve.merge import resolve_merge
from puredelta.commands.dml.resolve.resolved_statement import ResolvedStatement, StatementKind
from puredelta.commands.dml.resolve.update_delete import resolve_rows
from puredelta.commands.dml.spec import Asked, DeleteSpec, MergeSpec, ReplaceSpec, UpdateSpec
from puredelta.log.commit.commit_checks import require_removable
from puredelta.protocol.table.change_data import require_no_change_columns
from puredelta.protocol.table.table_config import TableConfig


def resolve(asked: Asked) -> ResolvedStatement:
    """Resolve a statement against the table as it is now; runs no Spark job."""
    config = asked.command.snapshot.config
    match asked.spec:
        case MergeSpec() as merge:
            statement = _merge(asked, merge)
        case ReplaceSpec() as spec:
            statement = replace(
                _merge(asked, spec.as_merge()),
                kind=StatementKind.REPLACE_WHERE,
                operation=spec.operation,
            )
        case UpdateSpec() | DeleteSpec() as rows:
            statement = resolve_rows(
                rows,
                target_rows=asked.rows.target,
                config=config,
                session=asked.command.session,
            )
            require_removable(config)
        case _:
            assert_never(asked.spec)
    _require_free_names(config, statement.config)
    return statement


def _merge(asked: Asked, spec: MergeSpec) -> ResolvedStatement:
    return resolve_merge(
        spec,
        target_rows=asked.rows.target,
        source_rows=_source(asked),
        config=asked.command.snapshot.config,
        session=asked.command.session,
    )


def _source(asked: Asked) -> DataFrame:
    if asked.rows.source is None:
        raise ValueError("a MERGE needs a source")
    return asked.rows.source


def _require_free_names(before: TableConfig, after: TableConfig) -> None:
    """Refuse columns with names reserved for the change data feed, before anything is written."""
    if after.is_active("changeDataFeed"):
        require_no_change_columns(
            after.schema.names, was_enabled=before.is_active("changeDataFeed")
        )
