"""How recipes run: the table is found or created, the source is checked, one MERGE follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from puredelta.commands.write.expectations import RowCheck
from puredelta.recipes.arguments import TableSettings
from puredelta.recipes.plan import ChangeResult, MergePlan
from puredelta.recipes.target import (
    RecipeTable,
    TableOrPath,
    create_recipe_table,
    find_recipe_table,
    load_recipe_table,
)
from puredelta.spark.session.open_log import open_log


class Recipe(Protocol):
    """What a call asks for, before any table is known."""

    @property
    def settings(self) -> TableSettings:
        """What every recipe takes."""
        ...

    def new_columns(self, source: DataFrame) -> T.StructType:
        """Return the columns of a table that is created for the source."""
        ...

    def plan(self, target: RecipeTable, source: DataFrame) -> MergePlan:
        """Return the MERGE into a table that is there."""
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
    """Run a recipe; a table that is to be created is created empty, before its first MERGE."""
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
