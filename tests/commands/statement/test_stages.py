"""The one place that times, logs and shows stages."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import pytest

from puredelta.commands.statement.stages import StageTimer


@dataclass(frozen=True)
class Told:
    words: str

    def describe(self) -> str:
        return self.words


def test_a_stage_has_one_line_with_what_it_found(caplog: pytest.LogCaptureFixture) -> None:
    stage = StageTimer(statement="file:/table")
    with caplog.at_level(logging.DEBUG, "puredelta.stage"):
        assert stage("4 prune", Told, words="3 files") == Told("3 files")
        stage("5 search", dict)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("file:/table: 4 prune: 3 files (")
    assert second.startswith("file:/table: 5 search: done (")


def test_nothing_is_described_that_nobody_reads() -> None:
    def describe(_: Any) -> str:
        raise AssertionError("described")

    silent = type("Silent", (), {"describe": describe})
    logging.getLogger("puredelta.stage").setLevel(logging.INFO)
    StageTimer(statement="t")("1 spec", silent)


def test_an_observer_sees_every_outcome_and_no_failure() -> None:
    seen: list[tuple[str, Any]] = []
    stage = StageTimer(statement="t", observe=lambda name, outcome: seen.append((name, outcome)))

    def fail() -> None:
        raise ValueError("on the way")

    stage("1 spec", int, "7")
    with pytest.raises(ValueError, match="on the way"):
        stage("2 resolve", fail)
    assert seen == [("1 spec", 7)]


def test_times_are_added_up_and_never_nothing_for_a_stage_that_ran() -> None:
    stage = StageTimer(statement="t")
    stage("4 prune", time.sleep, 0.01)
    stage("5 search", int)
    assert stage.elapsed_ms("4 prune", "5 search") >= 10
    assert stage.elapsed_ms("5 search") == 1
    assert stage.elapsed_ms("6 decide") == 0
