"""Statements on names of the catalog: a Connect session does what a classic session does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect_session import ask
from tests.statements.connect_matrix import differences
from tests.statements.matrix_rows import OTHERWISE, SAME

pytestmark = pytest.mark.thorough
"""Three hundred statements take minutes; `test_connect_names` has a sample of them."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the blocks in one process with both kinds of sessions."""
    directory = tmp_path_factory.mktemp("connect")
    return ask("tests.statements.connect_matrix", directory, "in-memory", *SAME, seconds_max=1800)


@pytest.mark.spark
@pytest.mark.parametrize("block", SAME)
def test_both_sessions_do_the_same(answers: dict[str, Any], block: str) -> None:
    found = {
        label: (ours, theirs) for name, label, ours, theirs in differences(answers) if name == block
    }
    assert {label: both for label, both in found.items() if label not in OTHERWISE} == {}


@pytest.mark.spark
def test_a_connection_that_breaks_leaves_what_the_next_statement_mends(
    answers: dict[str, Any],
) -> None:
    """A managed table has its entry first, one at a location its log."""
    assert answers["faults"] == [
        *["RuntimeError", False] * 2,  # the entry is taken back
        *["RuntimeError", True],  # it could not be
        *["DELTA_TABLE_NOT_FOUND"] * 2,
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        *["done"] * 2,  # CREATE OR REPLACE completes it
        *["DELTA_CATALOG_ENTRY_NOT_UPDATED", False, ["00000000000000000000.json"]],
        *["done", [[1]]],  # named by its location
    ]
