"""A recipe as one MERGE: planned, explained and executed.

The MERGE runs through the same ten stages as that of a builder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.commands.dml.execute import execute_reported
from puredelta.commands.dml.named_tables import named_tables
from puredelta.commands.dml.retry import ExecutionOptions
from puredelta.commands.dml.source import StatementContext
from puredelta.commands.dml.spec import (
    Assignment,
    InputRows,
    Insert,
    MergeSpec,
    Stage,
    Update,
    start_statement,
)
from puredelta.commands.statement.report import Report
from puredelta.commands.write.expectations import RowCheck
from puredelta.errors import InvalidRequestError, Message
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.recipes.arguments import TableSettings
from puredelta.recipes.source_rows import (
    guarded,
    outside_scope,
    require_in_scope,
    require_unique_keys,
    with_unique_keys,
)
from puredelta.recipes.target import (
    SOURCE,
    RecipeTable,
    TableOrPath,
    create_recipe_table,
    find_recipe_table,
    load_recipe_table,
)
from puredelta.spark.session.names import quote
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.ui_metrics import shown_in_ui
from puredelta.tables.builders import DeltaMergeBuilder

_AFTER_SOURCE = Stage.PRUNE


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    """The result of a recipe."""

    version: int | None
    """The version committed; None where there was nothing to change, or where the same
    ``txn_app_id`` and ``txn_version`` had been executed before.
    """
    num_inserted_rows: int = 0
    num_updated_rows: int = 0
    num_deleted_rows: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    """Number of source rows that broke an expectation, by its name."""
    report: Report | None = field(default=None, repr=False, compare=False)
    """The report of the MERGE, as in `puredelta.last_report`."""

    @property
    def num_affected_rows(self) -> int:
        """Number of inserted, updated and deleted rows."""
        return self.num_inserted_rows + self.num_updated_rows + self.num_deleted_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """One MERGE, not run yet. The target's alias is ``t``, the source's ``s``."""

    target: RecipeTable
    spec: MergeSpec
    source: DataFrame
    """The source as the MERGE reads it: prepared, and checked while it is read."""
    set_transaction: SetTransaction | None = None
    refuses_empty: bool = False
    """Whether a source without rows is refused."""
    unique_keys: tuple[str, ...] = ()
    """Columns whose values must be unique in the source."""
    scope: str | None = None
    """Condition on every source row, in terms of the keys `unique_keys`; None where the rows
    themselves raise an error outside of the scope.
    """

    @property
    def merge(self) -> DeltaMergeBuilder:
        """The builder of this MERGE, to inspect or to extend.

        Its source refuses several rows of a key, and rows outside of the scope, while it is read;
        `execute` makes both checks at less cost.
        """
        source, keys = self.source, self.unique_keys
        if self.scope is not None:
            source = guarded(source, keys[0], [outside_scope(keys, self.scope)])
        return DeltaMergeBuilder(
            self.source.sparkSession,
            self.target.log,
            self.spec,
            target_rows=self.target.table.columns(),
            source_rows=(with_unique_keys(source, keys) if keys else source).alias(SOURCE),
        )

    def execute(self) -> ChangeResult:
        """Run the MERGE.

        Raises:
            InvalidRequestError: rows of the source break a requirement of the recipe or a rule of
                the table. The table is unchanged.
            UnsupportedError: the table needs a feature that is not implemented.
            ConflictError: another writer changed data that this call read.
        """
        spark, log = self.source.sparkSession, self.target.log
        with (
            shown_in_ui(spark, f"MERGE INTO delta.`{log.root_uri}`") as shown,
            named_tables(spark, self.spec),
        ):
            command = start_statement(spark, log)
            if self.set_transaction is not None:
                settings = replace(
                    command.settings,
                    set_transaction=self.set_transaction,
                    resets_set_transaction=False,
                )
                command = replace(command, settings=settings)
            rows = InputRows(
                target=self.target.table.columns(),
                source=command.bind(self.source.alias(SOURCE)),
            )
            options = ExecutionOptions(observe=_Watcher(self))
            outcome, report = execute_reported(command, self.spec, rows, options)
            command.settings.reset_set_transaction(spark)
            shown.report({**outcome.metrics, **outcome.skipping}, note=outcome.note)
        counted = outcome.rows
        return ChangeResult(
            version=outcome.version,
            num_inserted_rows=counted.inserted,
            num_updated_rows=counted.updated,
            num_deleted_rows=counted.deleted,
            report=report,
        )


class _Watcher:
    """Checks of a source after it was read, before any search or write."""

    def __init__(self, plan: MergePlan) -> None:
        self._plan = plan
        self._context: StatementContext | None = None

    def __call__(self, name: str, outcome: Any) -> None:
        if isinstance(outcome, StatementContext):
            self._context = outcome
        if name != _AFTER_SOURCE or self._context is None:
            return
        context, self._context = self._context, None  # a second run has the source already
        if self._plan.refuses_empty and context.source.num_rows == 0:
            raise InvalidRequestError(Message.SOURCE_IS_EMPTY)
        if self._plan.unique_keys:
            require_unique_keys(context, self._plan.unique_keys)
        if self._plan.scope is not None:
            keys, columns = self._plan.unique_keys, self._plan.target.schema
            require_in_scope(context, keys, self._plan.scope, columns)


def set_to_source(*names: str) -> Update:
    """Return the action that sets columns to the source's columns of the same name."""
    return Update(_from_source(names))


