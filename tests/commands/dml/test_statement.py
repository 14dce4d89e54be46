"""Stage 1: what can be checked, and begun, before any schema is known."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.command import Command
from puredelta.commands.dml.settings import ExecutionSettings
from puredelta.commands.dml.spec import (
    FILES_MIN,
    Delete,
    DeleteSpec,
    InputRows,
    Matched,
    MergeSpec,
    ReplaceSpec,
    ask,
)
from puredelta.errors import ErrorCode, InvalidRequestError
from tests.commands.dml.statements import command_of
from tests.faults import MemoryStore
from tests.log.tables import WRITE, add, column, create_table

ROWS: Any = InputRows(target=None)  # type: ignore[arg-type]
CLAUSES = (Matched(Delete()),)


def command(**settings: str) -> Command:
    files = (add(f"{n}.parquet", ids=(n, n + 1)) for n in range(FILES_MIN))
    return command_of(create_table(MemoryStore(), *files), settings)


def test_statistics_of_the_condition_are_parsed_from_here_on() -> None:
    asked = ask(command(), MergeSpec(on="t.id = s.key", clauses=CLAUSES), ROWS)
    assert asked.statistics.refs == {column("id")}
    assert asked.statistics.result().num_records is not None


def test_a_statement_without_on_parses_nothing() -> None:
    assert ask(command(), DeleteSpec(condition="id = 3"), ROWS).statistics.parsing is None


def test_settings_are_the_sessions_unless_they_are_given() -> None:
    started = command(spark__databricks__delta__stats__skipping="false")
    spec = MergeSpec(on="t.id = s.id", clauses=CLAUSES)
    asked = ask(started, spec, ROWS)
    assert not asked.settings.skips_by_statistics
    assert asked.statistics.parsing is None
    assert ask(started, spec, ROWS, ExecutionSettings()).settings == ExecutionSettings()


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ((), ErrorCode.MERGE_MISSING_WHEN),
        (CLAUSES * 2, ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION),
    ],
)
def test_clauses_that_make_no_statement(clauses: Any, code: ErrorCode) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ask(command(), MergeSpec(on="t.id = s.id", clauses=clauses), ROWS)
    assert refused.value.code is code


@pytest.mark.spark
def test_replace_where_is_a_merge_that_matches_nothing(spark: Any) -> None:
    assert spark is not None
    spec = ReplaceSpec(where="id > 3", columns=("id", "a b"), evolves=False, operation=WRITE)
    made = spec.as_merge()
    (inserted,), (deleted,) = made.not_matched, made.not_matched_by_source
    assert [a.column for a in inserted.action.assignments] == ["`id`", "`a b`"]  # type: ignore[union-attr]
    assert (made.matched, deleted.action, deleted.condition) == ((), Delete(), "id > 3")
