"""Change data applied in the order of a sequence, whatever order it arrives in.

The contract is that of Databricks' ``AUTO CDC INTO`` (``APPLY CHANGES INTO``), under its names.
"""

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
from puredelta.recipes.history import sequence_of
from puredelta.recipes.history_recipe import HistoryRecipe
from puredelta.recipes.plan import ChangeResult, MergePlan
from puredelta.recipes.recipe import Recipe, plan_recipe, run_recipe
from puredelta.recipes.state_recipe import StateRecipe
from puredelta.recipes.target import TableOrPath

START_AT = "__START_AT"
END_AT = "__END_AT"


class ApplyOptions(RecipeOptions, total=False):
    """Options of `apply_changes`."""

    apply_as_deletes: str | Column
    """Where this condition is true, the event deletes its key."""
    apply_as_truncates: str | Column
    """Where it is true, the event empties the table. Type 1 only."""
    ignore_null_updates: bool
    """NULL in an event means that the value stays what it was."""
    column_list: Sequence[str] | str
    except_column_list: Sequence[str] | str
    """Which columns of the source go into the table; keys always do."""
    stored_as_scd_type: int | str
    """1, the default: one row a key, the newest. 2: every version."""
    track_history_column_list: Sequence[str] | str
    track_history_except_column_list: Sequence[str] | str
    """Which columns make a new version when they change. Type 2 only."""


def apply_changes(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    **options: Unpack[ApplyOptions],
) -> ChangeResult:
    """Apply change events to a table, in the order of ``sequence_by``: one MERGE, one commit.

    ``sequence_by`` is a column, an expression, or several columns, the most important first. The
    table becomes what it would be had all events come in order, whatever batches they come in;
    an event that came before changes nothing. Options: `ApplyOptions`.

    Type 1 keeps the newest row of a key. ``__SEQUENCE`` has the sequence of its event. A deleted
    key keeps a row without values, with ``__DELETED`` true, so that older events that arrive
    later are recognised: read the table ``WHERE NOT __DELETED``, and delete such rows once no
    older event can come. ``ignore_null_updates`` adds ``__SET_AT`` and ``__DELETED_AT``,
    ``apply_as_truncates`` adds ``__TRUNCATED_AT``.

    Type 2 keeps every version from ``__START_AT``, included, to ``__END_AT``, excluded, which is
    NULL of the version in force. Rows with a ``__ROLE`` are no versions, see `scd2`.

    Raises:
        InvalidRequestError: the sequence of an event is NULL (DELTA_SOURCE_SEQUENCE_IS_NULL),
            two different events of a key share one (DELTA_SOURCE_SEQUENCE_AMBIGUOUS), or an
            argument is wrong. Nothing is changed.
        TableNotFoundError: there is no table, and ``create`` is not set.
        ConflictError: another writer changed what this call read.

    Examples:
        >>> apply_changes(
        ...     "/data/users",
        ...     feed,
        ...     "id",
        ...     "lsn",
        ...     apply_as_deletes="op = 'D'",
        ...     except_column_list=["op", "lsn"],
        ...     create=True,
        ... )  # doctest: +SKIP
    """
    recipe = _recipe("apply_changes", keys, sequence_by, options)
    return run_recipe(recipe, table, source_of(source))


def plan_apply_changes(
    table: TableOrPath,
    source: DataFrame,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    **options: Unpack[ApplyOptions],
) -> MergePlan:
    """Return the MERGE that `apply_changes` would run. It may read the source; changes nothing."""
    recipe = _recipe("plan_apply_changes", keys, sequence_by, options)
    return plan_recipe(recipe, table, source_of(source))


def _recipe(
    function: str,
    keys: Sequence[str] | str,
    sequence_by: str | Column | Sequence[str],
    options: ApplyOptions,
) -> Recipe:
    require_options(function, options, ApplyOptions)
    both_given(
        column_list=options.get("column_list"),
        except_column_list=options.get("except_column_list"),
    )
    match str(options.get("stored_as_scd_type", 1)):
        case "1":
            return _state(keys, sequence_by, options)
        case "2":
            return _history(keys, sequence_by, options)
        case other:
            raise refused(f"stored_as_scd_type is {other!r}. Use 1 or 2.")


def _state(
    keys: Sequence[str] | str, sequence_by: str | Column | Sequence[str], options: ApplyOptions
) -> StateRecipe:
    for name in ("track_history_column_list", "track_history_except_column_list"):
        if options.get(name) is not None:
            raise refused(f"{name} is for stored_as_scd_type=2: type 1 keeps no history.")
    return StateRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(sequence_by, "sequence_by"),
        delete_when=condition_of(options.get("apply_as_deletes"), "apply_as_deletes"),
        truncate_when=condition_of(options.get("apply_as_truncates"), "apply_as_truncates"),
        null_keeps=bool(options.get("ignore_null_updates", False)),
        columns=_column_list(options),
        except_columns=names_of(options.get("except_column_list"), "except_column_list"),
    )


def _history(
    keys: Sequence[str] | str, sequence_by: str | Column | Sequence[str], options: ApplyOptions
) -> HistoryRecipe:
    if options.get("apply_as_truncates") is not None:
        raise refused("apply_as_truncates is for stored_as_scd_type=1: a history forgets nothing.")
    tracked = options.get("track_history_column_list")
    untracked = options.get("track_history_except_column_list")
    both_given(track_history_column_list=tracked, track_history_except_column_list=untracked)
    return HistoryRecipe(
        settings=TableSettings.of(options),
        keys=keys_of(keys),
        sequence_by=sequence_of(sequence_by, "sequence_by"),
        delete_when=condition_of(options.get("apply_as_deletes"), "apply_as_deletes"),
        columns=_column_list(options),
        except_columns=names_of(options.get("except_column_list"), "except_column_list"),
        tracked=None if tracked is None else names_of(tracked, "track_history_column_list"),
        untracked=names_of(untracked, "track_history_except_column_list"),
        keeps_sequence_column=True,
        null_keeps=bool(options.get("ignore_null_updates", False)),
        valid_from=START_AT,
        valid_to=END_AT,
        is_current=None,
    )


def _column_list(options: ApplyOptions) -> tuple[str, ...] | None:
    given = options.get("column_list")
    return None if given is None else names_of(given, "column_list")
