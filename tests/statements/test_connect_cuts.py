"""Connections of a Connect client that break: the old or the new rows, once, and no hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.connect_session import ask
from tests.statements.connect_cuts import (
    CASES,
    DONE,
    ENTRY_ALONE,
    FAILS,
    UNDISTURBED,
    rows_after,
)
from tests.statements.connect_kills import DEFINES, OLD

_MODULE = "tests.statements.connect_cuts"
_SECONDS_MAX = 3600
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
_READS = ("query",)
_SENDER = "spark.connect.execute.reattachable"
_LIMITS = [{"senderMaxStreamSize": "1b"}, {"senderMaxStreamDuration": "20ms"}]
Limits = Callable[..., None]


@pytest.fixture
def limit_answers(spark: SparkSession, connect_server: str) -> Iterator[Limits]:
    """Give the server settings of its answers, which it reads at each of them."""
    context: Any = spark.sparkContext
    settings = context._jsc.sc().conf()
    names: list[str] = []

    def limit(**values: str) -> None:
        for name, value in values.items():
            names.append(f"{_SENDER}.{name}")
            settings.set(names[-1], value)

    assert connect_server
    yield limit
    for name in names:
        settings.remove(name)


def require_exact(statement: str, faults: list[dict[str, Any]]) -> None:
    """Check what faults of a statement have left."""
    new = rows_after(statement)
    assert faults
    for fault in faults:
        left, is_new = fault["left"], fault["left"] == new
        is_done = fault["ended"] == DONE
        if is_done:
            assert is_new, fault
        else:
            assert fault["is_clear"], fault
            assert fault["fault"][0] in FAILS, fault
            old = (*_ABSENT, ENTRY_ALONE) if statement in DEFINES else (OLD,)
            assert is_new or left in old, fault
            assert fault["again"] in ([None] if is_new else [new]), fault
        commits = 0 if statement in _READS or not is_new else 1
        assert fault["num_commits"] == commits, fault
        assert not fault["missing"], fault


@pytest.mark.spark
@pytest.mark.thorough
def test_a_connection_that_is_cut(
    tmp_path: Path, connect_server: str, limit_answers: Limits
) -> None:
    limit_answers(senderMaxStreamSize="1b")
    found = ask(_MODULE, tmp_path, "merge=1", server=connect_server)
    for statement, faults in found.items():
        require_exact(statement, faults)


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize("statement", CASES)
def test_a_connection_that_is_cut_at_each_place(
    tmp_path: Path, connect_server: str, statement: str
) -> None:
    found = ask(_MODULE, tmp_path, statement, server=connect_server, seconds_max=_SECONDS_MAX)
    require_exact(statement, found[statement])


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize("limit", _LIMITS, ids=lambda limit: next(iter(limit)))
def test_a_server_that_ends_its_answers_early(
    tmp_path: Path, connect_server: str, limit_answers: Limits, limit: dict[str, str]
) -> None:
    limit_answers(**limit)
    wanted = [f"{statement}=0" for statement in CASES]
    num_reattached = 0
    for statement, faults in ask(_MODULE, tmp_path, *wanted, server=connect_server).items():
        require_exact(statement, faults)
        [undisturbed] = faults
        assert undisturbed["fault"][0] == UNDISTURBED
        assert undisturbed["ended"] == DONE, undisturbed
        num_reattached += undisturbed["num_reattached"]
    assert num_reattached > len(wanted)
