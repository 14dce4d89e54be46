"""The line of progress: when it is wanted, what it shows, and that nothing of it stays."""

from __future__ import annotations

import io
import time
from typing import Any, cast

import pytest

from puredelta.commands.statement.progress import ProgressLine, wants_progress
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.spark.jvm.jobs import TaskCounts
from puredelta.spark.session.concurrent_jobs import shows_own_bar
from tests.commands.sessions import FakeSession

KEY = "spark.puredelta.progress"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("settings", "terminal", "spark_shows", "wanted"),
    [
        ({}, False, True, False),
        ({}, True, True, False),  # Spark has a line of its own
        ({}, True, False, True),
        ({KEY: "on"}, False, True, True),
        ({KEY: " OFF "}, True, False, False),
    ],
)
def test_who_sees_progress(
    settings: dict[str, str], *, terminal: bool, spark_shows: bool, wanted: bool
) -> None:
    out = Terminal() if terminal else io.StringIO()
    assert wants_progress(settings, out, spark_shows=spark_shows) is wanted


def test_the_line_of_spark_itself() -> None:
    classic, client = cast("Any", object()), cast("Any", FakeSession())
    assert shows_own_bar(classic, {})
    assert not shows_own_bar(classic, {"spark.ui.showConsoleProgress": "False"})
    assert not shows_own_bar(client, {})


def test_another_value_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="auto, on or off") as caught:
        wants_progress({KEY: "yes"}, io.StringIO(), spark_shows=True)
    assert caught.value.code is ErrorCode.INVALID_CONF_VALUE


def line_of(out: io.StringIO, title: str = "MERGE file:/t") -> ProgressLine:
    return ProgressLine(
        title=title,
        find_tasks=lambda: TaskCounts(done=3, known=8, running_jobs=1),
        out=out,
        first_s=0.01,
        every_s=0.01,
    )


def test_the_line_writes_over_itself_and_goes_away() -> None:
    out = io.StringIO()
    line = line_of(out)
    with line.shown(), line.stage("5 search"):
        time.sleep(0.1)
    written = out.getvalue()
    assert "\rMERGE file:/t: 5 search, 3/8 tasks (0 s)" in written
    assert "\n" not in written
    assert written.endswith("\r")
    assert written.rstrip("\r").rpartition("\r")[2].strip() == ""


def test_a_long_path_leaves_room_for_the_stage() -> None:
    line = line_of(io.StringIO(), f"MERGE file:/{'long/' * 40}events")
    line.show("5 search")
    shown = line.line(60)
    assert len(shown) == 60
    assert shown.startswith("MERGE ...")
    assert shown.endswith("long/events: 5 search, 3/8 tasks (0 s)")
    assert line.line(10) == ": 5 search"
    assert line.line(41) == "MERGE ...vents: 5 search, 3/8 tasks (0 s)"
    assert line.line(30) == "MER: 5 search, 3/8 tasks (0 s)"


def test_a_short_statement_writes_nothing() -> None:
    out = io.StringIO()
    line = line_of(out)
    line.first_s = 60
    with line.shown():
        pass
    assert out.getvalue() == ""


def test_a_name_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in line_of(io.StringIO(), "MERGE \x1b[2J\n").line()


def test_a_closed_stream_fails_nothing() -> None:
    out = io.StringIO()
    line = line_of(out)
    with line.shown():
        out.close()
        time.sleep(0.05)
