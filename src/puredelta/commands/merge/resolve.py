"""Names, types and rules of a MERGE, judged before anything runs (M-20 to M-63).

The order of the checks is the reference's: shape of the statement, names, conditions,
conflicts, types. Spark's own errors pass as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from typing_extensions import assert_never

from puredelta.commands.merge.assign import AssignedValue, RowBuilder
from puredelta.commands.merge.bind import BoundAssignment, StatementBinder
from puredelta.commands.merge.clauses import (
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    require_clauses,
)
from puredelta.commands.merge.column_paths import (
    SourceNames,
    TargetNames,
    require_insertable,
    require_no_conflict,
    require_no_explicit_identity,
    require_no_identity_update,
)
from puredelta.commands.merge.conditions import as_condition
from puredelta.commands.merge.default_keyword import resolve_with_defaults
from puredelta.commands.merge.evolve import Evolution, evolved_config, spelled
from puredelta.commands.merge.failures import (
    require_columns,
    require_condition,
    require_same_columns,
)
from puredelta.commands.merge.requests import SEARCH_CONDITION, ClauseDraft, StatementDraft, draft
from puredelta.commands.merge.settings import MergeSettings
from puredelta.commands.row_changes.frames import StatementFrames
from puredelta.commands.row_changes.statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedStatement,
    ResolvedUpdate,
)
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.analysis import open_analysis
from puredelta.spark.resolve.expressions import ResolvedExpression, Resolver
from puredelta.spark.resolve.frames import Frames, Scope, SourceColumn
from puredelta.spark.resolve.table_attributes import renewed_identity
from puredelta.spark.session.helper_columns import require_no_helper_names
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import from_spark, to_spark, without_table_metadata
from puredelta.spark.values.store_assignment import StoreAssigner, Value, cast_mode


def resolve_merge(
    spec: MergeSpec,
    *,
    target_rows: DataFrame,
    source_rows: DataFrame,
    config: TableConfig,
    session: SessionInfo,
) -> ResolvedStatement:
    """Resolve a statement against the table as it is now; runs no Spark job.

    Args:
        spec: the statement.
        target_rows: what the user knows as the target: its alias, its attributes.
        source_rows: the source as the user gave it.
        config: the table at the version the MERGE reads.
        session: settings read at the start of the command.

    Raises:
        InvalidRequestError: see E-01; nothing was read or written.
        pyspark.errors.PySparkException: Spark itself refuses an expression.
    """
    require_clauses(spec)
    spark = target_rows.sparkSession
    settings = MergeSettings.of(session)
    require_no_helper_names(source_rows.columns)
    current = to_spark(config.schema)
    evolves = spec.evolve_schema or settings.evolves_schema
    if not evolves:
        require_columns(current)
    require_same_columns(target_rows.schema, current)
    known_rows = renewed_identity(target_rows, config.schema)

    source = _as_columns(source_rows) if evolves else None
    drafted = draft(spec)
    analysis = open_analysis(spark, known_rows, source_rows, session=session)
    resolution, keywords = resolve_with_defaults(
        analysis.resolver, drafted.requests, drafted.values
    )
    frames = analysis.resolver.frames
    binder = StatementBinder(
        frames=frames,
        names=TargetNames(
            schema=config.schema,
            qualifier=frames.target_qualifier,
            displayed=frames.displayed(Scope.TARGET),
            case_sensitive=session.case_sensitive,
        ),
        new_names=None
        if source is None
        else SourceNames.of(
            source,
            displayed=frames.displayed(Scope.SOURCE),
            case_sensitive=session.case_sensitive,
        ),
        flaws={f.position: f for f in resolution.flaws},
    )
    bound = binder.bind(drafted)
    after = (
        config
        if source is None
        else evolved_config(config, source, _evolution(drafted, bound, session), settings)
    )
    mode = cast_mode(session, follows_ansi_flag=settings.casts_follow_ansi_flag)
    assembler = _Assembler(
        frames=frames,
        expressions=resolution.expressions,
        keywords=keywords,
        rows=RowBuilder(
            frames=frames,
            current=current,
            config=after,
            assigner=StoreAssigner(
                caster=analysis.caster,
                mode=mode,
                fills_missing=evolves,
                by_name=settings.structs_by_name,
                keeps_null_structs=settings.keeps_null_structs,
                expands_stars=not settings.keeps_null_structs_in_star,
            ),
        ),
    )
    on = assembler.condition(0, SEARCH_CONDITION)
    clauses = assembler.clauses(drafted.clauses, [_respelled(b, after.schema) for b in bound])
    conditions = [on, *(c.condition for c in clauses if c.condition is not None)]
    used = _used_source_columns(frames, conditions, clauses)
    _require_types(clauses, analysis.resolver, used)
    return ResolvedStatement(
        config=after,
        schema_evolves=after is not config,
        on=on,
        matched=tuple(c for c in clauses if isinstance(c, MatchedClause)),
        not_matched=tuple(c for c in clauses if isinstance(c, NotMatchedClause)),
        not_matched_by_source=tuple(c for c in clauses if isinstance(c, NotMatchedBySourceClause)),
        target_columns=frozenset().union(*(c.target_columns for c in conditions)),
        source_columns=used,
        carried=assembler.rows.carried,
        frames=StatementFrames(frames=frames, source_columns=used),
        is_source_deterministic=analysis.is_source_deterministic,
        instant=analysis.instant,
    )


def _as_columns(source_rows: DataFrame) -> StructType:
    """Return the source's schema as a table may have it: another table's machinery goes.

    Raises:
        UnsupportedError: the source has a user-defined type.
    """
    return from_spark(without_table_metadata(source_rows.schema))


def _evolution(
    drafted: StatementDraft, bound: Sequence[Sequence[BoundAssignment]], session: SessionInfo
) -> Evolution:
    """Return what the clauses that see the source want of the table (M-47, M-48)."""
    introducing = [
        (draft.clause.action, assigned)
        for draft, assigned in zip(drafted.clauses, bound, strict=True)
        if not isinstance(draft.clause, NotMatchedBySource)
    ]
    return Evolution(
        assigned=[a.path.names for _, assigned in introducing for a in assigned],
        has_star=any(
            not isinstance(action, Delete) and action.assignments is Star.STAR
            for action, _ in introducing
        ),
        case_sensitive=session.case_sensitive,
    )


def _respelled(bound: Sequence[BoundAssignment], schema: StructType) -> list[BoundAssignment]:
    """Name columns as the table does: a new one was found under the source's spelling."""
    return [replace(b, path=replace(b.path, names=spelled(schema, b.path.names))) for b in bound]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assembler:
    """Puts resolved expressions where positions stand for them."""

    frames: Frames
    expressions: Sequence[ResolvedExpression]
    keywords: frozenset[int]
    """Positions at which DEFAULT stands for a value."""
    rows: RowBuilder

    def clauses(
        self, drafts: Sequence[ClauseDraft], bound: Sequence[Sequence[BoundAssignment]]
    ) -> tuple[ResolvedClause, ...]:
        """Return the clauses: all conditions are judged before any assignment."""
        conditions = [
            None if d.condition is None else self.condition(d.condition, d.condition_words)
            for d in drafts
        ]
        for d, assigned in zip(drafts, bound, strict=True):
            self._require_consistent(d.clause, assigned)
        return tuple(
            self._clause(d.clause, condition, assigned)
            for d, condition, assigned in zip(drafts, conditions, bound, strict=True)
        )

    def condition(self, position: int, words: str) -> ResolvedCondition:
        """Return the condition of a clause, or ON."""
        resolved = self.expressions[position]
        require_condition(resolved, words=words)
        return as_condition(resolved)

    def _clause(
        self,
        clause: Clause,
        condition: ResolvedCondition | None,
        bound: Sequence[BoundAssignment],
    ) -> ResolvedClause:
        match clause:
            case Matched():
                return MatchedClause(action=self._change(clause.action, bound), condition=condition)
            case NotMatchedBySource():
                return NotMatchedBySourceClause(
                    action=self._change(clause.action, bound), condition=condition
                )
            case NotMatched():
                row = self.rows.insert(self._assigned(bound))
                return NotMatchedClause(action=row, condition=condition)
            case _:
                assert_never(clause)

    def _change(
        self, action: Update | Delete, bound: Sequence[BoundAssignment]
    ) -> ResolvedUpdate | ResolvedDelete:
        if isinstance(action, Delete):
            return ResolvedDelete()
        return self.rows.update(self._assigned(bound))

    def _assigned(self, bound: Sequence[BoundAssignment]) -> list[AssignedValue]:
        values = (self._value(b) for b in bound)
        return [value for value in values if value is not None]

    def _require_consistent(self, clause: Clause, bound: Sequence[BoundAssignment]) -> None:
        identities = self.rows.config.identity_columns
        if isinstance(clause, NotMatched):
            given = [b.path for b in bound if b.value not in self.keywords]
            require_no_explicit_identity(given, identities)
            require_insertable(
                [b.path for b in bound],
                two_spellings=not (identities or self.rows.config.generated_columns),
            )
        else:
            require_no_identity_update([b.path for b in bound], identities)
            require_no_conflict([b.path for b in bound])

    def _value(self, bound: BoundAssignment) -> AssignedValue | None:
        if bound.value in self.keywords:
            return self.rows.default(bound.path)
        if isinstance(bound.value, SourceColumn):
            found = bound.value
            return AssignedValue(
                path=bound.path,
                value=Value(
                    column=self.frames.source_column(found.staged),
                    type=found.type,
                    sql=lambda: self.frames.displayed(Scope.SOURCE)[found.ordinal],
                ),
                target_columns=frozenset(),
                source_columns=frozenset({found.staged}),
                keeps_fields=self.rows.assigner.fills_missing,
            )
        resolved = self.expressions[bound.value]
        return AssignedValue(
            path=bound.path,
            value=Value(column=resolved.column, type=resolved.type, sql=resolved.sql),
            target_columns=resolved.target_columns,
            source_columns=resolved.source_columns,
        )


