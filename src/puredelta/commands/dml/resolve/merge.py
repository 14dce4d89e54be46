"""Names, types and rules of a MERGE, checked before anything runs (M-20 to M-63).

The order of the checks is delta-spark's: shape of the statement, names, conditions, conflicts,
types. Spark's own errors pass as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T
from typing_extensions import assert_never

from puredelta.commands.dml.resolve.conditions import as_condition
from puredelta.commands.dml.resolve.errors import (
    require_columns,
    require_merge_condition,
    require_same_columns,
)
from puredelta.commands.dml.resolve.evolve import Evolution, canonical_path, evolved_config
from puredelta.commands.dml.resolve.resolved_statement import (
    MatchedClause,
    NotMatchedBySourceClause,
    NotMatchedClause,
    ResolvedClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedInsert,
    ResolvedStatement,
    ResolvedUpdate,
    StatementFrames,
    StatementKind,
)
from puredelta.commands.dml.resolve.target_columns import (
    SourceNames,
    TargetNames,
    require_insertable,
    require_no_conflict,
    require_no_explicit_identity,
    require_no_identity_update,
    resolve_with_defaults,
)
from puredelta.commands.dml.resolve.unresolved_clauses import (
    SEARCH_CONDITION,
    ClauseDraft,
    StatementDraft,
    draft_statement,
)
from puredelta.commands.dml.resolve.values import (
    AssignedValue,
    BoundAssignment,
    RowBuilder,
    StatementBinder,
)
from puredelta.commands.dml.settings import MergeSettings
from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.protocol.actions import operations
from puredelta.protocol.actions.operations import ClauseSummary, Operation
from puredelta.protocol.schema.types import StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.analysis import Analysis, open_analysis
from puredelta.spark.resolve.expressions import (
    Frames,
    Resolution,
    ResolvedExpression,
    Resolver,
    Scope,
    SourceColumn,
)
from puredelta.spark.resolve.table_attributes import renewed_identity
from puredelta.spark.session.names import require_no_helper_names
from puredelta.spark.session.session import SessionInfo
from puredelta.spark.session.types import from_spark, to_spark, without_table_metadata
from puredelta.spark.values.store_assignment import StoreAssigner, Value, cast_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseAssembler:
    """Construction of resolved clauses from numbered ones."""

    frames: Frames
    expressions: Sequence[ResolvedExpression]
    keywords: frozenset[int]
    """Positions at which DEFAULT is the value."""
    rows: RowBuilder

    def clauses(
        self, drafts: Sequence[ClauseDraft], bound: Sequence[Sequence[BoundAssignment]]
    ) -> tuple[ResolvedClause, ...]:
        """Return the clauses: all conditions are checked before any assignment."""
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
        require_merge_condition(resolved, words=words)
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
                source=found.staged,
                keeps_fields=self.rows.assigner.fills_missing,
            )
        resolved = self.expressions[bound.value]
        return AssignedValue(
            path=bound.path,
            value=Value(column=resolved.column, type=resolved.type, sql=resolved.sql),
            target_columns=resolved.target_columns,
            source_columns=resolved.source_columns,
            source=resolved.source_column,
            tree=resolved.tree,
        )


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
        target_rows: the target as the user named it: its alias, its attributes.
        source_rows: the source as the user gave it.
        config: the table at the version the MERGE reads.
        session: settings read at the start of the command.
    """
    settings = MergeSettings.of(session)
    require_no_helper_names(source_rows.columns)
    current = to_spark(config.schema)
    evolves = spec.evolve_schema or settings.evolves_schema
    if not evolves:
        require_columns(current)
    require_same_columns(target_rows.schema, current)
    known_rows = renewed_identity(target_rows, config.schema)
    resolving = _MergeResolver(
        config=config,
        current=current,
        session=session,
        settings=settings,
        source=_as_columns(source_rows) if evolves else None,
        drafted=draft_statement(spec),
        analysis=open_analysis(target_rows.sparkSession, known_rows, source_rows, session=session),
    )
    return resolving.statement()


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergeResolver:
    """The resolution of one MERGE."""

    config: TableConfig
    current: T.StructType
    session: SessionInfo
    settings: MergeSettings
    source: StructType | None
    """The source's columns in the form of table columns, if the schema may evolve."""
    drafted: StatementDraft
    analysis: Analysis

    @property
    def frames(self) -> Frames:
        return self.analysis.resolver.frames

    def statement(self) -> ResolvedStatement:
        resolution, keywords = resolve_with_defaults(
            self.analysis.resolver, self.drafted.requests, self.drafted.values
        )
        bound = self._binder(resolution).bind(self.drafted)
        after = self._evolved(bound)
        assembler = ClauseAssembler(
            frames=self.frames,
            expressions=resolution.expressions,
            keywords=keywords,
            rows=self._row_builder(after),
        )
        on = assembler.condition(0, SEARCH_CONDITION)
        clauses = assembler.clauses(
            self.drafted.clauses, [_with_canonical_names(b, after.schema) for b in bound]
        )
        conditions = [on, *(c.condition for c in clauses if c.condition is not None)]
        used = _used_source_columns(self.frames, conditions, clauses)
        _require_types(clauses, self.analysis.resolver, used)
        matched = tuple(c for c in clauses if isinstance(c, MatchedClause))
        not_matched = tuple(c for c in clauses if isinstance(c, NotMatchedClause))
        by_source = tuple(c for c in clauses if isinstance(c, NotMatchedBySourceClause))
        return ResolvedStatement(
            kind=StatementKind.MERGE,
            operation=_operation(on, matched, not_matched, by_source),
            config=after,
            schema_evolves=after is not self.config,
            on=on,
            matched=matched,
            not_matched=not_matched,
            not_matched_by_source=by_source,
            target_columns=frozenset().union(*(c.target_columns for c in conditions)),
            source_columns=used,
            has_subqueries=resolution.has_subqueries,
            pass_through=assembler.rows.pass_through,
            frames=StatementFrames(frames=self.frames, source_columns=used),
            timestamp=self.analysis.timestamp,
        )

    def _binder(self, resolution: Resolution) -> StatementBinder:
        frames, case_sensitive = self.frames, self.session.case_sensitive
        return StatementBinder(
            frames=frames,
            names=TargetNames(
                schema=self.config.schema,
                qualifier=frames.target_qualifier,
                displayed=frames.displayed(Scope.TARGET),
                case_sensitive=case_sensitive,
            ),
            new_names=None
            if self.source is None
            else SourceNames.of(
                self.source,
                displayed=frames.displayed(Scope.SOURCE),
                case_sensitive=case_sensitive,
            ),
            errors={error.position: error for error in resolution.errors},
        )

    def _evolved(self, bound: Sequence[Sequence[BoundAssignment]]) -> TableConfig:
        """Return the table after the statement; the same object if nothing changes."""
        if self.source is None:
            return self.config
        evolution = _evolution(self.drafted, bound, self.session)
        return evolved_config(self.config, self.source, evolution, self.settings)

    def _row_builder(self, after: TableConfig) -> RowBuilder:
        settings = self.settings
        return RowBuilder(
            frames=self.frames,
            current=self.current,
            config=after,
            assigner=StoreAssigner(
                caster=self.analysis.caster,
                mode=cast_mode(self.session, follows_ansi_flag=settings.casts_follow_ansi_flag),
                fills_missing=self.source is not None,
                by_name=settings.structs_by_name,
                keeps_null_structs=settings.keeps_null_structs,
                expands_stars=not settings.keeps_null_structs_in_star,
            ),
        )


