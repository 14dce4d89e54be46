"""Scans over Spark Connect: the same rows with public API only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark import connect_checks

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS_MAX = 300


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Start one Connect session of its own and ask it everything."""
    for package in ("grpc", "google.protobuf", "grpc_status", "pandas"):
        pytest.importorskip(package, reason="Spark Connect needs pyspark[connect]")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --conf spark.ui.enabled=false pyspark-shell",
    }
    directory = tmp_path_factory.mktemp("connect")
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_checks", str(directory)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


EXPECTED: dict[str, Any] = {
    "session": True,
    "rows": sorted(
        [["a b", "1", "-1"], ["a b", "2", "-1"]]
        + [["None", str(n), "None"] for n in range(4)]
        + [["a b", str(n), "7"] for n in (0, 2, 3)]
    ),
    "filtered": [["0", "0"], ["2", "2"], ["3", "3"]],
    "positions": [["0", str(n), str(n)] for n in (0, 2, 3)]
    + [["1", str(n), str(n)] for n in range(4)],
    "only_positions": 9,
    "empty": [["p", "id", "n", "__puredelta_file", "__puredelta_row"], []],
    "staged": [["0", "0", "0"], ["1", "1", "0"]],
    "mapped_by_name": [["a b"], [["5"]]],
    "mapped_by_id": "DELTA_UNSUPPORTED_ON_CONNECT",
    "hidden": "DELTA_UNSUPPORTED_DATA_FILE",
    "time_travel": [
        2,
        "DELTA_ONEOF_IN_TIMETRAVEL",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "DELTA_TIMESTAMP_INVALID",
    ],
    "instants": [["1577854800000000"]],
    "changed_rows": [
        [
            ["None", "2", "update_preimage", "5"],
            ["None", "5", "update_postimage", "5"],
            ["a b", "0", "delete", "3"],
            ["a b", "0", "insert", "1"],
            ["a b", "1", "delete", "2"],
            ["a b", "1", "insert", "1"],
            ["a b", "2", "delete", "6"],
            ["a b", "2", "insert", "1"],
        ],
        ["p", "id", "_change_type", "_commit_version", "_commit_timestamp"],
        [],
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize("check", [check.__name__ for check in connect_checks.CHECKS])
def test_connect(answers: dict[str, Any], check: str) -> None:
    assert answers[check] == EXPECTED[check]
