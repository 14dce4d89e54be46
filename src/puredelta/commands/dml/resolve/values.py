"""Assignments bound to columns: one value of the right type per column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.resolve.errors import (
    aggregate_error,
    ambiguous,
    name_error,
    unresolved,
)
from puredelta.commands.dml.resolve.resolved_statement import ResolvedInsert, ResolvedUpdate
from puredelta.commands.dml.resolve.target_columns import (
    SourceNames,
    TargetField,
    TargetNames,
)
from puredelta.commands.dml.resolve.unresolved_clauses import (
    SEARCH_CONDITION,
    ClauseDraft,
    StatementDraft,
)
from puredelta.commands.dml.spec import Delete, NotMatchedBySource, Star
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.expressions import (
    ExpressionTree,
    Frames,
    ResolutionError,
    Scope,
    SourceColumn,
)
from puredelta.spark.session.names import display_name
from puredelta.spark.session.types import from_spark_type, to_spark
from puredelta.spark.values.inserted_rows import default_value
from puredelta.spark.values.store_assignment import StoreAssigner, Value, lacks_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValue:
    """A value for a column or a nested field, resolved but not yet cast to its type."""

    path: TargetField
    value: Value
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    tree: ExpressionTree | None = None
    """Its expression, where that is known."""
    source: str | None = None
    """The staged name of the source column that is the value."""
    keeps_fields: bool = False
    """``UPDATE SET *`` under schema evolution: fields that a struct lacks keep their values."""


@dataclass(frozen=True, kw_only=True)
class RowBuilder:
    """Builder of the rows that clauses write."""

    frames: Frames
    current: T.StructType
    """The table's present schema."""
    config: TableConfig
    """The table after the statement."""
    assigner: StoreAssigner

    @cached_property
    def schema(self) -> T.StructType:
        """The table's schema after the statement."""
        return to_spark(self.config.schema)

    def update(self, assigned: Sequence[AssignedValue]) -> ResolvedUpdate:
        """Return the new row of an UPDATE: columns without an assignment keep their value (M-26).

        A generated column without an assignment is recomputed (M-101).
        """
        by_column: dict[str, list[AssignedValue]] = {}
        for one in assigned:
            by_column.setdefault(one.path.column, []).append(one)
        columns = frozenset(by_column)
        computed = self.config.generated_columns.keys() - columns
        read = {a.path.column for a in assigned if self._reads_old(a)}
        existing = frozenset(self.current.names)
        values = {
            f.name: self._new_value(f, by_column.get(f.name, ()))
            for f in self.schema.fields
            if f.name not in computed
        }
        return ResolvedUpdate(
            values=values,
            unchanged=existing - columns - computed,
            target_columns=(existing & read).union(*(a.target_columns for a in assigned)),
            source_columns=frozenset().union(*(a.source_columns for a in assigned)),
            trees={
                a.path.column: a.tree
                for a in assigned
                if a.tree is not None and len(a.path.names) == 1
            },
            copies={
                a.path.column: a.source
                for a in assigned
                if a.source is not None and values[a.path.column] is a.value.column
            },
        )

    def pass_through(self) -> dict[str, Column]:
        """Return an old row with the columns of the table after the MERGE (M-126)."""
        return {f.name: self._new_value(f, ()) for f in self.schema.fields}

    def _reads_old(self, assigned: AssignedValue) -> bool:
        """Whether the new value of the column needs parts of the old one."""
        return len(assigned.path.names) > 1 or (
            assigned.keeps_fields
            and lacks_fields(assigned.value.type, self.schema[assigned.path.column].dataType)
        )

    def insert(self, assigned: Sequence[AssignedValue]) -> ResolvedInsert:
        """Return the row of an INSERT: columns without a value have a default, else NULL (M-100).

        Generated and identity columns without a value are left to be computed. Where
        one column is assigned twice, in two spellings, the first value counts.
        """
        by_column: Mapping[str, AssignedValue] = {a.path.column: a for a in reversed(assigned)}
        computed = {*self.config.generated_columns, *self.config.identity_columns} - {*by_column}
        return ResolvedInsert(
            values={
                f.name: self._fitted(by_column[f.name], f)
                if f.name in by_column
                else self._omitted(f)
                for f in self.schema.fields
                if f.name not in computed
            },
            source_columns=frozenset().union(*(a.source_columns for a in assigned)),
        )

    def default(self, path: TargetField) -> AssignedValue | None:
        """Return the value of ``= DEFAULT`` for a column; ``None`` means no assignment.

        Raises:
            InvalidRequestError: it is a field inside a column, which has no default.
        """
        if len(path.names) > 1:
            raise InvalidRequestError(
                Message.MERGE_UNRESOLVED_EXPRESSION_DEFAULT,
                written=".".join(path.written),
                sql_expr="DEFAULT",
            )
        field = self.schema[path.column]
        if field.name in {*self.config.generated_columns, *self.config.identity_columns}:
            return None
        value = Value(column=self._omitted(field), type=field.dataType, sql="DEFAULT")
        nothing = frozenset[str]()
        return AssignedValue(path=path, value=value, target_columns=nothing, source_columns=nothing)

    def _omitted(self, field: T.StructField) -> Column:
        if field.name in self.config.column_defaults:
            return default_value(self.config, field.name)
        return self.assigner.carry(None, field)

    def _new_value(self, field: T.StructField, assigned: Sequence[AssignedValue]) -> Column:
        return self._inside(field, self._current(field.name), assigned, depth=1)

    @cached_property
    def _current_types(self) -> Mapping[str, T.DataType]:
        return {field.name: field.dataType for field in self.current.fields}

    def _current(self, name: str) -> Value | None:
        """Return the present value of a column, unless it is new."""
        kind = self._current_types.get(name)
        if kind is None:
            return None
        column = self.frames.target_column(name)
        return Value(column=column, type=kind, sql=display_name((name,)))

    def _inside(
        self,
        field: T.StructField,
        current: Value | None,
        assigned: Sequence[AssignedValue],
        *,
        depth: int,
    ) -> Column:
        """Return the new value of a field that ``assigned`` changes as a whole or in parts.

        A struct that was NULL becomes one with its other fields NULL.
        """
        whole = next((a for a in assigned if len(a.path.names) == depth), None)
        if whole is not None:
            return self._fitted(whole, field, current)
        if not assigned or not isinstance(field.dataType, T.StructType):
            return self.assigner.carry(current, field)
        return F.struct(
            *(
                self._inside(
                    inner,
                    None if current is None else current.find(inner.name),
                    [a for a in assigned if a.path.names[depth] == inner.name],
                    depth=depth + 1,
                ).alias(inner.name)
                for inner in field.dataType.fields
            )
        )

    def _fitted(
        self, assigned: AssignedValue, field: T.StructField, current: Value | None = None
    ) -> Column:
        kept = current if assigned.keeps_fields else None
        return self.assigner.assign(assigned.value, field.dataType, column=field.name, kept=kept)


