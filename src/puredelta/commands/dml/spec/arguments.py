"""Arguments of the merge builder, checked with the texts of ``delta.tables``.

The checks are delta-spark's, wrong types included: existing code and tests match on them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from puredelta.commands.dml.spec.merge import Assignment, Expression


def require_source(source: object) -> DataFrame:
    """Return the source.

    Raises:
        ValueError: it is missing.
        TypeError: it is no DataFrame.
    """
    if source is None:
        raise ValueError("'source' in merge cannot be None")
    if not isinstance(source, DataFrame):
        raise TypeError("Type of 'source' in merge must be DataFrame.")
    return source


def require_merge_condition(condition: object) -> Expression:
    """Return the ON condition.

    Raises:
        ValueError: it is missing.
        TypeError: it is neither text nor a Column.
    """
    if condition is None:
        raise ValueError("'condition' in merge cannot be None")
    return _expression(condition)


def optional_condition(condition: object) -> Expression | None:
    """Return the condition of a clause, which may be missing.

    Raises:
        TypeError: it is neither text nor a Column.
    """
    return None if condition is None else _expression(condition)


def assignments(mapping: object, *, argument: str) -> tuple[Assignment, ...]:
    """Return the assignments of a clause; ``argument`` is its name in messages.

    Raises:
        ValueError: the mapping is missing.
        TypeError: it is no dict, or holds something else than names and expressions.
    """
    if mapping is None:
        raise ValueError(f"{argument} cannot be None")
    if type(mapping) is not dict:
        raise TypeError(f"{argument} must be a dict, found to be {type(mapping)}")
    made: list[Assignment] = []
    for column, value in mapping.items():
        if type(column) is not str:
            raise TypeError(
                f"Keys of dict in {argument} must contain only strings with column names, found "
                f"'{column}' of type '{type(column)}"
            )
        if not isinstance(value, str | Column):
            raise TypeError(
                f"Values of dict in {argument} must contain only Spark SQL Columns or strings "
                f"(expressions in SQL syntax) as values, found '{value}' of type '{type(value)}'"
            )
        made.append(Assignment(column, value))
    return tuple(made)


def _expression(condition: object) -> Expression:
    if not isinstance(condition, str | Column):
        raise TypeError(
            "'condition' must be a Spark SQL Column or a string (expression in SQL syntax), found "
            f"to be of type {type(condition)}"
        )
    return condition