def insert_from_source(*names: str) -> Insert:
    """Return the action that inserts the source's columns of these names."""
    return Insert(_from_source(names))


def _from_source(names: tuple[str, ...]) -> tuple[Assignment, ...]:
    return tuple(Assignment(quote(name), f"{SOURCE}.{quote(name)}") for name in names)


def equal_keys(target: RecipeTable, source: DataFrame, keys: tuple[str, ...]) -> str:
    """Return the condition that keys are equal, NULL being a value of its own.

    Plain equality where one side has no NULL: it has the same meaning, and more optimizations
    know it. Each key is a conjunct, so that each prunes independently.
    """
    nullable = {f.name: f.nullable for f in source.schema.fields}
    return " AND ".join(
        f"t.{quote(key)} {'<=>' if nullable[key] and target.schema[key].nullable else '='} "
        f"s.{quote(key)}"
        for key in keys
    )


class Recipe(Protocol):
    """The request of a call, before any table is known."""

    @property
    def settings(self) -> TableSettings:
        """Settings shared by all recipes."""
        ...

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return the columns of a table that is created for the source."""
        ...

    def plan(self, target: RecipeTable, source: DataFrame) -> MergePlan:
        """Return the MERGE into an existing table."""
        ...


def plan_recipe(recipe: Recipe, table: TableOrPath, source: DataFrame) -> MergePlan:
    """Return the MERGE of a recipe. Changes nothing.

    Raises:
        TableNotFoundError: there is no table.
        InvalidRequestError: the source does not fit.
    """
    target = load_recipe_table(source.sparkSession, table)
    plan = recipe.plan(target, source)
    return replace(plan, set_transaction=recipe.settings.set_transaction)


def run_recipe(recipe: Recipe, table: TableOrPath, source: DataFrame) -> ChangeResult:
    """Run a recipe; a new table is created empty, before its first MERGE."""
    spark, settings = source.sparkSession, recipe.settings
    if settings.create and find_recipe_table(spark, table) is None:
        create_recipe_table(spark, table, recipe.new_columns(source), settings)
    if not settings.expectations:
        return plan_recipe(recipe, table, source).execute()
    load_recipe_table(spark, table)
    quarantine = settings.quarantine
    check = RowCheck.of(
        settings.expectations,
        quarantine=None if quarantine is None else open_log(spark, quarantine),
        set_transaction=settings.set_transaction,
    )
    checked = check(source)
    result = plan_recipe(recipe, table, checked.rows).execute()
    return replace(result, violations=checked.violations)
