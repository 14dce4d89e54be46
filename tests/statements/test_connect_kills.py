"""Connect clients that are killed: the old or the new rows, and the next client goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.connect_session import ask
from tests.statements.connect_kills import DEFINES, NEW, OLD, STATEMENTS, STREAM

_MODULE = "tests.statements.connect_kills"
_KILLED = -9
_UNMADE = ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
"""A table that is not there, and a managed entry whose log is not there yet."""


_LEFT = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


def require_old_or_new(name: str, deaths: list[Any]) -> None:
    """Check what clients of a statement have left that died, and what the next one has made."""
    new = [] if name == "create" else NEW
    made = [[], new] if name == STREAM else [new]
    for at, ended, left, again in deaths:
        assert ended == _KILLED, at
        is_old = left in _UNMADE if name in {*DEFINES, STREAM} else left == OLD
        assert is_old or left in made, (at, left)
        # What is at a path may be a table that has lost its log.
        is_left = name == "ctas by path" and is_old and again == _LEFT
        assert is_left or again == new, (at, again)


@pytest.mark.spark
def test_a_client_that_is_killed(tmp_path: Path, connect_server: str) -> None:
    found = ask(_MODULE, tmp_path, "merge=15", server=connect_server)
    for name, deaths in found.items():
        require_old_or_new(name, deaths)


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("name", [*STATEMENTS, STREAM])
def test_a_client_that_is_killed_at_each_step(
    tmp_path: Path, connect_server: str, name: str
) -> None:
    found = ask(_MODULE, tmp_path, name, server=connect_server)
    require_old_or_new(name, found[name])
