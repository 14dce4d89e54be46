"""Every recorded statement again, through puredelta: what came out of delta-spark comes out.

The cases of a few files are one test module each, so that several workers share them. ``make test``
takes a sample that covers what all of them cover, ``make thorough`` the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.corpus.case import Case, all_cases, require_void_columns
from tests.corpus.run import Run
from tests.corpus.tags import tags


@cache
def sample() -> tuple[Case, ...]:
    """The cases that cover most of what none before them does, until nothing is left."""
    cases = all_cases()
    left = {case.id: tags(case) for case in cases}
    taken = set()
    while any(left.values()):
        most = max(cases, key=lambda case: len(left[case.id])).id
        taken.add(most)
        left = {name: more - left[most] for name, more in left.items()}
    return tuple(case for case in cases if case.id in taken)


def replay_of(*topics: str) -> Callable[[Case, Run], None]:
    """Return the test of all cases of these topics, which their names begin with."""
    taken = {case.id for case in sample()}
    cases = [
        pytest.param(case, id=case.id, marks=() if case.id in taken else pytest.mark.thorough)
        for case in all_cases()
        if case.id.partition("-")[0] in topics
    ]
    assert cases

    @pytest.mark.parametrize("case", cases)
    def test_recorded_statement(case: Case, run: Run) -> None:
        require_void_columns(case.id, run.spark.version)
        assert run.outcome(case) == case.expected_here

    return test_recorded_statement
