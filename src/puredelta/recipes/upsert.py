"""Upserts, inserts of absent rows, and snapshots as one MERGE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T
from typing_extensions import Unpack

from puredelta.commands.dml.spec import (
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
from puredelta.recipes.arguments import (
    RecipeOptions,
    TableSettings,
    both_given,
    choice_of,
    condition_of,
    equal_is_same,
    is_true,
    keys_of,
    names_of,
    refused,
    require_options,
    same_text,
    source_of,
)
from puredelta.recipes.plan import (
    ChangeResult,
    MergePlan,
    equal_keys,
    insert_from_source,
    plan_recipe,
    run_recipe,
    set_to_source,
)
from puredelta.recipes.source_rows import (
    IS_DELETE,
    Duplicates,
    guarded,
    one_row_per_key,
    outside_scope,
    reads_plain_files,
)
from puredelta.recipes.target import RecipeTable, TableOrPath, resolved
from puredelta.spark.session.names import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertRecipe:
    """An upsert, an insert of absent rows, or a snapshot, as requested."""

    settings: TableSettings
    keys: tuple[str, ...]
    update_columns: tuple[str, ...] | None = None
    """None: all but the keys and ``except_columns``; empty: rows are only inserted."""
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
        """Return the columns that an update sets: the whole row, if no other column changes.

        A whole row is the source's row, which is copied unchanged.
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


class DuplicateOptions(RecipeOptions, total=False):
    """Options for several source rows of one key."""

    on_duplicate_source: str
    """``error`` (the default) refuses them, ``latest`` takes the row with the greatest ``order_by``
    (the default where that is given), ``any`` takes one of them.
    """
    order_by: Sequence[str] | str
    """Columns whose greatest values mark the latest row of a key, the most important first. If the
    table has them, too, a source row that is older than the table's row changes nothing.
    """


class UpsertOptions(DuplicateOptions, total=False):
    """Options of `upsert`."""

    update_columns: Sequence[str] | str
    """The only columns that an update sets; an insert sets all."""
    except_columns: Sequence[str] | str
    """Columns that an update does not change, such as ``created_at``; an insert sets them."""
    delete_when: str | Column
    """Where this condition on a source row is true, the row of its key is deleted."""


class SyncOptions(DuplicateOptions, total=False):
    """Options of `sync`."""

    update_columns: Sequence[str] | str
    except_columns: Sequence[str] | str
    allow_empty: bool
    """Accept a source without rows: every row of the scope is deleted."""


def upsert(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    **options: Unpack[UpsertOptions],
) -> ChangeResult:
    """Update the rows whose keys the source has, insert the others: one MERGE, one commit.

    ``table`` is a path, a name in the catalog or a `DeltaTable`. Keys are compared null-safely.
    Rows that already have the same values are not touched, so that a repeated call commits
    nothing. Columns are matched by name; those that the source lacks keep their value, and are
    NULL in new rows. The source is read once. Options: `UpsertOptions`.

    Raises:
        InvalidRequestError: the source has several rows of a key (DELTA_SOURCE_KEY_NOT_UNIQUE),
            an argument names no column, or a row breaks a rule of the table. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        UnsupportedError: the table needs a feature that is not implemented.
        ConflictError: another writer changed data that this call read.

    Examples:
        >>> upsert("/data/customers", updates, "id", except_columns="created_at")  # doctest: +SKIP
        ChangeResult(version=4, num_inserted_rows=10, num_updated_rows=3, ...)
    """
    return run_recipe(_upsert("upsert", keys, options), table, source_of(source))


def plan_upsert(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    **options: Unpack[UpsertOptions],
) -> MergePlan:
    """Return the MERGE of `upsert`, whose ``merge`` is a builder; nothing is changed."""
    return plan_recipe(_upsert("plan_upsert", keys, options), table, source_of(source))


