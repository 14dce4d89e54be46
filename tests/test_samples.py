"""The cases of a sampled test that ``make test`` runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import _mark_samples
from tests.connect_session import each_check


class Case:
    """What `_mark_samples` asks of an item."""

    def __init__(self, nodeid: str, sampled: int | None) -> None:
        self.nodeid = nodeid
        self.later = False
        self._sampled = sampled

    def get_closest_marker(self, name: str) -> Any:
        assert name == "sampled"
        return None if self._sampled is None else pytest.mark.sampled(self._sampled).mark

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        assert marker.name == "thorough"
        self.later = True


def test_the_first_case_of_each_test_and_some_others_are_in_the_sample() -> None:
    one, other = ([Case(f"f.py::{name}[{n}]", 3) for n in range(300)] for name in "ab")
    whole = [Case(f"f.py::c[{n}]", None) for n in range(9)]
    items: Any = [*one, *other, *whole]
    _mark_samples(items)
    assert not one[0].later
    assert not other[0].later
    assert 60 < sum(not case.later for case in one) < 140
    assert [case.later for case in one] == [case.later for case in other]
    assert not any(case.later for case in whole)


def test_a_program_is_asked_for_its_sample_and_later_for_every_check() -> None:
    _, cases = each_check({"sample": ["a"], "every": ["a", "b"]}).mark.args
    assert [case.values for case in cases] == [("sample", "a"), ("every", "a"), ("every", "b")]
    assert [[mark.name for mark in case.marks] for case in cases] == [[], *[["thorough"]] * 2]
