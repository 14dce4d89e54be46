"""The line of progress of a command: what it shows, and that the answer is not part of it."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Mapping

import pytest

pytest.importorskip("click")

from puredelta.cli import spark_commands
from puredelta.cli.output import Output
from puredelta.cli.parse import Context
from puredelta.errors import InvalidRequestError
from puredelta.spark.jvm.jobs import TaskCounts
from puredelta.spark.session import concurrent_jobs

PROGRESS = "spark.puredelta.progress"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Spark:
    """Stands for a session: settings, and whether it was stopped."""

    def __init__(self) -> None:
        self.conf = self
        self.settings: dict[str, str] = {}
        self.stopped = False

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    made = Spark()

    def find_tasks(_session: object, tag: str | None) -> TaskCounts:
        assert tag is None
        return TaskCounts(done=3, known=8, running_jobs=1)

    monkeypatch.setattr(spark_commands, "_started", lambda _context: made)
    monkeypatch.setattr(spark_commands, "activate", lambda _spark: True)
    monkeypatch.setattr(concurrent_jobs, "find_tasks", find_tasks)
    monkeypatch.setattr(spark_commands, "_LINE_S", 0.01)
    return made


def context(conf: Mapping[str, str] | None = None) -> Context:
    return Context(output=Output(as_json=True), conf=conf or {})


def test_an_answer_goes_to_stdout_where_stderr_is_a_terminal(
    spark: Spark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    asked = context()
    with spark_commands.spark_session(asked, "sql"):
        time.sleep(0.1)
        asked.output.value({"a": 1})
        shown = terminal.getvalue()
    assert json.loads(capsys.readouterr().out) == {"a": 1}
    assert '"a"' not in terminal.getvalue()
    assert "\rsql: running, task 3 of 8 (0 s)" in shown
    assert shown.rstrip("\r").rpartition("\r")[2].strip() == "", "the line is gone before"
    assert terminal.getvalue() == shown, "and does not come back"
    assert spark.stopped


def test_a_stage_that_has_ended_stays_as_a_line(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    stages = logging.getLogger("puredelta.stage")
    before = stages.level, list(stages.handlers)
    with spark_commands.spark_session(context(), "merge t"):
        time.sleep(0.05)
        stages.debug("MERGE: 5 search: 3 files\x1b[2J")
        time.sleep(0.05)
    assert "\rMERGE: 5 search: 3 files\\x1b[2J\n" in terminal.getvalue()
    assert (stages.level, stages.handlers) == before


@pytest.mark.parametrize(
    ("setting", "terminal", "shown"),
    [
        (None, io.StringIO, False),
        (None, Terminal, True),
        ("off", Terminal, False),
        ("on", io.StringIO, True),
    ],
)
def test_the_setting_is_about_the_one_line(
    spark: Spark,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    terminal: type[io.StringIO],
    *,
    shown: bool,
) -> None:
    monkeypatch.setattr(sys, "stderr", out := terminal())
    conf = {} if setting is None else {PROGRESS: setting}
    with spark_commands.spark_session(context(conf), "sql"):
        time.sleep(0.1)
    assert ("sql: running" in out.getvalue()) is shown
    assert spark.settings[PROGRESS] == "off", "statements show none of their own"


def test_a_wrong_setting_starts_nothing(spark: Spark) -> None:
    with (
        pytest.raises(InvalidRequestError, match="auto, on or off"),
        spark_commands.spark_session(context({PROGRESS: "yes"}), "sql"),
    ):
        pass
    assert not spark.stopped
