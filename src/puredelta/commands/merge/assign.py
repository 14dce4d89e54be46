"""From assignments to new rows: one value of the right type per column of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.merge.column_paths import ColumnPath
from puredelta.commands.merge.resolved import ResolvedInsert, ResolvedUpdate
from puredelta.spark.frames import Frames
from puredelta.spark.identifiers import display_name
from puredelta.spark.store_assignment import StoreAssigner, Value
from puredelta.spark.types import as_nullable


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValue:
    """A value for a column or a nested field, resolved but not yet of its type."""

    path: ColumnPath
    value: Value
    target_columns: frozenset[str]
    source_columns: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBuilder:
    """Builds the rows that clauses write."""

    frames: Frames
    schema: T.StructType
    """The table's schema after the MERGE."""
    assigner: StoreAssigner

    def update(self, assigned: Sequence[AssignedValue]) -> ResolvedUpdate:
        """Return the new row of an UPDATE: what is not assigned keeps its value (M-26)."""
        columns = {a.path.column for a in assigned}
        nested = {a.path.column for a in assigned if len(a.path.names) > 1}
        values = {
            f.name: self._new_value(f, assigned)
            if f.name in columns
            else self.frames.target_column(f.name)
            for f in self.schema.fields
        }
        return ResolvedUpdate(
            values=values,
            unchanged=frozenset(values) - columns,
            target_columns=frozenset(nested).union(*(a.target_columns for a in assigned)),
            source_columns=frozenset().union(*(a.source_columns for a in assigned)),
        )

    def insert(self, assigned: Sequence[AssignedValue]) -> ResolvedInsert:
        """Return the row of an INSERT: what is not assigned is NULL (M-28).

        Where one column is assigned twice, in two spellings, the last value counts.
        """
        by_column: Mapping[str, AssignedValue] = {a.path.column: a for a in assigned}
        return ResolvedInsert(
            values={
                f.name: self._fitted(by_column[f.name], f)
                if f.name in by_column
                else F.lit(None).cast(as_nullable(f.dataType))
                for f in self.schema.fields
            },
            source_columns=frozenset().union(*(a.source_columns for a in assigned)),
        )

    def _new_value(self, field: T.StructField, assigned: Sequence[AssignedValue]) -> Column:
        mine = [a for a in assigned if a.path.column == field.name]
        current = Value(
            column=self.frames.target_column(field.name),
            type=field.dataType,
            sql=display_name((field.name,)),
        )
        return self._inside(field, current, mine, depth=1)

    def _inside(
        self, field: T.StructField, current: Value, assigned: Sequence[AssignedValue], *, depth: int
    ) -> Column:
        """Return the new value of a field of which ``assigned`` changes all or parts.

        A struct that was NULL comes to life with its other fields NULL.
        """
        whole = next((a for a in assigned if len(a.path.names) == depth), None)
        if whole is not None:
            return self._fitted(whole, field)
        if not assigned or not isinstance(field.dataType, T.StructType):
            return current.column
        return F.struct(
            *(
                self._inside(
                    inner,
                    current.field(inner),
                    [a for a in assigned if a.path.names[depth] == inner.name],
                    depth=depth + 1,
                ).alias(inner.name)
                for inner in field.dataType.fields
            )
        )

    def _fitted(self, assigned: AssignedValue, field: T.StructField) -> Column:
        return self.assigner.assign(assigned.value, field.dataType, column=field.name)
