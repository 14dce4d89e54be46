"""Counts and bounds that the log answers over Spark Connect: rows and columns are Spark's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import AMOUNTS, ask, of_every
from tests.spark.scan import connect_answers

_ANSWERED_MIN = {
    "sample": {"mapped with vectors": 1},
    "every": {"plain": 3, "partitioned": 13, "mapped with vectors": 3, "without statistics": 1},
}
_REFUSED = {
    "SELECT count(*) FROM {t} WHERE k = 'x'": "NumberFormatException",
    "SELECT max(nothing) FROM {t}": "AnalysisException",
    "SELECT max(y.id) FROM {t} x": "AnalysisException",
    "SELECT count(*) FROM {t} WHERE id": "AnalysisException",
}


@pytest.fixture(scope="module", params=AMOUNTS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> dict[str, Any]:
    """Ask one Connect session, with some generated queries or all of them."""
    directory = tmp_path_factory.mktemp("connect")
    found = ask("tests.spark.scan.connect_answers", directory, request.param, server=connect_server)
    return {"amount": request.param, **found}


@pytest.mark.spark
def test_x_73_answers_are_those_of_the_rows(answers: dict[str, Any]) -> None:
    answered = {layout: number for layout, (number, _) in answers["texts"].items()}
    assert [wrong for _, wrong in answers["texts"].values() if wrong] == []
    least = _ANSWERED_MIN[answers["amount"]]
    assert answered.keys() == least.keys()
    assert all(answered[layout] >= least[layout] for layout in least), answered


@pytest.mark.spark
def test_answers_stand_anywhere_in_a_query(answers: dict[str, Any]) -> None:
    assert [wrong for _, wrong in answers["forms"] if wrong] == []
    assert [answered for answered, _ in answers["forms"]] == [True] * len(answers["forms"])


@pytest.mark.spark
@of_every
def test_x_73_what_needs_the_rows_is_left_alone(answers: dict[str, Any]) -> None:
    assert len(connect_answers.LEFT_ALONE) > len(_REFUSED)
    assert dict(answers["left_alone"]) == _REFUSED


@pytest.mark.spark
def test_settings_versions_and_requests(answers: dict[str, Any]) -> None:
    off = [999, False]
    assert answers["settings"] == [off, off, off, [1000, 1005], [1, 0], [True]]
