"""From assignments to new rows: one value of the right type per column of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.resolve.columns import TargetField
from puredelta.commands.dml.resolve.statement import ResolvedInsert, ResolvedUpdate
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.resolve.frames import Frames
from puredelta.spark.session.identifiers import display_name
from puredelta.spark.session.types import to_spark
from puredelta.spark.values.filled_columns import default_value
from puredelta.spark.values.store_assignment import StoreAssigner, Value, lacks_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValue:
    """A value for a column or a nested field, resolved but not yet of its type."""

    path: TargetField
    value: Value
    target_columns: frozenset[str]
    source_columns: frozenset[str]
    keeps_fields: bool = False
    """``UPDATE SET *`` under schema evolution: fields that a struct lacks keep their values."""


@dataclass(frozen=True, kw_only=True)
class RowBuilder:
    """Builds the rows that clauses write."""

    frames: Frames
    current: T.StructType
    """The table's schema as it is."""
    config: TableConfig
    """The table after the statement."""
    assigner: StoreAssigner

    @cached_property
    def schema(self) -> T.StructType:
        """The table's schema after the statement."""
        return to_spark(self.config.schema)

    def update(self, assigned: Sequence[AssignedValue]) -> ResolvedUpdate:
        """Return the new row of an UPDATE: what is not assigned keeps its value (M-26).

        A generated column that is not assigned is computed anew (M-101).
        """
        columns = {a.path.column for a in assigned}
        computed = self.config.generated_columns.keys() - columns
        read = {a.path.column for a in assigned if self._reads_old(a)}
        existing = frozenset(self.current.names)
        return ResolvedUpdate(
            values={
                f.name: self._new_value(f, assigned)
                for f in self.schema.fields
                if f.name not in computed
            },
            unchanged=existing - columns - computed,
            target_columns=(existing & read).union(*(a.target_columns for a in assigned)),
            source_columns=frozenset().union(*(a.source_columns for a in assigned)),
        )

    def pass_through(self) -> dict[str, Column]:
        """Return an old row in the columns the table has after the MERGE (M-126)."""
        return {f.name: self._new_value(f, ()) for f in self.schema.fields}

    def _reads_old(self, assigned: AssignedValue) -> bool:
        """Whether the new value of the column needs parts of the old one."""
        return len(assigned.path.names) > 1 or (
            assigned.keeps_fields
            and lacks_fields(assigned.value.type, self.schema[assigned.path.column].dataType)
        )

    def insert(self, assigned: Sequence[AssignedValue]) -> ResolvedInsert:
        """Return the row of an INSERT: what is not assigned has its default, else NULL (M-100).

        Generated and identity columns that are not assigned are left to be computed. Where
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
        """Return what ``= DEFAULT`` assigns to a column; ``None``: as if it were not assigned.

        Raises:
            InvalidRequestError: it is a field inside a column, which has no default.
        """
        if len(path.names) > 1:
            raise InvalidRequestError(
                f"Cannot resolve DEFAULT as a value of {'.'.join(path.written)}: columns have "
                "defaults, fields inside of them have none.",
                code=ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
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
        mine = [a for a in assigned if a.path.column == field.name]
        return self._inside(field, self._current(field.name), mine, depth=1)

    def _current(self, name: str) -> Value | None:
        """Return what a column holds now, unless it is new."""
        if name not in self.current.names:
            return None
        return Value(
            column=self.frames.target_column(name),
            type=self.current[name].dataType,
            sql=display_name((name,)),
        )

    def _inside(
        self,
        field: T.StructField,
        current: Value | None,
        assigned: Sequence[AssignedValue],
        *,
        depth: int,
    ) -> Column:
        """Return the new value of a field of which ``assigned`` changes all or parts.

        A struct that was NULL comes to life with its other fields NULL.
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