def _as_columns(source_rows: DataFrame) -> StructType:
    """Return the source's schema as table columns, without the metadata of another table."""
    return from_spark(without_table_metadata(source_rows.schema))


def _evolution(
    drafted: StatementDraft, bound: Sequence[Sequence[BoundAssignment]], session: SessionInfo
) -> Evolution:
    """Return the columns requested by the clauses that read the source (M-47, M-48)."""
    introducing = [
        (clause_draft.clause.action, assigned)
        for clause_draft, assigned in zip(drafted.clauses, bound, strict=True)
        if not isinstance(clause_draft.clause, NotMatchedBySource)
    ]
    return Evolution(
        assigned=[a.path.names for _, assigned in introducing for a in assigned],
        has_star=any(
            not isinstance(action, Delete) and action.assignments is Star.STAR
            for action, _ in introducing
        ),
        case_sensitive=session.case_sensitive,
    )


def _with_canonical_names(
    bound: Sequence[BoundAssignment], schema: StructType
) -> list[BoundAssignment]:
    """Name columns as the table does: a new one was found under the source's spelling."""
    return [
        replace(b, path=replace(b.path, names=canonical_path(schema, b.path.names))) for b in bound
    ]


def _require_types(
    clauses: Sequence[ResolvedClause], resolver: Resolver, used: Sequence[SourceColumn]
) -> None:
    """Let Spark refuse values that cannot be cast to the type of their column.

    A source column that is assigned as it is was not cast.
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
    cast = {scope: [v for v in some if id(v) not in plain] for scope, some in values.items()}
    if checked := {scope: some for scope, some in cast.items() if some}:
        resolver.check_all(checked)


def _assigned_values(update: ResolvedUpdate) -> list[Column]:
    return [value for name, value in update.values.items() if name not in update.unchanged]


def _used_source_columns(
    frames: Frames, conditions: Sequence[ResolvedCondition], clauses: Sequence[ResolvedClause]
) -> tuple[SourceColumn, ...]:
    used = frozenset[str]().union(*(c.source_columns for c in conditions))
    for clause in clauses:
        if not isinstance(clause.action, ResolvedDelete):
            used |= clause.action.source_columns
    return tuple(c for c in frames.staged_columns if c.staged in used)


def _operation(
    on: ResolvedCondition,
    matched: Iterable[MatchedClause],
    not_matched: Iterable[NotMatchedClause],
    not_matched_by_source: Iterable[NotMatchedBySourceClause],
) -> Operation:
    """Return the operation for the history: plain SQL, where delta-spark writes plan ids (W-16)."""
    return operations.merge(
        predicate=on.sql,
        matched=map(_summary, matched),
        not_matched=map(_summary, not_matched),
        not_matched_by_source=map(_summary, not_matched_by_source),
    )


def _summary(clause: ResolvedClause) -> ClauseSummary:
    condition = None if clause.condition is None else clause.condition.sql
    match clause.action:
        case ResolvedUpdate():
            return ClauseSummary(action="update", condition=condition)
        case ResolvedDelete():
            return ClauseSummary(action="delete", condition=condition)
        case ResolvedInsert():
            return ClauseSummary(action="insert", condition=condition)
