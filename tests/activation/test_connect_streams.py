"""Streams over Spark Connect, on a server whose Python does not have this package."""

from __future__ import annotations

from typing import Any

import pytest

from tests.activation import connect_streams
from tests.connect_session import AMOUNTS, answers_of, each_check

UPDATE = "STREAMING UPDATE"
EXPECTED: dict[str, Any] = {
    "sink": [
        [f"{UPDATE} {n}" for n in range(2)],
        [f"{UPDATE} {n}" for n in range(3)],
        True,
    ],
    "between_tables": [[[0, 13], [1, 10], [2, 10]], True, ["MERGE"], 3],
    "killed_client": [-9, True],
    "iceberg_compat": [[0, 1, 2, 3], [{"ICEBERG_COMPAT_VERSION": "2"}]],
    "refused": [["DELTA_OPERATION_NOT_ALLOWED", "DELTA_UNSUPPORTED_OUTPUT_MODE"], False],
}


_SLOW = ("connect back", "ten seconds")
"""Words of the errors of a Python worker that did not start in the time that Spark gives it."""


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Start a Connect server of its own and ask it."""
    pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)
    directory = tmp_path_factory.mktemp("connect")
    module = "tests.activation.connect_streams"
    return answers_of(module, directory, request.param, seconds_max=1500)


@pytest.mark.spark
@each_check(connect_streams.AMOUNTS)
def test_streams_over_connect(answers: dict[str, Any], check: str) -> None:
    if any(words in str(answers[check]) for words in _SLOW):
        pytest.skip("Spark gives a Python worker ten seconds to start")
    assert answers[check] == EXPECTED[check]
