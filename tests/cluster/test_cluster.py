"""A cluster that shares nothing but an object store: rows and counts are exact, whoever dies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.connect_session import answers_of
from tests.servers import s3
from tests.servers.cluster import can_hide_folders

pytestmark = pytest.mark.cluster
RUNS = int(os.environ.get("PUREDELTA_RUNS", "20"))
"""Statements, in each of which an executor is killed while it runs tasks."""
SERVER = os.environ.get("PUREDELTA_S3_SERVER", "")
"""The server to start, or the first that is installed."""


@pytest.fixture(autouse=True)
def _own_mounts() -> None:
    if not can_hide_folders():
        pytest.skip("a worker cannot get mounts of its own here: needs root on Linux")


def test_a_store_is_enough(tmp_path: Path) -> None:
    """No worker sees the driver's folder, nor has it puredelta; executors are killed."""
    if not any(map(s3.is_installed, s3.SERVERS)):
        pytest.skip("no S3 server is installed: pip install 'moto[server]'")
    answers = answers_of("tests.cluster.store_alone", tmp_path, str(RUNS), SERVER, seconds_max=1800)
    print(answers)  # noqa: T201 - with -s
    assert answers["workers"] == [["one", False], ["two", False]]
    assert (answers["own disk"], answers["own disk left"]) == ("WRITE_FAILED", [])
    assert (answers["wrong"], answers["left"]) == ([], [])
    assert len(answers["kills"]) == RUNS


def test_workers_without_pyarrow(tmp_path: Path) -> None:
    """Where Spark has a way of its own, it is taken; else the error says what is missing."""
    answers = answers_of("tests.cluster.without_pyarrow", tmp_path, seconds_max=900)
    assert answers["workers"] == [["one", False], ["two", False]]
    assert answers["shared disk"] == "exact"
    assert "Spark's Python workers lack pyarrow" in answers["store"]
    assert answers["store left"] == []