def insert_if_absent(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    **options: Unpack[DuplicateOptions],
) -> ChangeResult:
    """Insert the source rows whose keys the table does not have; others stay as they are.

    Arguments, options and errors are those of `upsert`.

    Examples:
        >>> insert_if_absent("/data/events", batch, ["device", "at"])  # doctest: +SKIP
    """
    return run_recipe(_absent("insert_if_absent", keys, options), table, source_of(source))


def plan_insert_if_absent(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    **options: Unpack[DuplicateOptions],
) -> MergePlan:
    """Return the MERGE of `insert_if_absent`."""
    return plan_recipe(_absent("plan_insert_if_absent", keys, options), table, source_of(source))


def sync(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    scope: str | None = None,
    **options: Unpack[SyncOptions],
) -> ChangeResult:
    """Make the rows of a scope equal to the source: update, insert, and delete missing ones.

    ``scope`` is a condition as SQL text, such as ``"region = 'EU'"``; None is the whole table.
    Only files that the scope or the keys can reach are read. A source row outside of the scope
    is refused (DELTA_SOURCE_OUTSIDE_SCOPE), and so is a source without rows unless
    ``allow_empty`` is set (DELTA_SOURCE_IS_EMPTY); nothing is changed then. A row of the table
    outside of the scope whose key is in the source moves into the scope. Other errors are those
    of `upsert`.

    Examples:
        >>> sync("/data/shops", snapshot, "id", scope="region = 'EU'")  # doctest: +SKIP
    """
    return run_recipe(_sync("sync", keys, scope, options), table, source_of(source))


def plan_sync(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    scope: str | None = None,
    **options: Unpack[SyncOptions],
) -> MergePlan:
    """Return the MERGE of `sync`."""
    return plan_recipe(_sync("plan_sync", keys, scope, options), table, source_of(source))


def _upsert(function: str, keys: Sequence[str] | str, options: UpsertOptions) -> UpsertRecipe:
    require_options(function, options, UpsertOptions)
    only, but = options.get("update_columns"), options.get("except_columns")
    both_given(update_columns=only, except_columns=but)
    return UpsertRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        update_columns=None if only is None else names_of(only, "update_columns"),
        except_columns=names_of(but, "except_columns"),
        delete_when=condition_of(options.get("delete_when"), "delete_when"),
        duplicates=_duplicates(options),
        order_by=names_of(options.get("order_by"), "order_by"),
    )


def _absent(function: str, keys: Sequence[str] | str, options: DuplicateOptions) -> UpsertRecipe:
    require_options(function, options, DuplicateOptions)
    return UpsertRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        update_columns=(),
        duplicates=_duplicates(options),
        order_by=names_of(options.get("order_by"), "order_by"),
    )


def _sync(
    function: str, keys: Sequence[str] | str, scope: str | None, options: SyncOptions
) -> UpsertRecipe:
    require_options(function, options, SyncOptions)
    if scope is not None and not str(scope).strip():
        raise refused(f"scope must be a condition as SQL text, or None, not {scope!r}.")
    only, but = options.get("update_columns"), options.get("except_columns")
    both_given(update_columns=only, except_columns=but)
    return UpsertRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        update_columns=None if only is None else names_of(only, "update_columns"),
        except_columns=names_of(but, "except_columns"),
        duplicates=_duplicates(options),
        order_by=names_of(options.get("order_by"), "order_by"),
        scope=scope,
        is_snapshot=True,
        allow_empty=bool(options.get("allow_empty", False)),
    )


def _duplicates(options: DuplicateOptions) -> Duplicates:
    order_by = names_of(options.get("order_by"), "order_by")
    usual = Duplicates.LATEST if order_by else Duplicates.ERROR
    chosen = choice_of(
        Duplicates, options.get("on_duplicate_source", usual.value), "on_duplicate_source"
    )
    if chosen is Duplicates.LATEST and not order_by:
        raise refused(
            "on_duplicate_source='latest' needs order_by: the columns that say which row of a "
            "key is the latest."
        )
    return chosen
