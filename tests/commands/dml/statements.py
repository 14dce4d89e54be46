"""Resolved statements and their contexts without Spark, for tests of single stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from pyspark.sql import Column

from puredelta.commands.command import Command, command_on
from puredelta.commands.dml.resolve.resolved_statement import (
    ConditionParts,
    EquiPair,
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedInsert,
    ResolvedStatement,
    ResolvedUpdate,
    StatementKind,
)
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.spec import StatisticsPrefetch
from puredelta.commands.dml.staged_source import SourceProfile, StagedSource
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import And, Predicate, Ref, Side
from puredelta.protocol.schema.types import LONG
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.offload.workers import WorkerMemory, WorkerSettings
from puredelta.spark.scan.bitmaps import CountedWords
from puredelta.spark.session.row_bitmap import RowBitmap
from puredelta.spark.session.session import SessionInfo, StoreAssignment
from tests.commands.sessions import FakeSession
from tests.faults import MemoryStore
from tests.log.tables import config as config_of
from tests.log.tables import create_table

NOTHING: Any = None
KEY = Ref(Side.SOURCE, ("s0",), LONG)
PAIR = EquiPair(target=Ref(Side.TARGET, ("id",), LONG), source=KEY)
DELETE = ResolvedDelete()


def condition(
    *target_only: Predicate,
    pairs: tuple[EquiPair, ...] = (),
    columns: frozenset[str] = frozenset({"id"}),
) -> ResolvedCondition:
    return ResolvedCondition(
        column=NOTHING,
        predicate=And(target_only),
        parts=ConditionParts(pairs=pairs, target_only=target_only),
        sql="",
        target_columns=columns,
        source_columns=frozenset({"s0"}) if pairs else frozenset(),
    )


def update(values: Mapping[str, Column] | None = None, *, reads_target: bool = False) -> Any:
    return ResolvedUpdate(
        values=values or {},
        unchanged=frozenset({"id"}) if reads_target else frozenset(),
        target_columns=frozenset(),
        source_columns=frozenset({"s0"}),
    )


def matched(action: Any = None) -> MatchedClause:
    return MatchedClause(action=action or update(), condition=None)


def by_source(
    action: Any = DELETE, where: ResolvedCondition | None = None
) -> NotMatchedBySourceClause:
    return NotMatchedBySourceClause(action=action, condition=where)


def insert(values: Mapping[str, Column] | None = None) -> NotMatchedClause:
    action = ResolvedInsert(values=values or {}, source_columns=frozenset({"s0"}))
    return NotMatchedClause(action=action, condition=None)


def statement(
    *clauses: MatchedClause | NotMatchedClause | NotMatchedBySourceClause,
    kind: StatementKind = StatementKind.MERGE,
    config: TableConfig | None = None,
    on: ResolvedCondition | None = None,
) -> ResolvedStatement:
    frames: Any = None
    return ResolvedStatement(
        kind=kind,
        operation=Operation(name=kind.name),
        config=config_of() if config is None else config,
        schema_evolves=False,
        on=condition(pairs=(PAIR,)) if on is None else on,
        matched=tuple(c for c in clauses if isinstance(c, MatchedClause)),
        not_matched=tuple(c for c in clauses if isinstance(c, NotMatchedClause)),
        not_matched_by_source=tuple(c for c in clauses if isinstance(c, NotMatchedBySourceClause)),
        target_columns=frozenset({"id"}),
        source_columns=(),
        has_subqueries=False,
        pass_through=dict,
        frames=frames,
        timestamp=NOTHING,
    )


def command_of(log: TableLog, settings: Mapping[str, str] | None = None) -> Command:
    """Return a call on the newest version; ``settings`` spells dots as two underscores."""
    session = SessionInfo(
        spark_version="4.1.0",
        is_connect=False,
        time_zone="UTC",
        case_sensitive=False,
        ansi=True,
        store_assignment=StoreAssignment.ANSI,
        settings={key.replace("__", "."): value for key, value in (settings or {}).items()},
    )
    spark: Any = FakeSession()
    return command_on(spark, log, log.snapshot(), Capability.MERGE, session=session)


def context_of(
    of: Callable[[TableConfig], ResolvedStatement] | ResolvedStatement,
    *files: Add,
    num_source_rows: int = 0,
    session: Mapping[str, str] | None = None,
    settings: ExecutionSettings | None = None,
    **table: Any,
) -> StatementContext:
    """Return the context of a statement on a new table with these files, in memory.

    ``table`` is what `create_table` takes, ``session`` spells dots as two underscores.
    """
    command = command_of(create_table(MemoryStore(), *files, **table), session)
    config = command.snapshot.config
    memory = WorkerMemory(task_max=1_000_000)
    return StatementContext(
        command=command,
        settings=ExecutionSettings(workers=WorkerSettings(memory=memory))
        if settings is None
        else settings,
        statement=of if isinstance(of, ResolvedStatement) else of(config),
        source=StagedSource(
            staged=None,
            schema=NOTHING,
            profile=SourceProfile(num_rows=num_source_rows, size_bytes=10),
        ),
        statistics=StatisticsPrefetch(files=command.snapshot.files, config=config),
    )


def rows(*positions: int, file: int = 0) -> dict[int, RowBitmap]:
    return {file: RowBitmap.of_rows(np.array(positions, np.int64))} if positions else {}


def words(*found: tuple[int, int, int, int]) -> CountedWords:
    """Return what a search counted: (set, file, row below 64, how often), one word each."""
    sets, files, positions, hits = (np.array(column) for column in zip(*found, strict=True))
    return CountedWords(
        sets.astype(np.int32),
        files.astype(np.int64) << 38,
        np.uint64(1) << positions.astype(np.uint64),
        hits.astype(np.int64),
    )
