"""Streams over Spark Connect, on a server whose Python does not have this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.activation.connect_streams import LATER, SAMPLE, SLOW
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


def require_expected(directory: Path, checks: Sequence[Callable[..., Any]]) -> None:
    """Start a Connect server of its own and compare what it answers."""
    pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)
    names = [check.__name__ for check in checks]
    answers = answers_of("tests.activation.connect_streams", directory, *names, seconds_max=1500)
    if SLOW in answers.values():
        pytest.skip(SLOW)
    assert answers == {name: EXPECTED[name] for name in names}


@pytest.mark.spark
def test_streams_over_connect(tmp_path: Path) -> None:
    require_expected(tmp_path, SAMPLE)


@pytest.mark.spark
@pytest.mark.thorough
def test_a_killed_client_and_files_with_ids(tmp_path: Path) -> None:
    require_expected(tmp_path, LATER)
