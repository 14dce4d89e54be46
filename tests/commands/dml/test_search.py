"""Stage 5: positions by clause, from what workers or a join have counted."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.dml.positions import SOURCE_SETS, RowPositions, positions_of, united
from puredelta.commands.dml.search import search
from puredelta.commands.dml.search_plan import Search, SearchPlan
from puredelta.protocol.schema.predicates import TRUE
from puredelta.spark.offload.key_lookup import KeyLookup
from puredelta.worker.lookup.conditions import NO_CLAUSE
from tests.commands.dml.statements import DELETE as DELETED
from tests.commands.dml.statements import (
    by_source,
    context_of,
    insert,
    matched,
    rows,
    statement,
    update,
    words,
)

STATEMENT = statement(matched(DELETED), matched(update()), insert(), by_source())


def plan(how: Search, **more: Any) -> SearchPlan:
    return SearchPlan(
        candidates=context_of(STATEMENT).snapshot.files,
        num_files=0,
        search=how,
        read_predicate=TRUE,
        **more,
    )


def shown(sets: Any) -> Any:
    return [{file: bitmap.rows().tolist() for file, bitmap in some.items()} for some in sets]


def test_target_rows_are_sorted_by_the_clause_that_fires() -> None:
    found = words((0, 0, 3, 1), (1, 0, 5, 1), (1, 2, 7, 1), (2, 1, 9, 1))
    positions = positions_of(found, STATEMENT, finds_source_rows=False)
    assert shown(positions.matched) == [{0: [3]}, {0: [5], 2: [7]}]
    assert shown(positions.by_source) == [{1: [9]}]
    assert positions.source_of is None
    assert shown([positions.touched()]) == [{0: [3, 5], 2: [7], 1: [9]}]
    assert positions.describe() == "4 rows in 3 files"


def test_source_rows_are_named_where_the_plan_asks_for_them() -> None:
    found = words((1, 0, 5, 1), (SOURCE_SETS + 1, 0, 2, 1), (SOURCE_SETS + NO_CLAUSE, 0, 4, 1))
    positions = positions_of(found, STATEMENT, finds_source_rows=True)
    assert shown([positions.matched_source]) == [{0: [2, 4]}]
    assert positions.source_of is not None
    assert shown(positions.source_of) == [{}, {0: [2]}]


def test_a_source_row_that_updates_twice_does_not_make_the_new_row_alone() -> None:
    """M-74."""
    twice = words((1, 0, 5, 1), (1, 0, 6, 1), (SOURCE_SETS + 1, 0, 2, 2))
    assert positions_of(twice, STATEMENT, finds_source_rows=True).source_of is None
    deleted = words((0, 0, 5, 1), (0, 0, 6, 1), (SOURCE_SETS, 0, 2, 2))
    assert positions_of(deleted, STATEMENT, finds_source_rows=True).source_of is not None


@pytest.mark.parametrize("how", [Search.NOTHING, Search.WHOLE_FILES])
def test_nothing_is_looked_up_where_nothing_can_match(how: Search) -> None:
    def look_up(*_: Any) -> Any:
        raise AssertionError("looked up")

    lookup = KeyLookup(keys=(), conditions=None)
    found = search(context_of(STATEMENT), plan(how, lookup=lookup), look_up=look_up)
    assert (found.matched, found.by_source, found.matched_source) == (({}, {}), ({},), {})
    assert found.source_of == ({}, {}), "there is no source row"
    some = search(context_of(STATEMENT, num_source_rows=2), plan(how), look_up=look_up)
    assert some.source_of is None


def test_what_workers_counted_is_the_answer() -> None:
    asked: list[KeyLookup] = []

    def look_up(_context: Any, _plan: Any, lookup: KeyLookup) -> Any:
        asked.append(lookup)
        return words((1, 0, 5, 1))

    lookup = KeyLookup(keys=(), conditions=None)
    found = search(context_of(STATEMENT), plan(Search.INNER, lookup=lookup), look_up=look_up)
    assert asked == [lookup]
    assert shown(found.matched) == [{}, {0: [5]}]


def test_sets_are_united_file_by_file() -> None:
    both = united(rows(1, 2), rows(2, 3), rows(7, file=4))
    assert shown([both]) == [{0: [1, 2, 3], 4: [7]}]
    assert RowPositions().touched() == {}
