"""Names of the catalog in queries of a Spark Connect session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import AMOUNTS, ask, each_check

connect_names = pytest.importorskip("tests.statements.connect_names", exc_type=ImportError)

EXPECTED: dict[str, Any] = {
    "texts": [[50], [7], [9], [4], [5], [5], [1000], [1000], 1000, [5], [1000], [2, 3], [0]],
    "frames": [1000, 1, 1, 1, 1, 1],
    "expressions": [[2, 1], 2, 1, 3, 7, 1, 4, 3, 1, 1, 1, 4, 3],
    "functions": [
        [
            "spark_catalog.connect_names.counted(1)",
            "spark_catalog.connect_names.plain(1)",
            "spark_catalog.more.other()",
        ],
        [[2, 2, 1000]],
        [2, 12],
        [0, 1, 2],
        4,
        1,
        2,
    ],
    "nested_functions": [[19], [19]],
    "views": [
        [143, 1, 1000, 8],
        ["a", "b"],
        [144, 1, 1001, 9],
        [144],
        [3, 3],
        1001,
    ],
    "changed_tables": [
        [["id", "v"], [[1, 10], [2, 20]]],
        [["a", "b"], [[1, 10], [2, 20]]],
        [["id", "v"], [[1, 10], [2, 20]]],
        [["w", "id", "v"], [[0, 1, 10], [5, 2, 20]]],
        [[None, 1, 11]],
    ],
    "qualifiers": [[1, 14], [2, 3]],
    "others": [
        [1],
        1,
        ["TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_COLUMN", "PARSE_SYNTAX_ERROR"],
    ],
    "made_again": [[1, 1], [2, 2]],
    "databases": [1000, "TABLE_OR_VIEW_NOT_FOUND"],
    "statements": [
        "none",
        "none",
        "none",
        [[1, 5, 10, "a"], [2, 5, 10, "b"]],
        "none",
        [[1, 5, 10, "a"], [2, 5, 10, "b"], [3, 7, 14, "b"]],
        "none",
        [[2, 5, 10, "b"], [3, 7, 14, "b"], [4, 1, 2, "a"]],
        "none",
        [[4, 1, 2, "a"], [9, 9, 18, "b"]],
        "none",
        [[4, 2, 4, "a"], [9, 9, 18, "b"]],
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        [[4, 2, 4, "a"], [9, 9, 18, "b"]],
        *["none"] * 3,
        [[4, 4]],
    ],
    "fixed_views": [
        [
            *["none"] * 3,
            "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
            *["none"] * 7,
            "DELTA_UNEXPECTED_PARTIAL_SCAN",
            "DELTA_UNSUPPORTED_SOURCE",
            *["DELTA_UNSUPPORTED_ON_CONNECT"] * 3,
        ],
        [[1, 1], [2, 42], [3, 3]],
        [[2, 2]],
        *[[[1, 1], [3, 3], [42, 2]]] * 2,
        [[3, 3]],
    ],
    "metadata": [
        [3, 4],
        [[0, 0], [2, 2]],
        [[0, 0], [2, 2], [3, 3], [4, 4]],
        [1],
        [[3]],
        [[4, 3]],
        [[2, 3], [3, 4]],
        ["_metadata", "row_id"],
        4,
        [10],
        [],
        0,
    ],
    "mapped_by_id": [[[10, 1, 7], [30, 2, 8]]] * 2,
    "scripts": [*["DELTA_UNSUPPORTED_ON_CONNECT"] * 3, "none", False],
    "recorded": {},
    "required_columns": [
        ["!!?", "!!?", "!!?", "?!", "!!", "!!?", "!!?", "!?"],
        [[["x", 1], ["y", 1]], [], [[2]]],
    ],
    "requests": [[1, 0], [1, 0]],
}


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> dict[str, Any]:
    """Ask one Connect session."""
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.statements.connect_names", directory, request.param, server=connect_server)


@pytest.mark.spark
@each_check(connect_names.AMOUNTS)
def test_connect(answers: dict[str, Any], check: str) -> None:
    assert answers[check] == EXPECTED[check]
