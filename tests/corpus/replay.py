"""Every recorded statement again, through puredelta: what came out of delta-spark comes out.

The cases of a few files are one test module each, so that several workers share them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.corpus.case import Case, all_cases
from tests.corpus.run import Run


def replay_of(*topics: str) -> Callable[[Case, Run], None]:
    """Return the test of all cases of these topics, which their names begin with."""
    cases = [case for case in all_cases() if case.id.partition("-")[0] in topics]
    assert cases

    @pytest.mark.parametrize("case", cases, ids=lambda case: case.id)
    def test_recorded_statement(case: Case, run: Run) -> None:
        assert run.outcome(case) == case.expected_here

    return test_recorded_statement
