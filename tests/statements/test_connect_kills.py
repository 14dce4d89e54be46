"""Clients of Spark Connect that are killed at each step: the table is the old or the new one."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.connect_session import ask
from tests.statements.connect_kills import NEW, OLD, STATEMENTS

pytestmark = [pytest.mark.spark, pytest.mark.faults]

NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND")
"""The second one of a managed entry whose log is still to come."""
STEPS_MIN = 6


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Start a server, and a client of it for each death."""
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.statements.connect_kills", directory, seconds_max=3600)


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_table_is_the_old_or_the_new_one(answers: dict[str, Any], name: str) -> None:
    ended, shown, again = zip(*answers[name], strict=True)
    assert set(ended) == {-signal.SIGKILL}
    assert len(ended) >= STEPS_MIN
    before = [one for one in shown if one != NEW]
    assert list(shown) == [*before, *[NEW] * (len(shown) - len(before))]
    assert all(one in (NO_TABLE if name == "ctas" else [OLD]) for one in before)
    assert all(one == NEW for one in again)