def _require_types(
    clauses: Sequence[ResolvedClause], resolver: Resolver, used: Sequence[SourceColumn]
) -> None:
    """Let Spark say which values cannot be cast to the type of their column.

    A column of the source that stands for itself was not cast.

    Raises:
        pyspark.errors.AnalysisException: DATATYPE_MISMATCH, names both types.
    """
    values: dict[Scope, list[Column]] = {scope: [] for scope in Scope}
    for clause in clauses:
        match clause:
            case MatchedClause(action=ResolvedUpdate() as update):
                values[Scope.PAIR] += _assigned_values(update)
            case NotMatchedBySourceClause(action=ResolvedUpdate() as update):
                values[Scope.TARGET] += _assigned_values(update)
            case NotMatchedClause(action=insert):
                values[Scope.SOURCE] += insert.values.values()
            case MatchedClause() | NotMatchedBySourceClause():
                pass
    plain = {id(resolver.frames.source_column(c.staged)) for c in used}
    for scope, some in values.items():
        if cast := [value for value in some if id(value) not in plain]:
            resolver.check(cast, scope)


def _assigned_values(update: ResolvedUpdate) -> list[Column]:
    return [value for name, value in update.values.items() if name not in update.unchanged]


def _used_source_columns(
    frames: Frames, conditions: Sequence[ResolvedCondition], clauses: Sequence[ResolvedClause]
) -> tuple[SourceColumn, ...]:
    used = frozenset[str]().union(*(c.source_columns for c in conditions))
    for clause in clauses:
        if not isinstance(clause.action, ResolvedDelete):
            used |= clause.action.source_columns
    return tuple(c for c in frames.source_columns if c.staged in used)
