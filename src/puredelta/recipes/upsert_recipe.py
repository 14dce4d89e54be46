"""An upsert as one MERGE: the clauses, and the source that is read for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from puredelta.commands.dml.spec.merge import (
    Clause,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.recipes.arguments import TableSettings
from puredelta.recipes.plan import MergePlan, equal_keys, insert_from_source, set_to_source
from puredelta.recipes.source_rows import (
    IS_DELETE,
    Duplicates,
    guarded,
    one_row_per_key,
    outside_scope,
    reads_plain_files,
)
from puredelta.recipes.target import RecipeTable, resolved
from puredelta.recipes.values import equal_is_same, is_true, same_text
from puredelta.spark.session.identifiers import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertRecipe:
    """An upsert, an insert of absent rows, or a snapshot, as it was asked for."""

    settings: TableSettings
    keys: tuple[str, ...]
    update_columns: tuple[str, ...] | None = None
    """None: all but the keys and ``except_columns``; none at all: rows are only inserted."""
    except_columns: tuple[str, ...] = ()
    delete_when: str | Column | None = None
    duplicates: Duplicates = Duplicates.ERROR
    order_by: tuple[str, ...] = ()
    scope: str | None = None
    is_snapshot: bool = False
    """Whether rows of the scope that the source lacks are deleted."""
    allow_empty: bool = False

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return the columns of the source."""
        return source.schema

    def plan(self, target: RecipeTable, source: DataFrame) -> MergePlan:
        """Return the MERGE; errors as `upsert`."""
        rows, sensitive = target.aligned(source), target.case_sensitive
        keys = resolved(self.keys, rows.columns, "keys", case_sensitive=sensitive)
        resolved(keys, target.schema.names, "keys", case_sensitive=sensitive)
        order = resolved(self.order_by, rows.columns, "order_by", case_sensitive=sensitive)
        stored = [c for c in rows.columns if target.has(c) or self.settings.evolve_schema]
        updated = self._updated(rows.columns, stored, keys, case_sensitive=sensitive)
        kinds = {field.name: field.dataType for field in rows.schema.fields}
        if self.delete_when is not None:
            rows = rows.withColumn(IS_DELETE, is_true(self.delete_when))
        is_refused = self.duplicates is Duplicates.ERROR
        scope = self.scope
        if scope is not None and not (is_refused and reads_plain_files(rows)):
            rows, scope = guarded(rows, keys[0], [outside_scope(keys, scope)]), None
        ready = rows if is_refused else one_row_per_key(rows, keys, self.duplicates, order)
        clauses = self._clauses(
            update=self._update(target, kinds, keys, updated),
            insert=self._insert(target, stored),
            changed=_differs(target, kinds, updated),
            in_time=_in_time(order) if order and all(map(target.has, order)) else None,
        )
        return MergePlan(
            target=target,
            spec=MergeSpec(
                on=equal_keys(target, ready, keys),
                clauses=clauses,
                evolve_schema=self.settings.evolve_schema,
            ),
            source=ready,
            refuses_empty=self.is_snapshot and not self.allow_empty,
            unique_keys=keys if is_refused else (),
            scope=scope,
        )

    def _updated(
        self,
        columns: Sequence[str],
        stored: Sequence[str],
        keys: Sequence[str],
        *,
        case_sensitive: bool,
    ) -> tuple[str, ...]:
        if self.update_columns is not None:
            return resolved(
                self.update_columns, stored, "update_columns", case_sensitive=case_sensitive
            )
        kept = resolved(
            self.except_columns, columns, "except_columns", case_sensitive=case_sensitive
        )
        return tuple(name for name in stored if name not in {*kept, *keys})

    def _update(
        self,
        target: RecipeTable,
        kinds: Mapping[str, T.DataType],
        keys: Sequence[str],
        updated: Sequence[str],
    ) -> Update | None:
        """Return what an update sets: the whole row, where that changes no more than the columns.

        Then the new row is the source's row, which is copied as it is.
        """
        if not updated:
            return None
        are_same = all(equal_is_same(target.type_of(key), kinds[key]) for key in keys)
        whole = set(target.schema.names) == {*keys, *updated}
        if whole and are_same and not self.settings.evolve_schema:
            return Update(Star.STAR)
        return set_to_source(*updated)

    def _insert(self, target: RecipeTable, stored: Sequence[str]) -> Insert:
        whole = set(target.schema.names) == set(stored)
        if whole and not self.settings.evolve_schema:
            return Insert(Star.STAR)
        return insert_from_source(*stored)

    def _clauses(
        self,
        *,
        update: Update | None,
        insert: Insert,
        changed: str,
        in_time: str | None,
    ) -> tuple[Clause, ...]:
        deletes = self.delete_when is not None
        stays = f"NOT s.{IS_DELETE}" if deletes else None
        clauses: list[Clause] = []
        if deletes:
            clauses.append(Matched(Delete(), _and(f"s.{IS_DELETE}", in_time)))
        if update is not None:
            clauses.append(Matched(update, _and(stays, in_time, changed)))
        clauses.append(NotMatched(insert, stays))
        if self.is_snapshot:
            clauses.append(NotMatchedBySource(Delete(), self.scope))
        return tuple(clauses)


def _differs(target: RecipeTable, kinds: Mapping[str, T.DataType], columns: Sequence[str]) -> str:
    """Return SQL that is true where some column has another value in the source."""
    same = (same_text(name, target.type_of(name), kinds[name]) for name in columns)
    return f"NOT ({' AND '.join(same)})"


def _in_time(order: Sequence[str]) -> str:
    """Return SQL that is true unless the source row is older than the table's."""
    if len(order) == 1:
        name = quote(order[0])
        return f"(t.{name} IS NULL OR s.{name} >= t.{name})"
    return f"named_struct({_named(order, 's')}) >= named_struct({_named(order, 't')})"


def _named(names: Sequence[str], side: str) -> str:
    return ", ".join(f"'c{n}', {side}.{quote(name)}" for n, name in enumerate(names))


def _and(*conditions: str | None) -> str | None:
    given = [condition for condition in conditions if condition is not None]
    return " AND ".join(given) if given else None
