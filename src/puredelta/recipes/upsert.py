"""Upserts, inserts of absent rows, and snapshots: the calls, and what they take."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from typing_extensions import Unpack

from puredelta.recipes.arguments import (
    RecipeOptions,
    TableSettings,
    both_given,
    choice_of,
    condition_of,
    keys_of,
    names_of,
    refused,
    require_options,
    source_of,
)
from puredelta.recipes.plan import ChangeResult, MergePlan
from puredelta.recipes.recipe import plan_recipe, run_recipe
from puredelta.recipes.source_rows import Duplicates
from puredelta.recipes.target import TableOrPath
from puredelta.recipes.upsert_recipe import UpsertRecipe


class DuplicateOptions(RecipeOptions, total=False):
    """Options about several source rows of one key."""

    on_duplicate_source: str
    """``error`` (the default) refuses them, ``latest`` takes the row of the greatest ``order_by``
    (the default where that is given), ``any`` takes one of them."""
    order_by: Sequence[str] | str
    """Columns that say which row of a key is the latest, the most important first. Where the
    table has them, too, a source row that is older than the table's row changes nothing."""


class UpsertOptions(DuplicateOptions, total=False):
    """Options of `upsert`."""

    update_columns: Sequence[str] | str
    """The only columns that an update sets; an insert sets all."""
    except_columns: Sequence[str] | str
    """Columns that an update leaves alone, such as ``created_at``; an insert sets them."""
    delete_when: str | Column
    """Where this condition on a source row is true, the row of its key is deleted."""


class SyncOptions(DuplicateOptions, total=False):
    """Options of `sync`."""

    update_columns: Sequence[str] | str
    except_columns: Sequence[str] | str
    allow_empty: bool
    """Take a source without rows for what it says: every row of the scope is deleted."""


def upsert(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    **options: Unpack[UpsertOptions],
) -> ChangeResult:
    """Update the rows whose keys the source has, insert the others: one MERGE, one commit.

    ``table`` is a path, a name in the catalog or a `DeltaTable`. Keys are compared null-safely.
    Rows whose values are the same already are not touched, so that a call that is repeated
    commits nothing. Columns go by name; those that the source lacks keep their value, and are
    NULL in new rows. The source is read once. Options: `UpsertOptions`.

    Raises:
        InvalidRequestError: the source has several rows of a key (DELTA_SOURCE_KEY_NOT_UNIQUE),
            an argument names no column, or a row breaks a rule of the table. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        UnsupportedError: the table needs what is not implemented.
        ConflictError: another writer changed what this call read.

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
    """Return the MERGE that `upsert` would run; its ``merge`` is a builder, nothing is changed."""
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
    """Return the MERGE that `insert_if_absent` would run."""
    return plan_recipe(_absent("plan_insert_if_absent", keys, options), table, source_of(source))


def sync(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    scope: str | None = None,
    **options: Unpack[SyncOptions],
) -> ChangeResult:
    """Make the rows of a scope what the source says: update, insert, and delete what it lacks.

    ``scope`` is a condition as SQL text, such as ``"region = 'EU'"``; None is the whole table.
    Only files that the scope or the keys can reach are read. A source row outside of the scope
    is refused (DELTA_SOURCE_OUTSIDE_SCOPE), and so is a source without rows unless
    ``allow_empty`` is set (DELTA_SOURCE_IS_EMPTY); nothing is changed then. A row of the table
    outside of the scope whose key the source has moves into the scope. Other errors are those
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
    """Return the MERGE that `sync` would run."""
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
