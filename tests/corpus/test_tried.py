"""Dry runs of recorded statements have the counts of their execution, previews its change feed."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, all_cases
from tests.corpus.run import Run
from tests.corpus.trial import require_same

SAMPLE = 4
_CASES = all_cases()
_FED = [case for case in _CASES if case.has_feed and "error" not in case.expected_here]
_SAMPLE = _FED[:: max(1, len(_FED) // SAMPLE)][:SAMPLE]


@pytest.mark.parametrize("case", _SAMPLE, ids=lambda case: case.id)
def test_a_sample_is_tried(case: Case, run: Run) -> None:
    require_same(run, case)


@pytest.mark.trials
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_every_case_is_tried(case: Case, run: Run) -> None:
    require_same(run, case)
