"""What the corpus covers, read from its data: it can grow, but not shrink in silence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode
from tests.corpus.case import Case, all_cases
from tests.corpus.replay import sample
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
CODES = (
    ErrorCode.AMBIGUOUS_REFERENCE,
    ErrorCode.ARITHMETIC_OVERFLOW,
    ErrorCode.CANNOT_UP_CAST_DATATYPE,
    ErrorCode.CAST_INVALID_INPUT,
    ErrorCode.FILTER_NOT_BOOLEAN,
    ErrorCode.DEFAULT_PLACEMENT_INVALID,
    ErrorCode.AGGREGATION_NOT_SUPPORTED,
    ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
    ErrorCode.CAST_OVERFLOW_IN_TABLE_WRITE,
    ErrorCode.COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE,
    ErrorCode.CONFLICT_SET_COLUMN,
    ErrorCode.CONSTRAINT_DATA_TYPE_MISMATCH,
    ErrorCode.DUPLICATE_COLUMNS_ON_INSERT,
    ErrorCode.EXCEED_CHAR_VARCHAR_LIMIT,
    ErrorCode.FAILED_TO_MERGE_FIELDS,
    ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT,
    ErrorCode.GENERATED_COLUMNS_DATA_TYPE_MISMATCH,
    ErrorCode.IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED,
    ErrorCode.IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED,
    ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS,
    ErrorCode.MERGE_ADD_VOID_COLUMN,
    ErrorCode.MERGE_INTO_EMPTY_SCHEMA_TARGET,
    ErrorCode.MERGE_MISSING_WHEN,
    ErrorCode.MERGE_UNRESOLVED_EXPRESSION,
    ErrorCode.MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW,
    ErrorCode.NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED,
    ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
    ErrorCode.NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
    ErrorCode.NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
    ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED,
    ErrorCode.OPERATION_ON_TEMP_VIEW_WITH_GENERATED_COLS,
    ErrorCode.REPLACE_WHERE_MISMATCH,
    ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS,
    ErrorCode.STRUCT_ALL_VOID_FIELDS,
    ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_OPERATION,
    ErrorCode.UNSUPPORTED_NESTED_FIELD_IN_UPDATE,
    ErrorCode.UNSUPPORTED_SUBQUERY,
    ErrorCode.UPDATE_SCHEMA_MISMATCH_EXPRESSION,
    ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES,
    ErrorCode.FIELD_NOT_FOUND,
    ErrorCode.INVALID_ATTRIBUTE_NAME_SYNTAX,
    ErrorCode.INVALID_EXTRACT_BASE_FIELD_TYPE,
    ErrorCode.INVALID_NON_DETERMINISTIC_EXPRESSIONS,
    ErrorCode.JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE,
    ErrorCode.PARSE_SYNTAX_ERROR,
    ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
    ErrorCode.UNRESOLVED_COLUMN,
    ErrorCode.UNSUPPORTED_EXPR_FOR_OPERATOR,
    ErrorCode.TABLE_OPERATION_NOT_SUPPORTED,
)
"""Error classes of changes of rows that delta-spark and puredelta raise, from `ErrorCode`."""
OF_SPARK = (
    "BINARY_ARITHMETIC_OVERFLOW",
    "COLUMN_ALIASES_NOT_ALLOWED",
    "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
    "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
    "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
    "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION",
    "DIVIDE_BY_ZERO",
    "INVALID_ARRAY_INDEX",
    "MERGE_INSERT_VALUE_COUNT_MISMATCH",
    "MERGE_WITHOUT_WHEN",
    "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
    "UNRESOLVED_ROUTINE",
    "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
)
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


def test_the_sample_of_every_day_covers_everything() -> None:
    missing = required().difference(*(COVERED[case.id] for case in sample()))
    assert not missing
    assert len(sample()) < len(CASES) / 2


def test_every_recorded_error_is_listed() -> None:
    """But for those of cases that puredelta answers otherwise, on purpose."""
    same = [COVERED[case.id] for case in CASES if case.difference is None]
    found = {tag for covered in same for tag in covered if tag.startswith("error: ")}
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


def test_every_topic_is_replayed() -> None:
    here = Path(__file__).parent
    named = "".join(path.read_text() for path in here.glob("test_replay_*.py"))
    topics = {path.stem for path in (here / "cases").glob("*.jsonl")}
    assert {topic for topic in topics if f'"{topic}"' not in named} == set()
    assert {case.id.partition("-")[0] for case in CASES} == topics
