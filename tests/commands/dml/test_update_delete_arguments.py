"""Arguments of ``DeltaTable.update`` and ``delete``, with the texts of ``delta.tables``."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from puredelta.tables import DeltaTable
from puredelta.tables.open_table import OpenTable

NOT_AN_EXPRESSION = (
    "'condition' must be a Spark SQL Column or a string (expression in SQL syntax), found to be of "
    "type <class 'int'>"
)

NOT_NAMES = "must contain only strings with column names"
NOT_VALUES = "must contain only Spark SQL Columns or strings (expressions in SQL syntax) as values"


@pytest.fixture
def table() -> DeltaTable:
    nothing: Any = None
    return DeltaTable(OpenTable(nothing, nothing, nothing))


def test_names() -> None:
    assert list(inspect.signature(DeltaTable.update).parameters) == ["self", "condition", "set"]
    assert list(inspect.signature(DeltaTable.delete).parameters) == ["self", "condition"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "'set' cannot be None"),
        ({"set": "v"}, TypeError, "'set' must be a dict, found to be <class 'str'>"),
        (
            {"set": {1: "x"}},
            TypeError,
            f"Keys of dict in 'set' {NOT_NAMES}, found '1' of type '<class 'int'>",
        ),
        (
            {"set": {"v": 1}},
            TypeError,
            f"Values of dict in 'set' {NOT_VALUES}, found '1' of type '<class 'int'>'",
        ),
        ({"condition": 5, "set": {"v": "1"}}, TypeError, NOT_AN_EXPRESSION),
    ],
)
def test_update(
    table: DeltaTable, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        table.update(**arguments)
    assert str(caught.value) == text


def test_delete(table: DeltaTable) -> None:
    condition: Any = 5
    with pytest.raises(TypeError) as caught:
        table.delete(condition)
    assert str(caught.value) == NOT_AN_EXPRESSION
