"""Calls that compare versions, and trace rows to the commits that made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.compare import blame_rows, diff_rows
from puredelta.recipes.arguments import all_of, keys_of, refused
from puredelta.recipes.target import TableOrPath, load_recipe_table, resolved
from puredelta.spark.session.names import quote


def diff(
    spark: SparkSession,
    table: TableOrPath,
    version_a: int,
    version_b: int,
    keys: Sequence[str] | str | None = None,
) -> DataFrame:
    """Return the rows that differ between two versions of a table.

    Only files that the versions do not share, according to the log, are read. Columns are those of
    the newer of the two, under its names and types.

    Without ``keys``: ``_change``, ``added`` or ``removed``, then the columns; a row is repeated
    as often as one version has it more than the other. With ``keys``, which must be unique:
    ``_change``, which may be ``changed``, too, the keys, and the other columns as structs
    ``before`` and ``after``. The log is read here, the data when the rows are used.

    Raises:
        TableNotFoundError: there is no table, or no such version.
        InvalidRequestError: a key is no column, or a column has a type that cannot be compared
            with its former type.

    Examples:
        >>> diff(spark, "/data/customers", 3, 5, keys="id")  # doctest: +SKIP
        >>> diff(spark, "db.customers", 3, 5).groupBy("_change").count()  # doctest: +SKIP
    """
    found = load_recipe_table(spark, table)
    wanted = None if keys is None else keys_of(keys)
    return diff_rows(spark, found.log, version_a, version_b, keys=wanted)


def blame(
    spark: SparkSession,
    table: TableOrPath,
    rows: Mapping[str, Any] | str | Column | None = None,
) -> DataFrame:
    """Return rows of a table with the commit that last changed each of them.

    ``rows`` selects them: values by key column (``{"id": 7}``), or a condition; None is all. The
    columns are the table's, then ``_version``, ``_timestamp``, ``_operation`` and
    ``_user_metadata``; NULL where that commit is no longer in the log. A table that tracks rows
    (``delta.enableRowTracking``) stores the answer; for any other, the files added and removed by
    commits are compared, as far as they may hold these rows.

    Raises:
        TableNotFoundError: there is no table.
        InvalidRequestError: a key is no column.

    Examples:
        >>> blame(spark, "/data/customers", {"id": 7}).show()  # doctest: +SKIP
        >>> blame(spark, "/data/customers", "balance < 0")  # doctest: +SKIP
    """
    found = load_recipe_table(spark, table)
    condition: str | Column | None
    if isinstance(rows, Mapping):
        if not rows:
            raise refused("rows is empty. Give values by key column, a condition, or None.")
        names = resolved(
            tuple(rows), found.schema.names, "rows", case_sensitive=found.case_sensitive
        )
        condition = all_of(
            [
                F.col(quote(name)).eqNullSafe(F.lit(value))
                for name, value in zip(names, rows.values(), strict=True)
            ]
        )
    else:
        condition = rows
    return blame_rows(spark, found.log, condition)
