"""Executors are killed while they write, and slow tasks run twice: rows are exact every time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.connect_session import answers_of


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="finds executors in /proc")
def test_no_row_is_lost_or_doubled_when_executors_die(tmp_path: Path) -> None:
    answers = answers_of("tests.spark.write.killed_executors", tmp_path)
    assert answers["wrong"] == []
    assert answers["left"] == []
    assert len(answers["kills"]) >= 3
