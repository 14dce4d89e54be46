"""Columns that this library makes note no line of code."""

from __future__ import annotations

import threading

import pytest

from puredelta.spark.connect.messages import without_origins

utilities = pytest.importorskip("pyspark.errors.utils")


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(utilities, "_enable_debugging_cache"):
        pytest.skip("this PySpark asks the session each time")
    monkeypatch.setattr(utilities, "_enable_debugging_cache", True)


@pytest.mark.usefixtures("noted")
def test_nothing_is_noted_inside() -> None:
    with without_origins():
        assert not utilities.is_debugging_enabled()
        with without_origins():
            pass
        assert not utilities.is_debugging_enabled()
    assert utilities.is_debugging_enabled()


@pytest.mark.usefixtures("noted")
def test_another_thread_notes_its_lines() -> None:
    found: list[bool] = []
    with without_origins():
        other = threading.Thread(target=lambda: found.append(utilities.is_debugging_enabled()))
        other.start()
        other.join()
    assert found == [True]


@pytest.mark.usefixtures("noted")
def test_lines_are_noted_after_an_error() -> None:
    with pytest.raises(ValueError, match="of a statement"), without_origins():
        raise ValueError("of a statement")
    assert utilities.is_debugging_enabled()
