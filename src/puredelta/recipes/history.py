"""Slowly changing dimensions of type 2: the call, and what it takes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from typing_extensions import Unpack

from puredelta.recipes.arguments import (
    RecipeOptions,
    TableSettings,
    both_given,
    condition_of,
    keys_of,
    names_of,
    refused,
    require_options,
    source_of,
)
from puredelta.recipes.history_recipe import HistoryRecipe
from puredelta.recipes.plan import ChangeResult, MergePlan
from puredelta.recipes.recipe import plan_recipe, run_recipe
from puredelta.recipes.target import TableOrPath


class HistoryOptions(RecipeOptions, total=False):
    """Options of `scd2`."""

    tracked_columns: Sequence[str] | str
    """The columns whose change makes a new version; others change in the version in force."""
    untracked_columns: Sequence[str] | str
    """The other way to say it: all but these make a new version."""
    except_columns: Sequence[str] | str
    """Columns of the source that do not go into the table."""
    delete_when: str | Column
    """Where this condition on a source row is true, the row ends the version in force."""
    valid_from: str
    valid_to: str
    is_current: str
    """Names of the history's columns; these are the defaults."""
    remember_repeats: bool
    """Whether a row that repeats what is known leaves a mark (the default), so that a late row
    before it ends where it should. Set it to False for snapshots that say the same every day."""


def scd2(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    **options: Unpack[HistoryOptions],
) -> ChangeResult:
    """Keep every version of a key: when it began, when it ended, and which one is current.

    ``effective_at`` is a column of the source, several, or an expression: from when on a row is
    true. A version is true from ``valid_from``, included, to ``valid_to``, excluded, which is
    NULL of the version in force. A source may have many rows of a key, in any order: the table
    becomes what it would be had all rows come in order, late ones split or shorten versions that
    are there, and a row that came before changes nothing. Values are compared null-safely.

    The column ``__ROLE`` is NULL for versions. Other rows remember what left no version: the
    repeat of a version in force, or a delete of what was not there. They end where they begin,
    so that no question about a moment, and none about ``is_current``, ever meets them. Where
    some columns are not tracked, ``__ORIGINAL`` keeps what a row said of them at first.

    Source rows of keys the table has are joined with their versions; files that the bounds of
    the keys rule out are not read. The source is read once and kept on the executors meanwhile.
    Options: `HistoryOptions`.

    Raises:
        InvalidRequestError: ``effective_at`` is NULL somewhere
            (DELTA_SOURCE_SEQUENCE_IS_NULL), two different rows of a key share one
            (DELTA_SOURCE_SEQUENCE_AMBIGUOUS), or an argument is wrong. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        ConflictError: another writer changed what this call read.

    Examples:
        >>> scd2("/data/customers", updates, "id", "updated_at", create=True)  # doctest: +SKIP
        ChangeResult(version=1, num_inserted_rows=12, ...)
    """
    return run_recipe(_recipe("scd2", keys, effective_at, options), table, source_of(source))


def plan_scd2(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    **options: Unpack[HistoryOptions],
) -> MergePlan:
    """Return the MERGE that `scd2` would run; this reads the source, and changes nothing."""
    return plan_recipe(_recipe("plan_scd2", keys, effective_at, options), table, source_of(source))


def _recipe(
    function: str,
    keys: Sequence[str] | str,
    effective_at: str | Column | Sequence[str],
    options: HistoryOptions,
) -> HistoryRecipe:
    require_options(function, options, HistoryOptions)
    tracked, untracked = options.get("tracked_columns"), options.get("untracked_columns")
    both_given(tracked_columns=tracked, untracked_columns=untracked)
    valid_from = options.get("valid_from", "valid_from")
    valid_to = options.get("valid_to", "valid_to")
    is_current = options.get("is_current", "is_current")
    if len({valid_from, valid_to, is_current}) < 3:  # noqa: PLR2004
        raise refused("valid_from, valid_to and is_current must be three columns.")
    return HistoryRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(effective_at, "effective_at"),
        delete_when=condition_of(options.get("delete_when"), "delete_when"),
        except_columns=names_of(options.get("except_columns"), "except_columns"),
        tracked=None if tracked is None else names_of(tracked, "tracked_columns"),
        untracked=names_of(untracked, "untracked_columns"),
        remembers=bool(options.get("remember_repeats", True)),
        valid_from=valid_from,
        valid_to=valid_to,
        is_current=is_current,
    )


def sequence_of(
    given: str | Column | Sequence[str], argument: str
) -> str | Column | tuple[str, ...]:
    """Return what orders events: a column or expression, or names of columns.

    Raises:
        InvalidRequestError: it is none of these.
    """
    if isinstance(given, str | Column):
        return given
    names = names_of(given, argument)
    if not names:
        raise refused(f"{argument} is empty. Name the columns that order the rows of a key.")
    return names
