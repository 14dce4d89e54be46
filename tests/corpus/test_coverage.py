"""What the corpus covers, read from its data: it can grow, but not shrink in silence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode
from tests.corpus.case import Case, all_cases
from tests.corpus.tags import STATEMENT, TABLE, TYPES, VALUES, tags

CASES = all_cases()
COVERED = {case.id: tags(case) for case in CASES}
DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"

CLAUSES = {
    "matched": ("update", "update *", "delete"),
    "not matched": ("insert", "insert *"),
    "not matched by source": ("update", "delete"),
}
ORDERS = (
    "matched, not matched",
    "matched, not matched by source",
    "matched, not matched, not matched by source",
    "not matched, matched",
    "not matched by source, not matched, matched",
)
SETTINGS = (
    "spark.databricks.delta.commitInfo.userMetadata=mine",
    "spark.databricks.delta.schema.autoMerge.enabled=true",
    "spark.databricks.delta.typeWidening.allowAutomaticWidening=always",
    "spark.databricks.delta.typeWidening.allowAutomaticWidening=never",
    "spark.databricks.delta.typeWidening.allowAutomaticWidening=same_family_type",
    "spark.databricks.delta.write.txnVersion=1",
    "spark.sql.ansi.enabled=false",
    "spark.sql.caseSensitive=true",
    "spark.sql.session.timeZone=Europe/Berlin",
    "spark.sql.storeAssignmentPolicy=LEGACY",
    "spark.sql.storeAssignmentPolicy=STRICT",
)
OUTCOMES = (
    "operation: None",
    "operation: DELETE",
    "operation: MERGE",
    "operation: UPDATE",
    "operation: WRITE",
    "change: delete",
    "change: insert",
    "change: update_postimage",
    "change: update_preimage",
)
CODES = ()
"""Error classes of changes of rows that delta-spark and puredelta raise, from `ErrorCode`."""
OF_SPARK = ()
"""Those that Spark itself raises."""


def required() -> set[str]:
    """Everything of which there has to be a case."""
    clauses = {f"{kind} {action}" for kind, actions in CLAUSES.items() for action in actions}
    return {
        *(f"clause: {clause}{condition}" for clause in clauses for condition in ("", " if")),
        *(f"several: {kind}" for kind in CLAUSES),
        *(f"order: {order}" for order in ORDERS),
        *(f"table: {name}" for name in TABLE),
        *(f"statement: {name}" for name in STATEMENT),
        *(f"type: {name}" for name in TYPES),
        *(f"value: {name}" for name in VALUES),
        *(f"setting: {setting}" for setting in SETTINGS),
        *OUTCOMES,
        "by calls",
        "by text",
        "with schema evolution",
        *(f"error: {code.error_class}" for code in CODES),
        *(f"error: {name}" for name in OF_SPARK),
    }


def test_everything_is_covered() -> None:
    missing = required().difference(*COVERED.values())
    assert not missing


def test_every_recorded_error_is_listed() -> None:
    found = {tag for covered in COVERED.values() for tag in covered if tag.startswith("error: ")}
    assert found <= required()


def test_there_are_enough_cases_of_many_tables() -> None:
    assert len(CASES) >= 400
    assert len({str(case.setup) for case in CASES}) >= 100


def test_every_case_has_a_name_of_its_own() -> None:
    counted = Counter(case.id for case in CASES)
    assert max(counted.values()) == 1


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.difference is not None], ids=lambda case: case.id
)
def test_a_difference_is_documented_and_is_one(case: Case) -> None:
    assert case.difference is not None
    assert case.difference["reason"] in DIFFERENCES.read_text()
    assert case.expected_here != case.outcome
