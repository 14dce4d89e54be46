"""dbt and sqlmesh run a small project whole, over the catalog in memory and over Hive's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.clients


def answers_of(module: str, root: Path, catalog: str) -> Any:
    command = [sys.executable, "-m", module, str(root), catalog]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("catalog", ["memory", "hive"])
def test_dbt(tmp_path: Path, catalog: str) -> None:
    found = answers_of("tests.clients.run_dbt", tmp_path, catalog)
    failed = [step for step in found["steps"] if step[1] not in {"success", "pass"}]
    assert not failed
    assert len(found["steps"]) > 20
    rows = found["rows"]
    assert [row[2] for row in rows["orders"]] == ["10.50", "25.00", "5.25", "7.75"]
    assert rows["by_customer"] == [["ann", "15.75", "1"], ["bob", "25.00", "2"]]
    assert rows["every_run"] == [["3", "1", "None"], ["4", "2", "new"]]
    assert rows["per_day"] == [["2", "2024-01-01"], ["2", "2024-01-02"]]
    assert [row[0] for row in rows["large"]] == ["1", "2"]
    assert len(rows["history"]) == 5
    assert set(found["providers"].values()) == {"delta"}


@pytest.mark.parametrize("catalog", ["memory", "hive"])
def test_sqlmesh(tmp_path: Path, catalog: str) -> None:
    found = answers_of("tests.clients.run_sqlmesh", tmp_path, catalog)
    first, second = found["first"], found["second"]
    assert [row[1] for row in first["whole"]] == ["21.0", "40.0", "10.5"]
    assert first["days"] == [["1", "2024-01-01"], ["2", "2024-01-02"]]
    assert first["shown"] == [["71.5"]]
    assert [row[1] for row in second["whole"]] == ["31.5", "60.0", "15.75", "3.0"]
    assert len(second["newest"]) == 4
    assert second["shown"] == [["110.25"]]
    assert found["restated"]["days"] == [["2", "2024-01-01"], ["2", "2024-01-02"]]
    assert found["logs"] > 3
