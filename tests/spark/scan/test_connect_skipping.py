"""Files that queries over Spark Connect read: those that a classic session reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import AMOUNTS, ask, each_check
from tests.spark.scan import connect_skipping
from tests.spark.scan.skipping_cases import FILES_AND_ROWS

EXPECTED: dict[str, Any] = {
    "kinds": {kind: [files, files, files, rows] for kind, (files, rows) in FILES_AND_ROWS.items()},
    "columns": [1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 10],
    "plans": [[1, 50], 0, 1, [2, 19], [1, 50], 501, [1, 10], 143],
    "no_row_is_skipped": [],
    "requests": [0, 0, 1, 0, 0],
    "repeated": [
        [2, 5],
        [0, 5],
        [2, 905],
        [1, 10],
        [0, True],
        [2, 5],
        [0, 5],
        [2, 905],
        [2, 5],
        [2, 5],
        [2, 5],
        [0, 5],
        [2, 5],
        [2, 5, 5],
        [0, 5, 5],
    ],
    "many_files": [
        40,
        [1, 0, 0, 1560],
        [3, 1, 0, 1548],
        "32",
        [1, 0, 40, 1600],
        [1, 0, 3160, 1],
        [3, 1, 0, 1560],
        [1, 0, 0, 1560],
        [1, 0, 0, 1560],
        [1, 1, 0, 1558],
        [1, 1, 0, 1530],
        1,
        "64",
        True,
    ],
    "caches": [200, [200, 1, 1], True, False],
    "meanings": [True, True, False, False, 1],
    "other_calls": [10, 10, True, 5, 10, [10, 1000], False, 10, 9],
    "values": [],
    "clock": [3, 0],
    "threads": [],
    "sessions": [1, [[1, 1], [1, 1]]],
}


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> dict[str, Any]:
    """Ask one Connect session."""
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.spark.scan.connect_skipping", directory, request.param, server=connect_server)


@pytest.mark.spark
@each_check(connect_skipping.AMOUNTS)
def test_connect(answers: dict[str, Any], check: str) -> None:
    assert answers[check] == EXPECTED[check]
