"""M-08, M-09: the shape of a statement, before any name is looked at."""

from __future__ import annotations

import pytest

from puredelta.commands.dml.spec import (
    Clause,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
    action_word,
    require_clauses,
)
from puredelta.errors import ErrorCode, InvalidRequestError


def spec(*clauses: Clause) -> MergeSpec:
    return MergeSpec(on="true", clauses=clauses)


def test_a_statement_needs_a_clause() -> None:
    with pytest.raises(InvalidRequestError, match="at least one WHEN clause") as caught:
        require_clauses(spec())
    assert caught.value.code is ErrorCode.MERGE_MISSING_WHEN


@pytest.mark.parametrize(
    ("clauses", "code", "kind"),
    [
        (
            (Matched(Delete()), Matched(Update(Star.STAR), "a")),
            ErrorCode.NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION,
            "the last MATCHED clause",
        ),
        (
            (NotMatched(Insert(())), NotMatched(Insert(()))),
            ErrorCode.NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION,
            "the last NOT MATCHED clause",
        ),
        (
            (NotMatchedBySource(Delete()), Matched(Delete()), NotMatchedBySource(Delete(), "a")),
            ErrorCode.NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION,
            "the last NOT MATCHED BY SOURCE clause",
        ),
    ],
)
def test_only_the_last_of_a_kind_may_omit_its_condition(
    clauses: tuple[Clause, ...], code: ErrorCode, kind: str
) -> None:
    with pytest.raises(InvalidRequestError, match=kind) as caught:
        require_clauses(spec(*clauses))
    assert caught.value.code is code


def test_kinds_may_be_interleaved() -> None:
    some = spec(
        NotMatched(Insert(Star.STAR), "a"),
        Matched(Delete(), "a"),
        NotMatchedBySource(Delete()),
        NotMatched(Insert(Star.STAR)),
        Matched(Update(Star.STAR)),
    )
    require_clauses(some)
    assert [action_word(c) for c in some.matched] == ["delete", "update"]
    assert [c.condition for c in some.not_matched] == ["a", None]
    assert len(some.not_matched_by_source) == 1