@dataclass(frozen=True, slots=True)
class BoundAssignment:
    """A column of the target with the origin of its value."""

    path: TargetField
    value: int | SourceColumn
    """The position of a request, or the source column found by a star."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementBinder:
    """Binding of a statement's assignments, in the order of its errors."""

    frames: Frames
    names: TargetNames
    new_names: SourceNames | None
    """The columns that schema evolution may add; ``None`` without it."""
    errors: Mapping[int, ResolutionError]
    """By position of the request."""

    def bind(self, drafted: StatementDraft) -> tuple[tuple[BoundAssignment, ...], ...]:
        """Return the assignments of every clause; no name is left to resolve."""
        self._require_names(0, SEARCH_CONDITION, Scope.PAIR)
        bound = tuple(self._clause(clause) for clause in drafted.clauses)
        self._require_no_aggregates(drafted)
        return bound

    def _clause(self, clause: ClauseDraft) -> tuple[BoundAssignment, ...]:
        if clause.condition is not None:
            self._require_names(clause.condition, clause.condition_words, clause.scope)
        match clause.clause.action:
            case Delete():
                return ()
            case action if action.assignments is Star.STAR:
                if self.new_names is None:
                    return self._star(clause.action_words)
                return tuple(_taken_over(c) for c in self.frames.source_columns)
            case action:
                bound: list[BoundAssignment] = []
                for assignment, value in zip(action.assignments, clause.values, strict=True):
                    path = self._assigned(assignment.column, clause)
                    self._require_names(value, clause.action_words, clause.scope)
                    bound.append(BoundAssignment(path, value))
                return tuple(bound)

    def _assigned(self, column: str, clause: ClauseDraft) -> TargetField:
        """Find a column of the target, or the source column that becomes one (M-46, M-47)."""
        words = clause.action_words
        if self.new_names is None or isinstance(clause.clause, NotMatchedBySource):
            return self.names.find(column, clause=words)
        try:
            return self.names.find(column, clause=words)
        except InvalidRequestError:
            return self.new_names.find(column, clause=words)

    def _star(self, words: str) -> tuple[BoundAssignment, ...]:
        """Find every column of the target in the source by name; others are ignored (M-40)."""
        bound: list[BoundAssignment] = []
        by_name: dict[str, list[SourceColumn]] = {}
        for column in self.frames.source_columns:
            by_name.setdefault(self._cased(column.name), []).append(column)
        for field in self.names.schema.fields:
            found = by_name.get(self._cased(field.name), [])
            if not found:
                raise unresolved(
                    display_name((field.name,)),
                    clause=words,
                    columns=self.frames.displayed(Scope.SOURCE),
                )
            if len(found) > 1:
                shown = [self.frames.displayed(Scope.SOURCE)[c.ordinal] for c in found]
                raise ambiguous(field.name, could_be=shown)
            path = TargetField(names=(field.name,), written=(field.name,), type=field.type)
            bound.append(BoundAssignment(path, found[0]))
        return tuple(bound)

    def _cased(self, name: str) -> str:
        return name if self.names.case_sensitive else name.lower()

    def _require_names(self, position: int, words: str, scope: Scope) -> None:
        found = self.errors.get(position)
        if found is None:
            return
        error = name_error(found, clause=words, columns=self.frames.displayed(scope))
        if error is not None:
            raise error

    def _require_no_aggregates(self, drafted: StatementDraft) -> None:
        places = {0: (SEARCH_CONDITION, True)}
        for clause in drafted.clauses:
            if clause.condition is not None:
                places[clause.condition] = (clause.condition_words, True)
            places |= dict.fromkeys(clause.values, (clause.action_words, False))
        for position, error in sorted(self.errors.items()):
            words, is_condition = places[position]
            raise aggregate_error(error, words=words, is_condition=is_condition)


def _taken_over(column: SourceColumn) -> BoundAssignment:
    """Return all source columns, which a star under schema evolution means (M-40, M-41)."""
    path = TargetField(
        names=(column.name,), written=(column.name,), type=from_spark_type(column.type)
    )
    return BoundAssignment(path, column)
