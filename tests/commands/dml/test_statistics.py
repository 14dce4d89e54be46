"""Statistics that are parsed while the statement is resolved and the source staged."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from puredelta.commands.dml.spec import FILES_MIN, StatisticsPrefetch
from puredelta.log.files.file_table import FileTable
from puredelta.log.files.stats_columns import NOTHING_PARSED, FileStatistics
from puredelta.log.skipping.pruning import prune
from puredelta.protocol.schema.predicates import Compare, CompareOp, Const, Ref, Side
from puredelta.protocol.schema.types import INTEGER, LONG
from tests.log.tables import add, config

ID, PART, SUB = (
    Ref(Side.TARGET, (name,), kind)
    for name, kind in (("id", LONG), ("part", INTEGER), ("sub", INTEGER))
)


CONDITION = "t.id = s.key AND t.sub > 5"


def files(count: int = FILES_MIN, **more: Any) -> FileTable:
    return FileTable.of(add(f"{n}.parquet", ids=(n, n + 1), **more) for n in range(count))


def prefetch(known: FileTable, **options: Any) -> StatisticsPrefetch:
    table = config(partitioned_by=("part",)) if "part" in options else config()
    options.pop("part", None)
    return StatisticsPrefetch(files=known, config=table, **options)


def parsed(statistics: FileStatistics) -> set[tuple[str, ...]]:
    return {path for path, _ in statistics.columns}


@pytest.mark.parametrize(
    "ask",
    [
        lambda fetch: fetch.including(frozenset({ID, SUB})),
        lambda fetch: fetch.guess(CONDITION),
        lambda fetch: fetch.guess("Column<'and(=(t.ID, s.key), >(`sub`, 5))'>"),
    ],
)
def test_what_on_asks_for_is_handed_over(
    ask: Callable[[StatisticsPrefetch], StatisticsPrefetch],
) -> None:
    known = files()
    statistics = ask(prefetch(known)).result()
    assert parsed(statistics) == {("id",), ("sub",)}
    found = prune(known, config(), Compare(CompareOp.LESS, ID, Const(10)), statistics=statistics)
    assert found.mask.to_pylist() == [n < 10 for n in range(FILES_MIN)]
    assert found.statistics is statistics, "nothing is parsed again"


def test_only_what_was_not_guessed_is_parsed_once_the_statement_is_known() -> None:
    guessed = prefetch(files()).guess("t.id = s.key")
    assert guessed.including(frozenset({ID})) is guessed
    more = guessed.including(frozenset({ID, SUB}))
    assert more.refs == {ID, SUB}
    (id_column,) = guessed.result().columns.values()
    assert id_column in more.result().columns.values()
    assert parsed(more.result()) == {("id",), ("sub",)}


def test_other_files_are_parsed_by_the_same_columns() -> None:
    first = prefetch(files()).including(frozenset({ID}))
    other = first.of(files(FILES_MIN + 1))
    assert parsed(other.result()) == {("id",)}
    assert len(other.files) == FILES_MIN + 1
    assert other.result() is not first.result()
    assert first.of(files(1)).result() is NOTHING_PARSED


@pytest.mark.parametrize(
    "fetch",
    [
        lambda: prefetch(files(FILES_MIN - 1)).including(frozenset({ID})),
        lambda: prefetch(files(FILES_MIN - 1)).guess("t.id = s.id"),
        lambda: prefetch(files()).including(frozenset()),
        lambda: prefetch(files()).guess("false"),
        lambda: prefetch(files(part={"part": "1"}), part=True).including(frozenset({ID, PART})),
        lambda: prefetch(files(part={"part": "1"}), part=True).guess("t.id = s.id, t.part"),
        lambda: prefetch(files(), by_statistics=False).guess("t.id = s.id"),
        lambda: prefetch(files(), by_statistics=False).including(frozenset({ID})),
    ],
)
def test_nothing_is_parsed_that_may_not_be_asked_for(
    fetch: Callable[[], StatisticsPrefetch],
) -> None:
    assert fetch().parsing is None
    assert fetch().result() is NOTHING_PARSED


def test_few_files_do_not_ask_what_a_condition_says() -> None:
    class Condition:
        def __str__(self) -> str:
            raise AssertionError("asked for its text, of the JVM")

    prefetch(files(FILES_MIN - 1)).guess(Condition())
    prefetch(files(), by_statistics=False).guess(Condition())


def test_errors_are_left_to_who_asks_next() -> None:
    broken: Future[FileStatistics] = Future()
    broken.set_exception(ValueError("no statistics"))
    fetch = replace(prefetch(files()), parsing=broken)
    assert fetch.result() is NOTHING_PARSED
    assert parsed(fetch.including(frozenset({ID})).result()) == {("id",)}
