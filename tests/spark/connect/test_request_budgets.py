"""Budgets of requests that calls over Spark Connect send, and the quiet log of its server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import AMOUNTS, answers_and_log_of, each_check
from tests.spark.connect.request_budgets import CALLS, JOINS, QUERIES

MOST_REQUESTS = {
    "activate": 1,
    "first write": 9,
    "append": 3,
    "merge by name": 6,
    "merge by path": 8,
    "merge by builder": 5,
    "delete": 6,
}
"""A MERGE runs three jobs, whatever asks for it, and a fourth for files that it updates in place,
as in a classic session: here those of the table by path. The settings are known from the call
before.
"""


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str]:
    """Start one Connect session of its own and ask it."""
    pytest.importorskip("pyspark.sql.connect.proto", exc_type=ImportError)
    directory, module = tmp_path_factory.mktemp("connect"), "tests.spark.connect.request_budgets"
    return answers_and_log_of(module, directory, request.param, seconds_max=900)


@pytest.mark.spark
@each_check(CALLS)
def test_requests_of_a_call(answers: tuple[dict[str, Any], str], check: str) -> None:
    assert sum(answers[0][check]) <= MOST_REQUESTS[check], answers[0][check]


@pytest.mark.spark
@each_check(QUERIES)
def test_a_query_sends_one_request_more_than_one_of_parquet(
    answers: tuple[dict[str, Any], str], check: str
) -> None:
    ours, parquet = answers[0][check]
    assert sum(ours) <= sum(parquet) + 1, (ours, parquet)


@pytest.mark.spark
@each_check(JOINS)
def test_a_join_asks_once_for_its_names_and_once_for_its_columns(
    answers: tuple[dict[str, Any], str], check: str
) -> None:
    """What is run is what was analyzed, unless the server says less of columns than the log."""
    requests, analyzed_once = answers[0][check]
    assert requests[:2] == [2, 1], requests
    assert analyzed_once == (check == "join with t")


@pytest.mark.spark
def test_nothing_asked_on_purpose_is_an_error_in_the_log(
    answers: tuple[dict[str, Any], str],
) -> None:
    assert _errors(answers[1]) == []
    assert "seen-by-server" not in answers[1]  # the file by which a shared disk shows


def _errors(log: str) -> list[str]:
    """Return the lines of a log that are errors or their stack traces.

    PySpark itself ends a session before its last releases are sent: those errors are left out.
    """
    found: list[str] = []
    late_release = False
    for line in log.splitlines():
        if " ERROR " in line:
            late_release = "RPC error during: releaseExecute" in line
        if not late_release and (" ERROR " in line or line.startswith(("\tat ", "Caused by:"))):
            found.append(line)
    return found


def test_errors_of_a_log() -> None:
    late = "26/11/28 19:36:58 ERROR ErrorUtils: Spark Connect RPC error during: releaseExecute."
    ours = "26/11/28 19:36:59 ERROR Executor: Exception in task 0"
    trace = "\tat org.apache.spark.Task.run(Task.scala:1)"
    assert _errors(f"{late}\n{trace}\nINFO done") == []
    assert _errors(f"{late}\n{trace}\n{ours}\n{trace}") == [ours, trace]
