"""Names, types and rules of an UPDATE or a DELETE, checked before anything runs.

delta-spark leaves most of these checks to Spark's analyzer, so most errors here are Spark's own: an
unknown name is ``UNRESOLVED_COLUMN``, not the class that MERGE has for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.resolve.conditions import as_condition
from puredelta.commands.dml.resolve.errors import (
    require_deterministic,
    require_filter,
    require_no_errors,
    require_same_schema,
)
from puredelta.commands.dml.resolve.resolved_statement import (
    ConditionParts,
    NotMatchedBySourceClause,
    ResolvedCondition,
    ResolvedDelete,
    ResolvedStatement,
    ResolvedUpdate,
    StatementFrames,
    StatementKind,
)
from puredelta.commands.dml.resolve.target_columns import (
    TargetField,
    find_set_column,
    require_no_conflict,
    require_no_identity_update,
    resolve_with_defaults,
)
from puredelta.commands.dml.resolve.values import AssignedValue, RowBuilder
from puredelta.commands.dml.settings import MergeSettings
from puredelta.commands.dml.spec import Assignment, RowSpec, UpdateSpec, operation_name
from puredelta.protocol.actions import operations
from puredelta.protocol.schema.predicates import TRUE
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.analysis import Analysis, open_analysis
from puredelta.spark.resolve.expressions import Request, Resolution, ResolvedExpression, Scope
from puredelta.spark.session.session import SessionInfo, no_rows
from puredelta.spark.session.types import to_spark
from puredelta.spark.values.store_assignment import StoreAssigner, Value, cast_mode


def resolve_rows(
    spec: RowSpec, *, target_rows: DataFrame, config: TableConfig, session: SessionInfo
) -> ResolvedStatement:
    """Resolve a statement against the table as it is now; runs no Spark job.

    The result has no source and one NOT MATCHED BY SOURCE clause.

    Args:
        spec: the statement.
        target_rows: the table as the user named it: its alias, its attributes.
        config: the table at the version the statement reads.
        session: settings read at the start of the command.
    """
    require_same_schema(target_rows.schema, to_spark(config.schema))
    spark = target_rows.sparkSession
    nothing = no_rows(spark, T.StructType([]))
    analysis = open_analysis(spark, target_rows, nothing, session=session)
    resolving = _RowResolver(
        spec=spec,
        config=config,
        session=session,
        settings=MergeSettings.of(session),
        analysis=analysis,
    )
    return resolving.statement()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowResolver:
    """The resolution of one statement."""

    spec: RowSpec
    config: TableConfig
    session: SessionInfo
    settings: MergeSettings
    analysis: Analysis

    def statement(self) -> ResolvedStatement:
        resolver = self.analysis.resolver
        assignments = self.spec.assignments if isinstance(self.spec, UpdateSpec) else ()
        paths = [self._path(assignment) for assignment in assignments]
        conditions = () if self.spec.condition is None else (self.spec.condition,)
        requests = [
            Request(expression=expression, scope=Scope.TARGET)
            for expression in (*conditions, *(a.value for a in assignments))
        ]
        values = range(len(conditions), len(requests))
        # A field inside a column has no default: for it, DEFAULT is a name like any other.
        whole = {n for n, path in zip(values, paths, strict=True) if len(path.names) == 1}
        resolution, keywords = resolve_with_defaults(resolver, requests, whole)
        require_no_errors(resolution.errors, requests, resolver, values=values)
        condition = self._condition(resolution.expressions[0]) if conditions else None
        rows = self._row_builder()
        action: ResolvedUpdate | ResolvedDelete = ResolvedDelete()
        if isinstance(self.spec, UpdateSpec):
            require_no_identity_update(paths, self.config.identity_columns)
            require_no_conflict(paths)
            assigned = [
                rows.default(path) if n in keywords else _assigned(path, resolution.expressions[n])
                for n, path in zip(values, paths, strict=True)
            ]
            action = rows.update([a for a in assigned if a is not None])
            new = [v for name, v in action.values.items() if name not in action.unchanged]
            resolver.check(new, Scope.TARGET)
        return self._resolved(action, condition, rows, resolution=resolution)

    def _resolved(
        self,
        action: ResolvedUpdate | ResolvedDelete,
        condition: ResolvedCondition | None,
        rows: RowBuilder,
        *,
        resolution: Resolution,
    ) -> ResolvedStatement:
        is_update = isinstance(self.spec, UpdateSpec)
        operation = operations.update if is_update else operations.delete
        return ResolvedStatement(
            kind=StatementKind.UPDATE if is_update else StatementKind.DELETE,
            # Plain SQL, where delta-spark writes plan ids (W-16).
            operation=operation(None if condition is None else condition.sql),
            config=self.config,
            schema_evolves=False,
            on=_any_row(),
            matched=(),
            not_matched=(),
            not_matched_by_source=(NotMatchedBySourceClause(action=action, condition=condition),),
            target_columns=frozenset() if condition is None else condition.target_columns,
            source_columns=(),
            has_subqueries=resolution.has_subqueries,
            pass_through=rows.pass_through,
            frames=StatementFrames(frames=self.analysis.resolver.frames, source_columns=()),
            timestamp=self.analysis.timestamp,
        )

    def _row_builder(self) -> RowBuilder:
        return RowBuilder(
            frames=self.analysis.resolver.frames,
            current=to_spark(self.config.schema),
            config=self.config,
            assigner=StoreAssigner(
                caster=self.analysis.caster,
                mode=cast_mode(
                    self.session, follows_ansi_flag=self.settings.casts_follow_ansi_flag
                ),
                by_name=self.settings.structs_by_name,
                keeps_null_structs=self.settings.keeps_null_structs,
            ),
        )

    def _path(self, assignment: Assignment) -> TargetField:
        return find_set_column(
            assignment.column,
            self.config.schema,
            self.analysis.resolver,
            case_sensitive=self.session.case_sensitive,
        )

    def _condition(self, resolved: ResolvedExpression) -> ResolvedCondition:
        require_filter(resolved, operation=operation_name(self.spec))
        return as_condition(resolved)


def _any_row() -> ResolvedCondition:
    """Return the ON condition of a statement that has none."""
    nothing = frozenset[str]()
    return ResolvedCondition(
        column=F.lit(True),  # noqa: FBT003
        predicate=TRUE,
        parts=ConditionParts(),
        sql="true",
        target_columns=nothing,
        source_columns=nothing,
    )


def _assigned(path: TargetField, resolved: ResolvedExpression) -> AssignedValue:
    require_deterministic(resolved)
    return AssignedValue(
        path=path,
        value=Value(column=resolved.column, type=resolved.type, sql=resolved.sql),
        target_columns=resolved.target_columns,
        source_columns=resolved.source_columns,
        tree=resolved.tree,
    )
