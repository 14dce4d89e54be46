"""Streams over Spark Connect, on a server whose Python does not have this package."""

from __future__ import annotations

from typing import Any

import pytest

from tests.activation.connect_streams import CHECKS, SLOW
from tests.connect_session import answers_of

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


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Start one Connect session of its own and ask it everything."""
    pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)
    directory = tmp_path_factory.mktemp("connect")
    return answers_of("tests.activation.connect_streams", directory, seconds_max=1500)


@pytest.mark.spark
@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_connect(answers: dict[str, Any], check: str) -> None:
    if answers[check] == SLOW:
        pytest.skip(SLOW)
    assert answers[check] == EXPECTED[check]
